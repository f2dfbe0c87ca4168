"""One Newton step of a penalised loss, where the solve runs: the sums of a pass in, a step or its length out.

    least over D of <g, D> + 1/2 <D, H D> + lam penalty(B + D),   intercepts eliminated      learn/quadratic.py

For l2 the step is solved for; for a penalty with corners it is found by solvers/fista.py.

    certificate = larger of  |gradient| or KKT residual, over its size at weights of zero
                        and  |sum w l'| / sum w |l'| of each output's intercept

The intercept has a measure of its own, as neither alpha nor another output says how large its slope is: positive and
negative slopes cancel at the least point, and this is the share of them that is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.learn.penalised_loss import PenalisedLoss
from dkl.learn.quadratic import Quadratic, quadratic_of
from dkl.penalties import L2, Penalty
from dkl.solvers.factor import factorise
from dkl.solvers.fista import fista, kkt_residual, norm_and_ridge, product
from dkl.sums.curvature import CurvatureSums
from dkl.sums.line_search import LENGTHS, LineSums

ARMIJO = 1e-4
"""Share of the promised decrease that is enough."""
ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""A change of the objective by less than this share of it is none."""
UNITS = 4
"""So is one by less than so many units of the sum of losses, which is rounded by a bound of it."""
INNER, INNER_STEPS = 0.1, 5000
"""What is left of the residual in the quadratic, and its iterations at most."""


class Aim(NamedTuple):
    """Where some weights stand, and the step from there."""

    value: float  # the objective
    residual: float  # |gradient| for l2, else the KKT residual: zero at the least point alone
    certificate: float  # the same over what it is measured by
    size: float  # what that of the weights is measured by: its size at weights of zero
    step: np.ndarray  # (d + 1, c)
    promised: float  # decrease of the objective to first order; that of the penalty is exact


class Length(NamedTuple):
    """What the trials came to: the length (0: none lowers the objective), and whether the change is but rounding."""

    length: float
    flat: bool


def aimed(
    sums: CurvatureSums, *, problem: PenalisedLoss, penalty: Penalty, weights: np.ndarray, size: float, tol: float
) -> Aim:  # fmt: skip
    """Where the weights stand, and the step to the least point of the quadratic; no step, if they have converged.

    size: what the residual was measured by at first; nan, if this is the first point.
    """
    parts, B, lam = quadratic_of(sums, problem), weights[:-1], problem.lam
    value = parts.value + lam * penalty.value(B)
    size = _size(parts, lam, penalty) if np.isnan(size) else size
    residual, certificate = _residual(parts, B, lam, penalty, size)
    if certificate <= tol:
        return Aim(value, residual, certificate, size, np.zeros_like(weights), 0.0)
    if isinstance(penalty, L2):
        step = -_solved(parts, parts.reduced + lam * B, lam)
    else:
        cross = product(parts.grams, B) - parts.reduced
        near = INNER * certificate * size / lam
        step = fista(parts.grams, cross, lam, penalty, start=B, tol=near, max_iter=INNER_STEPS).coef - B
    constant = parts.intercept(step)
    fall = float((parts.slope * step).sum()) + float(parts.intercept_slope @ constant)
    fall += lam * (float((B * step).sum()) if isinstance(penalty, L2) else penalty.value(B + step) - penalty.value(B))
    return Aim(value, residual, certificate, size, np.vstack([step, constant]), -fall)


def measured(
    sums: LineSums, *, problem: PenalisedLoss, penalty: Penalty, weights: np.ndarray, step: np.ndarray, promised: float
) -> Length:  # fmt: skip
    """The longest of the tried lengths that lowers the objective by a share of what was promised."""
    total, B, D = problem.gram.targets.weight, weights[:-1], step[:-1]
    values = np.array([problem.lam * penalty.value(B + t * D) for t in LENGTHS]) + sums.loss / total
    for t, value in zip(LENGTHS[1:], values[1:], strict=True):
        if value <= values[0] - ARMIJO * t * promised:
            return Length(float(t), flat=False)
    rounding = max(ROUNDING * abs(float(values[0])), UNITS * problem.along(weights, step).unit / total)
    if 0 < promised <= rounding / ARMIJO and values[1] <= values[0] + rounding:
        return Length(1.0, flat=True)
    return Length(0.0, flat=False)


def _solved(parts: Quadratic, g: np.ndarray, lam: float) -> np.ndarray:
    """(G + lam I)^-1 g."""
    if parts.is_joint:
        whole = parts.grams.reshape(g.size, g.size)
        return factorise(whole, lam).solve(g.T.reshape(-1, 1)).reshape(g.T.shape).T
    return np.stack([factorise(H, lam).solve(g[:, [j]])[:, 0] for j, H in enumerate(parts.grams)], axis=1)


def _size(parts: Quadratic, lam: float, penalty: Penalty) -> float:
    """What the residual of the weights is measured by, at weights of zero."""
    if isinstance(penalty, L2):
        return float(np.linalg.norm(np.vstack([parts.slope, parts.intercept_slope])))
    return max(lam, norm_and_ridge(penalty)[0].dual_norm(parts.reduced))


def _residual(parts: Quadratic, B: np.ndarray, lam: float, penalty: Penalty, size: float) -> tuple[float, float]:
    """How far from the least point, and the larger share of the weights' part and of the intercepts'."""
    constant = np.abs(parts.intercept_slope)
    if isinstance(penalty, L2):
        whole = own = float(np.linalg.norm(np.vstack([parts.slope + lam * B, parts.intercept_slope])))
    else:
        norm, ridge = norm_and_ridge(penalty)
        own = kkt_residual(-parts.slope - lam * ridge * B, B, lam, norm)
        whole = max(own, float(constant.max(initial=0.0)))
    share = constant / np.where(parts.intercept_size > 0, parts.intercept_size, 1.0)
    return whole, max(own / size if size > 0 else own, float(share.max(initial=0.0)))
