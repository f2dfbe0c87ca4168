"""The steps of `--scale`, in the order in which they are listed: what each does to a row, and what it learns first.

    minmax, standard   (x - shift) factor             column by column (store/column_constants.py)
    l1                 x / sum |x|                     row by row
    gcn:b              (x - mean) / sqrt(b + var)      row by row: global contrast normalisation
    zca:eps            (x - mean) W                    store/zca.py

gcn has no bias unless one is given (Goodfellow et al. 2013): then bytes from 0 to 255 and fractions from 0 to 1 give
the same inputs; `gcn:10` is what Coates et al. (2011) took for small patches of bytes. Their eps of zca is 0.1, for
inputs of variance one, as gcn makes them; here it is a share of the mean variance, in any unit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from dkl.checks import check_choice
from dkl.store.zca import Whitening

ROUNDING = 1e-12
"""A row whose entries differ by less, relative to their size, is constant."""


class Constants(Protocol):
    """What steps have learned from the training rows."""

    @property
    def shift(self) -> tuple[float, ...] | None: ...

    @property
    def factor(self) -> tuple[float, ...] | None: ...

    @property
    def whitening(self) -> Whitening | None: ...


def known_in(constants: Constants, name: str) -> Any:
    """A constant that the training rows determined; a recipe without it is refused."""
    value = getattr(constants, name)
    if value is None:
        raise ValueError(f"the recipe of the data set is damaged: its {name} is {value}; ingest the source again")
    return value


def by_column(X: np.ndarray, known: Constants, number: float) -> np.ndarray:
    """(x - shift) * factor."""
    return (X - np.array(known_in(known, "shift"))) * np.array(known_in(known, "factor"))


def sum_to_one(X: np.ndarray, known: Constants, number: float) -> np.ndarray:
    """Rows whose absolute values sum to one; zeros stay."""
    total = np.abs(X.astype(np.float64)).sum(axis=1, keepdims=True)
    return X / np.where(total > 0, total, 1.0)


def contrast(X: np.ndarray, known: Constants, bias: float) -> np.ndarray:
    """(x - mean) / sqrt(bias + variance) of each row; a constant row is zero."""
    X = np.ascontiguousarray(X, np.float64)
    centred = X - X.mean(axis=1, keepdims=True)
    size = np.abs(centred).max(axis=1, keepdims=True)
    flat = size <= ROUNDING * np.abs(X).max(axis=1, keepdims=True)
    centred[flat[:, 0]], size[flat] = 0.0, 1.0
    centred /= size  # squares neither overflow nor vanish
    deviation = np.sqrt(np.square(centred).mean(axis=1, keepdims=True))
    centred /= np.where(flat, 1.0, np.hypot(np.sqrt(bias) / size, deviation))
    return centred


def whiten(X: np.ndarray, known: Constants, number: float) -> np.ndarray:
    """(x - mean) W."""
    return known_in(known, "whitening").rows(X)


def column_entries(data: np.ndarray, rows: np.ndarray, columns: np.ndarray, n: int, known: Constants) -> np.ndarray:
    """Stored entries times the factor of their column."""
    return data * np.array(known_in(known, "factor"))[columns]


def entries_to_one(data: np.ndarray, rows: np.ndarray, columns: np.ndarray, n: int, known: Constants) -> np.ndarray:
    """Stored entries over the sum of their row."""
    total = np.bincount(rows, np.abs(data), n)
    return data / np.where(total > 0, total, 1.0)[rows]


class Kind(NamedTuple):
    """A step: rows in, rows out."""

    about: str
    rows: Callable[[np.ndarray, Constants, float], np.ndarray]
    entries: Callable[..., np.ndarray] | None = None
    """The same for stored entries of sparse rows; None: rows become dense, and all columns must be numbers."""
    learns: str = ""
    """The constant that the training rows determine."""
    number: tuple[str, float, bool] | None = None
    """Name and default of the number behind the colon, and whether it may be zero; None: it has none."""

    @property
    def is_by_column(self) -> bool:
        """Whether each column has constants of its own."""
        return self.rows is by_column


KINDS = {
    "minmax": Kind("[-1, 1]", by_column, column_entries, learns="factor"),
    "standard": Kind("mean 0, deviation 1", by_column, column_entries, learns="factor"),
    "l1": Kind("histograms", sum_to_one, entries_to_one),
    "gcn": Kind("contrast of a row", contrast, number=("bias", 0.0, True)),
    "zca": Kind("whitening", whiten, learns="whitening", number=("eps", 0.1, False)),
}
NONE = "none"


class Step(NamedTuple):
    """A step with its number."""

    name: str
    number: float = 0.0

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def __str__(self) -> str:
        return self.name if self.kind.number is None else f"{self.name}:{repr(self.number).removesuffix('.0')}"


def parse_steps(text: str) -> tuple[Step, ...]:
    """The steps of "gcn+zca:0.01"; () for "none"."""
    if text == NONE:
        return ()
    steps = tuple(map(_parse_step, text.split("+")))
    names = [step.name for step in steps]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"scale={text!r} lists {name} {names.count(name)} times; once is enough")
    columns = [step.name for step in steps if step.kind.is_by_column]
    if len(columns) > 1:
        raise ValueError(f"scale={text!r}: {columns[1]} undoes {columns[0]}; leave one of them out")
    return steps


def _parse_step(text: str) -> Step:
    name, colon, number = text.partition(":")
    check_choice("scale", name, [NONE, *KINDS])
    if name == NONE:
        raise ValueError("scale='none' is no step to combine with others; leave it out")
    takes = KINDS[name].number
    if takes is None:
        if colon:
            raise ValueError(f"scale={text!r}: {name} takes no number; type {name}")
        return Step(name)
    what, default, may_be_zero = takes
    try:
        value = float(number) if colon else default
    except ValueError:
        value = float("nan")
    if not (0 <= value < float("inf")) or (value == 0 and not may_be_zero):
        least = "at least 0" if may_be_zero else "above 0"
        raise ValueError(f"scale={text!r}: {what} must be a number {least}; type {name}, or for example {name}:0.1")
    return Step(name, value)


def written(steps: Any) -> str:
    """Steps as text, with every number: what a recipe stores."""
    return "+".join(map(str, steps)) or NONE


def needs_dense(steps: tuple[Step, ...]) -> bool:
    """Whether a step makes all entries of a row differ from zero."""
    return any(step.kind.entries is None for step in steps)
