"""Learn the sigmas of several kernels with their weights, few of which are used: two passes for each iteration.

    joint            F = loss + alpha sum_g eta_g |W_g|, its weights solved for at every trial (envelope theorem)
    validation, cv   held-out squared error through those weights (solvers/group_adjoint.py), alpha learned too

This module makes the method of some options: learn/several_descents.py for squared errors, learn/several_losses.py for
other losses, whose joint objective alone is learned.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import cast

import numpy as np

from dkl.checks import check_choice, check_positive
from dkl.cost import Cost, MapCost, Sizes
from dkl.features.side_by_side import SideBySide
from dkl.learn.bandwidth import Start
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.objectives import CV, JOINT, VALIDATION
from dkl.learn.run import Run
from dkl.learn.several_bandwidths_steps import GroupLearning, in_one_unit
from dkl.learn.several_descents import LOWERED, LearnedSigmas, SeveralBandwidths
from dkl.learn.several_losses import GroupLossLearning, SeveralLossBandwidths, several_loss_costs
from dkl.learn.several_scales import SeveralScales
from dkl.losses import Loss, Square
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.solvers.group_adjoint import Grouping, group_adjoint_cost
from dkl.solvers.lbfgs import descent_cost
from dkl.sums.gram import gram_cost
from dkl.sums.input_squares import SquaresProgram
from dkl.sums.pullback import gradient_cost
from dkl.sums.targets import Targets

NARROW = 0.01
"""A change of a sigma by this share ought to lower the objective by more than tol, where it has not converged."""
OBJECTIVES = {each.name: each for each in (JOINT, VALIDATION, CV)}


@dataclass(frozen=True)
class BandwidthOptions:
    """objective: "joint" (which needs alpha), "validation" or "cv". alpha: None to learn it. by: "kernel" or "input".

    eta: of each kernel, the root of its features if None. lowered: alpha of the first stage over that of the others;
    1 to begin at alpha. sigma_l2: in units of the start and of the variance of y. share: of the blocks, in the end.
    loss: None for squared errors; another one takes the joint objective.
    """

    objective: str
    fit_intercept: bool
    alpha: float | None = None
    by: str = "kernel"
    eta: np.ndarray | None = None
    ridge: float = 0.0
    by_output: bool = False
    sigma_l2: float = 0.0
    starts: tuple[Start, ...] = (Start(),)
    share: float = 1.0
    lowered: float = LOWERED
    loss: Loss | None = None


@dataclass(frozen=True, kw_only=True)
class LearnedBandwidths(LearnedSigmas):
    """The same with the map at the learned sigmas, and what should be said."""

    features: SideBySide
    warning: str | None


def learn_bandwidths(run: Run, data: Prepared, options: BandwidthOptions) -> Iterated[LearnedBandwidths]:
    """The sigmas of a map of several kernels, as a method of the one loop."""
    method = several_bandwidths(data, options, run)
    done = cast("Iterated[LearnedSigmas]", iterate(run, method))
    found = {each.name: getattr(done.result, each.name) for each in fields(LearnedSigmas)}
    features, warning = method.problem.parameters.map(done.result.x), _doubt(done, method, run.limits.tol)
    return Iterated(LearnedBandwidths(**found, features=features, warning=warning), done.history, done.reason)


def several_costs(
    sizes: Sizes, of: MapCost, *, objective: str, folds: int, sigmas: int, size: int = 256, loss: bool = False
) -> list[Cost]:  # fmt: skip
    """What every iteration adds: the gram with the weights and adjoints of its systems, and the gradient.

    sigmas: of all inputs of all kernels; size: features of a kernel; loss: whether it is another than squared errors.
    """
    if loss:
        return several_loss_costs(sizes, of, sigmas=sigmas)
    of_objective, c = OBJECTIVES[objective], max(1, sizes.outputs)
    systems = of_objective.systems(folds)
    solve = group_adjoint_cost(of.features, c, systems, size) + descent_cost(sigmas)
    return [
        gram_cost(sizes, of, folds).then(solve).again(),
        gradient_cost(sizes, of, systems * c, sigmas, folds, of_objective.adjoints).again(),
    ]


def several_bandwidths(data: Prepared, options: BandwidthOptions, run: Run) -> SeveralBandwidths:
    """The method for prepared data; a pass over X alone finds the size of the inputs, if data has none."""
    check_choice("objective", options.objective, tuple(OBJECTIVES))
    objective, alpha, features = OBJECTIVES[options.objective], options.alpha, cast(object, data.features)
    if not isinstance(features, SideBySide):
        raise ValueError(f"features is a {data.features.kind} map; several kernels are a side_by_side map")
    if alpha is not None:
        check_positive("alpha", alpha)
    elif not objective.learns_alpha:
        raise ValueError(f"alpha=None with the objective {objective.name!r}, which always lowers it; give a number")
    check_positive("lowered", options.lowered)
    count = data.split.folds.count
    if objective.holds_out and count < 2:
        raise ValueError(f"the objective {objective.name!r} holds rows out, and folds={count}; use 2 folds or more")
    loss = options.loss if not isinstance(options.loss, Square) else None
    if loss is not None and (objective.holds_out or options.by_output):
        what = f"the objective {objective.name!r}" if objective.holds_out else f"by_output={options.by_output}"
        raise ValueError(f"loss {loss!r} with {what}: use the objective 'joint' and by_output=False, or squared errors")
    data = (
        replace(data, targets=in_one_unit(data.targets))
        if loss is None
        else replace(data.in_units_of_y(), split=Split())
    )
    targets, first = data.targets, data.gram(data.split, unseen=True)
    factor = 1.0 if targets.class_weight is None else float(targets.class_weight.max())
    size = np.sqrt(_squares(data, features, run) * (factor / targets.weight_unit))
    scales = SeveralScales(features, options.by, options.sigma_l2)
    fixed = (
        objective, scales, targets, options.fit_intercept, alpha, size, run.limits.tol,
        _grouping(features, options, targets),
    )  # fmt: skip
    way = options.starts, options.share, options.lowered
    if loss is not None:
        return SeveralLossBandwidths(GroupLossLearning(*fixed, loss=loss), first, *way)
    return SeveralBandwidths(GroupLearning(*fixed, unseen=data.split.unseen is not None), first, *way)


def _grouping(features: SideBySide, options: BandwidthOptions, targets: Targets) -> Grouping:
    """The groups of features, and their penalty in the unit of y."""
    groups = features.column_group
    eta = np.sqrt(np.bincount(groups)) if options.eta is None else np.asarray(options.eta, np.float64)
    if eta.shape != (len(features.channels),) or not bool((np.isfinite(eta) & (eta > 0)).all()):
        raise ValueError(f"eta={options.eta!r} must be {len(features.channels)} finite numbers above 0, one a kernel")
    return Grouping(groups, eta, options.ridge * float(targets.unit.max()), options.by_output)


def _squares(data: Prepared, features: SideBySide, run: Run) -> np.ndarray:
    """The weighted sums of squares of every column of every kernel."""
    if data.input_squares.size == features.n_columns:
        return data.input_squares
    program = SquaresProgram(features)
    total = run.engine.fetch(run.sum(program, data.rows.even_blocks(program.rows_wanted), "size of the inputs"))
    if total.refusal is not None:
        raise ValueError(total.refusal[1])
    return np.asarray(total.tree.total())


def _doubt(done: Iterated[LearnedSigmas], method: SeveralBandwidths, tol: float) -> str | None:
    """What should be said of the end: nothing is used, nothing has moved, or a kink."""
    last, learned = done.history.last, done.result
    if not learned.norms.any():
        what = "y may not depend on X" if method.problem.alpha is None else "use a smaller one"
        return f"no kernel is used at alpha={learned.alpha:g}, so no sigma has a gradient; {what}"
    if done.reason != "converged":
        return None
    if not learned.moved:
        return (
            f"learning ended where it began, so sigma did not change: no step lowered the objective by tol={tol:g}; "
            "lower tol, use more starts, or learn='none'"
        )
    promised = NARROW * float(last["gradient_norm"]) / max(abs(float(last["objective"])), np.finfo(float).tiny)
    if promised > tol:
        return (
            f"learning ended at a kink, where a kernel enters or leaves: 1% of a sigma promised {promised:.1%} of the "
            f"objective, and no step lowered it by tol={tol:g}; the sigmas are the best that were found"
        )
    return None
