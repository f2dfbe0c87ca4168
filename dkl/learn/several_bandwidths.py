"""Learn the sigmas of several kernels with their weights, few of which are used: two passes for each iteration.

    joint            F = loss + alpha sum_g eta_g |W_g|, its weights solved for at every trial (envelope theorem)
    validation, cv   held-out squared error through those weights (solvers/group_adjoint.py), alpha learned too

Starts, stages, limits and resuming are those of learn/bandwidth.py. A kernel whose weights are zero has no gradient:
its sigma stays, and cannot bring the kernel back. So the first stage learns at a tenth of alpha, where nearly all
kernels are used; the stages after it choose alpha anew, or take the one that is given. Where a kernel enters or leaves
the objective has a kink: a descent that finds no step there forgets its curvature and goes down the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, cast

import numpy as np

from dkl.checks import check_choice, check_positive
from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.handles import Reply
from dkl.engine.protocol import Ref
from dkl.engine.row_readers import Range
from dkl.features.side_by_side import SideBySide
from dkl.learn.bandwidth import Bandwidth, Descending, Refs, Start
from dkl.learn.history import Column, History
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.learned import HISTORY, Learned
from dkl.learn.objectives import CV, JOINT, VALIDATION
from dkl.learn.run import Row, Run, Step
from dkl.learn.search import Inner, Move, Search, Verdict
from dkl.learn.several_bandwidths_steps import GroupLearning, advance, in_one_unit, judge
from dkl.learn.several_scales import SeveralScales
from dkl.prepare.prepared import Prepared
from dkl.solvers.group_adjoint import Grouping, group_adjoint_cost
from dkl.solvers.lbfgs import descent_cost, restarted
from dkl.sums.gram import gram_cost
from dkl.sums.input_squares import SquaresProgram
from dkl.sums.pullback import gradient_cost
from dkl.sums.targets import Targets

LOWERED = 0.1
"""alpha of the first stage over the best one, or over the one that is given."""
NARROW = 0.01
"""A change of a sigma by this share ought to lower the objective by more than tol, where it has not converged."""
OBJECTIVES = {each.name: each for each in (JOINT, VALIDATION, CV)}


@dataclass(frozen=True)
class BandwidthOptions:
    """objective: "joint" (which needs alpha), "validation" or "cv". alpha: None to learn it. by: "kernel" or "input".

    eta: of each kernel, the root of its features if None. lowered: alpha of the first stage over that of the others;
    1 to begin at alpha. sigma_l2: in units of the start and of the variance of y. share: of the blocks, in the end.
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


@dataclass(frozen=True, kw_only=True)
class LearnedSigmas(Learned):
    """The end of learning."""

    error: float  # held-out mean squared error; of joint: the objective without penalties on sigma
    norms: np.ndarray  # (kernels,), |W_g|, mean over the folds


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
    sizes: Sizes, of: MapCost, *, objective: str, folds: int, sigmas: int, size: int = 256
) -> list[Cost]:  # fmt: skip
    """What every iteration adds: the gram with the weights and adjoints of its systems, and the gradient.

    sigmas: of all inputs of all kernels; size: features of a kernel.
    """
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
    data = replace(data, targets=in_one_unit(data.targets))
    targets, first = data.targets, data.gram(data.split, unseen=True)
    factor = 1.0 if targets.class_weight is None else float(targets.class_weight.max())
    problem = GroupLearning(
        objective, SeveralScales(features, options.by, options.sigma_l2), targets, options.fit_intercept, alpha,
        np.sqrt(_squares(data, features, run) * (factor / targets.weight_unit)), run.limits.tol,
        _grouping(features, options, targets), unseen=data.split.unseen is not None,
    )  # fmt: skip
    return SeveralBandwidths(problem, first, options.starts, options.share, options.lowered)


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


@dataclass(frozen=True)
class SeveralBandwidths(Bandwidth):
    """Descents from every start at a lowered alpha, and from the best at alpha itself, on few blocks and on more."""

    problem: GroupLearning
    lowered: float = LOWERED
    history: ClassVar[Mapping[str, Column]] = {
        **HISTORY,
        "validation_error": Column("mean squared error on held-out rows (of joint: J without penalties on sigma)"),
        "gradient_norm": Column("largest coordinate of the gradient in log sigma"),
        "alpha": Column("penalty of the groups; in the first stage a share of the one that is used"),
        "sigma": Column("sigma of each input of each kernel", dim="kernel_input"),
        "norms": Column("|W_g| of each kernel, mean over the folds; 0: not used", dim="kernel"),
    }

    def end(self, run: Run, state: Descending, history: History) -> LearnedSigmas:
        """The best point so far."""
        learned = super().end(run, state, history)
        last, own = history.last, {each.name: getattr(learned, each.name) for each in fields(Learned)}
        if self.problem.alpha is not None:
            own["alpha"] = self.problem.alpha
        return LearnedSigmas(**own, error=float(last["validation_error"]), norms=np.asarray(last["norms"]))

    def _stages(self, run: Run, state: Descending) -> list[list[Range]]:
        """Blocks of each stage; the lowered alpha has a stage of its own."""
        stages = super()._stages(run, state)
        return 2 * stages if len(stages) == 1 and self.lowered != 1 else stages

    def _problem(self, state: Descending) -> GroupLearning:
        """In the first stage alpha is lowered."""
        return self.problem if state.stage else replace(self.problem, lowered=self.lowered)

    def _first_search(self, state: Descending) -> Search:
        """After the lowered alpha the best one is sought anew."""
        search = super()._first_search(state)
        return search._replace(log_lam=None) if state.stage == 1 and self.lowered != 1 else search

    def _try(self, run: Run, state: Descending) -> Step[Descending]:
        """A trial; if no step is left, the descent forgets its curvature before it ends."""
        step = super()._try(run, state)
        after = step.state
        if step.row is not None or after.ended != "converged" or after.search is None:
            return step
        search = after.search if isinstance(after.search, Search) else run.engine.take(after.search)
        if not len(search.descent.steps):
            return step
        search = search._replace(descent=restarted(search.descent))
        return Step(after._replace(ended="", search=search, refs=None), saved=False)

    def _judged(
        self, run: Run, refs: Refs, blocks: list[Range], where: str, search: Search | Ref[Search],
        inner: Inner | Ref[Inner] | None,
    ) -> Reply[Verdict]:  # fmt: skip
        """The pass that gives the trial's value, and whether it is accepted."""
        sums = run.sum(refs.program, blocks, f"{where}: adding up X")
        return run.engine.solve(judge, sums, **refs._asdict(), search=search)

    def _advanced(self, run: Run, refs: Refs, blocks: list[Range], where: str, kept: dict[str, Any]) -> Reply[Move]:
        """The pass of the gradient of a trial that was accepted, and the next trial."""
        pulled = run.sum(kept["pullback"], blocks, f"{where}: gradient")
        about = {name: kept[name] for name in ("search", "accepted", "norms")}
        return run.engine.solve(advance, pulled, **refs._asdict(), **about)

    def _row(self, state: Descending, move: Move, where: str, blocks: list[Range]) -> Row:
        """The row of an iteration."""
        row = super()._row(state, move, where, blocks)
        assert move.norms is not None
        alpha = float(np.exp(move.log_lam)) * self.problem.alpha_unit
        return row._replace(values={**row.values, "alpha": alpha, "norms": move.norms})


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
