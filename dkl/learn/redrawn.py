"""Learn sigma for the log loss: three passes for each iteration, over some of the rows and one draw of frequencies.

    sums -> ridge of all folds -> scores -> adjoints -> pullback -> a step of Adam          learn/redrawn_steps.py

Every iteration draws fresh frequencies and takes other blocks, so that sigma cannot overfit one draw; sigma is averaged
over the second half of the steps. The client hears scalars and sigma.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dkl.engine.protocol import Pending, Ref
from dkl.engine.row_readers import Range
from dkl.engine.threads import one_blas_thread
from dkl.learn.alpha import alpha_of
from dkl.learn.history import Column, History
from dkl.learn.learned import HISTORY, Learned
from dkl.learn.objectives import Unweighted
from dkl.learn.redrawn_steps import (
    FIRST,
    LAST,
    LATER,
    SHARPNESS,
    Chosen,
    Redrawn,
    Search,
    advance,
    chosen,
    pull,
    score,
    trials,
)
from dkl.learn.run import Method, Row, Run, Step
from dkl.learn.search import Move
from dkl.learn.stages import blocks_of_step
from dkl.solvers.adam import begin
from dkl.sums.gram import GramProgram, GramSums

EVERY = 10
"""Iterations after which alpha and k are looked at again."""


class Refs(NamedTuple):
    """What is kept where the solve runs, beside the search: the problem, and the first pass of the next iteration."""

    problem: Ref[Redrawn]
    program: Ref[GramProgram]


class Stepping(NamedTuple):
    """Where learning stands: the number of the next step, alpha and k, and the steps so far."""

    search: Search | Ref[Search]
    number: int
    now: Chosen
    grown: int = 0  # times that the blocks of a step were doubled, as some fold had no weight on them
    refs: Refs | None = None  # made anew after a resume


@dataclass(frozen=True)
class RedrawnBandwidth(Method[Stepping, Learned]):
    """Steps from the default start; `first` is a pass, of whatever frequencies."""

    problem: Redrawn
    first: GramProgram
    share: float | None  # of the blocks, for each step; None: about ten thousand rows
    state: ClassVar[type] = Stepping
    history: ClassVar[Mapping[str, Column]] = HISTORY

    def begin(self, run: Run) -> Stepping:
        """At the start of sigma."""
        search = Search(begin(self.problem.parameters.begin(1.0), *self.problem.parameters.box()))
        return Stepping(search, 0, Chosen(search.log_lam, search.sharpness))

    def portable(self, run: Run, state: Stepping) -> Stepping:
        """The state with the search itself."""
        return state._replace(search=_taken(run, state.search), refs=None)

    def resumed(self, run: Run, state: Stepping) -> Stepping:
        """With more steps than before, the second half of them is another one."""
        search = _taken(run, state.search)
        if search.adam.counted and search.adam.iteration <= self.problem.steps // 2:
            return state._replace(search=search._replace(adam=search.adam.recounted()))
        return state

    def step(self, run: Run, state: Stepping) -> Step[Stepping]:
        """One step; the blocks grow if a fold has no weight on them."""
        if state.number >= self.problem.steps:  # a resumed fit may have a lower limit
            return Step(state, ended="max_iter")
        state = state._replace(refs=self._with_refs(run, state))
        while True:
            features = self.first.features.map.n_features
            blocks = blocks_of_step(run.rows, features, self.share, state.number, state.grown)
            try:
                return self._step_on(run, state, blocks)
            except Unweighted:
                if sum(stop - start for start, stop in blocks) == run.rows.n_rows:
                    raise
                state = state._replace(grown=state.grown + 1)

    def end(self, run: Run, state: Stepping, history: History) -> Learned:
        """The mean of the second half of the steps."""
        end = _taken(run, state.search)
        share = float(history.last["rows"]) / run.rows.n_rows
        return Learned(end.adam.end, alpha_of(end.log_lam, self.problem.targets), float("nan"), share)

    def _with_refs(self, run: Run, state: Stepping) -> Refs:
        """What is kept where the solve runs; frequencies are drawn with one BLAS thread, as there."""
        if state.refs is not None:
            return state.refs
        with one_blas_thread():
            drawn = self.first.with_map(self.problem.map(_taken(run, state.search).adam.x, state.number))
        return Refs(run.engine.keep("problem", self.problem), run.engine.keep("program", drawn))

    def _step_on(self, run: Run, state: Stepping, blocks: list[Range]) -> Step[Stepping]:
        """The passes of one step over some blocks."""
        assert state.refs is not None
        (problem, program), solve, where = state.refs, run.engine.solve, f"iteration {state.number + 1}"
        sums = run.sum(program, blocks, f"{where}: adding up X")
        now = state.now if state.number % EVERY else self._chosen(run, state, sums, blocks, where)
        _, kept = solve(score, sums, problem=problem, program=program, at=now)
        scored = run.sum(kept["scores"], blocks, f"{where}: scores")
        about = {"solved": kept["solved"], "weight": kept["weight"]}
        _, more = solve(pull, scored, problem=problem, program=program, at=now, **about)
        pulled = run.sum(more["pullback"], blocks, f"{where}: gradient")
        about = {"search": state.search, "found": more["found"]}
        move, after = solve(advance, pulled, problem=problem, program=program, at=now, **about)
        number = state.number + 1
        following = state._replace(
            search=after["search"], number=number, now=now, refs=Refs(problem, after["program"])
        )  # fmt: skip
        return Step(following, self._row(move, where, blocks), "max_iter" if number >= self.problem.steps else "")

    def _chosen(self, run: Run, state: Stepping, sums: Pending[GramSums], blocks: list[Range], where: str) -> Chosen:
        """alpha and k with the least log loss, in one pass of scores by several alphas."""
        assert state.refs is not None
        later = state.number > 0
        tried, kept = run.engine.solve(
            trials, sums, program=state.refs.program, fit_intercept=self.problem.fit_intercept,
            alpha=self.problem.alpha, near=state.now.log_lam if later else None, factors=LATER if later else FIRST,
        )  # fmt: skip
        scored = run.sum(kept["trials"], blocks, f"{where}: alpha")
        return run.engine.solve(chosen, scored, log_lams=tried, sharpness=SHARPNESS)

    def _row(self, move: Move, where: str, blocks: list[Range]) -> Row:
        """The row of an iteration."""
        alpha = self.problem.alpha or alpha_of(move.log_lam, self.problem.targets)
        values: dict[str, float | np.ndarray] = {
            "objective": move.objective, "validation_error": move.error, "error_rate": move.wrong,
            "gradient_norm": move.gradient_norm, "alpha": alpha, "stage": 0, "start": 0, "sigma": move.sigma,
        }  # fmt: skip
        return Row(where, sum(stop - start for start, stop in blocks), values)


def _taken(run: Run, search: Search | Ref[Search]) -> Search:
    """The search itself, wherever it is."""
    return search if isinstance(search, Search) else run.engine.take(search)


def least_log_loss(run: Run, program: GramProgram, sums: Pending[GramSums], alpha: float, fit_intercept: bool) -> float:
    """alpha near the given one with the least log loss of held-out rows, in one pass; `sums` are those of `program`."""
    unit, blocks = program.targets.weight_unit, run.rows.blocks(program.rows_wanted)
    near = float(np.log(alpha / unit))
    try:
        tried, kept = run.engine.solve(
            trials, sums, program=program, fit_intercept=fit_intercept, alpha=None, near=near, factors=LAST
        )
        scored = run.sum(kept["trials"], blocks, "choosing alpha")
        best = run.engine.solve(chosen, scored, log_lams=tried, sharpness=SHARPNESS)
    finally:
        run.engine.forget()
    return alpha_of(best.log_lam, program.targets)
