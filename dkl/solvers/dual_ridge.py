"""Ridge regression of n rows with more features than rows: n unknowns, the intercept unpenalised.

    K = Psi Psi',   u = K w / |w|,   Kc = W^1/2 (K - u 1' - 1 u' + w'u / |w|) W^1/2
    (Kc + lam I) z = W^1/2 (Y - mean Y),   a = (I - w 1' / |w|) W^1/2 z,   B = Psi' a,   b0 = mean Y - a'u

K is computed once; every set of training rows takes its part of it, and scores other rows by K_other a + b0. Without an
intercept there is no centring: u = 0, mean Y = 0, a = W^1/2 z.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.factor import EPS, SOLVE_THREADS, Factor, factorise

STRIP = 256
"""Rows of K that are computed at once."""
MATRICES = 5
"""n x n matrices of one system: its kernel, a copy, its factor, and what LAPACK takes."""
MANY = 11
"""An eigenvalue decomposition takes as long as so many Cholesky factors (measured with n = 1,087): more share one."""


def dual_ridge_cost(n: int, d: int, c: int, folds: int = 1, alphas: int = 0) -> SolveCost:
    """Half of K, one system for the weights, after one for each fold and alpha that is tried."""
    at_once = min(folds if alphas else 1, SOLVE_THREADS)
    tried = folds * min(alphas, MANY)
    shared = 8 * (n * d + n * n + d * c + 4 * n * c)
    flops = float(n) * n * d + (1 + tried) * n**3 / 3 + 4.0 * (1 + folds * alphas) * n * n * c + 2.0 * n * d * c
    return SolveCost(shared + 8 * at_once * (MATRICES * n * n + (3 + 2 * alphas) * n * c), flops)


def kernel_of(Psi: np.ndarray, scale: float, each: Callable[..., Iterable[None]] = map) -> np.ndarray:
    """K = scale^2 Psi Psi' (n, n) in float64, strip by strip; `each` may be the map of a pool of threads."""
    n = len(Psi)
    K = np.empty((n, n))

    def strip(i: int) -> None:
        j = min(i + STRIP, n)
        np.matmul(Psi[i:j], Psi[:j].T, out=K[i:j, :j])
        K[i:j, :j] *= scale * scale

    starts = range(0, n, STRIP)
    for _ in each(strip, reversed(starts)):
        pass
    for i in starts:
        K[:i, i : i + STRIP] = K[i : i + STRIP, :i].T
    return K


class DualSolution(NamedTuple):
    """a, the intercepts, and how each distinct lam was factorised."""

    dual: np.ndarray  # (n, c)
    intercept: np.ndarray  # (c,)
    factors: tuple[Factor, ...]
    objective: np.ndarray  # (c,), square loss + lam |B|^2


@dataclass(frozen=True)
class DualSystem:
    """One set of training rows."""

    matrix: np.ndarray  # (n, n), Kc
    right: np.ndarray  # (n, c), W^1/2 (Y - mean Y)
    root: np.ndarray  # (n,), of the weights
    share: np.ndarray  # (n,), w / |w|; zeros without an intercept
    pull: np.ndarray  # (n,), u
    mean: np.ndarray  # (c,), of Y

    def solve(self, lam: np.ndarray) -> DualSolution:
        """The solution for one lam, or one for each output."""
        z, factors = np.empty_like(self.right), []
        lam = np.broadcast_to(lam, (z.shape[1],))
        for value in np.unique(lam):
            factor = factorise(self.matrix.copy(), float(value))
            outputs = lam == value
            z[:, outputs] = factor.solve(self.right[:, outputs])
            factors.append(factor)
        dual, intercept = self._weights(z)
        energy = (self.right * (self.right - self.matrix @ z)).sum(axis=0)
        return DualSolution(dual, intercept, tuple(factors), np.maximum(energy, 0.0))

    def each(self, lams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """a (n, lams, c) and intercepts (lams, c) for each lam; many of them share the eigenvalues."""
        if len(lams) <= MANY:
            z = np.stack([factorise(self.matrix.copy(), float(lam)).solve(self.right) for lam in lams], axis=1)
        else:
            values, vectors = np.linalg.eigh(self.matrix)
            turned, least = vectors.T @ self.right, len(values) * EPS * max(float(values[-1]), 0.0)
            bottom = values[:, None] + lams
            inverse = np.divide(1.0, bottom, out=np.zeros_like(bottom), where=bottom > least)
            z = (vectors @ (inverse[:, :, None] * turned[:, None]).reshape(len(values), -1)).reshape(
                len(values), len(lams), -1
            )
        dual, intercept = self._weights(z.reshape(len(z), -1))
        return dual.reshape(z.shape), intercept.reshape(z.shape[1:])

    def _weights(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """a and the intercepts, of any number of solutions side by side."""
        dual = self.root[:, None] * z
        dual -= np.outer(self.share, dual.sum(axis=0))
        return dual, np.tile(self.mean, z.shape[1] // len(self.mean)) - self.pull @ dual


def dual_system(K: np.ndarray, Y: np.ndarray, weight: np.ndarray, fit_intercept: bool) -> DualSystem:
    """The system of all rows of K, which is used up."""
    root = np.sqrt(weight)
    share = weight / weight.sum() if fit_intercept else np.zeros_like(weight)
    pull, mean = K @ share, share @ Y
    if fit_intercept:
        K -= pull[:, None]
        K -= pull - share @ pull
    K *= root[:, None]
    K *= root
    return DualSystem(K, root[:, None] * (Y - mean), root, share, pull, mean)


def held_out_energy(
    K: np.ndarray, Y: np.ndarray, weight: np.ndarray, test: np.ndarray, lams: np.ndarray, fit_intercept: bool
) -> np.ndarray:
    """Weighted sums of squared errors (lams, c) on the rows where `test` is True, of the model of the others."""
    train, held = np.flatnonzero(~test), np.flatnonzero(test)
    system = dual_system(K[np.ix_(train, train)], Y[train], weight[train], fit_intercept)
    dual, intercept = system.each(lams)
    scores = (K[np.ix_(held, train)] @ dual.reshape(len(train), -1)).reshape(len(held), *intercept.shape)
    error = scores + intercept - Y[held][:, None]
    return np.asarray(np.einsum("i,ilc->lc", weight[held], error * error))
