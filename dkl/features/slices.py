"""Slices of a kernel: k(delta e_j, 0), exact and by its random features."""

from __future__ import annotations

import numpy as np

from dkl.features.fourier import FourierMap
from dkl.features.kernel_inputs import kernel_inputs
from dkl.kernels import Kernel, exact_kernel

REACH = 4.0
"""Slices go to delta = 4 / sigma, where every profile is below 0.02 of its height."""


def slice_range(kernel: Kernel, skew: float, sigma: np.ndarray) -> np.ndarray:
    """delta from 0 to 4 / sigma of the widest slice, but no more than three times that of the narrowest."""
    sigma = sigma[sigma > 0] if sigma.any() else np.ones(1)
    t = np.linspace(0, min(REACH / sigma.min(), 3 * REACH / sigma.max()), 401)
    if kernel.additive is not None:
        return t * t  # |Phi(delta)|^2 = delta
    return skew * np.expm1(t) if kernel.skewed else t


def exact_slice(kernel: Kernel, skew: float, sigma: float, delta: np.ndarray) -> np.ndarray:
    """k(delta e_j, 0) at sigma of input j."""
    T = kernel_inputs(delta[:, None], kernel, skew, np.dtype(np.float64))
    return exact_kernel(kernel, np.array([sigma]), T, T[:1])[:, 0]


def random_slice(features: FourierMap, j: int, delta: np.ndarray) -> np.ndarray:
    """psi(delta e_j)'psi(0) of the map of input j alone."""
    Psi = features.of_input(j).at(np.float64).transform(delta[:, None])
    return np.asarray(Psi @ Psi[0])
