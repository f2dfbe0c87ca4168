"""Weights of several kernels, few of which are used: one pass of sums, then paths of the group lasso.

    1/2 sum_i w_i |y_i - W' psi_i - b|^2 + alpha penalty(W),   alpha from large to small
    l21  sum_g eta_g |W_g| + ridge / 2 |W|^2,   l1linf  sum_g eta_g max |W_g| + ridge / 2 |W|^2,   l2  1/2 |W|^2
    errors[l, k] = mean squared error on fold k of the weights of alpha_l without fold k
    best = argmin of the mean over folds;   one_se = the largest alpha whose mean is within a standard error of it

Groups are shared by the outputs, or each output has a path of its own. Weights may be computed anew for the groups
that were chosen, by ridge. Paths by other losses: learn/loss_path.py. This module's `solve_groups` is what travels to
the scheduler: sums in, paths out.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dkl.cost import Cost, MapCost, Sizes, SolveCost
from dkl.engine.progress import tell
from dkl.engine.threads import thread_count
from dkl.learn.constant_groups import is_constant, refuse_constant
from dkl.learn.group_refit import of_outputs, refitted
from dkl.learn.group_weights import AlphaPath, GroupOptions, GroupWeights, check_folds, chosen_lams, given_alphas
from dkl.learn.moments import moments_of
from dkl.learn.resumable_pass import sum_resumable
from dkl.learn.run import Run
from dkl.learn.weights import refuse_empty_fold
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.group_path import GroupPath, lam_grid
from dkl.solvers.norm_path import lams_of, path_cost, path_of
from dkl.solvers.ridge import Moments, centred, centred_cross, residual_energy
from dkl.sums.gram import GramProgram, GramSums, gram_cost
from dkl.sums.targets import Targets

__all__ = ["AlphaPath", "GroupOptions", "GroupWeights", "chosen_lams", "fit_groups", "group_costs", "solve_groups"]


def fit_groups(run: Run, program: GramProgram, options: GroupOptions) -> GroupWeights:
    """One pass over the rows and one solve."""
    sums = sum_resumable(run, program, GramSums, program, "adding up X")
    features = program.features.map
    systems = options.tried * (1 + program.folds * (program.folds > 1))
    described = {"scale": features.scale, "targets": program.targets, "options": options}
    with run.progress.waiting(f"solving {systems:,} system{'s' * (systems > 1)} of {features.n_features:,} unknowns"):
        weights = run.engine.solve(solve_groups, sums, **described)
    best = [float(p.errors.mean(axis=1).min()) for p in weights.paths if p.errors is not None]
    error = float(np.mean(best)) if best else None
    tell(event="solve", objective=weights.objective, alpha=weights.alpha.tolist(), cv_error=error, systems=systems)
    return weights


def group_costs(
    sizes: Sizes, of: MapCost, folds: int, lams: int = 50, size: int = 256, penalty: str = "l21"
) -> list[Cost]:  # fmt: skip
    """The gram, and the paths from its sums."""
    solve = solve_groups_cost(of.features, max(1, sizes.outputs), folds, lams, size, penalty)
    return [gram_cost(sizes, of, folds).then(solve)]


def solve_groups_cost(
    d: int, c: int, folds: int, lams: int = 50, size: int = 256, penalty: str = "l21"
) -> SolveCost:  # fmt: skip
    """A path on all rows after one for each fold, some of them at the same time, each with five grams of its own."""
    one, at_once = path_cost(penalty, d, c, lams, size), min(folds, SOLVE_THREADS)
    own = 8 * (5 * d * d + 6 * lams * d * c)
    return SolveCost(at_once * (one.bytes + own), (1 + folds * (folds > 1)) * one.flops)


def solve_groups(sums: GramSums, *, scale: float, targets: Targets, options: GroupOptions) -> GroupWeights:
    """Paths from the sums of one pass, and the weights of one alpha of each."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    folds = len(sums.weight)
    check_folds(folds, options)

    def moments(some: list[int]) -> Moments:
        return _in_units_of_y(moments_of(sums, some, scale, targets), targets)

    S = moments(list(range(folds)))
    _refuse_constant(S, options)
    outputs = _outputs(S.cross.shape[1], options.by_output)
    lams = _lams(S, targets, options)
    errors = _errors(moments, folds, lams, options) if folds > 1 else None
    found = _paths(S, lams, options)
    paths, coef, intercept = [], np.zeros_like(S.cross), np.zeros(S.cross.shape[1])
    for p, (own, path) in enumerate(zip(outputs, found, strict=True)):
        part = of_outputs(S, own)
        paths.append(_alpha_path(part, path, None if errors is None else errors[p], targets, options))
        at = paths[-1].chosen
        coef[:, own], intercept[own] = path.coef(at), paths[-1].intercepts[at]
        if options.refit is not None:
            on = np.flatnonzero(np.isin(options.groups, path.active[at]))
            ridges = _ridges(options, folds) / targets.weight_unit
            coef[:, own], intercept[own] = refitted(moments, folds, own, on, ridges, options.fit_intercept)
    if not targets.is_class:
        intercept = intercept + targets.shift
        shifts = np.broadcast_to(targets.shift, intercept.shape)
        paths = [a._replace(intercepts=a.intercepts + shifts[own]) for own, a in zip(outputs, paths, strict=True)]
    gap = max(float(path.gap[path.chosen]) for path in paths)
    return GroupWeights(
        coef,
        intercept,
        np.array([path.alphas[path.chosen] for path in paths]),
        tuple(paths),
        float(sum(path.objective[path.chosen] for path in paths)),
        gap,
        gap <= options.tol,
        _doubt(paths, options),
    )


