"""A gram that is known along its largest axes alone, and its inverse plus lam, from the features of a few rows.

    G ~ w/s Psi_s'Psi_s = U D U'   (by the s x s matrix Psi_s Psi_s'),   D falls to `rest` beyond the axes
    P^-1 = U (D + lam)^-1 U' + (I - UU') / (rest + lam) = M M,   M = (I - U g U') / sqrt(rest + lam)

with g = 1 - sqrt((rest + lam) / (D + lam)). As M is symmetric, P^-1 has no negative direction however U is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dkl.cost import SolveCost

FEATURES = 2048
"""Features that are taken to float64 at once."""
SMALL = 1e-12
"""Axes with less than this part of the largest energy are rounding."""


def preconditioner_cost(rows: int, d: int, item: int, systems: int = 1) -> SolveCost:
    """Made once: features of so many rows, half as many axes, the matrices of the eigenvectors, float64 slices."""
    kept = -(-rows // 2)
    size = item * d * (rows + kept) + 8 * (4 * rows * rows + FEATURES * (rows + kept) + 3 * systems * d)
    return SolveCost(size, 2.0 * rows * d * (rows + kept) + 9.0 * rows**3)


def applied_cost(rows: int, d: int, item: int, systems: int = 1) -> SolveCost:
    """Used once, by so many systems: all that it holds, and two products with its axes."""
    held = preconditioner_cost(rows, d, item, systems).bytes
    return SolveCost(held, 8.0 * -(-rows // 2) * d * systems)


@dataclass(frozen=True)
class Preconditioner:
    """Axes (d, h) in the features' precision, their energies (h,), the energy beyond, and the largest one of all."""

    axes: np.ndarray
    energies: np.ndarray
    rest: float

    @property
    def largest(self) -> float:
        """About the largest eigenvalue of the gram."""
        return float(self.energies[0]) if len(self.energies) else self.rest

    def apply(self, residual: np.ndarray, lam: np.ndarray, share: np.ndarray) -> np.ndarray:
        """P^-1 r of systems (q, d), each with its lam and its share of the gram's weight."""
        low = self.rest * share + lam
        low = np.where(low > 0, low, 1.0)
        damped = 1 - np.sqrt(low[:, None] / np.maximum(self.energies * share[:, None] + lam[:, None], low[:, None]))
        return self._half(self._half(residual, damped), damped) / low[:, None]

    def _half(self, residual: np.ndarray, damped: np.ndarray) -> np.ndarray:
        """(I - U g U') r."""
        along = np.zeros(damped.shape)
        for some in slices(len(self.axes)):
            along += residual[:, some] @ self.axes[some].astype(np.float64)
        along *= damped
        out = residual.copy()
        for some in slices(len(self.axes)):
            out[:, some] -= along @ self.axes[some].T.astype(np.float64)
        return out


def slices(d: int) -> Iterator[slice]:
    """Some features after the other."""
    for start in range(0, d, FEATURES):
        yield slice(start, min(start + FEATURES, d))


def from_rows(features: np.ndarray, factor: float) -> Preconditioner:
    """That of factor times Psi_s'Psi_s: the upper half of its axes; features (s, d) are centred, if the gram is."""
    rows, d = features.shape
    inner = np.zeros((rows, rows))
    for some in slices(d):
        part = features[:, some].astype(np.float64)
        inner += part @ part.T
    values, vectors = np.linalg.eigh(inner)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = min(-(-rows // 2), int(np.count_nonzero(values > SMALL * max(float(values[0]), 0.0))))
    turn = vectors[:, :kept] / np.sqrt(values[:kept])
    axes = np.empty((d, kept), features.dtype)
    for some in slices(d):
        axes[some] = features[:, some].astype(np.float64).T @ turn
    rest = float(values[kept - 1]) if kept else 0.0
    return Preconditioner(axes, factor * values[:kept], factor * rest)
