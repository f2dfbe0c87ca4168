"""Descents in the sigmas of several kernels: those of learn/bandwidth.py, with a stage at a lowered alpha before them.

A kernel whose weights are zero has no gradient: its sigma stays, and cannot bring the kernel back. So the first stage
learns at a tenth of alpha, where nearly all kernels are used; the stages after it choose alpha anew, or take the one
that is given. Where a kernel enters or leaves the objective has a kink: a descent that finds no step there forgets its
curvature and goes down the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from dkl.engine.handles import Reply
from dkl.engine.protocol import Ref
from dkl.engine.row_readers import Range
from dkl.learn.bandwidth import Bandwidth, Descending, Refs
from dkl.learn.history import Column, History
from dkl.learn.learned import HISTORY, Learned
from dkl.learn.run import Row, Run, Step
from dkl.learn.search import Inner, Move, Search, Verdict
from dkl.learn.several_bandwidths_steps import GroupLearning, advance, judge
from dkl.solvers.lbfgs import restarted

LOWERED = 0.1
"""alpha of the first stage over the best one, or over the one that is given."""


@dataclass(frozen=True, kw_only=True)
class LearnedSigmas(Learned):
    """The end of learning."""

    error: float  # held-out mean squared error; of joint: the objective without penalties on sigma
    norms: np.ndarray  # (kernels,), |W_g|, mean over the folds


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
