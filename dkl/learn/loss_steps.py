"""The solves of weights by any smooth loss: they run where small systems are solved (learn/loss_weights.py).

    J_s(B, b) = 1/w [sum_{i trains s} w_i l(B' psi_i + b, y_i) + alpha / 2 |B|^2]

Systems are all folds but one, while alpha is chosen, and all rows in the end. Each is descended in coordinates that
make its second derivative at most one (solvers/whitening.py), by L-BFGS (solvers/quasi_newton.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dkl.engine.handles import Reply
from dkl.learn.moments import moments_of
from dkl.losses import Loss
from dkl.solvers.quasi_newton import Descent, begin, evaluated
from dkl.solvers.whitening import Whitening, whitening_of
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.training import TrainingProgram, TrainingSums

LOOSER = 10.0
"""The tolerance of folds, in units of that of the model: errors differ by far more between alphas."""


@dataclass(frozen=True)
class LossProblem:
    """What does not change while weights are found."""

    gram: GramProgram  # with the folds that choose alpha
    loss: Loss
    alphas: tuple[float, ...]  # to try, falling; if there is one, it is taken
    own: bool  # whether the list is the library's: it then ends when errors rise, and goes on while they fall
    fit_intercept: bool
    tol: float
    max_iter: int  # for each alpha

    @property
    def chooses(self) -> bool:
        """Whether folds choose alpha."""
        return self.gram.folds > 1

    def lam(self, alpha: float) -> float:
        """alpha in the unit of the row weights, over all of them."""
        return alpha / self.gram.targets.weight_unit / self.gram.targets.weight


class Tried(NamedTuple):
    """One alpha that was tried: the mean loss and the error rate of each fold."""

    alpha: float
    losses: np.ndarray  # (K,)
    wrong: np.ndarray  # (K,)


class Search(NamedTuple):
    """Where the descent of one alpha stands, and what was found for those before it."""

    alpha: float
    systems: tuple[Descent, ...]
    first: np.ndarray  # (S,), |dJ/d(B, b)| at zero
    residual: np.ndarray  # (S,), |dJ/d(B, b)| now, over that at zero
    final: bool
    tried: tuple[Tried, ...] = ()
    best: np.ndarray | None = None  # (d + 1, c), mean weights of the folds at the best alpha so far
    whole: float = 0.0  # |dJ/d(B, b)| of all rows at zero


class Progress(NamedTuple):
    """What the client hears of one pass."""

    objective: float
    residual: float
    alpha: float
    iteration: int
    final: bool
    ended: str


def whiten(sums: GramSums, *, problem: LossProblem) -> Reply[None]:
    """The coordinates, from the gram of all rows."""
    program, c = problem.gram, problem.gram.targets.n_outputs
    S = moments_of(sums, range(len(sums.weight)), program.features.map.scale, program.targets)
    return Reply(None, {"whitening": whitening_of(S, problem.loss.most_curved(c), problem.fit_intercept)})


def start(sums: GramSums, *, problem: LossProblem, whitening: Whitening) -> Reply[None]:
    """Zero weights at the first alpha."""
    folds = problem.gram.folds if problem.chooses else 1
    size = (problem.gram.features.map.n_features + 1) * problem.gram.targets.n_outputs
    systems = tuple(begin(np.zeros(size)) for _ in range(folds))
    zero = np.zeros(folds)
    search = Search(problem.alphas[0], systems, zero, zero + 1, final=not problem.chooses)
    return go_on(sums, problem=problem, whitening=whitening, search=search)


def go_on(sums: GramSums, *, problem: LossProblem, whitening: Whitening, search: Search) -> Reply[None]:
    """The factor of the search's alpha and its next pass, from the beginning or after a resume."""
    at = whitening.at(problem.lam(search.alpha))
    return Reply(None, {"search": search, "factor": at, "program": _program(problem, at, search)})


