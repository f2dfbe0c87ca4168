"""The objective at a trial point and its gradient, where the solve runs: sums in, scalars out, the rest stays there.

`judge` takes the sums of the first pass: alpha is found for this sigma from the same sums (it costs factorisations, no
pass), and the descent accepts the point or not. `advance` takes the sums of the second pass, the gradient, and moves.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from dkl.engine.handles import Reply
from dkl.engine.shape import SOLVE_THREADS
from dkl.engine.threads import thread_count
from dkl.learn.moments import moments_of
from dkl.learn.parameters import Parameters
from dkl.learn.search import Move, Search, Verdict
from dkl.solvers.hypergradient import SIDES, Side, System, make_system, unseen_error
from dkl.solvers.lbfgs import WORTH, judged, moved
from dkl.solvers.ridge import largest_eigenvalue
from dkl.solvers.scalar import Point, minimise_log
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.pullback import Adjoint, PullbackProgram, PullbackSums
from dkl.sums.targets import Targets

FLOOR = 1e-6
"""Least alpha that is sought, over the largest eigenvalue: less is rounding of float32 blocks, and in float64 lets
sigma and alpha fall together without end, towards a polynomial. A given alpha may be anything."""


PATIENCE = 5
"""Iterations without a lower error on unseen rows after which learning stops."""


class Unweighted(ValueError):
    """Rows of an objective have no weight."""


@dataclass(frozen=True)
class Problem:
    """What stays the same while sigma is learned. alpha=None: learned too."""

    objective: str
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


def systems_of(
    sums: GramSums, objective: str, scale: float, targets: Targets, fit_intercept: bool, unseen: bool = False
) -> list[System]:
    """The ridge systems of an objective; with `unseen`, the last fold belongs to none of them."""
    folds = len(sums.weight) - unseen

    def make(train: list[int], test: int | None) -> System:
        tested = None if test is None else moments_of(sums, [test], scale, targets)
        trained = moments_of(sums, train, scale, targets)
        if not trained.weight or (tested is not None and not tested.weight):
            if test is None:
                raise Unweighted("sample_weight is zero for every row; give some rows a positive weight")
            part = "the rows held out" if objective == "validation" else f"fold {test} of {folds}"
            raise Unweighted(f"{part}, or the others, have no weight; use more rows, or other folds")
        return make_system(trained, tested, float(sums.rows[train].sum()), fit_intercept)

    if objective == "validation":
        return [make([0], 1)]
    if objective == "cv":
        return [make([k for k in range(folds) if k != test], test) for test in range(folds)]
    return [make(list(range(folds)), None)]


def value_of(
    systems: list[System], objective: str, share: np.ndarray, pool: ThreadPoolExecutor
) -> Callable[[float], Point]:
    """J and dJ/dlog lam as a function of log lam, with the sides it is made of."""

    def evaluate(log_lam: float) -> Point:
        lam = float(np.exp(log_lam))
        sides = list(pool.map(lambda system: SIDES[objective](system, lam, share), systems))
        value = sum(side.value for side in sides) / len(sides)
        return Point(log_lam, value, lam * sum(side.slope for side in sides) / len(sides), sides)

    return evaluate


def best_alpha(
    systems: list[System], objective: str, share: np.ndarray, fixed: float | None, start: float | None
) -> Point:
    """J at the given lam, or at the one that is best for these sums."""
    with ThreadPoolExecutor(min(len(systems), thread_count(), SOLVE_THREADS)) as pool:
        evaluate = value_of(systems, objective, share, pool)
        if fixed is not None:
            return evaluate(float(np.log(fixed)))
        lower = least_alpha(systems)
        upper = max(largest_eigenvalue(systems[0].inner.gram), 1e3 * lower)
        return minimise_log(evaluate, start, float(np.log(lower)), float(np.log(upper)))


def least_alpha(systems: list[System]) -> float:
    """The least lam that is sought."""
    train, test = systems[0].train, systems[0].test
    rows = 1.0 if test is None else 1 + test.weight / train.weight
    return FLOOR * rows * (largest_eigenvalue(train.gram) or 1.0)


def judge(sums: GramSums, *, problem: Problem, program: GramProgram, search: Search) -> Reply:
    """The trial's value, whether it is accepted, and the next program: of the second pass, or of a shorter step."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    targets, scale, trial = problem.targets, program.features.map.scale, search.descent.trial
    systems = systems_of(sums, problem.objective, scale, targets, problem.fit_intercept, problem.unseen)
    found = _alpha(systems, problem, search)
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
    unseen = _unseen(sums, problem, scale, found.at)
    ready = search._replace(descent=descent, log_lam=found.at, error=found.value, unseen=unseen)
    tested = float(sums.weight[1]) if problem.objective == "validation" else weight
    return Reply(verdict, {"search": ready, "pullback": pullback, "accepted": (value, weight, tested)})


