"""Steps of paths by any loss, where the solve runs: the sums of a pass in, where each path stands out.

    J_s(B, b) = 1/w [sum_{i trains s} w_i l(B' psi_i + b, y_i)] + lam penalty(B),   w = sum over all rows
    q(D) = <g, D> + 1/2 <D, H D> + lam penalty(B + D)                              prox-Newton, intercept eliminated

A path begins with intercepts alone (lam = inf), and goes from lam to lam as soon as its KKT residual is small: paths
do not wait for each other, and share each pass. A pass is made at the point that a step leads to, so it judges the
step, and if that was good, its sums make the next one. A group is in the gram of a pass if the strong rule says that
this lam or the next may need it; slopes are of all groups, so whatever is missed is found and enters.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dkl.engine.threads import thread_count
from dkl.learn.group_weights import given_alphas
from dkl.learn.loss_path_state import Advanced, PathProblem, Point, Quadratic, Walker, quadratic_of
from dkl.learn.newton_steps import ARMIJO, INNER_STEPS, ROUNDING, UNITS
from dkl.solvers.factor import SOLVE_THREADS, factorise
from dkl.solvers.fista import kkt_residual, norm_and_ridge, product
from dkl.solvers.group_path import lam_grid
from dkl.solvers.group_quadratic import group_quadratic
from dkl.solvers.norm_path import SQUARED
from dkl.sums.path_curvature import PathProgram, PathSums, SystemSums

INNER = 0.03
"""What a step leaves of the residual in its quadratic: less than in newton_steps.py, as passes cost more."""
LEAST, LOWER, HIGHER = 1e-9, 0.1, 10.0
"""The floor of curvatures at least, and its factors after a whole step and after a short one."""
SHORT, SHORTEST = 0.125, 1e-3
"""A length of this or less is short; below, the step itself is made anew, with a higher floor."""
PATIENCE = 4
"""Steps whose gain is but rounding, and that may leave the residual where it is."""
LOOSER = 10.0
"""The tolerance of folds, in units of that of the model: errors differ by far more between alphas."""


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
    parts = quadratic_of(problem, program, own, i)
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
        norm = problem.norm.part(some, of, B.shape[1] if joint else 1)
        near, cross = INNER * min(1.0, walker.residual / lam), product(parts.grams, start) - reduced
        found = group_quadratic(parts.grams, cross, lam, norm, start=start, tol=near, max_iter=INNER_STEPS).coef
    return np.asarray(found.reshape(B.shape[1], -1).T if joint else found)


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
