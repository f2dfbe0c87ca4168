"""Ridge regression from its sums, the intercept unpenalised.

Gc = G - m m'/w,   Rc = R - m sy'/w,   (Gc + lam I) B = Rc,   b0 = (sy - B'm) / w
V(S) = 1/2 [yy - 2<B,R> - 2 b0'sy + <B,GB> + 2 (B'm)'b0 + w b0'b0],   residual energy on any set with sums S
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.axes import Axes
from dkl.solvers.factor import Factor, factor_cost, factorise


def ridge_cost(d: int, c: int, folds: int = 1, alphas: int = 0, reduced: bool = False) -> SolveCost:
    """One solve for the weights, after one for each fold and alpha that is tried; within axes if `reduced`."""
    tried = folds * alphas
    turns = 9.0 * d**3 * (folds if tried else 1) if reduced else 0.0
    flops = factor_cost(d, c).flops
    return SolveCost(factor_cost(d, c, folds).bytes, turns + (1 + tried) * flops)


class Moments(NamedTuple):
    """Sums of scaled features and targets over a set of rows."""

    weight: float
    gram: np.ndarray  # (d, d)
    cross: np.ndarray  # (d, c)
    feature_sum: np.ndarray  # (d,)
    target_sum: np.ndarray  # (c,)
    target_square: np.ndarray  # (c,)


class Centred(NamedTuple):
    """What a ridge system is made of; without an intercept, the sums themselves."""

    gram: np.ndarray  # (d, d)
    cross: np.ndarray  # (d, c)


class Solution(NamedTuple):
    """Weights and intercepts, and how each distinct lam was factorised."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    factors: tuple[Factor, ...]


def centred(S: Moments, fit_intercept: bool) -> Centred:
    """Gc and Rc."""
    if not fit_intercept:
        return Centred(S.gram, S.cross)
    gram = S.gram - np.outer(S.feature_sum, S.feature_sum / S.weight)
    return Centred(gram, centred_cross(S, True))


def centred_cross(S: Moments, fit_intercept: bool) -> np.ndarray:
    """Rc."""
    return S.cross - np.outer(S.feature_sum, S.target_sum / S.weight) if fit_intercept else S.cross


def solve_ridge(S: Moments, lam: np.ndarray, fit_intercept: bool, axes: Axes | None = None) -> Solution:
    """coef and intercept of least square loss / 2 + lam / 2 |coef|^2; lam is one number, or one for each output.

    With axes, coef is a combination of them.
    """
    gram, cross = centred(S, fit_intercept)
    coef = np.empty_like(cross)
    lam = np.broadcast_to(lam, (cross.shape[1],))
    factors = []
    for value in np.unique(lam):
        factor = factorise(gram.copy(), float(value)) if axes is None else axes.factor(float(value))
        outputs = lam == value
        coef[:, outputs] = factor.solve(cross[:, outputs])
        factors.append(factor)
    intercept = np.zeros(cross.shape[1])
    if fit_intercept:
        intercept = (S.target_sum - coef.T @ S.feature_sum) / S.weight
    return Solution(coef, intercept, tuple(factors))


def residual_energy(S: Moments, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """2 V(S) by output: the weighted sum of squared residuals on the rows of S, never negative."""
    projected = coef.T @ S.feature_sum
    energy = (
        S.target_square
        - 2 * (coef * S.cross).sum(0)
        - 2 * intercept * S.target_sum
        + (coef * (S.gram @ coef)).sum(0)
        + 2 * projected * intercept
        + S.weight * intercept * intercept
    )
    return np.asarray(np.maximum(energy, 0.0))


def least_objective(S: Moments, solution: Solution, fit_intercept: bool) -> np.ndarray:
    """Square loss + lam |coef|^2 by output at its minimum, where it is yy - <coef, Rc>: no product with the gram."""
    mean = S.target_sum * S.target_sum / S.weight if fit_intercept else 0.0
    cross = centred_cross(S, fit_intercept)
    return np.asarray(np.maximum(S.target_square - mean - (solution.coef * cross).sum(axis=0), 0.0))


def largest_eigenvalue(A: np.ndarray, steps: int = 20) -> float:
    """lambda_max of a positive matrix by power steps; an estimate from below."""
    v = np.cos(np.arange(1.0, len(A) + 1))
    value = 0.0
    for _ in range(steps):
        norm = float(np.linalg.norm(v))
        if norm == 0 or not np.isfinite(norm):
            break
        v = A @ (v / norm)
        value = float(np.linalg.norm(v))
    return value


def relative_residual(
    S: Moments, solution: Solution, lam: np.ndarray, fit_intercept: bool, axes: Axes | None = None
) -> float:
    """The largest |b - A x| / |b| of all outputs; of weights that are confined to axes, along these."""
    gram, cross = centred(S, fit_intercept)
    left = cross - gram @ solution.coef - lam * solution.coef
    if axes is not None:
        left, cross = axes.vectors.T @ left, axes.vectors.T @ cross
    return largest_share(left, cross)


def largest_share(part: np.ndarray, whole: np.ndarray) -> float:
    """The largest |part| / |whole| of all columns; 0 of columns without anything."""
    size = np.linalg.norm(whole, axis=0)
    return float((np.linalg.norm(part, axis=0) / np.where(size > 0, size, 1.0)).max(initial=0.0))
