"""Weights of a fixed kernel by squared errors and a penalty that makes zeros: one pass of sums, then no other.

    1/2 sum_i w_i |y_i - B' psi_i - b|^2 + alpha penalty(B)

alpha is given, or chosen by K-fold from the same sums. The certificate is the duality gap over yy (solvers/fista.py).
This module's `solve_penalised` is what travels to the scheduler: sums in, coefficients and scores out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.progress import tell
from dkl.engine.threads import thread_count
from dkl.learn.moments import moments_of
from dkl.learn.resumable_pass import sum_resumable
from dkl.learn.run import Run
from dkl.penalties import Penalty
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.fista import Sparse, fista, fista_cost
from dkl.solvers.ridge import Moments, centred, residual_energy
from dkl.sums.gram import GramProgram, GramSums, gram_cost
from dkl.sums.targets import Targets


@dataclass(frozen=True)
class SparseOptions:
    """alpha: one number, or (choose=True) the grid of the K-fold choice.

    relative: alpha counts from the least one at which all weights are zero, which is 1.
    """

    penalty: Penalty
    alpha: np.ndarray
    fit_intercept: bool
    choose: bool = False
    relative: bool = False
    tol: float = 1e-6
    max_iter: int = 20_000


class SparseWeights(NamedTuple):
    """What comes back from the solve."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    alpha: float
    largest_alpha: float  # the least one at which all weights are zero
    tried: np.ndarray  # (alphas,), from large to small
    scores: np.ndarray | None  # (alphas, folds), minus the mean squared error
    objective: float  # (square loss / 2 + alpha penalty) / weight
    gap: float  # of the objective over that of zero weights: the certificate
    kkt: float  # over alpha
    iterations: int
    converged: bool
    warning: str | None


def fit_penalised(run: Run, program: GramProgram, options: SparseOptions) -> SparseWeights:
    """One pass over the rows and one solve."""
    sums = sum_resumable(run, program, GramSums, program, "adding up X")
    features, tried = program.features.map, options.alpha.size
    systems = tried * (1 + program.folds * options.choose)
    described = {"scale": features.scale, "targets": program.targets, "options": options}
    with run.progress.waiting(f"solving {systems:,} system{'s' * (systems > 1)} of {features.n_features:,} unknowns"):
        weights = run.engine.solve(solve_penalised, sums, **described)
    best = None if weights.scores is None else -float(weights.scores.mean(axis=1).max())
    tell(event="solve", objective=weights.objective, alpha=[weights.alpha], cv_error=best, systems=systems)
    return weights


def sparse_ridge_costs(sizes: Sizes, of: MapCost, folds: int) -> list[Cost]:
    """The gram, and the steps from its sums."""
    return [gram_cost(sizes, of, folds).then(fista_cost(of.features, max(1, sizes.outputs), folds + 1))]


def solve_penalised(sums: GramSums, *, scale: float, targets: Targets, options: SparseOptions) -> SparseWeights:
    """Sparse weights from the sums of one pass, warm-started from large alphas to small ones."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    alphas = np.asarray(options.alpha, float).ravel()
    if not (alphas.size and np.isfinite(alphas).all() and (alphas > 0).all()):
        raise ValueError(f"alpha={alphas.tolist()} must be finite numbers above 0")
    if alphas.size > 1 and not options.choose:
        raise ValueError(f"alpha={alphas.tolist()} is a list: give one number, or choose among them by folds (cv)")
    folds, unit = list(range(len(sums.weight))), targets.weight_unit
    S = _in_units_of_y(moments_of(sums, folds, scale, targets), targets)
    largest = options.penalty.dual_norm(centred(S, options.fit_intercept).cross) * unit
    tried = np.unique(alphas * (largest or 1.0) if options.relative else alphas)[::-1]
    scores, alpha = None, float(tried[0])
    if options.choose:
        scores = _scored(sums, scale, targets, options, tried)
        alpha = float(tried[int(np.argmax(scores.mean(axis=1)))])
    path = _path(S, tried[tried >= alpha] / unit, options)
    end, energy = path[-1], _energy(S, options.fit_intercept)
    intercept = _intercept(S, end.coef, options.fit_intercept)
    if not targets.is_class:
        intercept = intercept + targets.shift
    gap = end.gap / energy if energy > 0 else end.gap
    return SparseWeights(
        end.coef, intercept, alpha, largest, tried, scores, end.objective / S.weight, gap, end.kkt * unit / alpha,
        sum(one.iterations for one in path), end.converged, _doubt(end, gap, alpha, options),
    )  # fmt: skip


def _in_units_of_y(S: Moments, targets: Targets) -> Moments:
    """The sums of targets over no unit: a penalty may join outputs, and is not the same in all units."""
    u = targets.unit
    return S._replace(cross=S.cross * u, target_sum=S.target_sum * u, target_square=S.target_square * u * u)


def _energy(S: Moments, fit_intercept: bool) -> float:
    """yy, less its mean's part if there is an intercept."""
    mean = S.target_sum * S.target_sum / S.weight if fit_intercept else 0.0
    return float(np.maximum(S.target_square - mean, 0.0).sum())


def _intercept(S: Moments, coef: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """(sy - B'm) / w."""
    return np.asarray((S.target_sum - coef.T @ S.feature_sum) / S.weight * fit_intercept)


def _path(S: Moments, lams: np.ndarray, options: SparseOptions) -> list[Sparse]:
    """Weights of each lam, each from those of the one before."""
    gram, cross = centred(S, options.fit_intercept)
    energy, start, path = _energy(S, options.fit_intercept), None, []
    limits = {"tol": options.tol, "max_iter": options.max_iter}
    for lam in lams:
        path.append(fista(gram, cross, float(lam), options.penalty, energy=energy, start=start, **limits))  # type: ignore[arg-type]
        start = path[-1].coef
    return path


def _scored(
    sums: GramSums, scale: float, targets: Targets, options: SparseOptions, alphas: np.ndarray
) -> np.ndarray:  # fmt: skip
    """Minus the mean squared error (alphas, folds) of each fold by the weights of the others."""
    folds = len(sums.weight)
    if folds < 2:
        raise ValueError(f"a choice among {len(alphas)} alphas needs 2 folds or more, not {folds}; use cv=5")

    def of_fold(k: int) -> list[float]:
        others = [fold for fold in range(folds) if fold != k]
        train, test = (_in_units_of_y(moments_of(sums, some, scale, targets), targets) for some in (others, [k]))
        if not train.weight or not test.weight:
            raise ValueError(f"fold {k} of {folds} has no weight; use fewer folds (cv)")
        found = []
        for one in _path(train, alphas / targets.weight_unit, options):
            missed = residual_energy(test, one.coef, _intercept(train, one.coef, options.fit_intercept))
            found.append(-float(missed.mean() / test.weight))
        return found

    with ThreadPoolExecutor(min(folds, thread_count(), SOLVE_THREADS)) as pool:
        return np.array(list(pool.map(of_fold, range(folds)))).T


def _doubt(end: Sparse, gap: float, alpha: float, options: SparseOptions) -> str | None:
    """A warning if the certificate does not hold."""
    if end.converged:
        return None
    return (
        f"the weights of alpha={alpha:g} are not at their best after {end.iterations:,} iterations: the duality gap is "
        f"{gap:.1e} of the squared error of y, tol is {options.tol:g}; raise alpha, tol or max_iter={options.max_iter}"
    )
