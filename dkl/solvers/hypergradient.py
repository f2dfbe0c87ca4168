"""Objectives of sigma and lam through the ridge solution, and the adjoint that their gradient needs.

    validation, cv   J = mean over systems of <E_v, W_v E_v> / (c w_v)        E of rows that the system has not seen
    joint            J = (<E, W E> + lam |B|^2) / (c w)                       the training objective itself
    gcv              J = (n / (n - t))^2 <E, W E> / (c w),   t = d - lam tr Q^-1 (+ 1 with an intercept)
    log_loss         J = sum over systems of sum w l(k z) / w                 z of rows that the system has not seen

With Q = Gc + lam I and the slope g of J in B, the adjoint is A = Q^-1 g, one more triangular solve; then
dJ/dlam = -<A, B>, and the rows need B and A alone (sums/pullback.py). Per output, J has the weight `share`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.factor import Factor, factor_cost, factorise
from dkl.solvers.ridge import Centred, Moments, centred, residual_energy

SOLVES = 3
"""Factorisations of a system in an iteration that learns alpha too, about."""


CURVED = 12
"""d x d matrices that a curvature adds: an inverse, its square, and four points of the search that have one each."""


def adjoint_cost(d: int, c: int, systems: int, trials: int = 0, curvature: bool = False) -> SolveCost:
    """Three d x d matrices and eight sets of weights for each system; with trials, its factor and their weights.

    Solves of many iterations run in threads of their own, and the allocator keeps what one of them has freed.
    """
    held = systems * (3 * d * d + 8 * d * c)
    if trials:
        held += systems * (d * d + 2 * trials * d * c)
    if curvature:
        held += systems * CURVED * d * d
    at_once = factor_cost(d, c, systems)
    return SolveCost(8 * held + at_once.bytes + factor_cost(d, c).bytes, SOLVES * at_once.flops)


class System(NamedTuple):
    """Sums to train with, those centred, the sums to test with (None: the same rows), rows of positive weight."""

    train: Moments
    inner: Centred
    test: Moments | None
    rows: float
    fit_intercept: bool


class Side(NamedTuple):
    """One system at one lam: its part of J and of dJ/dlam, and what the rows need for the rest of the gradient."""

    value: float
    slope: float
    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    adjoint: np.ndarray | None  # (d, c)
    adjoint_intercept: np.ndarray
    gain: np.ndarray  # (c,), slope of J in w e^2 / 2 of a tested row
    bound: np.ndarray  # (d,), root of sum over rows of psi_bar^2 / w, at most
    curvature: np.ndarray | None = None


def make_system(train: Moments, test: Moments | None, rows: float, fit_intercept: bool) -> System:
    """A system, centred once for every lam."""
    return System(train, centred(train, fit_intercept), test, rows, fit_intercept)


def held_out_side(system: System, lam: float, share: np.ndarray) -> Side:
    """Mean squared error on rows that the system is not trained with."""
    S, test = system.train, system.test
    assert test is not None
    factor, B, b0 = _solve(system, lam)
    energy = residual_energy(test, B, b0)
    gain = 2 * share / (len(share) * test.weight)
    g = gain * (test.gram @ B + np.outer(test.feature_sum, b0) - test.cross)
    g0 = gain * (B.T @ test.feature_sum + test.weight * b0 - test.target_sum)
    A, A0, reach = _solve_adjoint(system, factor, g, g0)
    bound = np.abs(B) @ (gain * np.sqrt(energy) + reach) + np.abs(A) @ np.sqrt(_null_energy(S, system.fit_intercept))
    value = float((gain * energy).sum() / 2)
    return Side(value, -float((A * B).sum()), B, b0, A, A0, gain, bound)


def unseen_error(system: System, lam: float, share: np.ndarray) -> float:
    """Mean squared error on rows that the system is not trained with, in the units of held_out_side; no gradient."""
    assert system.test is not None
    _, B, b0 = _solve(system, lam)
    energy = residual_energy(system.test, B, b0)
    return float((share * energy).sum() / (len(share) * system.test.weight))


def joint_side(system: System, lam: float, share: np.ndarray) -> Side:
    """The training objective; B is its minimiser, so only the direct slope is left."""
    S = system.train
    _, B, b0 = _solve(system, lam)
    energy, square = residual_energy(S, B, b0), (B * B).sum(axis=0)
    gain = 2 * share / (len(share) * S.weight)
    bound = np.abs(B) @ (gain * np.sqrt(energy))
    value = float((gain * (energy + lam * square)).sum() / 2)
    return Side(value, float((gain * square).sum() / 2), B, b0, None, b0, gain, bound)


def gcv_side(system: System, lam: float, share: np.ndarray) -> Side:
    """Generalised cross-validation; t moves with the features too, through `curvature`."""
    S, d = system.train, len(system.train.feature_sum)
    factor, B, b0 = _solve(system, lam)
    energy = residual_energy(S, B, b0)
    inverse = factor.solve(np.eye(d))
    trace = float(np.trace(inverse))
    free = max(system.rows - (d - lam * trace + float(system.fit_intercept)), 1e-12 * system.rows)
    stretch = system.rows / free
    gain = 2 * stretch**2 * share / (len(share) * S.weight)
    value = float((gain * energy).sum() / 2)
    t_bar = 2 * value / free
    A, A0, reach = _solve_adjoint(system, factor, -lam * gain * B, np.zeros(len(share)))
    slope = -float((A * B).sum()) + t_bar * (lam * float((inverse * inverse).sum()) - trace)
    squared = inverse @ inverse
    curvature = 2 * lam * t_bar * squared
    null = np.sqrt(_null_energy(S, system.fit_intercept))
    bound = np.abs(B) @ (gain * np.sqrt(energy) + reach) + np.abs(A) @ null
    bound += 2 * lam * t_bar * np.sqrt(np.maximum(np.einsum("kl,kl->k", squared, inverse), 0.0))
    return Side(value, slope, B, b0, A, A0, gain, bound, curvature)


class Solved(NamedTuple):
    """A system at one lam: what its rows are scored with, and what the adjoint will need."""

    system: System
    factor: Factor
    coef: np.ndarray
    intercept: np.ndarray


def solve_system(system: System, lam: float) -> Solved:
    """Weights of the system; its matrices are let go, but for the factor."""
    factor, B, b0 = _solve(system, lam)
    assert system.test is not None
    none = np.empty((0, 0))
    train, test = system.train._replace(gram=none, cross=none), system.test._replace(gram=none, cross=none)
    return Solved(system._replace(train=train, test=test, inner=Centred(none, none)), factor, B, b0)


def log_loss_side(solved: Solved, loss: float, g: np.ndarray, g0: np.ndarray, most: float, part: float) -> Side:
    """`part` of the summed log loss, whose slopes in B and b0 a pass has found; no row's slope exceeds `most`."""
    system, factor, B, b0 = solved
    assert system.test is not None
    A, A0, reach = _solve_adjoint(system, factor, part * g, part * g0)
    null = np.sqrt(_null_energy(system.train, system.fit_intercept))
    bound = np.abs(B) @ (part * most * np.sqrt(system.test.weight) + reach) + np.abs(A) @ null
    return Side(part * loss, -float((A * B).sum()), B, b0, A, A0, np.full(len(b0), part), bound)


