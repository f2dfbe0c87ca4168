"""The objective at a trial point and its gradient, where the solve runs: sums in, scalars out, the rest stays there.

`judge` takes the sums of the first pass: alpha is found for this sigma from the same sums (it costs factorisations, no
pass), and the descent accepts the point or not. `advance` takes the sums of the second pass, the gradient, and moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dkl.engine.handles import Reply
from dkl.learn.adjoints import adjoint_of
from dkl.learn.alpha import best_alpha
from dkl.learn.moments import moments_of
from dkl.learn.objectives import Objective, systems_of
from dkl.learn.parameters import Parameters
from dkl.learn.search import Move, Search, Verdict
from dkl.solvers.hypergradient import System, make_system, unseen_error
from dkl.solvers.lbfgs import WORTH, judged, moved
from dkl.solvers.scalar import Point
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.pullback import PullbackProgram, PullbackSums
from dkl.sums.targets import Targets

PATIENCE = 5
"""Iterations without a lower error on unseen rows after which learning stops."""


@dataclass(frozen=True)
class Problem:
    """What stays the same while sigma is learned. alpha=None: learned too."""

    objective: Objective
    parameters: Parameters
    targets: Targets
    fit_intercept: bool
    alpha: float | None
    input_size: np.ndarray
    tol: float
    unseen: bool = field(default=False, kw_only=True)  # whether the last fold of the sums is for early stopping alone

    @property
    def unit(self) -> float:
        """What J is multiplied by to be in the units of y squared; inside, it is near one whatever y is."""
        return float(self.targets.unit.max()) ** 2

    @property
    def holds_alpha(self) -> bool:
        """Whether alpha is chosen at the start and held: it would fall as frequencies fit the folds."""
        return self.alpha is None and self.parameters.frequencies

    def penalty(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalty and its gradient, in the units of J."""
        value, gradient = self.parameters.penalty(x)
        variance = self.targets.variance / self.unit
        return variance * value, variance * gradient

    def solved(self, systems: list[System], search: Search, weight: float) -> Point:
        """J at the given lam, at the best one of this trial, or at the one that is held; `weight`: of the rows."""
        share = self.targets.share
        if self.alpha is not None:
            return best_alpha(systems, self.objective, share, self.alpha / self.targets.weight_unit, None)
        if not self.holds_alpha:
            return best_alpha(systems, self.objective, share, None, search.log_lam)
        held = search.log_lam
        if held is None:
            held = best_alpha(systems, self.objective, share, None, None).at + float(np.log(search.stretch))
        return best_alpha(systems, self.objective, share, float(np.exp(held)), None)

    def missed(self, system: System, log_lam: float, weight: float) -> float:
        """The error of a system on the rows that test it."""
        return unseen_error(system, float(np.exp(log_lam)), self.targets.share)


def judge(sums: GramSums, *, problem: Problem, program: GramProgram, search: Search) -> Reply[Verdict]:
    """The trial's value, whether it is accepted, and the next program: of the second pass, or of a shorter step."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    targets, scale, trial = problem.targets, program.features.map.scale, search.descent.trial
    systems = systems_of(sums, problem.objective, scale, targets, problem.fit_intercept, problem.unseen)
    total = float(sums.weight.sum())
    found = problem.solved(systems, search, total)
    value = found.value + problem.penalty(trial)[0]
    if not np.isfinite(value):
        value = np.inf
    accepted, descent = judged(search.descent, value, WORTH * problem.tol)
    verdict = Verdict(accepted, descent.stalled, value * problem.unit, found.at)
    if not accepted:
        shorter = program.with_map(problem.parameters.map(descent.trial))
        return Reply(verdict, {"search": search._replace(descent=descent), "program": shorter})
    weight = float(sums.weight[: len(sums.weight) - problem.unseen].sum())
    adjoint = adjoint_of(found.what, systems, problem.objective, len(sums.weight), weight, scale, problem.unseen)
    pullback = PullbackProgram(program, adjoint, problem.input_size, problem.parameters.wanted)
    unseen = _unseen(sums, problem, scale, found.at, total)
    ready = search._replace(descent=descent, log_lam=found.at, error=found.value, unseen=unseen)
    tested = problem.objective.tested_weight(sums.weight[: len(sums.weight) - problem.unseen])
    return Reply(verdict, {"search": ready, "pullback": pullback, "accepted": (value, weight, tested)})


def _unseen(sums: GramSums, problem: Problem, scale: float, log_lam: float, total: float) -> float:
    """Error on the rows set aside of a model of all others; NaN without such rows."""
    if not problem.unseen or not sums.weight[-1]:
        return float("nan")
    last, targets = len(sums.weight) - 1, problem.targets
    train, test = moments_of(sums, range(last), scale, targets), moments_of(sums, [last], scale, targets)
    system = make_system(train, test, float(sums.rows[:last].sum()), problem.fit_intercept)
    return problem.missed(system, log_lam, total)


def advance(
    sums: PullbackSums, *, problem: Problem, program: GramProgram, search: Search, accepted: tuple[float, float, float]
) -> Reply[Move]:
    """The search after its trial was accepted and its gradient summed, and the program of the next trial."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    value, weight, tested = accepted
    x, unit = search.descent.trial, problem.unit
    gradient = problem.parameters.gradient(x, sums) / weight + problem.penalty(x)[1]
    descent = moved(search.descent, value, gradient)
    small = search.small + 1 if descent.decrease <= problem.tol else 0
    search = search._replace(descent=descent, small=small)
    if not problem.parameters.penalised:  # exact zeros come at the end of a descent, not on its way
        search = search.noted(problem.penalty(x)[0])
    stopped = "early_stopping" if search.since >= PATIENCE else ""
    ended = "converged" if descent.has_converged(small, problem.tol) else stopped
    assert search.log_lam is not None
    move = Move(
        problem.parameters.sigma(x), unit * value, unit * search.error, search.log_lam,
        float(sums.wrong[0] / tested), unit * descent.gradient_norm, ended, unit * search.unseen,
    )  # fmt: skip
    following = program.with_map(problem.parameters.map(descent.trial))
    return Reply(move, {"search": search, "program": following})
