"""Whitening of landmarks, and the ridge at which their leverage is counted.

K = U diag(D) U',   V = U diag(D)^(-1/2),   so (K V)(K V)' = K
lam with sum_i D_i / (D_i + lam) = count,   the ridge at which so many directions matter
"""

from __future__ import annotations

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.axes import LEAST, LEAST_NARROW, axes_cost


def whitening_cost(landmarks: int, inputs: int) -> SolveCost:
    """Kernel values of so many landmarks and their eigendecomposition."""
    return axes_cost([landmarks]) + SolveCost(8 * 4 * landmarks * inputs, 2.0 * landmarks * landmarks * inputs)


def whitening(K: np.ndarray, narrow: bool) -> np.ndarray:
    """V (r, d), without directions that are rounding; the largest eigenvalue first."""
    values, vectors = np.linalg.eigh(K)
    values, vectors = values[::-1], vectors[:, ::-1]
    sound = values > (LEAST_NARROW if narrow else LEAST) * values[0]
    return np.ascontiguousarray(vectors[:, sound] / np.sqrt(values[sound]))


def ridge_for(values: np.ndarray, count: float) -> float:
    """lam at which the effective dimension of a spectrum is `count` (at most half of its length), by bisection."""
    values = np.maximum(values, 0.0)
    count = min(count, 0.5 * np.count_nonzero(values > 0))
    low, high = np.log(values.max()) - 60.0, np.log(values.sum()) - np.log(count)
    for _ in range(100):
        middle = (low + high) / 2
        if (values / (values + np.exp(middle))).sum() > count:
            low = middle
        else:
            high = middle
    return float(np.exp(high))