def _refuse_constant(S: Moments, options: GroupOptions) -> None:
    """Refuse a group of features that do not vary."""
    squares, groups = np.diagonal(S.gram), options.groups
    varies, square = (np.bincount(groups, each) for each in (squares - S.feature_sum**2 / S.weight, squares))
    refuse_constant(is_constant(varies, square, options.narrow), options.names, np.bincount(groups))


def _outputs(c: int, by_output: bool) -> list[slice]:
    """The outputs of each path."""
    return [slice(j, j + 1) for j in range(c)] if by_output else [slice(0, c)]


def _in_units_of_y(S: Moments, targets: Targets) -> Moments:
    """The sums of targets over no unit: groups join outputs, and are not the same in all units."""
    u = targets.unit
    return S._replace(cross=S.cross * u, target_sum=S.target_sum * u, target_square=S.target_square * u * u)


def _lams(S: Moments, targets: Targets, options: GroupOptions) -> list[np.ndarray]:
    """Of each path: alphas over the unit of the weights."""
    outputs = _outputs(S.cross.shape[1], options.by_output)
    if options.alphas is not None:
        return [given_alphas(options) / targets.weight_unit] * len(outputs)
    cross, trace = centred_cross(S, options.fit_intercept), float(np.trace(S.gram))
    trace -= float(S.feature_sum @ S.feature_sum) / S.weight * options.fit_intercept
    grids = []
    for own in outputs:
        grid = lams_of(
            options.penalty, cross[:, own], trace, options.groups, options.eta, options.count, options.least
        )  # fmt: skip
        grids.append(grid if grid[0] > 0 else lam_grid(1.0, options.count, options.least))
    return grids


def _paths(S: Moments, lams: list[np.ndarray], options: GroupOptions) -> list[GroupPath]:
    """The path of all outputs, or of each."""
    gram, cross = centred(S, options.fit_intercept)
    mean = S.target_sum * S.target_sum / S.weight if options.fit_intercept else 0.0
    energy = np.maximum(S.target_square - mean, 0.0)
    return [
        path_of(
            options.penalty, gram, cross[:, own], energy[own], options.groups,
            eta=options.eta, lams=some, ridge=options.ridge, tol=options.tol, max_iter=options.max_iter,
        )
        for own, some in zip(_outputs(cross.shape[1], options.by_output), lams, strict=True)
    ]  # fmt: skip


