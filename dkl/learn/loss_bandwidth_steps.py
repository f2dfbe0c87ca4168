"""The objective of any loss at a trial point: the weights and the verdict, where the solve runs.

    joint      F = 1/w [sum_i w_i l(z_i) + lam / 2 |B|^2],                 B, b minimise it themselves
    held out   E = 1/w_t sum_{i tested} w_i l(z_i),    B, b minimise that F of the rows which train them

`whiten` makes coordinates of the gram of all rows, in which the second derivative of F is at most one; `descend` takes
the sums of one pass of training and makes one step of L-BFGS in them; `judge` accepts the point or not. What its
gradient takes is in learn/loss_adjoints.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dkl.engine.handles import Reply
from dkl.learn.bandwidth_steps import Problem
from dkl.learn.moments import moments_of
from dkl.learn.objectives import Unweighted
from dkl.learn.parameters import ScalesAndAlpha
from dkl.learn.search import Inner, Search, Verdict
from dkl.losses import Loss
from dkl.solvers.lbfgs import WORTH, judged
from dkl.solvers.quasi_newton import Descent, begin, evaluated
from dkl.solvers.whitening import Whitening, whitening_of
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.training import TrainingProgram, TrainingSums

INNER, LOOSEST, STEPS = 0.01, 1e-3, 200
"""|gradient| of the weights over that at zero, as a share of tol, and at most; the steps made for it at most."""
LOOSEST_ADJOINT = 0.01
"""The residual of an adjoint is at most tol, and at most this."""


@dataclass(frozen=True)
class LossLearning(Problem):
    """What stays the same while sigma is learned under a loss; `folds` and `held` are as a pass of sums has them."""

    loss: Loss
    folds: int
    seed: int
    held: tuple[int, int] | None = None

    @property
    def inner_tol(self) -> float:
        """Of the weights, to which the error of the gradient is proportional."""
        return min(INNER * self.tol, LOOSEST)

    @property
    def adjoint_tol(self) -> float:
        """Of the adjoints."""
        return min(self.tol, LOOSEST_ADJOINT)

    @property
    def tests(self) -> np.ndarray:
        """The fold that tests each system; -1: none, all rows train it."""
        return np.array([-1 if test is None else test for test in self.objective.tests(self.folds)])

    def folded(self, program: GramProgram) -> GramProgram:
        """The pass of all rows with its folds."""
        return replace(program, folds=self.folds, seed=self.seed, held=self.held)

    def log_lam(self, x: np.ndarray) -> float:
        """log(alpha / unit of the weights): given, or learned."""
        if isinstance(self.parameters, ScalesAndAlpha):
            return float(self.parameters.factor(x)[-1])
        assert self.alpha is not None
        return float(np.log(self.alpha / self.targets.weight_unit))


class Solving(NamedTuple):
    """The weights of a trial on their way: descents in the coordinates of `factor`, over rows of so much weight."""

    systems: tuple[Descent, ...]
    first: np.ndarray  # (S,), |dF/d(B, b)| at zero weights; 0: not known yet
    residual: np.ndarray  # (S,), |dF/d(B, b)| over that
    factor: Whitening
    weight: float
    log_lam: float

    @property
    def lam(self) -> float:
        """lam over the weight of the rows."""
        return float(np.exp(self.log_lam)) / self.weight

    @property
    def outputs(self) -> int:
        return int(self.systems[0].x.size) // (len(self.factor.curved) + 1)

    def weights(self, trial: bool = False) -> np.ndarray:
        """(S, d + 1, c): at the points that were accepted, or at those to try."""
        points = [one.trial if trial else one.x for one in self.systems]
        return np.stack([self.factor.weights(x, self.outputs) for x in points])


class Accepted(NamedTuple):
    """What the gradient of a point that was accepted needs."""

    solving: Solving
    value: float
    trained: np.ndarray  # (S,), sums of losses
    tested: np.ndarray  # (S,)
    weight: float  # of the rows whose losses are the objective


def whiten(
    sums: GramSums, *, problem: LossLearning, program: GramProgram, search: Search, inner: Inner | None
) -> Reply[None]:
    """The coordinates of the trial, the weights that its descents begin from, and their first pass."""
    _refuse(sums.refusal)
    c, weight = problem.targets.n_outputs, float(sums.weight.sum())
    if not weight:
        raise Unweighted(f"sample_weight is zero for every row (a total of {weight:g}); give some a positive weight")
    log_lam = problem.log_lam(search.descent.trial)
    S = moments_of(sums, [0], program.features.map.scale, problem.targets)
    bare = whitening_of(S, problem.loss.most_curved(c), problem.fit_intercept)
    factor = bare.at(float(np.exp(log_lam)) / weight)
    count, d = len(problem.tests), program.features.map.n_features
    start = np.zeros((count, d + 1, c)) if inner is None else inner.weights
    first = np.zeros(count) if inner is None else inner.first
    systems = tuple(begin(factor.coordinates(weights)) for weights in start)
    solving = Solving(systems, first, np.ones(count), factor, weight, log_lam)
    return Reply(None, {"solving": solving, "training": training(problem, program, solving.weights(trial=True))})


def descend(sums: TrainingSums, *, problem: LossLearning, program: GramProgram, solving: Solving) -> Reply[bool]:
    """One evaluation of every system; whether all have ended, at weights that the pass has seen."""
    _refuse(sums.refusal)
    _refuse_unweighted(problem, sums, solving.weight)
    tol, most = problem.inner_tol, STEPS
    first, residual, systems, rests = solving.first.copy(), solving.residual.copy(), [], []

    def has_ended(descent: Descent, s: int) -> bool:
        return descent.begun and (descent.stalled or residual[s] <= tol or descent.iteration >= most)

    for s, (descent, weights) in enumerate(zip(solving.systems, solving.weights(trial=True), strict=True)):
        moved = descent
        if not has_ended(descent, s):
            value, slope = loss_and_slope(problem, program, sums, s, weights, solving)
            size = float(np.linalg.norm(slope))
            first[s] = first[s] or size
            moved = evaluated(descent, value, solving.factor.gradient(slope))
            if moved.iteration > descent.iteration:
                residual[s] = size / first[s] if first[s] else 0.0
        ended = has_ended(moved, s)
        if ended:
            moved = moved._replace(trial=moved.x)
        rests.append(ended and np.array_equal(descent.trial, moved.x))
        systems.append(moved)
    solving = solving._replace(systems=tuple(systems), first=first, residual=residual)
    following = training(problem, program, solving.weights(trial=True))
    return Reply(all(rests), {"solving": solving, "training": following})


def judge(
    sums: TrainingSums, *, problem: LossLearning, program: GramProgram, search: Search, solving: Solving
) -> Reply[Verdict]:
    """The value of the trial, and whether it is accepted; if not, the pass of a shorter step."""
    trial, weights = search.descent.trial, solving.weights()
    if problem.objective.holds_out:
        weight = float(sums.weight.sum())
        error = float(sums.tested.sum()) / weight
    else:
        weight = solving.weight
        error = loss_and_slope(problem, program, sums, 0, weights[0], solving)[0]
    value = error + problem.penalty(trial)[0]
    value = value if np.isfinite(value) else np.inf
    accepted, descent = judged(search.descent, value, WORTH * problem.tol)
    verdict = Verdict(accepted, descent.stalled, value * problem.unit, solving.log_lam)
    search = search._replace(descent=descent)
    if not accepted:
        return Reply(verdict, {"search": search, "program": program.with_map(problem.parameters.map(descent.trial))})
    kept = {
        "search": search._replace(log_lam=solving.log_lam, error=error),
        "inner": Inner(weights, solving.first),
        "found": Accepted(solving, value, sums.loss, sums.tested, weight),
    }
    return Reply(verdict, kept)


def training(problem: LossLearning, program: GramProgram, weights: np.ndarray) -> TrainingProgram:
    """The pass of training at weights (S, d + 1, c)."""
    coef = program.features.map.scale * weights[:, :-1]
    return TrainingProgram(problem.folded(program), problem.loss, coef, weights[:, -1], problem.tests)


def loss_and_slope(
    problem: LossLearning, program: GramProgram, sums: TrainingSums, s: int, weights: np.ndarray, solving: Solving
) -> tuple[float, np.ndarray]:
    """F of one system and its gradient (d + 1, c)."""
    total, scale, penalty = solving.weight, program.features.map.scale, solving.lam * weights
    penalty[-1] = 0.0
    pulled = np.vstack([scale * sums.slope[s].T, problem.fit_intercept * sums.slope_sum[s]])
    return float(sums.loss[s]) / total + 0.5 * float((penalty * weights).sum()), pulled / total + penalty


def _refuse(refusal: tuple[int, str] | None) -> None:
    """Raise for a row that a pass could not take."""
    if refusal is not None:
        raise ValueError(refusal[1])


def _refuse_unweighted(problem: LossLearning, sums: TrainingSums, weight: float) -> None:
    """Rows that test a system, and those that train it, must have some weight."""
    for test, tested in zip(problem.tests, sums.weight, strict=True):
        if test >= 0 and not 0 < tested < weight:
            named = problem.objective.named(int(test), problem.folds)
            raise Unweighted(f"{named}, or the others, have no weight; use more rows, or other folds")
