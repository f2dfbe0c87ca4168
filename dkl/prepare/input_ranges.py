"""What a pass over X says of each input: how far its values spread and between which ends they lie.

sigma is counted in 1 / unit of an input, so sigma * spread is what can be compared between inputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

UNEVEN = 10.0
"""Spreads of inputs that share a sigma may differ by this factor."""


class Extent(NamedTuple):
    """Standard deviation of what the kernel sees of each input, t(x); least and greatest x of rows with weight."""

    spread: np.ndarray
    low: np.ndarray
    high: np.ndarray


def extent_of(moments: Any, inputs: int) -> Extent | None:
    """The extent of so many inputs; an exponentiated kernel sees several terms of each."""
    if moments is None or not moments.weight:
        return None
    extent = Extent(np.sqrt(moments.variance.reshape(-1, inputs).sum(axis=0)), moments.low, moments.high)
    return extent if np.isfinite(extent).all() else None


def unevenness(spread: np.ndarray, groups: np.ndarray) -> float:
    """The greatest factor between the spreads of two inputs that vary and share a sigma."""
    factor = 1.0
    for group in np.unique(groups):
        own = spread[(groups == group) & (spread > 0)]
        if len(own):
            factor = max(factor, float(own.max() / own.min()))
    return factor