def advance(
    sums: TrainingSums, *, problem: LossProblem, whitening: Whitening, factor: Whitening, search: Search
) -> Reply[Progress]:
    """One evaluation of every system; the next alpha if all have ended."""
    lam, c = problem.lam(search.alpha), problem.gram.targets.n_outputs
    tol = problem.tol if search.final else LOOSER * problem.tol
    systems, first, residual, rests, slopes = [], search.first.copy(), search.residual.copy(), [], []
    for s, descent in enumerate(search.systems):
        weights = factor.weights(descent.trial, c)
        value, slope = _slope(problem, sums, s, weights, lam)
        slopes.append(slope)
        if not descent.begun and not first[s]:  # at zero weights
            first[s] = np.linalg.norm(slope)
        size = float(np.linalg.norm(slope)) / first[s] if first[s] else 0.0
        rested = descent.stalled or (descent.begun and residual[s] <= tol)
        moved = descent if rested else evaluated(descent, value, factor.gradient(slope))
        if moved.iteration > descent.iteration:
            residual[s] = size
        if residual[s] <= tol and moved.begun:
            moved = moved._replace(trial=moved.x)
        over = moved.iteration >= problem.max_iter
        moved = moved._replace(trial=moved.x) if over else moved
        at_rest = np.array_equal(descent.trial, moved.x)  # so that tested rows were scored with the weights that stay
        rests.append(at_rest and (over or moved.stalled or residual[s] <= tol))
        systems.append(moved)
    whole = search.whole or _size_of_all(slopes)  # the first pass is made at zero weights
    search = search._replace(systems=tuple(systems), first=first, residual=residual, whole=whole)
    ended, alpha, final = "", search.alpha, search.final
    told = float(np.mean([one.value for one in systems])), float(residual.max())
    count = max(one.iteration for one in systems)
    if all(rests):
        if search.final:
            ended = "converged" if residual[0] <= tol else "max_iter" if count >= problem.max_iter else "stalled"
        else:
            search = _next(problem, factor, sums, search)
            factor = whitening.at(problem.lam(search.alpha))
            search = _placed(search, factor)
    kept = {"search": search, "factor": factor, "program": _program(problem, factor, search)}
    return Reply(Progress(*told, alpha, count, final, ended), kept)


def _size_of_all(slopes: list[np.ndarray]) -> float:
    """The size of the gradient of all rows at zero weights; each row trains all systems but one."""
    return float(np.linalg.norm(np.sum(slopes, axis=0))) / max(1, len(slopes) - 1)


def _slope(
    problem: LossProblem, sums: TrainingSums, s: int, weights: np.ndarray, lam: float
) -> tuple[float, np.ndarray]:
    """J_s and its gradient (d + 1, c)."""
    total, scale, penalty = problem.gram.targets.weight, problem.gram.features.map.scale, lam * weights
    penalty[-1] = 0.0
    pulled = np.vstack([scale * sums.slope[s].T, problem.fit_intercept * sums.slope_sum[s]])
    return float(sums.loss[s]) / total + 0.5 * float((penalty * weights).sum()), pulled / total + penalty


def _program(problem: LossProblem, factor: Whitening, search: Search) -> TrainingProgram:
    """The pass at the points to try."""
    c, scale = problem.gram.targets.n_outputs, problem.gram.features.map.scale
    weights = np.stack([factor.weights(one.trial, c) for one in search.systems])
    tests = np.array([-1]) if search.final else np.arange(len(search.systems))
    gram = replace(problem.gram, folds=1, held=None, unseen=None) if search.final else problem.gram
    return TrainingProgram(gram, problem.loss, scale * weights[:, :-1], weights[:, -1], tests)


def _next(problem: LossProblem, factor: Whitening, sums: TrainingSums, search: Search) -> Search:
    """The search at the next alpha, or of all rows at the best; points are still weights."""
    c = problem.gram.targets.n_outputs
    with np.errstate(invalid="ignore", divide="ignore"):
        tried = (*search.tried, Tried(search.alpha, sums.tested / sums.weight, sums.wrong / sums.weight))
    errors = [float(one.losses.mean()) for one in tried]
    weights = [factor.weights(one.x, c) for one in search.systems]
    lowest = int(np.argmin(errors))
    best = np.mean(weights, axis=0) if lowest == len(tried) - 1 else search.best
    search = search._replace(tried=tried, best=best)
    alpha = _alpha_after(problem, tried, lowest)
    if alpha is None:
        assert best is not None
        one = (begin(best.ravel()),)
        return search._replace(
            alpha=tried[lowest].alpha, systems=one, first=np.full(1, search.whole), residual=np.ones(1), final=True
        )  # fmt: skip
    return search._replace(
        alpha=alpha, systems=tuple(begin(one.ravel()) for one in weights), residual=np.ones(len(weights))
    )  # fmt: skip


def _placed(search: Search, factor: Whitening) -> Search:
    """The same with weights as points of the factor's coordinates."""
    rows = len(factor.curved) + 1
    return search._replace(
        systems=tuple(begin(factor.coordinates(one.x.reshape(rows, -1))) for one in search.systems)
    )  # fmt: skip


def _alpha_after(problem: LossProblem, tried: tuple[Tried, ...], lowest: int) -> float | None:
    """The next alpha to try, falling; None if there is none."""
    number = len(tried)
    if problem.own:
        if number - 1 - lowest >= 2:
            return None
        if number >= len(problem.alphas):
            after = tried[-1].alpha / 10
            least = 1e-9 * problem.gram.targets.weight * problem.gram.targets.weight_unit
            return after if lowest == number - 1 and after >= least else None
    return problem.alphas[number] if number < len(problem.alphas) else None
