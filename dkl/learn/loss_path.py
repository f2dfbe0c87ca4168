"""Weights of several kernels by any loss, few of which are used: paths by prox-Newton, all folds in the same passes.

    1/w [sum_i w_i l(W' psi_i + b, y_i) + alpha penalty(W)],   alpha from where all weights are zero to small
    errors[l, k] = mean loss of fold k by the weights of alpha_l without fold k

A step is one pass for all systems: the folds' and that of all rows, each at its own alpha (learn/loss_path_steps.py).
The certificate of a point is its KKT residual in the dual norm, over that at the first alpha. What a pass sums is a
gram for each system and each output: (folds + 1) c d^2 / 2 numbers if all groups are used, fewer if they are not. The
log loss of c > 2 classes needs one for each pair of classes, c (c + 1) / 2 in place of c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes, SolveCost
from dkl.engine.progress import tell
from dkl.learn.group_weights import AlphaPath, GroupOptions, GroupWeights, check_folds, chosen_lams
from dkl.learn.history import Column, History
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.loss_path_steps import PathProblem, Point, Walker, advance, begun
from dkl.learn.run import STALLED, Method, Row, Run, Step
from dkl.losses import Loss
from dkl.prepare.prepared import Prepared
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.group_norms import GroupNorm, lengths_of
from dkl.solvers.group_quadratic import group_quadratic_cost
from dkl.sums.path_curvature import pairs_of, path_curvature_cost


class Paths(NamedTuple):
    """Where all paths stand."""

    walkers: tuple[Walker, ...]
    lams: np.ndarray | None = None
    points: tuple[Point, ...] = ()


class FoundPaths(NamedTuple):
    """What was found of each alpha, as far as all systems have come."""

    alphas: np.ndarray  # (L,)
    points: tuple[Point, ...]  # of all rows
    errors: np.ndarray | None  # (L, folds)


@dataclass(frozen=True)
class LossPath(Method[Paths, FoundPaths]):
    """The paths of all systems, one step after the other."""

    problem: PathProblem
    state: ClassVar[type] = Paths
    history: ClassVar[Mapping[str, Column]] = {
        "objective": Column("mean loss and penalty of the last alpha that was solved for on all rows"),
        "certificate": Column("its KKT residual, over that at the first alpha"),
        "alpha": Column("penalty"),
        "active": Column("groups that are used", whole=True),
        "solved": Column("alphas that are solved for by all systems", whole=True),
    }

    def begin(self, run: Run) -> Paths:
        """Weights of zero."""
        return Paths(begun(self.problem))

    def reopened(self, run: Run, state: Paths) -> Paths:
        """The same, if there is more to do; paths that need another tolerance begin anew."""
        return self.begin(run) if all(one.done for one in state.walkers) else state

    def step(self, run: Run, state: Paths) -> Step[Paths]:
        """One pass, and a step of every path that is not at its end."""
        program = self.problem.program(state.walkers)
        place = min(one.place for one in state.walkers)
        where = "intercepts" if state.lams is None else f"alpha {max(0, place) + 1} of {len(state.lams)}"
        sums = run.sum(program, run.rows.blocks(program.rows_wanted), where)
        after = run.engine.solve(
            advance, sums, problem=self.problem, program=program, lams=state.lams, walkers=state.walkers
        )  # fmt: skip
        following = Paths(after.walkers, after.lams, state.points + after.found)
        ended = ""
        if all(one.done for one in after.walkers):
            right = all(one.residual <= self.problem.options.tol for one in following.points if one.tests < 0)
            ended = "converged" if right else STALLED
        return Step(following, self._row(run, following, where), ended)

    def end(self, run: Run, state: Paths, history: History) -> FoundPaths:
        """The alphas that every system has come to."""
        folds = len(state.walkers) - 1
        own = [[one for one in state.points if one.tests == k] for k in range(-1, folds)]
        count = min(map(len, own))
        if state.lams is None or not count:
            raise ValueError(f"{count} alphas have been solved for; allow more time (max_time), or resume")
        errors = np.array([[one.error for one in points[:count]] for points in own[1:]]).T if folds else None
        return FoundPaths(state.lams[:count] * self.problem.unit, tuple(own[0][:count]), errors)

    def _row(self, run: Run, state: Paths, where: str) -> Row | None:
        """The row of a step, once every system has solved for an alpha."""
        whole = [one for one in state.points if one.tests < 0]
        solved = min(sum(one.tests == walker.tests for one in state.points) for walker in state.walkers)
        if not solved or state.lams is None:
            return None
        last = whole[-1]
        values: dict[str, float | np.ndarray] = {
            "objective": last.objective, "certificate": last.residual, "active": float(len(last.active)),
            "alpha": float(state.lams[last.place]) * self.problem.unit, "solved": float(solved),
        }  # fmt: skip
        return Row(where, run.rows.n_rows, values)


def fit_group_losses(run: Run, data: Prepared, options: GroupOptions, loss: Loss) -> GroupWeights:
    """The path, its K-fold errors and the weights of the alpha that is chosen; `group_loss_path` tells the way too."""
    return group_loss_path(run, data, options, loss)[0]


def group_loss_path(
    run: Run, data: Prepared, options: GroupOptions, loss: Loss
) -> tuple[GroupWeights, Iterated[FoundPaths]]:  # fmt: skip
    """The same, and the loop that found it: why it ended, and its history."""
    gram = data.in_units_of_y().gram(data.split)
    check_folds(gram.folds, options)
    norm = None
    if options.penalty != "l2":
        by_output = options.by_output and gram.targets.n_outputs > 1
        norm = GroupNorm(options.penalty, options.groups, options.eta, options.ridge, by_output)
    problem = PathProblem(gram, loss, norm, options)
    limits = run.limits._replace(tol=options.tol, max_iter=options.max_iter)
    own = replace(run, limits=limits, record="path" if run.record == "step" else run.record)
    way = iterate(own, LossPath(problem))
    paths = _alpha_paths(problem, way.result)
    at = paths[0].chosen
    point, targets = way.result.points[at], gram.targets
    coef = _coef(problem, point)
    intercept = point.intercept
    if options.refit is not None:
        coef, intercept = _refitted(own, problem, point)
    shift = np.zeros(1) if targets.is_class else targets.shift
    weights = GroupWeights(
        coef,
        intercept + shift,
        np.array([path.alphas[at] for path in paths]),
        paths,
        point.objective,
        point.residual,
        point.residual <= options.tol,
        _doubt(paths[0], options),
    )
    best = None if way.result.errors is None else float(way.result.errors.mean(axis=1).min())
    tell(event="solve", objective=weights.objective, alpha=weights.alpha.tolist(), cv_error=best)
    return weights, way


def group_loss_costs(sizes: Sizes, of: MapCost, folds: int, loss: Loss) -> list[Cost]:
    """The pass that is made for each step, and the solves after it, if every group is used by every system."""
    d, c, systems = of.features, max(1, sizes.outputs), folds * (folds > 1) + 1
    c = 1 if sizes.is_class and c == 2 else c
    pairs, at_once = len(pairs_of(loss, c)), min(systems, SOLVE_THREADS)
    joint = pairs > c
    width, grams = (c * d, 1) if joint else (d, c)
    one = group_quadratic_cost(width, grams)
    held = 8 * systems * grams * width * width + at_once * 8 * (2 * d * d + joint * width * width)
    solve = SolveCost(held + at_once * one.bytes + 8 * 8 * systems * (d + 1) * c, systems * one.flops)
    return [path_curvature_cost(sizes, of, folds, systems, pairs).then(solve).again()]


def _coef(problem: PathProblem, point: Point) -> np.ndarray:
    """All weights (d, c) of a point."""
    of = problem.options.groups
    coef = np.zeros((len(of), len(point.intercept)))
    coef[np.isin(of, point.active)] = point.weights
    return coef


def _alpha_paths(problem: PathProblem, found: FoundPaths) -> tuple[AlphaPath, ...]:
    """One path, or one for each output: these have the same alphas and errors."""
    options, targets, errors = problem.options, problem.gram.targets, found.errors
    best, one_se = (None, None) if errors is None else chosen_lams(errors)
    chosen = {"best": best, "one_se": one_se, "last": len(found.points) - 1}[options.rule]
    assert chosen is not None
    shift = np.zeros(1) if targets.is_class else targets.shift
    coefs = [_coef(problem, point) for point in found.points]
    intercepts = np.array([point.intercept + shift for point in found.points])
    by_output = problem.norm is not None and problem.norm.by_output
    paths = []
    for own in [slice(j, j + 1) for j in range(targets.n_outputs)] if by_output else [slice(None)]:
        norms = np.array([lengths_of(coef[:, own], options.groups, problem.count) for coef in coefs])
        active = tuple(np.flatnonzero(row) for row in norms)
        parts = zip(coefs, active, strict=True)
        weights = tuple(coef[np.isin(options.groups, some)][:, own] for coef, some in parts)
        objective, gap = (np.array([getattr(one, name) for one in found.points]) for name in ("objective", "residual"))
        paths.append(
            AlphaPath(
                found.alphas, active, weights, intercepts[:, own], norms, objective, gap, errors, best, one_se, chosen
            )
        )
    return tuple(paths)


def _refitted(run: Run, problem: PathProblem, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the chosen groups by the same loss and l2, without any other group."""
    options = problem.options
    if options.refit is None or np.ndim(options.refit) or not (np.isfinite(options.refit) and options.refit > 0):
        raise ValueError(f"refit={options.refit!r} must be a finite number above 0, the alpha of a ridge")
    alone = replace(
        options, alphas=np.array([options.refit], float), eta=None, ridge=0.0, penalty="l2", rule="last", refit=None
    )  # fmt: skip
    gram = replace(problem.gram, folds=1, held=None, unseen=None)
    again = PathProblem(gram, problem.loss, None, alone, point.active)
    found = iterate(replace(run, record="refit"), LossPath(again)).result.points[-1]
    return _coef(again, found), found.intercept


def _doubt(path: AlphaPath, options: GroupOptions) -> str | None:
    """A warning if a certificate does not hold, or if the best alpha is the last one."""
    alpha, residual = path.alphas[path.chosen], path.gap[path.chosen]
    if residual > options.tol:
        return (
            f"the weights of alpha={alpha:g} are not at their best: the KKT residual is {residual:.1e} of that at the "
            f"first alpha, solver_tol is {options.tol:g}; raise alpha, solver_tol or max_iter"
        )
    if path.best is not None and path.best == path.chosen == len(path.alphas) - 1 > 0:
        what = f"eps={options.least / 10:g}" if options.alphas is None else f"alpha={alpha / 10:g} too"
        return f"cv chose alpha={alpha:g}, the least of its path, so a better one may lie beyond; use {what}"
    return None
