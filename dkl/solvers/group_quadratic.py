"""The least point of a quadratic and a penalty of groups: proximal gradients, then Newton's steps on what is not zero.

    Q(B) = 1/2 sum_j <B_j, G_j B_j> - <R, B> + lam [sum_g eta_g norm(B_g) + ridge / 2 |B|^2],   a gram for each output
    l21, groups that are not zero   (G + mu + h (I - v v')) X = C - h B,   h_g = lam eta_g / |B_g|,  v = B_g / |B_g|
    then B + t X of the least Q;    C = R - G B - mu B,  mu = lam ridge

Proximal steps find out which groups are zero; from then on second derivatives are faster, however alike the features
are. l1linf has corners within its groups, and takes proximal steps alone. It is solved if the KKT residual in the dual
norm is at most tol lam.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.fista import fista, kkt_residual, norm_and_ridge, product
from dkl.solvers.group_norms import GroupNorm
from dkl.solvers.group_steps import line_step

PROXIMAL, NEWTON = 40, 6
"""Proximal steps of a round, and Newton's steps after them."""
FORCING, MOST = 0.1, 200
"""A direction's system is solved to this share of its right-hand side, or in so many products."""
SLOWER = 0.5
"""Newton's steps go on while each leaves at most this much of the residual."""


class Least(NamedTuple):
    """Weights, and how far from the least point they are."""

    coef: np.ndarray  # (d, c)
    kkt: float
    products: int


def group_quadratic_cost(d: int, c: int, products: int = 400) -> SolveCost:
    """So many products with the grams of c outputs, which are there already."""
    return SolveCost(8 * 24 * d * c, products * 2.0 * d * d * c)


def group_quadratic(
    grams: np.ndarray, cross: np.ndarray, lam: float, norm: GroupNorm, *, start: np.ndarray, tol: float, max_iter: int
) -> Least:
    """argmin Q from `start`; max_iter limits proximal steps."""
    penalty = norm.penalty
    alone, ridge = norm_and_ridge(penalty)
    B, used, kkt = np.array(start), 0, np.inf
    smooth = norm.is_smooth
    problem = _Active(grams, cross, lam, norm) if smooth else None
    while True:
        left = min(PROXIMAL, max_iter - used) if smooth else max_iter
        end = fista(grams, cross, lam, penalty, start=B, tol=tol, max_iter=left)
        B, used, kkt = end.coef, used + max(1, end.iterations), end.kkt
        if end.converged or used >= max_iter or problem is None:
            return Least(B, kkt, used + (0 if problem is None else problem.products))
        for _ in range(NEWTON):
            after = problem.newton(B)
            C = cross - product(grams, after) - lam * ridge * after
            now = kkt_residual(C, after, lam, alone)
            B, before, kkt = after, kkt, now
            if now <= tol * lam or now > SLOWER * before:
                break
        if kkt <= tol * lam:
            return Least(B, kkt, used + problem.products)


class _Active:
    """Newton's steps on the groups that are not zero; by output, the columns of a group are groups themselves."""

    def __init__(self, grams: np.ndarray, cross: np.ndarray, lam: float, norm: GroupNorm) -> None:
        self.grams, self.cross, self.mu = grams, cross, lam * norm.ridge
        c = cross.shape[1] if norm.by_output else 1
        self.of = (
            norm.groups[:, None] * c + np.arange(cross.shape[1]) * norm.by_output
        )  # (d, c), the group of each weight
        self.limits = lam * np.repeat(norm.factor, c)
        self.diagonal = np.stack([np.diag(one) for one in grams], axis=1) + self.mu
        self.products = 0

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Of each group."""
        return np.bincount(self.of.ravel(), values.ravel(), minlength=len(self.limits))

    def times(self, B: np.ndarray) -> np.ndarray:
        """(G + mu) B."""
        self.products += 1
        return product(self.grams, B) + self.mu * B

    def newton(self, B: np.ndarray) -> np.ndarray:
        """B + t X."""
        C = self.cross - self.times(B)
        X, GX = self._direction(B, C)
        squares = self.sums(B * B), self.sums(B * X), self.sums(X * X)
        t = line_step(-float((C * X).sum()), float((X * GX).sum()), self.limits, *squares)
        return np.asarray(B + t * X)

    def _direction(self, B: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """X and (G + mu) X, by conjugate gradients."""
        lengths = np.sqrt(self.sums(B * B))
        safe = np.where(lengths > 0, lengths, 1.0)
        on, h, unit = (lengths > 0)[self.of], (self.limits / safe)[self.of], B / safe[self.of]
        diagonal = self.diagonal + h
        r = np.where(on, C - h * B, 0.0)
        X, GX, z = np.zeros_like(B), np.zeros_like(B), r / diagonal
        p, size = z, float((r * z).sum())
        enough = FORCING * FORCING * size
        for _ in range(MOST):
            if not size > enough:
                break
            Gp = self.times(p)
            Hp = Gp + h * (p - unit * self.sums(unit * p)[self.of])
            bent = float((p * Hp).sum())
            if not bent > 0:
                break
            a = size / bent
            X, GX, r = X + a * p, GX + a * Gp, r - a * np.where(on, Hp, 0.0)
            z = r / diagonal
            size, before = float((r * z).sum()), size
            p = z + size / before * p
        return X, GX
