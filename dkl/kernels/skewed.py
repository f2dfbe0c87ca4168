"""Skewed kernels of histograms: shift invariant in t(x) = log(1 + x / c).

    skewed chi2           sech(a) = 2 (x+c)^s (y+c)^s / ((x+c)^2s + (y+c)^2s)
    skewed intersection   exp(-a) = min(((x+c)/(y+c))^s, ((y+c)/(x+c))^s),   a = s |t(x) - t(y)|

log(1 + x / c) differs from the papers' log(x + c) by a constant, which cancels in the kernel. It maps zero to zero, so
sparse histograms stay sparse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.kernels.kernel import Kernel
from dkl.kernels.shift_invariant import cauchy, exponential


def sech(a: np.ndarray) -> np.ndarray:
    """2 exp(-a) / (1 + exp(-2a))"""
    return 2 * np.exp(-a) / (1 + np.exp(-2 * a))


def sech_quantile(u: np.ndarray) -> np.ndarray:
    """(2 / pi) log tan(pi u / 2)"""
    return (2 / np.pi) * np.log(np.tan(0.5 * np.pi * u))


def skew(block: Any, c: float) -> Any:
    """t(x) = log(1 + x / c); of a sparse block, the stored entries only."""
    if hasattr(block, "tocoo"):
        block = block.copy()
        block.data = np.log1p(block.data / block.dtype.type(c))
        return block
    return np.log1p(block / block.dtype.type(c))


SKEWED = (
    Kernel("skewed_chi2", sech, sech_quantile, skewed=True),
    Kernel("skewed_intersection", exponential, cauchy, skewed=True, mean_absolute=True),
)
