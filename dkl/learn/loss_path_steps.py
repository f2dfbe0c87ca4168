"""Steps of paths by any loss, where the solve runs: the sums of a pass in, where each path stands out.

    J_s(B, b) = 1/w [sum_{i trains s} w_i l(B' psi_i + b, y_i)] + lam penalty(B),   w = sum over all rows
    q(D) = <g, D> + 1/2 <D, H D> + lam penalty(B + D)                              prox-Newton, intercept eliminated

A path begins with intercepts alone (lam = inf), and goes from lam to lam as soon as its KKT residual is small: paths
do not wait for each other, and share each pass. A pass is made at the point that a step leads to, so it judges the
step, and if that was good, its sums make the next one. A group is in the gram of a pass if the strong rule says that
this lam or the next may need it; slopes are of all groups, so whatever is missed is found and enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dkl.engine.threads import thread_count
from dkl.learn.group_weights import GroupOptions, given_alphas
from dkl.learn.newton_steps import ARMIJO, INNER_STEPS, ROUNDING, UNITS
from dkl.losses import Loss
from dkl.penalties import L2, Penalty
from dkl.solvers.factor import SOLVE_THREADS, factorise
from dkl.solvers.fista import kkt_residual, norm_and_ridge, product
from dkl.solvers.group_norms import GroupNorm
from dkl.solvers.group_path import lam_grid
from dkl.solvers.group_quadratic import group_quadratic
from dkl.solvers.norm_path import SQUARED
from dkl.sums.gram import GramProgram
from dkl.sums.path_curvature import PathProgram, PathSums, SystemSums

INNER = 0.03
"""What a step leaves of the residual in its quadratic: less than in newton_steps.py, as passes cost more."""
FIRST, LEAST, LOWER, HIGHER = 0.1, 1e-9, 0.1, 10.0
"""The floor of curvatures at first and at least, and its factors after a whole step and after a short one."""
SHORT, SHORTEST = 0.125, 1e-3
"""A length of this or less is short; below, the step itself is made anew, with a higher floor."""
PATIENCE = 4
"""Steps whose gain is but rounding, and that may leave the residual where it is."""
SINGULAR = 1e-12
"""Intercepts of classes that share a loss may all rise together: a curvature below this share is that direction."""
LOOSER = 10.0
"""The tolerance of folds, in units of that of the model: errors differ by far more between alphas."""


@dataclass(frozen=True)
class PathProblem:
    """What does not change. only: the groups that weights may have; None: all. norm: None is l2."""

    gram: GramProgram  # with the folds
    loss: Loss
    norm: GroupNorm | None
    options: GroupOptions
    only: np.ndarray | None = None

    @property
    def penalty(self) -> Penalty:
        """That of all groups."""
        return L2() if self.norm is None else self.norm.penalty

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.options.groups.max()) + 1

    @property
    def allowed(self) -> np.ndarray:
        """(r,), whether a group may have weights."""
        return np.asarray(np.isin(np.arange(self.count), np.arange(self.count) if self.only is None else self.only))

    @property
    def unit(self) -> float:
        """alpha over lam."""
        return self.gram.targets.weight * self.gram.targets.weight_unit

    def program(self, walkers: Sequence[Walker]) -> PathProgram:
        """The pass at the trials of those that walk."""
        some = [one for one in walkers if not one.done]
        trials, scale = np.stack([one.trial for one in some]), self.gram.features.map.scale
        columns = tuple(np.flatnonzero(one.entered[self.options.groups]) for one in some)
        tests, floor = np.array([one.tests for one in some]), np.array([one.floor for one in some])
        gram = self.gram if tests.max() >= 0 else replace(self.gram, folds=1, held=None, unseen=None)
        return PathProgram(gram, self.loss, scale * trials[:, :-1], trials[:, -1], tests, columns, floor)


class Walker(NamedTuple):
    """Where the path of one system stands."""

    tests: int  # the fold that it has not seen; -1: it has seen all
    weights: np.ndarray  # (d + 1, c), as far as they have been accepted
    aim: np.ndarray  # (d + 1, c), where the step leads
    entered: np.ndarray  # (r,), whether a group is in the gram of the next pass
    best: np.ndarray  # (d + 1, c), of the least residual at this lam
    length: float = 0.0  # of the trial; 0 looks at the weights themselves
    place: int = -1  # of the lam in hand; -1 is that of intercepts alone
    value: float = float("inf")  # mean loss
    error: float = float("nan")  # that of the rows that test
    promised: float = 0.0  # decrease of the objective by the whole step, to first order
    floor: float = FIRST
    size: float = float("nan")  # what residuals are measured by: lam_max, in the end
    residual: float = float("inf")
    least: float = float("inf")  # the least residual at this lam
    best_value: float = float("inf")
    best_error: float = float("nan")
    waited: int = 0  # steps, whose gain was but rounding, that did not lower the residual
    passes: int = 0  # at this lam
    done: bool = False

    @property
    def trial(self) -> np.ndarray:
        """The point of the next pass; weights that are zero at both ends are zero between them."""
        if self.length in (0.0, 1.0):
            return self.aim if self.length else self.weights
        return np.asarray(self.weights + self.length * (self.aim - self.weights))


class Point(NamedTuple):
    """One lam of one system: weights of all rows, and held-out losses of folds."""

    tests: int
    place: int
    weights: np.ndarray  # (features that are not zero, c); none of folds
    active: np.ndarray  # their groups
    intercept: np.ndarray  # (c,)
    value: float  # mean loss
    objective: float
    error: float  # mean loss of the rows that test
    residual: float  # over its size


class Advanced(NamedTuple):
    """What a pass came to."""

    lams: np.ndarray | None
    walkers: tuple[Walker, ...]
    found: tuple[Point, ...]


class Quadratic(NamedTuple):
    """What a pass says of one system at its trial; over the sum of weights, features scaled."""

    slope: np.ndarray  # (d, c)
    intercept_slope: np.ndarray  # (c,)
    columns: np.ndarray  # features of the gram
    grams: np.ndarray  # (c, columns, columns), or (1, c columns, c columns) of coupled scores; without the intercept
    reduced: np.ndarray  # (columns, c), slope without the intercept
    curved: np.ndarray  # (c columns, c), between weights, output by output, and intercepts
    inverse: np.ndarray  # (c, c), of what is between intercepts


def begun(problem: PathProblem) -> tuple[Walker, ...]:
    """Weights of zero: one system without each fold, and that of all rows."""
    d, c, folds = problem.gram.features.map.n_features, problem.gram.targets.n_outputs, problem.gram.folds
    zero, none = np.zeros((d + 1, c)), np.zeros(problem.count, bool)
    tests = [*(range(folds) if folds > 1 else ()), -1]
    return tuple(Walker(k, zero, zero, none, zero) for k in tests)


def advance(
    sums: PathSums, *, problem: PathProblem, program: PathProgram, lams: np.ndarray | None, walkers: tuple[Walker, ...]
) -> Advanced:  # fmt: skip
    """Every step judged, and the next one of those that have not come to their end."""
    going = [s for s, one in enumerate(walkers) if not one.done]
    after, found = list(walkers), list[Point]()

    def judge(i: int) -> tuple[Walker, Quadratic | None]:
        return _judged(problem, program, program.of(sums, i), i, walkers[going[i]], lams)

    with ThreadPoolExecutor(min(len(going), thread_count(), SOLVE_THREADS)) as pool:
        judged = list(pool.map(judge, range(len(going))))
        if lams is None and all(_rests(problem, one) for one, _ in judged):
            lams = _lams(problem, judged[-1])
        jobs = [(one, parts, lams) for one, parts in judged]
        for s, (one, points) in zip(going, pool.map(lambda job: _next(problem, *job), jobs), strict=True):
            after[s] = one
            found += points
    return Advanced(lams, tuple(after), tuple(found))


def _lams(problem: PathProblem, whole: tuple[Walker, Quadratic | None]) -> np.ndarray:
    """The path: given, or from the gradient of the model that has intercepts alone."""
    options, parts, d = problem.options, whole[1], problem.gram.features.map.n_features
    if options.alphas is not None:
        return given_alphas(options) / problem.unit
    assert parts is not None
    if problem.norm is None:
        most = problem.loss.most_curved(problem.gram.targets.n_outputs) * d * problem.gram.features.map.scale**2
        return lam_grid(most, options.count, options.least**SQUARED)
    largest = problem.norm.largest_lam(parts.slope)
    return lam_grid(largest, options.count, options.least) if largest > 0 else np.ones(1) / problem.unit


def _judged(
    problem: PathProblem, program: PathProgram, own: SystemSums, i: int, walker: Walker, lams: np.ndarray | None
) -> tuple[Walker, Quadratic | None]:  # fmt: skip
    """The walker at its trial, and its sums there; where it was, with a shorter step, if the trial is no better."""
    total, trial = problem.gram.targets.weight, walker.trial
    value, penalty, lam = own.loss / total, problem.penalty, _lam(lams, walker.place)
    walker = walker._replace(passes=walker.passes + 1)
    flat = False
    if walker.length:
        here, there = walker.value, value
        if np.isfinite(lam):
            here, there = here + lam * penalty.value(walker.weights[:-1]), there + lam * penalty.value(trial[:-1])
        promised, rounding = walker.length * walker.promised, max(ROUNDING * abs(here), UNITS * program.unit(i) / total)
        flat = promised <= rounding / ARMIJO and there <= here + rounding
        if not flat and not there <= here - ARMIJO * promised:
            return _shorter(walker, there - here), None
        floor = LOWER if walker.length == 1 else HIGHER if walker.length <= SHORT else 1.0
        walker = walker._replace(floor=walker.floor if flat else min(1.0, max(LEAST, floor * walker.floor)))
    parts = _quadratic(problem, program, own, i)
    error = own.tested / own.weight if own.weight > 0 else float("nan")
    walker = _measured(problem, walker._replace(weights=trial, value=value, error=error, length=0.0), parts, lam)
    if walker.residual < walker.least:
        walker = _noted(walker)._replace(waited=0)
    elif flat:
        higher = min(1.0, HIGHER * walker.floor)
        walker = walker._replace(waited=walker.waited + 1, floor=higher)
    return walker, parts


def _noted(walker: Walker) -> Walker:
    """The weights as the best ones of this lam."""
    return walker._replace(
        best=walker.weights, least=walker.residual, best_value=walker.value, best_error=walker.error
    )  # fmt: skip


def _shorter(walker: Walker, rise: float) -> Walker:
    """A shorter step; if that is too short, another one from the same weights."""
    t, slope = walker.length, walker.promised
    best = slope * t * t / (2 * (rise + slope * t)) if np.isfinite(rise) else 0.0
    length = float(np.clip(best, 0.1 * t, 0.5 * t))
    if length < SHORTEST:
        return walker._replace(length=0.0, floor=min(1.0, HIGHER * HIGHER * walker.floor), waited=walker.waited + 1)
    return walker._replace(length=length)


def _lam(lams: np.ndarray | None, place: int) -> float:
    return float("inf") if lams is None or place < 0 else float(lams[place])


def _quadratic(problem: PathProblem, program: PathProgram, own: SystemSums, i: int) -> Quadratic:
    """Sums of scaled features, and the intercept eliminated."""
    total, scale, fits = problem.gram.targets.weight, problem.gram.features.map.scale, problem.options.fit_intercept
    c, columns, pairs = own.slope.shape[0], program.columns[i], program.pairs
    width, joint = len(columns), len(pairs) > own.slope.shape[0]
    curved, curvature = np.zeros((c, width, c)), np.zeros((c, c))
    grams = np.zeros((1, c * width, c * width)) if joint else np.empty((c, width, width))
    for p, (j, k) in enumerate(pairs):
        share = 1 / total if j == k else -1 / total
        gram = own.full(p) * (share * scale * scale)
        for a, b in {(j, k), (k, j)}:
            curved[a, :, b], curvature[a, b] = share * scale * own.curved[p], share * own.curvature_sum[p]
            if joint:
                grams[0, a * width : (a + 1) * width, b * width : (b + 1) * width] = gram
        if not joint:
            grams[j] = gram
    inverse = np.linalg.pinv(curvature, rcond=SINGULAR, hermitian=True) * fits
    flat = curved.reshape(c * width, c)
    if joint:
        grams[0] -= flat @ inverse @ flat.T
    elif fits:
        for j in range(c):
            grams[j] -= np.outer(curved[j, :, j], curved[j, :, j] * inverse[j, j])
    slope, intercept_slope = scale * own.slope.T / total, own.slope_sum / total * fits
    reduced = slope[columns] - (flat @ (inverse @ intercept_slope)).reshape(c, width).T
    return Quadratic(slope, intercept_slope, columns, grams, reduced, flat, inverse)


def _measured(problem: PathProblem, walker: Walker, parts: Quadratic, lam: float) -> Walker:
    """The residual of the weights at some lam."""
    constant = float(np.abs(parts.intercept_slope).max(initial=0.0))
    C = -parts.slope
    if walker.place < 0:
        largest = float(np.linalg.norm(C)) if problem.norm is None else problem.norm.largest_lam(C)
        size = max(largest, constant if np.isnan(walker.size) else 0.0)
        size = size if size > 0 else 1.0
        return walker._replace(residual=constant, size=size if np.isnan(walker.size) or largest > 0 else walker.size)
    B = walker.weights[:-1]
    if problem.norm is None:
        left = np.where(problem.allowed[problem.options.groups][:, None], C - lam * B, 0.0)
        return walker._replace(residual=max(float(np.linalg.norm(left)), constant))
    norm, ridge = norm_and_ridge(problem.penalty)
    return walker._replace(residual=max(kkt_residual(C - lam * ridge * B, B, lam, norm), constant))


def _rests(problem: PathProblem, walker: Walker) -> bool:
    """Whether nothing more is to be had at this lam."""
    tol = problem.options.tol * (LOOSER if walker.tests >= 0 else 1.0)
    if walker.length:
        return False
    return walker.residual <= tol * walker.size or walker.waited > PATIENCE or walker.passes >= problem.options.max_iter


def _next(
    problem: PathProblem, walker: Walker, parts: Quadratic | None, lams: np.ndarray | None
) -> tuple[Walker, list[Point]]:  # fmt: skip
    """The walker with its next trial, and the lams that it has left behind."""
    found: list[Point] = []
    if parts is None:
        return walker, found
    while _rests(problem, walker):
        if lams is None:
            return walker, found  # others are still looking for their intercepts
        if walker.place >= 0:
            found.append(_point(problem, walker, float(lams[walker.place])))
        if walker.place == len(lams) - 1:
            return walker._replace(done=True), found
        walker = walker._replace(place=walker.place + 1, waited=0, passes=0)
        walker = _noted(_measured(problem, walker, parts, float(lams[walker.place])))
    return _aimed(problem, walker, parts, lams), found


def _aimed(problem: PathProblem, walker: Walker, parts: Quadratic, lams: np.ndarray | None) -> Walker:
    """The next step, and the groups that the pass after it needs."""
    lam, at, aim, B = _lam(lams, walker.place), parts.columns, walker.weights.copy(), walker.weights[:-1]
    if np.isfinite(lam) and len(at):
        aim[at] = _least(problem, walker, parts, lam)
    step = aim[:-1] - B
    aim[-1] -= parts.inverse @ (parts.intercept_slope + parts.curved.T @ step[at].T.ravel())
    fall = float((parts.slope * step).sum()) + float(parts.intercept_slope @ (aim[-1] - walker.weights[-1]))
    entered = walker.entered
    if lams is not None and np.isfinite(lam):
        fall += lam * (problem.penalty.value(aim[:-1]) - problem.penalty.value(B))
        entered = _entered(problem, walker, parts, aim[:-1], lams)
    moves = not np.array_equal(aim, walker.weights)
    stuck = not moves and not (entered & ~walker.entered).any()
    return walker._replace(
        aim=aim,
        length=float(moves),
        promised=max(-fall, 0.0),
        entered=entered,
        waited=PATIENCE + 1 if stuck else walker.waited,
    )


def _least(problem: PathProblem, walker: Walker, parts: Quadratic, lam: float) -> np.ndarray:
    """The least point of the quadratic and the penalty, among the features of its gram."""
    B, options, some = walker.weights[parts.columns], problem.options, np.flatnonzero(walker.entered)
    joint = len(parts.grams) < B.shape[1]
    start = B.T.reshape(-1, 1) if joint else B
    reduced = parts.reduced.T.reshape(-1, 1) if joint else parts.reduced
    if problem.norm is None:
        left = reduced + lam * start
        steps = [factorise(H.copy(), lam).solve(left[:, [j]])[:, 0] for j, H in enumerate(parts.grams)]
        found = start - np.stack(steps, axis=1)
    else:
        of = np.searchsorted(some, options.groups[parts.columns])
        norm = _norm_of(problem.norm, some, of, B.shape[1] if joint else 1)
        near, cross = INNER * min(1.0, walker.residual / lam), product(parts.grams, start) - reduced
        found = group_quadratic(parts.grams, cross, lam, norm, start=start, tol=near, max_iter=INNER_STEPS).coef
    return np.asarray(found.reshape(B.shape[1], -1).T if joint else found)


def _norm_of(norm: GroupNorm, some: np.ndarray, of: np.ndarray, outputs: int) -> GroupNorm:
    """The norm of some groups; with more outputs, of weights that stand output by output in one column."""
    apart = norm.by_output and outputs > 1
    groups = np.concatenate([of + len(some) * j * apart for j in range(outputs)])
    eta = np.tile(norm.factor[some], outputs if apart else 1)
    return GroupNorm(norm.kind, groups, eta, norm.ridge, norm.by_output and outputs == 1)


def _entered(
    problem: PathProblem, walker: Walker, parts: Quadratic, aim: np.ndarray, lams: np.ndarray
) -> np.ndarray:  # fmt: skip
    """The groups that the strong rule keeps for the lam in hand and for the next one, and those that are not zero."""
    if problem.norm is None:
        return problem.allowed
    place, last, lam = walker.place, len(lams) - 1, float(lams[walker.place])
    bound = 2 * float(lams[place + 1]) - lam if place < last else 2 * lam - float(lams[place - 1]) if place else lam
    duals = problem.norm.duals(-parts.slope - lam * problem.options.ridge * walker.weights[:-1])
    kept = (duals >= problem.norm.factor * max(bound, 0.0)) | (duals > problem.norm.factor * lam)
    return np.asarray((kept | (problem.norm.lengths(aim) > 0)) & problem.allowed)


def _point(problem: PathProblem, walker: Walker, lam: float) -> Point:
    """The best weights of a lam."""
    B, of = walker.best[:-1], problem.options.groups
    active = np.unique(of[np.flatnonzero(B.any(axis=1))])
    rows = np.flatnonzero(np.isin(of, active)) if walker.tests < 0 else np.empty(0, np.intp)
    objective = walker.best_value + lam * problem.penalty.value(B)
    return Point(
        walker.tests, walker.place, B[rows], active, walker.best[-1], walker.best_value, objective,
        walker.best_error, walker.least / walker.size,
    )  # fmt: skip