def _solve(system: System, lam: float) -> tuple[Factor, np.ndarray, np.ndarray]:
    S = system.train
    factor = factorise(system.inner.gram.copy(), lam)
    B = factor.solve(system.inner.cross)
    b0 = (S.target_sum - B.T @ S.feature_sum) / S.weight if system.fit_intercept else np.zeros(B.shape[1])
    return factor, B, b0


def _solve_adjoint(
    system: System, factor: Factor, g: np.ndarray, g0: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A and its intercept for the slopes g and g0 of J, and a bound of |Psi A + A0| over the rows, by output."""
    S = system.train
    if not system.fit_intercept:
        A = factor.solve(g)
        return A, np.zeros(len(g0)), np.sqrt(np.maximum((A * g).sum(axis=0), 0.0))
    g = g - np.outer(S.feature_sum, g0 / S.weight)
    A = factor.solve(g)
    reach = np.sqrt(np.maximum((A * g).sum(axis=0), 0.0) + g0 * g0 / S.weight)
    return A, (g0 - A.T @ S.feature_sum) / S.weight, reach


def _null_energy(S: Moments, fit_intercept: bool) -> np.ndarray:
    """Residual energy without features, by output: what training cannot exceed."""
    mean = S.target_sum * S.target_sum / S.weight if fit_intercept else 0.0
    return np.maximum(S.target_square - mean, 0.0)
