"""The log loss of held-out rows and its gradient, where the solve runs: sums in, scalars out, the rest stays there.

    J = 1/w [sum_i w_i l(k z_i) + sum_g (x_g - mean x)^2 / 2],   z_i the ridge scores of row i by the other folds

x = log(sigma / start), and l in nats, so the second term is a standard normal prior on the spread of log sigma; w is
the weight of the rows of the pass, in the user's units. `trials` and `chosen` find alpha and k; `score`, `pull` and
`advance` are what stands between the three passes of an iteration and after them. Each iteration draws fresh
frequencies, so that sigma cannot overfit one draw.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dkl.engine.handles import Reply
from dkl.engine.threads import thread_count
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.learn.adjoints import adjoint_of
from dkl.learn.alpha import best_alpha, least_alpha
from dkl.learn.bandwidth_steps import Problem
from dkl.learn.objectives import CV, systems_of
from dkl.learn.search import Move
from dkl.losses import Softmax
from dkl.solvers.adam import Adam, stepped
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.hypergradient import Solved, System, log_loss_side, solve_system
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.losses import LossProgram, LossSums
from dkl.sums.pullback import PullbackProgram, PullbackSums

SHARPNESS = np.geomspace(0.3, 60.0, 12)
"""k that are tried; the best one is between them."""
FIRST, LATER, LAST = 10.0 ** np.linspace(-1, 1, 5), np.array([0.5, 1.0, 2.0]), np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Multiples of alpha that are tried: of the best one for the squared error, of the one so far, and on all rows."""
TRIALS = max(len(FIRST), len(LATER), len(LAST))
"""Alphas whose scores one pass takes side by side, at most."""


@dataclass(frozen=True)
class Redrawn(Problem):
    """A problem whose frequencies are drawn anew for each of so many steps."""

    scheme: str
    seed: int
    steps: int

    def map(self, x: np.ndarray, number: int) -> FourierMap:
        """The map at x with the frequencies of one iteration."""
        here, rng = self.parameters.map(x), np.random.default_rng([self.seed, number])
        columns, frequencies = here.unit.shape
        unit = draw_unit(here.kernel, columns, frequencies, self.scheme, rng)
        return replace(here, unit=unit, phase=rng.random(len(here.phase)))


class Search(NamedTuple):
    """The point and its steps, log lam and k."""

    adam: Adam
    log_lam: float = float("nan")
    sharpness: float = float("nan")


class Chosen(NamedTuple):
    """log lam and k."""

    log_lam: float
    sharpness: float


class Found(NamedTuple):
    """What is known of a point before its gradient: log loss, share of wrong rows, and the weight of the rows."""

    error: float
    wrong: float
    weight: float


def trials(
    sums: GramSums, *, program: GramProgram, fit_intercept: bool, alpha: float | None, near: float | None,
    factors: np.ndarray,
) -> Reply[np.ndarray]:  # fmt: skip
    """log lam of several alphas, and the pass that scores rows with all; near=None: near the best of squared errors."""
    systems = _systems(sums, program, fit_intercept)
    targets = program.targets
    if alpha is not None:
        found = np.log([alpha / targets.weight_unit])
    else:
        if near is None:
            near = best_alpha(systems, CV, targets.share, None, None).at
        found = np.unique(np.maximum(near + np.log(factors), np.log(least_alpha(systems))))
    weights = [[(solved.coef, solved.intercept) for solved in _solve(systems, at)] for at in found]
    return Reply(found, {"trials": _program(program, weights, SHARPNESS)})


def chosen(sums: LossSums, *, log_lams: np.ndarray, sharpness: np.ndarray) -> Chosen:
    """The best of the alphas, each with its best k: the lowest point of a parabola through three of them, in log k."""
    _refuse(sums.refusal)
    best = [_lowest(np.log(sharpness), losses) for losses in sums.loss.sum(axis=0)]
    a = int(np.argmin([value for _, value in best]))
    return Chosen(float(log_lams[a]), float(np.exp(best[a][0])))


def score(sums: GramSums, *, problem: Problem, program: GramProgram, at: Chosen) -> Reply[None]:
    """The systems at lam, and the pass that scores the rows they have not seen."""
    systems = _systems(sums, program, problem.fit_intercept)
    solved = _solve(systems, at.log_lam)
    weights = [[(each.coef, each.intercept) for each in solved]]
    scores = _program(program, weights, np.array([at.sharpness]))
    return Reply(None, {"scores": scores, "solved": solved, "weight": float(sums.weight.sum())})


