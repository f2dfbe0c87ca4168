"""A kernel is a profile k1, the quantile h of its spectral density, and an input transform.

    k(x, y) = prod_j k1(sigma_j (t(x_j) - t(y_j))),   h(u) ~ spectral density of k1 for u ~ U(0, 1)

An isotropic kernel is one profile of the Euclidean norm instead of a product over the inputs; its
frequencies are a Gaussian vector times one random radius.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SMALLEST = 2.0**-53
"""Uniform numbers are clipped to [2^-53, 1 - 2^-53], where every quantile is finite."""


@dataclass(frozen=True)
class Kernel:
    """One row of the kernel table; `degrees` are the degrees of freedom of an isotropic kernel's Student t spectrum."""

    name: str
    profile: Callable[[np.ndarray], np.ndarray]
    lower_quantile: Callable[[np.ndarray], np.ndarray] | None = None
    isotropic: bool = False
    degrees: float = np.inf
    skewed: bool = False
    mean_absolute: bool = False
    additive: str | None = None  # the additive kernel whose distance is exponentiated

    def quantile(self, u: np.ndarray) -> np.ndarray:
        """h(u), evaluated on the lower half and mirrored, so that 1 - u is never rounded."""
        assert self.lower_quantile is not None
        u = np.clip(u, SMALLEST, 1 - SMALLEST)
        half = self.lower_quantile(np.minimum(u, 1 - u))
        return np.where(u <= 0.5, half, -half)

    def start_sigma(self, mean_square: np.ndarray, spread: np.ndarray) -> float:
        """sigma at which the mean exponent over pairs is about one, from the moments of t(x)."""
        total = spread.sum() if self.mean_absolute else np.sqrt(mean_square.sum())
        return 1.0 / total if total > 0 else 1.0
