"""Slices of a kernel: k(delta e_j, 0), exact and by its random features."""

from __future__ import annotations

import numpy as np

from dkl.features.fourier import FourierMap
from dkl.features.inputs import kernel_inputs
from dkl.kernels import exact_kernel

REACH = 4.0
"""Slices go to delta = 4 / sigma, where every profile is below 0.02 of its height."""


def slice_range(features: FourierMap, start: np.ndarray | None, chosen: list[int]) -> np.ndarray:
    """delta from 0 to 4 / sigma of the widest slice, but no more than three times that of the narrowest."""
    sigma = features.sigma[chosen] if start is None or features.sigma[chosen].any() else start[chosen]
    sigma = sigma[sigma > 0] if sigma.any() else np.ones(1)
    t = np.linspace(0, min(REACH / sigma.min(), 3 * REACH / sigma.max()), 401)
    if features.kernel.additive is not None:
        return t * t  # |Phi(delta)|^2 = delta
    return features.skew * np.expm1(t) if features.kernel.skewed else t


def kernel_slice(features: FourierMap, j: int, delta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """k(delta e_j, 0), exact and by random features: that of the map of input j alone."""
    alone = features.of_input(j)
    T = kernel_inputs(delta[:, None], alone.kernel, alone.skew, np.dtype(np.float64))
    Psi = alone.at(np.float64).transform(delta[:, None])
    return exact_kernel(alone.kernel, alone.sigma, T, T[:1])[:, 0], Psi @ Psi[0]
