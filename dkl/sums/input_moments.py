"""Mean and variance of each transformed input, and the ends of each input, in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.features.additive import AdditiveMap
from dkl.features.kernel_inputs import prepare_inputs
from dkl.kernels import Kernel
from dkl.sums.spread import Spread, spread_of
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram


class InputMoments(NamedTuple):
    """The Spread of t(X), and the least and greatest entry of each column of X; inf and -inf where no row counts."""

    spread: Spread
    low: np.ndarray
    high: np.ndarray

    def __add__(self, other: InputMoments) -> InputMoments:  # type: ignore[override]
        ends = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return InputMoments(self.spread + other.spread, *ends)

    @property
    def weight(self) -> float:
        """Of all rows."""
        return self.spread.weight

    @property
    def mean(self) -> np.ndarray:
        """Of each column of t(X)."""
        return self.spread.mean

    @property
    def variance(self) -> np.ndarray:
        """Of each column of t(X)."""
        return self.spread.variance


class MomentProgram(TreeProgram[InputMoments]):
    """Pass over X: its InputMoments."""

    task = "scale"

    def __init__(self, kernel: Kernel, c: float, additive: AdditiveMap | None = None) -> None:
        self.kernel, self.c, self.additive = kernel, c, additive

    def value(self, data: tuple[Any, ...]) -> InputMoments:
        """Moments of one block."""
        X, weight = data
        T = prepare_inputs(X, self.kernel, self.c, np.dtype(np.float64), self.additive)
        w = check_weights(weight, T.shape[0])
        total = float(w.sum())
        ends = _ends(X if w.all() else X[np.flatnonzero(w)])
        if not hasattr(T, "multiply"):
            return InputMoments(spread_of(T, w), *ends)
        if not total:
            none = np.zeros(T.shape[1])
            return InputMoments(Spread(0.0, none, none), *ends)
        mean = np.asarray(T.T @ w).ravel() / total
        squares = np.asarray(T.multiply(T).tocsr().T @ w).ravel()
        return InputMoments(Spread(total, mean, np.maximum(squares - total * mean * mean, 0)), *ends)


def _ends(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest entry of each column."""
    if not X.shape[0]:
        return np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    if not hasattr(X, "multiply"):
        return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    X = X.tocsc()
    low, high = (np.asarray(end.toarray(), np.float64).ravel() for end in (X.min(axis=0), X.max(axis=0)))
    return low, high
