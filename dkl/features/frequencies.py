"""Unit frequencies H (m, D): columns h with E cos(h' delta) = k(delta) at sigma = 1.

    iid          h_jk = h(u_jk), independent
    orthogonal   Gaussian columns made orthogonal in groups of m, then h(Phi(g)): same law, less variance
    quasi        scrambled Sobol points in place of independent ones

Isotropic kernels take g sqrt(dof / q) with one chi2 draw q for each column.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from dkl.kernels import Kernel
from dkl.kernels.kernel import SMALLEST

SCHEMES = ("iid", "orthogonal", "quasi")
SOBOL_LIMIT = 21201
TAIL_CAP = 1e3
"""|h| is cut at 1e3 m: a tail mass of about 6e-4 in all, and phases that float64 still resolves."""


def draw_unit(kernel: Kernel, m: int, D: int, scheme: str, rng: np.random.Generator) -> np.ndarray:
    """(m, D) float64 frequencies at sigma = 1."""
    if scheme == "orthogonal":
        normal = _orthogonal_normal(m, D, rng)
        radius = rng.random(D) if kernel.isotropic else None
    else:
        extra = int(kernel.isotropic)
        u = _sobol(m + extra, D, rng) if scheme == "quasi" else rng.random((m + extra, D))
        radius = u[m] if kernel.isotropic else None
        if not kernel.isotropic:
            return _cut(kernel.quantile(u), m)
        normal = ndtri(np.clip(u[:m], SMALLEST, 1 - SMALLEST))
    if radius is None:
        return _cut(normal if kernel.name == "gaussian" else kernel.quantile(ndtr(normal)), m)
    chi2 = 2 * gammaincinv(kernel.degrees / 2, np.clip(radius, SMALLEST, 1 - SMALLEST))
    return _cut(normal * np.sqrt(kernel.degrees / chi2), m)


def _cut(unit: np.ndarray, m: int) -> np.ndarray:
    return np.asarray(np.clip(unit, -TAIL_CAP * m, TAIL_CAP * m))


def _orthogonal_normal(m: int, D: int, rng: np.random.Generator) -> np.ndarray:
    """Standard normal columns, mutually orthogonal in consecutive groups of m."""
    groups = []
    for start in range(0, D, m):
        q, r = np.linalg.qr(rng.standard_normal((m, min(m, D - start))))
        q *= np.where(np.diag(r) < 0, -1.0, 1.0)
        groups.append(q * np.sqrt(rng.chisquare(m, q.shape[1])))
    return np.concatenate(groups, axis=1)


def _sobol(dimensions: int, points: int, rng: np.random.Generator) -> np.ndarray:
    """(dimensions, points) scrambled Sobol points; the first `points` of the next power of two."""
    if dimensions > SOBOL_LIMIT:
        raise ValueError(
            f"frequencies='quasi' reaches {SOBOL_LIMIT} inputs, X has {dimensions}; use frequencies='orthogonal'"
        )
    from scipy.stats import qmc

    power = max(points - 1, 1).bit_length()
    return np.array(qmc.Sobol(dimensions, scramble=True, rng=rng).random_base2(power)[:points].T, order="C")
