"""One kernel of a sum, k_j(x, y): a kernel, its sigma, and the inputs it sees; and scores of a fitted sum.

f(x) = sum_j d_j k_j(x, X) a + b0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.features.kernel_inputs import prepare_inputs
from dkl.features.refusal import Refusal
from dkl.kernels import Kernel
from dkl.kernels.values import kernel_values


@dataclass(frozen=True)
class BaseKernel:
    """A kernel of some inputs."""

    kernel: Kernel
    skew: float
    sigma: np.ndarray  # one for each of its inputs
    inputs: np.ndarray  # their columns in X

    def variables(self, X: Any) -> np.ndarray:
        """t(x) of its inputs, dense; an entry outside of its domain is refused."""
        own = X[:, self.inputs]
        try:
            T = prepare_inputs(own, self.kernel, self.skew, np.dtype(np.float64))
        except Refusal as refusal:
            raise Refusal(refusal.row, refusal.template, int(self.inputs[refusal.column])) from None
        return np.asarray(T.toarray() if hasattr(T, "toarray") else T)

    def values(self, T: np.ndarray, S: np.ndarray) -> np.ndarray:
        """k_j of two sets of rows in its variables."""
        return kernel_values(self.kernel, self.sigma, T, S)


@dataclass(frozen=True)
class SumScores:
    """Scores of a block (rows, c); kernels of zero weight are left out."""

    kernels: tuple[BaseKernel, ...]
    weights: tuple[float, ...]
    T: tuple[np.ndarray, ...]  # rows of the fit, in the variables of each kernel
    coef: np.ndarray  # (n, c)
    intercept: np.ndarray  # (c,)

    def __call__(self, X: Any) -> np.ndarray:
        out = np.tile(self.intercept, (X.shape[0], 1))
        for kernel, weight, T in zip(self.kernels, self.weights, self.T, strict=True):
            out += weight * (kernel.values(kernel.variables(X), T) @ self.coef)
        return out


@dataclass(frozen=True)
class GramScores:
    """Scores of a block of precomputed kernel values (rows, r n), the kernels side by side."""

    coef: np.ndarray  # (r n, c)
    intercept: np.ndarray  # (c,)

    def __call__(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef + self.intercept)
