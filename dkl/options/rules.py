"""What one parameter may be, whatever the others and the data are."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dkl.checks import check_axes, check_choice, check_count, check_nonnegative, check_positive
from dkl.losses import find_loss
from dkl.options.option import Rule
from dkl.penalties import find_penalty

DTYPES = ("float32", "float64")

count: Rule = check_count
positive: Rule = check_positive
axes: Rule = check_axes


def whole(name: str, value: Any) -> None:
    """A whole number from 0 on."""
    check_count(name, value, least=0)


def loss(name: str, value: Any) -> None:
    """The name of a loss, with its parameters."""
    if not isinstance(value, str):
        raise ValueError(f"{name}={value!r} must be the name of a loss, e.g. 'log_loss' or 'huber:delta=2'")
    find_loss(value)


def penalty(name: str, value: Any) -> None:
    """The name of a penalty, perhaps with a ridge beside it."""
    if not isinstance(value, str):
        raise ValueError(f"{name}={value!r} must be the name of a penalty, e.g. 'l1' or 'l1:ridge=0.5'")
    find_penalty(value)


def numbers_or(word: str) -> Rule:
    """Numbers >= 0, or one word."""

    def rule(name: str, value: Any) -> None:
        if isinstance(value, str):
            check_choice(name, value, [word])
        else:
            check_nonnegative(name, value)

    return rule


def nonnegative(name: str, value: Any) -> None:
    """One number >= 0."""
    if check_nonnegative(name, value).ndim:
        raise ValueError(f"{name}={value!r} must be one number >= 0")


def folds(name: str, value: Any) -> None:
    """A number of folds is at least two; folds of rows and splitters are checked with the rows."""
    if isinstance(value, (int, np.integer, float, str)):
        check_count(name, value, least=2)


def block_share(name: str, value: Any) -> None:
    """A share of the blocks."""
    if check_positive(name, value) > 1:
        raise ValueError(f"{name}={value!r} must be a share of the blocks above 0, at most 1")


def is_share(value: Any) -> bool:
    """Whether rows are held out by their share, not by a mask."""
    return not hasattr(value, "shape") and np.ndim(value) == 0


def held_share(name: str, value: Any) -> None:
    """A share of the rows; a mask is checked with the rows."""
    if is_share(value) and not 0.005 < check_positive(name, value) < 0.995:
        raise ValueError(f"{name}={value!r} must be a share of the rows between 0.01 and 0.99, or a mask")


def early_share(name: str, value: Any) -> None:
    """A share of the rows, "auto", or 0 for none."""
    if not isinstance(value, str) and not value:
        return
    if value != "auto" and (isinstance(value, bool | str) or not 0.01 <= check_positive(name, value) <= 0.5):
        raise ValueError(f"{name}={value!r} must be 'auto', None, or a share of the rows from 0.01 to 0.5")


def yes_or_no(name: str, value: Any) -> None:
    """True or False, or numpy's."""
    if not isinstance(value, (bool, np.bool_, int, np.integer)) or value not in (0, 1):
        raise ValueError(f"{name}={value!r} must be True or False")


def precision(name: str, value: Any) -> None:
    """A dtype of numpy or its name."""
    known = isinstance(value, (type, np.dtype)) and getattr(value, "__module__", "") != "builtins"
    check_choice(name, np.dtype(value).name if known else value, DTYPES)


def folder(name: str, value: Any) -> None:
    """The path or URL of a folder."""
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"{name}={value!r} must be the path or URL of a folder, e.g. {name}='folder'")


def image_shape(name: str, value: Any) -> None:
    """Height and width in pixels."""
    if not isinstance(value, (tuple, list, np.ndarray)) or len(value) != 2:
        raise ValueError(f"{name}={value!r} must be the height and width of grey patches, e.g. {name}=(16, 16)")
    for side in value:
        check_count(name, side)
