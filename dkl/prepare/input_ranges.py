"""The standard deviation and the range of each input, from one pass over X.

sigma has the unit 1 / input, so sigma * spread can be compared between inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

UNEVEN = 10.0
"""Spreads of inputs that share a sigma may differ by this factor."""


class Extent(NamedTuple):
    """Standard deviation of t(x), the kernel's variable, for each input; minimum and maximum x of rows with weight."""

    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray


def extent_of(moments: Any, inputs: int) -> Extent | None:
    """The extent of the inputs; an exponentiated kernel has several terms per input."""
    if moments is None or not moments.weight:
        return None
    extent = Extent(np.sqrt(moments.variance.reshape(-1, inputs).sum(axis=0)), moments.low, moments.high)
    return extent if np.isfinite(extent).all() else None


def unevenness(spread: np.ndarray, groups: np.ndarray) -> float:
    """The largest ratio of the spreads of two varying inputs that share a sigma."""
    factor = 1.0
    for group in np.unique(groups):
        own = spread[(groups == group) & (spread > 0)]
        if len(own):
            factor = max(factor, float(own.max() / own.min()))
    return factor
