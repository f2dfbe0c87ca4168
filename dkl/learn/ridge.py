"""Weights of a fixed kernel: one pass of sums, then ridge, with alpha given or chosen by K-fold from the same sums.

    (gram + alpha I) coef = cross

This module's `solve_weights` is what travels to the scheduler: sums in, coefficients and scores out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.progress import tell
from dkl.engine.protocol import Pending, Ref
from dkl.engine.threads import thread_count
from dkl.learn.alpha import FLOOR, alpha_of, best_alpha
from dkl.learn.moments import moments_of
from dkl.learn.objectives import Objective, systems_of
from dkl.learn.resumable_pass import sum_resumable
from dkl.learn.run import Run
from dkl.learn.unlabelled import with_unlabelled
from dkl.solvers.axes import Axes, principal_axes
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.ridge import (
    Moments,
    Solution,
    centred,
    largest_eigenvalue,
    least_objective,
    residual_energy,
    solve_ridge,
)
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.scatter import ScatterSums
from dkl.sums.targets import Targets

STABLE_METHODS = ("cholesky", "axes")
"""Factors that needed no help."""
AlphaPass = Callable[[Run, GramProgram, Pending[GramSums], float, bool], float]
"""A better alpha near a given one, by a pass of its own; the last argument is fit_intercept."""


@dataclass(frozen=True)
class RidgeOptions:
    """alpha: one number, one for each output, or (choose=True) the grid of the K-fold choice.

    refine: the objective for which the one alpha is made the best one, from the folds of the same sums.
    """

    alpha: np.ndarray
    fit_intercept: bool
    choose: bool = False
    refine: Objective | None = None
    own: bool = False  # whether alpha is the library's choice: never below the floor, its grid as long as it must be
    reduce: float | str | None = None  # principal axes: so many, a share of the variance below 1, or "mle"


class Weights(NamedTuple):
    """What comes back from the solve."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    alpha: np.ndarray
    tried: np.ndarray  # (alphas,)
    scores: np.ndarray | None  # (alphas, folds), minus the mean squared error
    method: str
    jitter: float
    warning: str | None
    objective: float = float("nan")  # (square loss + alpha |coef|^2) / weight, over all outputs
    reduced: dict[str, Any] | None = None  # how many axes were kept, and their share of the variance


def fit_ridge(
    run: Run,
    program: GramProgram,
    options: RidgeOptions,
    unlabelled: Ref[ScatterSums] | None = None,
    refine: AlphaPass | None = None,
) -> Weights:
    """One pass over the rows and one solve; `unlabelled` refers to the sums of other rows."""
    sums = sum_resumable(run, program, "adding up X")
    if refine is not None:
        alpha = refine(run, program, sums, float(options.alpha[0]), options.fit_intercept)
        options = replace(options, alpha=np.array([alpha]))
    features, systems = program.features.map, 1 + program.folds * options.alpha.size * options.choose
    narrow = program.features.dtype == np.float32
    described = {"scale": features.scale, "targets": program.targets, "options": options, "narrow": narrow}
    with run.progress.waiting(f"solving {systems:,} system{'s' * (systems > 1)} of {features.n_features:,} unknowns"):
        weights = run.engine.solve(solve_weights, sums, unlabelled=unlabelled, **described)
    best = None if weights.scores is None else -float(weights.scores.mean(axis=1).max())
    tell(event="solve", objective=weights.objective, alpha=weights.alpha.tolist(), cv_error=best, systems=systems)
    return weights