def pull(
    sums: LossSums, *, problem: Problem, program: GramProgram, solved: list[Solved], weight: float, at: Chosen
) -> Reply[float]:  # fmt: skip
    """The adjoints of the log loss, and the pass of its gradient."""
    _refuse(sums.refusal)
    scale, folds = program.features.map.scale, len(solved)
    loss = Softmax(at.sharpness)
    most, part = loss.steepest(program.targets.n_outputs), folds / weight
    sides = [
        log_loss_side(
            solved[k], float(sums.loss[k, 0, 0]), scale * sums.slope[k].T, sums.slope_sum[k], most, part
        )
        for k in range(folds)
    ]  # fmt: skip
    adjoint = adjoint_of(sides, [each.system for each in solved], CV, folds, weight, scale)
    pullback = PullbackProgram(program, replace(adjoint, loss=loss), problem.input_size)
    found = Found(sum(side.value for side in sides) / folds, float(sums.wrong.sum()) / weight, weight)
    slope = float(np.exp(at.log_lam)) * sum(side.slope for side in sides) / folds
    return Reply(slope, {"pullback": pullback, "found": found})


def advance(
    sums: PullbackSums, *, problem: Redrawn, program: GramProgram, search: Search, found: Found, at: Chosen
) -> Reply[Move]:  # fmt: skip
    """The point after one more step, and the first pass there, with frequencies of its own."""
    _refuse(sums.refusal)
    value, gradient = objective(problem, search.adam.x, sums, found)
    adam = stepped(search.adam, gradient, problem.steps)
    sigma, size = problem.parameters.map(search.adam.x).sigma, float(np.abs(gradient).max())
    move = Move(sigma, value, found.error, at.log_lam, found.wrong, size)
    following = program.with_map(problem.map(adam.x, adam.iteration))
    return Reply(move, {"search": Search(adam, *at), "program": following})


def objective(problem: Problem, x: np.ndarray, sums: PullbackSums, found: Found) -> tuple[float, np.ndarray]:
    """J and its gradient in x."""
    away, weight = x - x.mean(), found.weight * problem.targets.weight_unit
    gradient = problem.parameters.gradient(x, sums) / found.weight + away / weight
    return found.error + float(away @ away) / (2 * weight), gradient


def _systems(sums: GramSums, program: GramProgram, fit_intercept: bool) -> list[System]:
    _refuse(sums.refusal)
    return systems_of(sums, CV, program.features.map.scale, program.targets, fit_intercept)


def _solve(systems: list[System], log_lam: float) -> list[Solved]:
    """Every system at one lam, several at the same time."""
    lam = float(np.exp(log_lam))
    with ThreadPoolExecutor(min(len(systems), thread_count(), SOLVE_THREADS)) as pool:
        return list(pool.map(lambda system: solve_system(system, lam), systems))


def _program(
    program: GramProgram, weights: list[list[tuple[np.ndarray, np.ndarray]]], sharpness: np.ndarray
) -> LossProgram:
    """The pass that scores rows of each fold with its weights, by alpha and fold, for features without their scale."""
    folds, scale = range(len(weights[0])), program.features.map.scale
    coef = np.stack([np.hstack([of_alpha[k][0] for of_alpha in weights]) for k in folds])
    intercept = np.stack([np.concatenate([of_alpha[k][1] for of_alpha in weights]) for k in folds])
    return LossProgram(program, scale * coef, intercept, tuple(Softmax(float(k)) for k in sharpness))


def _lowest(at: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Where the parabola through the lowest value and its neighbours is lowest, and how low; an end stays an end."""
    i = int(np.argmin(values))
    if i in (0, len(at) - 1):
        return float(at[i]), float(values[i])
    below, here, above = values[i - 1 : i + 2]
    bend, step = below - 2 * here + above, float(at[1] - at[0])
    if not bend > 0:
        return float(at[i]), float(here)
    lean = (below - above) / (2 * bend)
    return float(at[i] + lean * step), float(here - lean * (below - above) / 4)


def _refuse(refusal: tuple[int, str] | None) -> None:
    """Raise for a row that a pass could not take."""
    if refusal is not None:
        raise ValueError(refusal[1])
