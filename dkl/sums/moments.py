"""Mean and variance of each transformed input in one pass."""

from __future__ import annotations

import numpy as np

from dkl.features.additive import AdditiveMap
from dkl.features.inputs import prepare_inputs
from dkl.kernels import Kernel
from dkl.sums.spread import Spread, spread_of
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram


class MomentProgram(TreeProgram):
    """Pass over X: the Spread of t(X)."""

    task = "scale"

    def __init__(self, kernel: Kernel, c: float, additive: AdditiveMap | None = None) -> None:
        self.kernel, self.c, self.additive = kernel, c, additive

    def value(self, data: tuple) -> Spread:
        """Moments of one block."""
        X, weight = data
        T = prepare_inputs(X, self.kernel, self.c, np.dtype(np.float64), self.additive)
        w = check_weights(weight, T.shape[0])
        total = float(w.sum())
        if not hasattr(T, "multiply") or not total:
            return spread_of(T, w)
        mean = np.asarray(T.T @ w).reshape(-1) / total
        squares = np.asarray(T.multiply(T).tocsr().T @ w).reshape(-1)
        return Spread(total, mean, np.maximum(squares - total * mean * mean, 0))