def solve_weights(
    sums: GramSums,
    *,
    scale: float,
    targets: Targets,
    options: RidgeOptions,
    narrow: bool,
    unlabelled: ScatterSums | None = None,
) -> Weights:
    """Ridge from the sums of one pass. A row that was refused is raised here."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    solve, folds = _Solve(sums, scale, targets, options, narrow, unlabelled), len(sums.weight)
    alpha, tried, scores = options.alpha, options.alpha, None
    S = solve.moments(list(range(folds)))
    least = _floor(S, targets.weight_unit)
    if options.choose:
        tried, scores = _scored(solve, least)
        alpha = tried[[int(np.argmax(scores.mean(axis=1)))]]
    if options.refine is not None:
        start = float(alpha[0]) / targets.weight_unit
        systems = systems_of(sums, options.refine, scale, targets, options.fit_intercept)
        found = best_alpha(systems, options.refine, targets.share, None, float(np.log(start)))
        alpha = np.array([alpha_of(found.at, targets)])
    if options.own and not options.choose:
        alpha = np.maximum(alpha, least)
    axes = solve.axes(S, list(range(folds)))
    solution = solve_ridge(S, alpha / targets.weight_unit, options.fit_intercept, axes)
    coef, intercept = solution.coef * targets.unit, solution.intercept * targets.unit
    if not targets.is_class:
        intercept = intercept + targets.shift
    if not np.isfinite(coef).all():
        raise ValueError(
            f"the solution with alpha={alpha.tolist()} is not finite; rescale X, y and sample_weight, or raise alpha"
        )
    worst = max(solution.factors, key=lambda f: (f.method not in STABLE_METHODS, f.jitter))
    doubt = _doubt(S, alpha, targets.weight_unit, solution, narrow) or _at_edge(alpha, tried, scores, options.own)
    objective = float((least_objective(S, solution, options.fit_intercept) * targets.unit**2).sum() / S.weight)
    reduced = None if axes is None else {"axes": len(axes.energies), "share": axes.share}
    return Weights(coef, intercept, alpha, tried, scores, worst.method, worst.jitter, doubt, objective, reduced)


@dataclass(frozen=True)
class _Solve:
    """What all systems of one solve share."""

    sums: GramSums
    scale: float
    targets: Targets
    options: RidgeOptions
    narrow: bool
    unlabelled: ScatterSums | None

    def moments(self, folds: list[int]) -> Moments:
        """Sums of some folds."""
        return moments_of(self.sums, folds, self.scale, self.targets)

    def axes(self, S: Moments, folds: list[int]) -> Axes | None:
        """The axes that weights of those folds are confined to; unlabelled rows shape them too."""
        if self.options.reduce is None:
            return None
        rows = float(self.sums.rows[folds].sum())
        own = centred(S, True).gram
        wanted, narrow = self.options.reduce, self.narrow
        if self.unlabelled is None:
            return principal_axes(own, wanted, narrow, rows, _removed(S))
        all_rows = with_unlabelled(S, self.unlabelled, self.scale, self.targets.weight_unit)
        rows += float(self.unlabelled.rows[0])
        return principal_axes(centred(all_rows, True).gram, wanted, narrow, rows, _removed(all_rows)).turned(own)

    def fold_scores(self, k: int, alphas: np.ndarray) -> list[float]:
        """Minus the mean squared error on fold k, for each alpha, of the model of the other folds."""
        others = [fold for fold in range(len(self.sums.weight)) if fold != k]
        train, test = self.moments(others), self.moments([k])
        if not train.weight or not test.weight:
            raise ValueError(f"fold {k} of {len(self.sums.weight)} has no weight; use fewer folds (cv)")
        scores, axes, unit = [], self.axes(train, others), self.targets.weight_unit
        for alpha in alphas:
            solution = solve_ridge(train, np.array([alpha / unit]), self.options.fit_intercept, axes)
            energy = residual_energy(test, solution.coef, solution.intercept) * self.targets.unit**2
            scores.append(-float(energy.mean() / test.weight))
        return scores


def _floor(S: Moments, unit: float) -> float:
    """The least alpha that is chosen: less is rounding of float32 blocks."""
    return FLOOR * largest_eigenvalue(S.gram) * unit


def _scored(solve: _Solve, least: float) -> tuple[np.ndarray, np.ndarray]:
    """alphas and their scores (alphas, folds); a grid of our own grows by tens while its best is at an end.

    It does not grow below the floor `least`, nor above 1e6 times that, where little but the mean is left.
    """
    folds, alphas = len(solve.sums.weight), solve.options.alpha
    with ThreadPoolExecutor(min(folds, thread_count(), SOLVE_THREADS)) as pool:

        def scores_of(some: np.ndarray) -> np.ndarray:
            return np.array(list(pool.map(lambda k: solve.fold_scores(k, some), range(folds)))).T

        if not solve.options.own:
            return alphas, scores_of(alphas)
        alphas = np.unique(np.maximum(alphas, least))
        scores = scores_of(alphas)
        while True:
            best = int(np.argmax(scores.mean(axis=1)))
            below, above = max(alphas[0] / 10, least), alphas[-1] * 10
            if best == 0 and below < alphas[0]:
                alphas, scores = np.append(below, alphas), np.vstack([scores_of(np.array([below])), scores])
            elif best == len(alphas) - 1 and above <= 10 * least / FLOOR:
                alphas, scores = np.append(alphas, above), np.vstack([scores, scores_of(np.array([above]))])
            else:
                return alphas, scores


def _at_edge(alpha: np.ndarray, tried: np.ndarray, scores: np.ndarray | None, own: bool) -> str | None:
    """A warning if the alpha that was chosen is the least or the largest of a list that the user gave."""
    if own or scores is None or len(tried) < 3 or tried.min() < alpha[0] < tried.max():
        return None
    low = alpha[0] == tried.min()
    what, more = ("least", alpha[0] / 10) if low else ("largest", alpha[0] * 10)
    if not more:
        return None
    return (
        f"cv chose alpha={alpha[0]:g}, the {what} of those given, so a better one may lie beyond; add {more:g}, or use "
        "alpha='auto'"
    )


def _removed(S: Moments) -> float:
    """|m|^2 / w."""
    return float(S.feature_sum @ S.feature_sum) / S.weight


def _doubt(S: Moments, alpha: np.ndarray, unit: float, solution: Solution, narrow: bool) -> str | None:
    """A warning if alpha is lost in the rounding of the sums."""
    least = float(np.min(alpha))
    for factor in solution.factors:
        if factor.method not in STABLE_METHODS:
            return (
                f"alpha={least:g} leaves the system singular in float64 (solved by {factor.method}, "
                f"jitter {factor.jitter:.1e}); raise alpha"
            )
    if narrow:
        floor = _floor(S, unit)
        if least < floor:
            return (
                f"alpha={least:g} is below {FLOOR:g} of the largest eigenvalue {floor / FLOOR:.3g}, the rounding of "
                "float32 blocks; raise alpha or use dtype='float64'"
            )
    elif least < 1e-12 * unit * np.trace(S.gram) / len(S.gram):
        return f"alpha={least:g} is below the rounding of float64; raise alpha"
    return None
