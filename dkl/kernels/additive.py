"""Additive homogeneous kernels of histograms, k(x, y) = sum_j k0(x_j, y_j) with k0(c x, c y) = c k0(x, y).

    chi2             k0 = 2 x y / (x + y)                                           K(D) = sech(D / 2)
    intersection     k0 = min(x, y)                                                 K(D) = exp(-|D| / 2)
    jensen_shannon   k0 = x/2 log2(1 + y/x) + y/2 log2(1 + x/y)                     K(D) = k0(e^(D/2), e^(-D/2))

k0 = sqrt(x y) K(log x - log y); homogeneous maps sample the spectrum of K. All have k0(x, x) = x. Exponentiated kernels
use the distance |Phi(x) - Phi(y)|^2 / 2, which for chi2 is the chi2 distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Additive:
    """One row of the table: the signature K of log x - log y, its spectrum, and the distance (x + y) / 2 - k0."""

    name: str
    signature: Callable[[np.ndarray], np.ndarray]
    spectrum: Callable[[np.ndarray], np.ndarray]
    distance: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def pairs(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """k0(x, y) entry by entry; zero where x or y is zero."""
        both = (x > 0) & (y > 0)
        logs = np.log(np.where(both, x, 1.0)) - np.log(np.where(both, y, 1.0))
        return np.where(both, np.sqrt(x) * np.sqrt(y) * self.signature(logs), 0.0)


def sech_half(D: np.ndarray) -> np.ndarray:
    """sech(D / 2), which never overflows"""
    a = np.exp(-0.5 * np.abs(D))
    return 2 * a / (1 + a * a)


def exponential_half(D: np.ndarray) -> np.ndarray:
    """exp(-|D| / 2)"""
    return np.exp(-0.5 * np.abs(D))


def shannon(D: np.ndarray) -> np.ndarray:
    """(e^(D/2) log2(1 + e^-D) + e^(-D/2) log2(1 + e^D)) / 2"""
    D = np.abs(D)
    small = np.log1p(np.exp(-D))
    return (np.exp(0.5 * D) * small + np.exp(-0.5 * D) * (D + small)) / (2 * np.log(2.0))


def chi2_distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(x - y)^2 / (2 (x + y)), and 0 where both are 0"""
    total, gap = x + y, x - y
    total += np.finfo(total.dtype).tiny
    gap *= gap
    gap /= total
    gap *= 0.5
    return gap


def intersection_distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|x - y| / 2"""
    gap = x - y
    np.abs(gap, out=gap)
    gap *= 0.5
    return gap


def shannon_distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(x + y) / 4 ((1 + t) log2(1 + t) + (1 - t) log2(1 - t)),   t = |x - y| / (x + y)"""
    total, t = x + y, x - y
    kind = np.finfo(total.dtype)
    np.abs(t, out=t)
    t /= total + kind.tiny
    np.minimum(t, 1 - kind.eps, out=t)
    above, below = 1 + t, np.subtract(1, t, out=t)
    above *= np.log(above)
    below *= np.log(below)
    above += below
    above *= total
    above *= float(0.25 / np.log(2.0))
    return above


def chi2_spectrum(w: np.ndarray) -> np.ndarray:
    """sech(pi w)"""
    return sech_half(2 * np.pi * w)


def intersection_spectrum(w: np.ndarray) -> np.ndarray:
    """2 / (pi (1 + 4 w^2))"""
    return 2 / np.pi / (1 + 4 * w * w)


def shannon_spectrum(w: np.ndarray) -> np.ndarray:
    """2 sech(pi w) / (log 4 (1 + 4 w^2))"""
    return 2 / np.log(4.0) * chi2_spectrum(w) / (1 + 4 * w * w)


ADDITIVE = {
    kernel.name: kernel
    for kernel in (
        Additive("chi2", sech_half, chi2_spectrum, chi2_distance),
        Additive("intersection", exponential_half, intersection_spectrum, intersection_distance),
        Additive("jensen_shannon", shannon, shannon_spectrum, shannon_distance),
    )
}


def additive_kernel(kernel: Additive, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """(n, n') sums of k0 over the inputs."""
    out = np.zeros((len(X), len(Y)))
    for j in range(X.shape[1]):
        out += kernel.pairs(X[:, j, None], Y[:, j])
    return out
