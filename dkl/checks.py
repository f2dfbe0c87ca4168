"""Checks of arguments: each error says in one line what came and what to type instead."""

from __future__ import annotations

import difflib
import inspect
import os
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """value, if it is one of choices; otherwise the error suggests the nearest."""
    choices = list(choices)
    if isinstance(value, str) and value in choices:
        return value
    near = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? Use" if near else "use"
    raise ValueError(f"{name}={value!r} is not known; {hint} one of {', '.join(map(repr, choices))}")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """value as an int, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}")
    return int(value)


def check_nonnegative(name: str, values: Any) -> np.ndarray:
    """values as a finite float64 array with no negative entry."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or array.size == 0:
        raise ValueError(f"{name}={values!r} must be a number or an array of numbers")
    array = array.astype(np.float64)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        raise ValueError(f"{name} contains {array[bad].item(0)!r}; use finite numbers >= 0")
    return array


def check_positive(name: str, value: Any) -> float:
    """value as a finite float above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
        raise ValueError(f"{name}={value!r} must be a finite number above 0")
    return float(value)


def check_axes(name: str, wanted: Any) -> None:
    """Refuse anything but a count of principal axes, a share of the variance below 1, or "mle"."""
    if isinstance(wanted, str):
        check_choice(name, wanted, ["mle"])
    elif check_positive(name, wanted) >= 1:
        check_count(name, wanted)


def check_width(got: int, expected: int, who: str, name: str = "X") -> None:
    """Refuse another number of inputs, in scikit-learn's words."""
    if got != expected:
        raise ValueError(f"{name} has {got} features, but {who} is expecting {expected} features as input")


def first_where(block: Any, test: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int, Any] | None:
    """(row, column, value) of the first entry, in row order, that passes the test; only stored entries of a sparse "
    "block."""
    if not hasattr(block, "tocoo"):
        found = test(block)
        if not found.any():
            return None
        row, column = np.unravel_index(np.argmax(found), block.shape)
        return int(row), int(column), block[row, column]
    coo = block.tocoo()
    found = np.flatnonzero(test(coo.data))
    if not len(found):
        return None
    rows, columns = coo.row, coo.col
    first = found[np.lexsort((columns[found], rows[found]))[0]]
    return int(rows[first]), int(columns[first]), coo.data[first]


def not_finite_entries(values: np.ndarray) -> np.ndarray:
    """Where values are NaN or infinite."""
    return ~np.isfinite(values)


def not_finite(name: str, row: int | str, column: int | str, value: Any) -> str:
    """The message for NaN and infinity; scikit-learn's checks expect these words."""
    what = "NaN" if np.isnan(value) else "infinity"
    return f"{name} contains {what} at row {row}, column {column}; remove or impute it"


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the caller's line: the nearest frame outside dkl and scikit-learn."""
    frame, level, own = inspect.currentframe(), 1, os.path.dirname(os.path.abspath(__file__)) + os.sep
    while frame is not None and (
        frame.f_code.co_filename.startswith(own) or f"{os.sep}sklearn{os.sep}" in frame.f_code.co_filename
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
