"""Sparse weights from their sums: accelerated proximal gradient with restart, and a certificate.

    P(B) = 1/2 <B, G B> - <R, B> + yy / 2 + lam [penalty(B) + ridge / 2 |B|^2]
    U = V - (G V - R) / L,   B+ = prox(U, lam / L),   V = B+ + (t - 1) / t+ (B+ - B);  t = 1 if <V - B+, B+ - B> > 0

With C = R - G B, rr = yy - 2<B,R> + <B,GB> and yr = yy - <B,R>, for any B and a penalty that is a norm,

    P(B) - least P  <=  gap = [rr / 2 + lam norm(B)] - [s yr - s^2 rr / 2],   s = yr / rr within +-lam / dual_norm(C)
    kkt = largest of dual_norm(C) - lam and |lam - <C,B> / norm(B)|,          zero at the least P alone

A ridge is added to G (penalties.Elastic has one), and both formulas stay. The sums (G, R, yy) are centred if there is
an intercept. G is one matrix, one for each output, or one of all outputs together. A product with G serves the step,
the test of its length and the certificate: an iteration takes one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.penalties import L2, Elastic, Penalty
from dkl.solvers.ridge import largest_eigenvalue

EVERY = 10
"""Iterations between two certificates."""
ROUNDING = 1e-12
"""A gap below this share of yy is rounding."""
SPARE = 1.02
"""The largest eigenvalue is estimated from below; a step that is still too long is made shorter."""


class Sparse(NamedTuple):
    """Weights, and how far from the least objective they can be."""

    coef: np.ndarray  # (d, c)
    objective: float  # P; without yy / 2, if it is not known
    gap: float  # nan, if yy is not known
    kkt: float
    iterations: int
    converged: bool


def fista_cost(d: int, c: int, grams: int = 1, iterations: int = 1000) -> SolveCost:
    """The grams themselves, as they came and centred, and so many products."""
    return SolveCost(8 * (3 * grams * d * d + 12 * d * c), iterations * 2.0 * d * d * c)


def norm_and_ridge(penalty: Penalty) -> tuple[Penalty, float]:
    """The norm that a penalty is made of, and what it has of 1/2 |v|^2."""
    ridge = 0.0
    while isinstance(penalty, Elastic):
        ridge += penalty.ridge
        penalty = penalty.of
    if isinstance(penalty, L2):
        raise ValueError(f"{penalty!r} is smooth: its weights are solved for directly; use l1, group_l21 or l1_linf")
    return penalty, ridge


def product(gram: np.ndarray, B: np.ndarray) -> np.ndarray:
    """G B; one G for all outputs (d, d), one for each (c, d, d), or one of them together (c, d, c, d)."""
    if gram.ndim == 2:
        return np.asarray(gram @ B)
    if gram.ndim == 4:
        return np.asarray((gram.reshape(B.size, B.size) @ B.T.ravel()).reshape(B.T.shape).T)
    return np.stack([own @ B[:, j] for j, own in enumerate(gram)], axis=1)


def kkt_residual(C: np.ndarray, B: np.ndarray, lam: float, penalty: Penalty) -> float:
    """How far C is from lam times the subgradients of a norm at B, in the dual norm: zero, if B is the least point."""
    size, outside = penalty.norm(B), max(penalty.dual_norm(C) - lam, 0.0)
    return max(outside, abs(lam - float((C * B).sum()) / size)) if size > 0 else outside


def duality_gap(R: np.ndarray, B: np.ndarray, GB: np.ndarray, yy: float, lam: float, penalty: Penalty) -> float:
    """A bound of P(B) - least P, at least 0."""
    cross, dual = float((B * R).sum()), penalty.dual_norm(R - GB)
    rr, yr = yy - 2 * cross + float((B * GB).sum()), yy - cross
    most = lam / dual if dual > 0 else np.inf
    s = float(np.clip(yr / rr, -most, most)) if rr > 0 else 0.0
    return max(0.0, rr / 2 + lam * penalty.norm(B) - (s * yr - s * s * rr / 2))


def fista(
    gram: np.ndarray,
    cross: np.ndarray,
    lam: float,
    penalty: Penalty,
    *,
    energy: float | None = None,
    start: np.ndarray | None = None,
    tol: float = 1e-8,
    max_iter: int = 20_000,
) -> Sparse:
    """argmin P. It has converged if gap <= tol yy; if yy (`energy`) is not known, if kkt <= tol lam.

    start: weights to begin with, those of a near lam for example.
    """
    norm, ridge = norm_and_ridge(penalty)
    if not lam > 0:
        raise ValueError(f"lam={lam!r} must be above 0: without a penalty the weights are those of least squares")
    problem = _Problem(gram, cross, lam, norm, lam * ridge, energy, max(tol, ROUNDING))
    grams = gram if gram.ndim == 3 else gram.reshape(1, *[cross.size if gram.ndim == 4 else len(gram)] * 2)
    L = SPARE * max(map(largest_eigenvalue, grams)) + lam * ridge
    B = np.zeros_like(cross) if start is None else np.array(start, np.float64)
    GB = problem.times(B)
    V, GV, t, number = B, GB, 1.0, 0
    while L > 0 and number < max_iter and (number % EVERY or not problem.is_solved(B, GB)):
        number += 1
        while True:
            after = norm.prox(V - (GV - cross) / L, lam / L)
            Gafter = problem.times(after)
            away = after - V
            square = float((away * away).sum())
            if float((away * (Gafter - GV)).sum()) <= L * square * (1 + 1e-9) or not np.isfinite(square):
                break
            L *= 1.5
        if float(((V - after) * (after - B)).sum()) > 0:
            V, GV, t = after, Gafter, 1.0
        else:
            later = (1 + np.sqrt(1 + 4 * t * t)) / 2
            share = (t - 1) / later
            V, GV, t = after + share * (after - B), Gafter + share * (Gafter - GB), later
        B, GB = after, Gafter
    return problem.judged(B, GB, number)


class _Problem(NamedTuple):
    """The sums and the penalty."""

    gram: np.ndarray
    cross: np.ndarray
    lam: float
    norm: Penalty
    ridge: float
    energy: float | None
    tol: float

    def times(self, B: np.ndarray) -> np.ndarray:
        """(G + ridge I) B."""
        return product(self.gram, B) + self.ridge * B

    def gap(self, B: np.ndarray, GB: np.ndarray) -> float:
        """The duality gap."""
        return np.nan if self.energy is None else duality_gap(self.cross, B, GB, self.energy, self.lam, self.norm)

    def kkt(self, B: np.ndarray, GB: np.ndarray) -> float:
        """The KKT residual."""
        return kkt_residual(self.cross - GB, B, self.lam, self.norm)

    def is_solved(self, B: np.ndarray, GB: np.ndarray) -> bool:
        """Whether the certificate holds."""
        if self.energy is None:
            return self.kkt(B, GB) <= self.tol * self.lam
        return self.gap(B, GB) <= self.tol * self.energy

    def judged(self, B: np.ndarray, GB: np.ndarray, iterations: int) -> Sparse:
        """The record of these weights."""
        value = 0.5 * float((B * (GB - 2 * self.cross)).sum()) + self.lam * self.norm.value(B) + (self.energy or 0) / 2
        solved = self.is_solved(B, GB)
        return Sparse(B, value, self.gap(B, GB), self.kkt(B, GB), iterations, solved)
