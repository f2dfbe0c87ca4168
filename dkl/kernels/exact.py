"""Exact kernel values: k(x, y) = prod_j k1(sigma_j delta_j), or k1(|sigma delta|) if isotropic.

An exponentiated kernel is exp(-sum_j sigma_j^2 d0(x_j, y_j)) with the distance d0 of its additive kernel.
"""

from __future__ import annotations

import numpy as np

from dkl.kernels.additive import ADDITIVE
from dkl.kernels.kernel import Kernel
from dkl.kernels.values import is_radial


def exact_kernel(kernel: Kernel, sigma: np.ndarray, T: np.ndarray, S: np.ndarray) -> np.ndarray:
    """(n, n') matrix of kernel values between rows T (n, m) and S (n', m) in the kernel's variables."""
    if kernel.additive is not None:
        exponent = np.zeros((len(T), len(S)))
        for j in range(len(sigma)):
            exponent += sigma[j] ** 2 * ADDITIVE[kernel.additive].distance(T[:, j, None], S[:, j])
        return np.exp(-exponent)
    T, S = np.asarray(T, np.float64) * sigma, np.asarray(S, np.float64) * sigma
    if is_radial(kernel):
        from scipy.spatial.distance import cdist

        return kernel.profile(cdist(T, S))
    out = np.ones((len(T), len(S)))
    for j in range(T.shape[1]):
        out *= kernel.profile(np.abs(T[:, j, None] - S[:, j]))
    return out