def _intercepts(S: Moments, path: GroupPath, fit_intercept: bool) -> np.ndarray:
    """(sy - W'm) / w of each lam."""
    means = [S.feature_sum @ path.coef(i) for i in range(len(path.lams))]
    return np.asarray((S.target_sum - np.array(means)) / S.weight * fit_intercept)


def _errors(
    moments: Callable[[list[int]], Moments], folds: int, lams: list[np.ndarray], options: GroupOptions
) -> list[np.ndarray]:  # fmt: skip
    """Of each path, the mean squared error (L, folds) of each fold by the weights of the others."""

    def of_fold(k: int) -> list[np.ndarray]:
        train, test = moments([fold for fold in range(folds) if fold != k]), moments([k])
        refuse_empty_fold(k, folds, train.weight, test.weight)
        outputs = _outputs(train.cross.shape[1], options.by_output)
        paths = _paths(train, lams, options)
        found = []
        for own, path in zip(outputs, paths, strict=True):
            found.append(_missed(of_outputs(train, own), of_outputs(test, own), path, options.fit_intercept))
        return found

    with ThreadPoolExecutor(min(folds, thread_count(), SOLVE_THREADS)) as pool:
        found = list(pool.map(of_fold, range(folds)))
    return [np.array(of_path).T for of_path in zip(*found, strict=True)]


def _missed(train: Moments, test: Moments, path: GroupPath, fit_intercept: bool) -> np.ndarray:
    """The mean squared error (L,) of a path on the rows of `test`, all its lams at once."""
    count = len(path.lams)
    coef = np.concatenate([path.coef(i) for i in range(count)], axis=1)
    many = test._replace(
        cross=np.tile(test.cross, (1, count)),
        target_sum=np.tile(test.target_sum, count),
        target_square=np.tile(test.target_square, count),
    )
    energy = residual_energy(many, coef, _intercepts(train, path, fit_intercept).ravel())
    return np.asarray(energy.reshape(count, -1).mean(axis=1) / test.weight)


def _alpha_path(
    S: Moments, path: GroupPath, errors: np.ndarray | None, targets: Targets, options: GroupOptions
) -> AlphaPath:  # fmt: skip
    """What is kept of a path; intercepts without the shift of y."""
    best, one_se = (None, None) if errors is None else chosen_lams(errors)
    chosen = {"best": best, "one_se": one_se, "last": len(path.lams) - 1}[options.rule]
    assert chosen is not None
    intercepts, alphas = _intercepts(S, path, options.fit_intercept), path.lams * targets.weight_unit
    objective = path.objective / S.weight
    return AlphaPath(
        alphas, path.active, path.weights, intercepts, path.norms, objective, path.gap, errors, best, one_se, chosen
    )


def _ridges(options: GroupOptions, folds: int) -> np.ndarray:
    """The alphas of the weights that are computed anew; without folds there is no choice, and one of 1."""
    ridges = np.unique(np.asarray(options.refit, float))
    if not (ridges.size and np.isfinite(ridges).all() and (ridges > 0).all()):
        raise ValueError(f"refit={options.refit!r} must be a finite number above 0, the alpha of a ridge")
    return np.ones(1) if folds < 2 and len(ridges) > 1 else ridges


def _doubt(paths: list[AlphaPath], options: GroupOptions) -> str | None:
    """A warning if a certificate does not hold, or if the best alpha is the last one."""
    for path in paths:
        alpha, gap = path.alphas[path.chosen], path.gap[path.chosen]
        if gap > options.tol:
            return (
                f"the weights of alpha={alpha:g} are not at their best: the duality gap is {gap:.1e} of the squared "
                f"error of y, solver_tol is {options.tol:g}; raise alpha, solver_tol or max_iter={options.max_iter}"
            )
        if path.best is not None and path.best == path.chosen == len(path.alphas) - 1 > 0:
            what = f"eps={options.least / 10:g}" if options.alphas is None else f"alpha={alpha / 10:g} too"
            return f"cv chose alpha={alpha:g}, the least of its path, so a better one may lie beyond; use {what}"
    return None
