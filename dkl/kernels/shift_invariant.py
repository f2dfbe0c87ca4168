"""Shift-invariant kernels: gaussian, laplacian and the Matern family, as products or isotropic.

    gaussian exp(-a^2 / 2)    laplacian exp(-a)    matern 3/2 (1 + sqrt3 a) exp(-sqrt3 a)
    matern 5/2 (1 + sqrt5 a + 5 a^2 / 3) exp(-sqrt5 a),    a = |sigma delta|

Their spectral densities are Normal, Cauchy, and Student t with 3 and 5 degrees of freedom.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from dkl.kernels.kernel import Kernel


def exponential(a: np.ndarray) -> np.ndarray:
    """exp(-a)"""
    return np.exp(-a)


def bell(a: np.ndarray) -> np.ndarray:
    """exp(-a^2 / 2)"""
    return np.exp(-0.5 * a * a)


def matern32(a: np.ndarray) -> np.ndarray:
    """(1 + sqrt3 a) exp(-sqrt3 a)"""
    b = 3.0**0.5 * a
    return (1 + b) * np.exp(-b)


def matern52(a: np.ndarray) -> np.ndarray:
    """(1 + sqrt5 a + 5 a^2 / 3) exp(-sqrt5 a)"""
    b = 5.0**0.5 * a
    return (1 + b + b * b / 3) * np.exp(-b)


def cauchy(u: np.ndarray) -> np.ndarray:
    """-cot(pi u)"""
    return -1.0 / np.tan(np.pi * u)


def student3(u: np.ndarray) -> np.ndarray:
    """Quantile of Student t with 3 degrees of freedom."""
    return stdtrit(3.0, u)


def student5(u: np.ndarray) -> np.ndarray:
    """Quantile of Student t with 5 degrees of freedom."""
    return stdtrit(5.0, u)


SHIFT_INVARIANT = (
    Kernel("gaussian", bell, ndtri),
    Kernel("laplacian", exponential, cauchy, mean_absolute=True),
    Kernel("matern12", exponential, cauchy, mean_absolute=True),
    Kernel("matern32", matern32, student3),
    Kernel("matern52", matern52, student5),
    Kernel("isotropic_matern12", exponential, isotropic=True, degrees=1.0),
    Kernel("isotropic_matern32", matern32, isotropic=True, degrees=3.0),
    Kernel("isotropic_matern52", matern52, isotropic=True, degrees=5.0),
)
