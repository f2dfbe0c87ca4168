"""Mean and variance of each transformed input in one pass, and between which ends it lies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.features.additive import AdditiveMap
from dkl.features.inputs import prepare_inputs
from dkl.kernels import Kernel
from dkl.sums.spread import Spread, spread_of
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram


class InputMoments(NamedTuple):
    """The Spread of t(X), and the least and the largest entry of each column."""

    spread: Spread
    low: np.ndarray
    high: np.ndarray

    @property
    def weight(self) -> float:
        return self.spread.weight

    @property
    def mean(self) -> np.ndarray:
        return self.spread.mean

    @property
    def variance(self) -> np.ndarray:
        return self.spread.variance

    def __add__(self, other: InputMoments) -> InputMoments:  # type: ignore[override]
        return InputMoments(
            self.spread + other.spread, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )


class MomentProgram(TreeProgram):
    """Pass over X: its InputMoments."""

    def __init__(self, kernel: Kernel, c: float, additive: AdditiveMap | None = None) -> None:
        self.kernel, self.c, self.additive = kernel, c, additive

    def value(self, data: tuple) -> InputMoments:
        """Moments of one block."""
        X, weight = data
        T = prepare_inputs(X, self.kernel, self.c, np.dtype(np.float64), self.additive)
        w = check_weights(weight, T.shape[0])
        total = float(w.sum())
        if not hasattr(T, "multiply"):
            return InputMoments(spread_of(T, w), T.min(axis=0), T.max(axis=0))
        ends = _sparse_ends(T)
        if not total:
            none = np.zeros(T.shape[1])
            return InputMoments(Spread(0.0, none, none), *ends)
        mean = np.asarray(T.T @ w).reshape(-1) / total
        squares = np.asarray(T.multiply(T).tocsr().T @ w).reshape(-1)
        return InputMoments(Spread(total, mean, np.maximum(squares - total * mean * mean, 0)), *ends)


def _sparse_ends(T: Any) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest entry of each column, zeros among them: a column of sparse rows has some, or may have."""
    low, high = np.zeros(T.shape[1]), np.zeros(T.shape[1])
    np.minimum.at(low, T.indices, T.data)
    np.maximum.at(high, T.indices, T.data)
    return low, high
