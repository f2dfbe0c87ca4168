"""Mean and variance of each transformed input in one pass: (w, mean, M2) records that merge exactly.

M2 = M2_a + M2_b + (w_a w_b / w) (mean_b - mean_a)^2
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.features.additive import AdditiveMap
from dkl.features.inputs import prepare_inputs
from dkl.kernels import Kernel
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram


class InputMoments(NamedTuple):
    """Weight, mean and centred square sum of each input."""

    weight: float
    mean: np.ndarray
    m2: np.ndarray

    def __add__(self, other: InputMoments) -> InputMoments:  # type: ignore[override]
        w = self.weight + other.weight
        if w == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.weight / w)
        return InputMoments(w, mean, self.m2 + other.m2 + step * step * (self.weight * other.weight / w))

    @property
    def variance(self) -> np.ndarray:
        return self.m2 / self.weight if self.weight else np.zeros_like(self.m2)


class MomentProgram(TreeProgram):
    """Pass over X: InputMoments of t(X)."""

    def __init__(self, kernel: Kernel, c: float, additive: AdditiveMap | None = None) -> None:
        self.kernel, self.c, self.additive = kernel, c, additive

    def value(self, data: tuple) -> InputMoments:
        """Moments of one block."""
        X, weight = data
        T = prepare_inputs(X, self.kernel, self.c, np.dtype(np.float64), self.additive)
        w = check_weights(weight, T.shape[0])
        total = float(w.sum())
        if not total:
            return InputMoments(0.0, np.zeros(T.shape[1]), np.zeros(T.shape[1]))
        mean = _weighted(T, w) / total
        if hasattr(T, "multiply"):
            m2 = np.maximum(_weighted(T.multiply(T).tocsr(), w) - total * mean * mean, 0)
        else:
            centred = T - mean
            centred *= centred
            m2 = w @ centred
        return InputMoments(total, mean, m2)


def _weighted(T: Any, w: np.ndarray) -> np.ndarray:
    return np.asarray(T.T @ w).reshape(-1)