def _alpha(systems: list[System], problem: Problem, search: Search) -> Point:
    """J at the given lam, at the best one of this trial, or at the one that is held."""
    share = problem.targets.share
    if problem.alpha is not None:
        return best_alpha(systems, problem.objective, share, problem.alpha / problem.targets.weight_unit, None)
    if not problem.holds_alpha:
        return best_alpha(systems, problem.objective, share, None, search.log_lam)
    held = search.log_lam
    if held is None:
        held = best_alpha(systems, problem.objective, share, None, None).at + float(np.log(search.stretch))
    return best_alpha(systems, problem.objective, share, float(np.exp(held)), None)


def _unseen(sums: GramSums, problem: Problem, scale: float, log_lam: float) -> float:
    """Error on the rows set aside of a model of all others; NaN without such rows."""
    if not problem.unseen or not sums.weight[-1]:
        return float("nan")
    last, targets = len(sums.weight) - 1, problem.targets
    train, test = moments_of(sums, range(last), scale, targets), moments_of(sums, [last], scale, targets)
    system = make_system(train, test, float(sums.rows[:last].sum()), problem.fit_intercept)
    return unseen_error(system, float(np.exp(log_lam)), targets.share)


def adjoint_of(
    sides: list[Side],
    systems: list[System],
    objective: str,
    folds: int,
    weight: float,
    scale: float,
    unseen: bool = False,
) -> Adjoint:
    """Weights and adjoints of all systems side by side, for unscaled features; J is multiplied by the total weight."""
    each, c = weight / len(sides), len(sides[0].gain)
    gain, train = np.zeros((folds, len(sides) * c)), np.zeros((folds, len(sides) * c))
    for k, side in enumerate(sides):
        columns = slice(k * c, (k + 1) * c)
        tested = {"validation": 1, "cv": k}.get(objective, 0)
        gain[tested, columns] = each * side.gain
        train[: folds - unseen, columns] = 1.0
        if objective in ("validation", "cv"):
            train[tested, columns] = 0.0
    joint = objective == "joint"
    none = np.zeros((len(sides[0].coef), 0))
    curvature = sides[0].curvature
    middle = systems[0].train.feature_sum / systems[0].train.weight / scale
    centre = middle if systems[0].fit_intercept else np.zeros_like(middle)
    return Adjoint(
        coef=scale * np.hstack([side.coef for side in sides]),
        intercept=np.concatenate([side.intercept for side in sides]),
        adjoint=scale * each * np.hstack([none if side.adjoint is None else side.adjoint for side in sides]),
        adjoint_intercept=none[0] if joint else each * np.concatenate([side.adjoint_intercept for side in sides]),
        gain=gain,
        train=train,
        curvature=None if curvature is None else scale * scale * each * curvature,
        centre=None if curvature is None else centre,
        bound=scale * each * sum((side.bound for side in sides), np.zeros(len(none))),
    )


def advance(
    sums: PullbackSums, *, problem: Problem, program: GramProgram, search: Search, accepted: tuple[float, float, float]
) -> Reply:
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
    ended = (
        "converged"
        if descent.has_converged(small, problem.tol)
        else "early_stopping"
        if search.since >= PATIENCE
        else ""
    )
    assert search.log_lam is not None
    move = Move(
        problem.parameters.map(x).sigma, unit * value, unit * search.error, search.log_lam,
        float(sums.wrong[0] / tested), unit * descent.gradient_norm, ended, unit * search.unseen,
    )  # fmt: skip
    following = program.with_map(problem.parameters.map(descent.trial))
    return Reply(move, {"search": search, "program": following})


def lam_of(log_lam: float, targets: Targets) -> float:
    """alpha, in the user's units of weight."""
    return float(np.exp(log_lam) * targets.weight_unit)
