"""Steps of the alternating direction method of multipliers for weights W and rows' scores a, with two true blocks.

    least 1/w sum_i w_i l(a_i, y_i) + lam penalty(U),     a = Psi W + b,   U = W

    x = (W, b)   (Gc + kappa I) W = q,   q = Q - m Q0 / w - nu / xi + kappa U,   b = (Q0 - m'W) / w
                 Q = Psi' (a - mu / xi),   Q0 = 1' (a - mu / xi)
    y = (a, U)   a = prox of l / xi at z + mu / xi,   mu += xi (z - a)              in the rows' blocks
                 U = prox of lam penalty / (kappa xi) at W + nu / (kappa xi),   nu += kappa xi (W - U)

All sums over rows have their weights and are over w. So rows of weight zero take no part, Gc is that of a ridge
problem, and xi has the unit of a curvature of the loss. The optimum of a is mu = dl/da: of the rows a is all that must
be kept. Multipliers are not scaled by xi, and both penalties of the method are proportional to it: another xi needs no
other factor. U is reported, which has exact zeros.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.penalties import Penalty
from dkl.solvers.factor import Factor, factorise

EVERY, LAST, APART = 10, 500, 5.0
"""Steps between two looks at xi, the last step that looks, and the ratio of residuals that changes it."""


class RowSums(NamedTuple):
    """Means over rows, features scaled."""

    scores: np.ndarray  # Psi' a (d, c)
    score_sum: np.ndarray  # (c,)
    slopes: np.ndarray  # Psi' mu (d, c)
    slope_sum: np.ndarray  # (c,)
    gap: float  # mean square of z - a
    size: float  # the larger of the mean squares of z and a


class System(NamedTuple):
    """What every step solves with."""

    factor: Factor  # of Gc + kappa I
    centre: np.ndarray  # (d,), mean of the features; zeros without an intercept
    share: float  # weight of the rows that train, over w
    kappa: float
    fit_intercept: bool


class Iterate(NamedTuple):
    """Where the method stands. Weights are (d, c), intercepts (c,)."""

    weights: np.ndarray
    intercept: np.ndarray
    sparse: np.ndarray  # U
    multiplier: np.ndarray  # nu
    xi: float
    before: tuple[np.ndarray, np.ndarray, np.ndarray]  # Psi' a, 1' a and U before the rows' last step
    number: int = 0


def system_of(gram: np.ndarray, centre: np.ndarray, share: float, fit_intercept: bool) -> System:
    """gram: Gc (d, d), used up. kappa is its mean diagonal, so that W = U weighs as much as a = Psi W + b."""
    kappa = float(np.trace(gram)) / len(gram) or 1.0
    return System(factorise(gram, kappa), centre if fit_intercept else 0 * centre, share, kappa, fit_intercept)


def begun(weights: np.ndarray, intercept: np.ndarray, sums: RowSums, xi: float) -> Iterate:
    """At weights whose scores the rows have, with the multiplier that would make them the least point."""
    return Iterate(
        weights, intercept, weights, -sums.slopes, xi, (sums.scores, sums.score_sum, weights)
    )  # fmt: skip


def advanced(system: System, at: Iterate, sums: RowSums, penalty: Penalty, lam: float) -> Iterate:
    """The next W, b and U, and xi as the residuals want it; sums are of the rows' last step."""
    xi = next_xi(system, at, sums)
    Q, Q0 = sums.scores - sums.slopes / xi, sums.score_sum - sums.slope_sum / xi
    q = Q - np.outer(system.centre, Q0)
    W = system.factor.solve(q - at.multiplier / xi + system.kappa * at.sparse)
    b = (Q0 / system.share - system.centre @ W) * system.fit_intercept
    pull = system.kappa * xi
    U = penalty.prox(W + at.multiplier / pull, lam / pull)
    nu = at.multiplier + pull * (W - U)
    return Iterate(W, b, U, nu, xi, (sums.scores, sums.score_sum, at.sparse), at.number + 1)


def residuals(system: System, at: Iterate, sums: RowSums) -> tuple[float, float]:
    """(primal, dual) after the rows' step, each over its size: how far the copies are from each other, and moved."""
    apart = at.weights - at.sparse
    primal = np.sqrt(sums.gap + system.kappa * float((apart * apart).sum()))
    size = np.sqrt(sums.size + system.kappa * float((at.sparse * at.sparse).sum()))
    scores, score_sum, sparse = at.before
    moved = (sums.scores - scores) + system.kappa * (at.sparse - sparse)
    dual = np.hypot(np.linalg.norm(moved), np.linalg.norm(sums.score_sum - score_sum) * system.fit_intercept)
    reach = np.hypot(np.linalg.norm(sums.scores - sums.slopes / at.xi), np.linalg.norm(sums.score_sum))
    return float(primal / (size or 1.0)), float(dual / (reach or 1.0))


def next_xi(system: System, at: Iterate, sums: RowSums) -> float:
    """Twice or half xi, if one residual is far larger than the other."""
    if not at.number or at.number % EVERY or at.number > LAST:
        return at.xi
    primal, dual = residuals(system, at, sums)
    return at.xi * (2.0 if primal > APART * dual else 0.5 if dual > APART * primal else 1.0)
