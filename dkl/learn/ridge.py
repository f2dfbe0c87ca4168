"""Weights of a fixed kernel: one pass of sums, then ridge, with alpha given or chosen by K-fold from the same sums.

    (gram + alpha I) coef = cross

With fewer rows than features the pass collects the rows instead, and the system has n unknowns (learn/dual.py). This
module's `solve_weights` is what travels to the scheduler: sums in, coefficients and scores out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dkl.engine.progress import tell
from dkl.engine.protocol import Pending, Ref
from dkl.learn.alpha import alpha_of, best_alpha
from dkl.learn.dual import dual_fits, solve_dual_weights
from dkl.learn.moments import moments_of
from dkl.learn.objectives import systems_of
from dkl.learn.resumable_pass import sum_resumable
from dkl.learn.run import Run
from dkl.learn.unlabelled import with_unlabelled
from dkl.learn.weights import Found, RidgeOptions, Spectrum, Weights, refuse_empty_fold, weights_of
from dkl.solvers.axes import Axes, principal_axes
from dkl.solvers.ridge import (
    Moments,
    centred,
    largest_eigenvalue,
    least_objective,
    relative_residual,
    residual_energy,
    solve_ridge,
)
from dkl.sums.feature_rows import FeatureRows, FeatureRowsProgram
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.scatter import ScatterSums
from dkl.sums.targets import Targets

__all__ = ["AlphaPass", "RidgeOptions", "Weights", "fit_ridge", "solve_weights"]

AlphaPass = Callable[[Run, GramProgram, Pending[GramSums], float, bool], float]
"""A better alpha near a given one, by a pass of its own; the last argument is fit_intercept."""


def fit_ridge(
    run: Run,
    program: GramProgram,
    options: RidgeOptions,
    unlabelled: Ref[ScatterSums] | None = None,
    refine: AlphaPass | None = None,
) -> Weights:
    """One pass over the rows and one solve; `unlabelled` refers to the sums of other rows."""
    features, n = program.features.map, program.n_rows
    narrow = program.features.dtype == np.float32
    described = {"scale": features.scale, "targets": program.targets, "narrow": narrow}
    plain = program.held is None and program.unseen is None and program.taken is None and options.refine is None
    if (
        plain
        and unlabelled is None
        and refine is None
        and dual_fits(n, features.n_features, options.reduce is not None)
    ):
        rows = sum_resumable(run, FeatureRowsProgram(program), FeatureRows, program, "adding up X")
        with run.progress.waiting(_solving(program, options, n)):
            weights = run.engine.solve(
                solve_dual_weights, rows, options=options, folds=program.folds, **described
            )  # fmt: skip
        return _told(weights, program, options)
    sums = sum_resumable(run, program, GramSums, program, "adding up X")
    if refine is not None:
        alpha = refine(run, program, sums, float(options.alpha[0]), options.fit_intercept)
        options = replace(options, alpha=np.array([alpha]))
    with run.progress.waiting(_solving(program, options, features.n_features)):
        weights = run.engine.solve(solve_weights, sums, unlabelled=unlabelled, options=options, **described)
    return _told(weights, program, options)


def _systems(program: GramProgram, options: RidgeOptions) -> int:
    """How many systems are solved, if the grid does not grow."""
    return 1 + program.folds * options.alpha.size * options.choose


def _solving(program: GramProgram, options: RidgeOptions, unknowns: int) -> str:
    """What is waited for."""
    systems = _systems(program, options)
    return f"solving {systems:,} system{'s' * (systems > 1)} of {unknowns:,} unknowns"


def _told(weights: Weights, program: GramProgram, options: RidgeOptions) -> Weights:
    """The weights, after the event of their solve."""
    best = None if weights.scores is None else -float(weights.scores.mean(axis=1).max())
    systems = _systems(program, options)
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
    objective = options.refine

    def refined(alpha: float) -> float:
        assert objective is not None
        systems = systems_of(sums, objective, scale, targets, options.fit_intercept)
        found = best_alpha(systems, objective, targets.share, None, float(np.log(alpha / targets.weight_unit)))
        return alpha_of(found.at, targets)

    systems = _Solve(sums, scale, targets, options, narrow, unlabelled)
    return weights_of(systems, targets, options, narrow, None if objective is None else refined)


@dataclass(frozen=True)
class _Solve:
    """All systems of one solve."""

    sums: GramSums
    scale: float
    targets: Targets
    options: RidgeOptions
    narrow: bool
    unlabelled: ScatterSums | None

    @property
    def folds(self) -> int:
        return len(self.sums.weight)

    def moments(self, folds: list[int]) -> Moments:
        """Sums of some folds."""
        return moments_of(self.sums, folds, self.scale, self.targets)

    @cached_property
    def whole(self) -> Moments:
        """Sums of all folds."""
        return self.moments(list(range(self.folds)))

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of the gram."""
        gram = self.whole.gram
        return Spectrum(largest_eigenvalue(gram), float(np.trace(gram)) / len(gram))

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

    def solve(self, lam: np.ndarray) -> Found:
        """On all rows, for one lam or one for each output."""
        S, fit_intercept = self.whole, self.options.fit_intercept
        axes = self.axes(S, list(range(self.folds)))
        solution = solve_ridge(S, lam, fit_intercept, axes)
        reduced = None if axes is None else {"axes": len(axes.energies), "share": axes.share}
        residual = relative_residual(S, solution, lam, fit_intercept, axes)
        return Found(solution, least_objective(S, solution, fit_intercept), S.weight, residual, reduced)

    def held_out(self, k: int, lams: np.ndarray) -> list[np.ndarray]:
        """Mean squared error (c,) on fold k of the model of the others, for each lam."""
        others = [fold for fold in range(self.folds) if fold != k]
        train, test = self.moments(others), self.moments([k])
        refuse_empty_fold(k, self.folds, train.weight, test.weight)
        errors, axes = [], self.axes(train, others)
        for lam in lams:
            solution = solve_ridge(train, np.array([lam]), self.options.fit_intercept, axes)
            errors.append(residual_energy(test, solution.coef, solution.intercept) / test.weight)
        return errors


def _removed(S: Moments) -> float:
    """|m|^2 / w."""
    return float(S.feature_sum @ S.feature_sum) / S.weight
