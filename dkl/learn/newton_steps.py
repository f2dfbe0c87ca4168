"""One Newton step of a penalised loss, where the solve runs: the sums of a pass in, a step or its length out.

    q(D) = <g, D> + 1/2 <D, H D> + lam penalty(B + D),    H = Psi' diag(w l'') Psi / w, one for each output

The intercept is eliminated: with h = Psi'(w l'') / w and s = sum w l'' / w, its step is -(g_b + h'D) / s, which leaves
H - h h' / s and g - h g_b / s. For l2 the step is solved for; for a penalty with corners by solvers/fista.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.learn.penalised_loss import PenalisedLoss
from dkl.penalties import L2, Penalty
from dkl.solvers.factor import factorise
from dkl.solvers.fista import fista, kkt_residual, norm_and_ridge, product
from dkl.sums.curvature import CurvatureSums
from dkl.sums.line_search import LENGTHS, LineSums
from dkl.sums.symmetric import unpack

ARMIJO = 1e-4
"""Share of the promised decrease that is enough."""
ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""A change of the objective by less than this share of it is none."""
UNITS = 4
"""So is one by less than so many units of the sum of losses, which is rounded by a bound of it."""
INNER, INNER_STEPS = 0.1, 5000
"""What is left of the residual in the quadratic, and its iterations at most."""


class Aim(NamedTuple):
    """The objective and the residual at some weights, and the step from there."""

    value: float
    residual: float  # |gradient| for l2, else the KKT residual: zero at the least point alone
    size: float  # what the residual is measured by, at weights of zero
    step: np.ndarray  # (d + 1, c)
    promised: float  # decrease of the objective to first order; that of the penalty is exact


class Length(NamedTuple):
    """What the trials came to: the length (0: none lowers the objective), and whether the change is but rounding."""

    length: float
    flat: bool


class Parts(NamedTuple):
    """The quadratic without its intercept, and what gives the intercept back; over the sum of weights."""

    value: float
    slope: np.ndarray  # (d, c), g
    intercept_slope: np.ndarray  # (c,), g_b
    grams: np.ndarray  # (c, d, d)
    reduced: np.ndarray  # (d, c)
    curved: np.ndarray  # (d, c), h
    curvature: np.ndarray  # (c,), s


def aimed(
    sums: CurvatureSums, *, problem: PenalisedLoss, penalty: Penalty, weights: np.ndarray, size: float, tol: float
) -> Aim:  # fmt: skip
    """Where the weights stand, and the step to the least point of the quadratic; no step, if they have converged.

    size: what the residual was measured by at first; nan, if this is the first point.
    """
    parts, B, lam = _parts(sums, problem), weights[:-1], problem.lam
    value = parts.value + lam * penalty.value(B)
    residual, own = _residual(parts, B, lam, penalty)
    size = own if np.isnan(size) else size
    if residual <= tol * size:
        return Aim(value, residual, size, np.zeros_like(weights), 0.0)
    if isinstance(penalty, L2):
        g = parts.reduced + lam * B
        step = np.stack([-factorise(H, lam).solve(g[:, [j]])[:, 0] for j, H in enumerate(parts.grams)], axis=1)
    else:
        cross = product(parts.grams, B) - parts.reduced
        near = INNER * min(1.0, residual / lam)
        step = fista(parts.grams, cross, lam, penalty, start=B, tol=near, max_iter=INNER_STEPS).coef - B
    constant = -(parts.intercept_slope + (parts.curved * step).sum(axis=0)) / parts.curvature * problem.fit_intercept
    fall = float((parts.slope * step).sum()) + float(parts.intercept_slope @ constant)
    fall += lam * (float((B * step).sum()) if isinstance(penalty, L2) else penalty.value(B + step) - penalty.value(B))
    return Aim(value, residual, size, np.vstack([step, constant]), -fall)


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


def _parts(sums: CurvatureSums, problem: PenalisedLoss) -> Parts:
    """Sums of scaled features, and the intercept eliminated."""
    total, scale, d = problem.gram.targets.weight, problem.gram.features.map.scale, sums.slope.shape[1]
    value, slope = float(sums.loss[0]) / total, scale * sums.slope.T / total
    curved, curvature = scale * sums.curved.T / total, sums.curvature_sum / total
    intercept_slope = sums.slope_sum / total * problem.fit_intercept
    grams = np.stack([unpack(packed, d) * (scale * scale / total) for packed in sums.gram])
    curvature = np.where(curvature > 0, curvature, 1.0)
    reduced = slope - curved * (intercept_slope / curvature)
    if problem.fit_intercept:
        for j, h in enumerate(curved.T):
            grams[j] -= np.outer(h, h / curvature[j])
    return Parts(value, slope, intercept_slope, grams, reduced, curved, curvature)


def _residual(parts: Parts, B: np.ndarray, lam: float, penalty: Penalty) -> tuple[float, float]:
    """How far from the least point, and what that is measured by."""
    if isinstance(penalty, L2):
        gradient, start = (
            np.vstack([parts.slope + lam * B, parts.intercept_slope]),
            [parts.slope, parts.intercept_slope],
        )
        return float(np.linalg.norm(gradient)), float(np.linalg.norm(np.vstack(start)))
    norm, ridge = norm_and_ridge(penalty)
    constant = float(np.abs(parts.intercept_slope).max(initial=0.0))
    residual = kkt_residual(-parts.slope - lam * ridge * B, B, lam, norm)
    return max(residual, constant), max(lam, norm.dual_norm(parts.slope), constant)
