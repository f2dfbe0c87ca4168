"""Learn sigma (or every frequency): two passes for each iteration, several starts on a share of the blocks, then more.

    trial -> sums -> value, alpha (judge) -> second pass -> gradient, next trial (advance)     learn/bandwidth_steps.py

The client asks for passes and hears scalars and sigma; the descent, the sums, the weights and their adjoints stay where
the solve runs. Starts run on few blocks, the best goes on with ever more; with l1 a last stage follows without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dkl.engine.handles import Reply
from dkl.engine.progress import tell
from dkl.engine.protocol import Ref
from dkl.engine.row_readers import Range
from dkl.learn.alpha import alpha_of
from dkl.learn.bandwidth_steps import Problem, advance, judge
from dkl.learn.history import Column, History
from dkl.learn.learned import HISTORY, Learned
from dkl.learn.objectives import Unweighted
from dkl.learn.run import Method, Row, Run, Step
from dkl.learn.search import Inner, Move, Search, Verdict
from dkl.learn.stages import ladder, small_enough
from dkl.solvers.lbfgs import begin
from dkl.sums.gram import GramProgram

ROUGH = 10.0
"""Stages before the last end at this multiple of the tolerance."""


class Start(NamedTuple):
    """Where a descent begins: a multiple of sigma, and of the best alpha there if alpha is held."""

    factor: float = 1.0
    stretch: float = 1.0


class Refs(NamedTuple):
    """What a descent keeps where the solve runs, beside the search: the problem, and the pass of the next trial."""

    problem: Ref[Problem]
    program: Ref[GramProgram]


class Descending(NamedTuple):
    """Where learning stands: stage, start, ends of earlier descents, and the search of the one under way."""

    stage: int = 0
    start: int = 0
    ends: tuple[Search, ...] = ()
    search: Search | Ref[Search] | None = None
    iteration: int = -1  # of the descent under way; -1 before its first point
    ended: str = ""  # why that descent has ended; the next step closes it
    penalised: Search | None = None  # where l1 ended, while its bias is being removed
    refit: tuple[float, float] | None = None  # errors with l1 and without it, on the inputs that it selected
    skipped: int = 0  # stages on too few blocks, where some fold has no weight
    refs: Refs | None = None  # made anew after a resume
    inner: Inner | Ref[Inner] | None = None  # weights that the next trial begins from (learn/loss_bandwidth.py)


@dataclass(frozen=True)
class Bandwidth(Method[Descending, Learned]):
    """Descend from every start on few blocks, go on from the best on more; `first` is the pass at the first start."""

    problem: Problem
    first: GramProgram
    starts: tuple[Start, ...]
    share: float  # of the blocks, in the end
    state: ClassVar[type] = Descending
    history: ClassVar[Mapping[str, Column]] = HISTORY

    def begin(self, run: Run) -> Descending:
        """Before the first start."""
        return Descending()

    def portable(self, run: Run, state: Descending) -> Descending:
        """The state with the search itself."""
        inner = state.inner
        inner = inner if inner is None or isinstance(inner, Inner) else run.engine.take(inner)
        return state._replace(search=_taken(run, state.search), refs=None, inner=inner)

    def resumed(self, run: Run, state: Descending) -> Descending:
        """A descent that had ended at max_iter is looked at again, as the limit may be another."""
        return state._replace(ended="") if state.ended == "max_iter" else state

    def reopened(self, run: Run, state: Descending) -> Descending:
        """The last stage goes on from its end, if that was reached."""
        if state.search is not None:
            return state
        *earlier, end = state.ends
        search = end._replace(small=0, descent=end.descent._replace(stalled=False))
        return state._replace(
            stage=state.stage - 1, ends=tuple(earlier), search=search, iteration=end.descent.iteration, refit=None
        )

    def step(self, run: Run, state: Descending) -> Step[Descending]:
        """One trial; or the end of a descent, and what follows it."""
        if state.ended:
            return self._close(run, state)
        if state.search is None:
            search = self._first_search(state)
            state = state._replace(search=search, iteration=search.descent.iteration)
        if state.iteration >= run.limits.max_iter:
            return self._close(run, state._replace(ended="max_iter"))
        try:
            return self._try(run, state)
        except Unweighted:  # few blocks may miss a fold, or hold no weight
            if state.stage or state.skipped + 1 == len(self._ladder(run)):
                raise
            return Step(state._replace(search=None, refs=None, skipped=state.skipped + 1), saved=False)

    def end(self, run: Run, state: Descending, history: History) -> Learned:
        """The best point so far, in the parameters that were given."""
        best = self._best(run, state)
        history.end_at(best.descent.value * self.problem.unit)
        x, last = best.descent.x, history.last
        moved = not any(np.array_equal(x, self.problem.parameters.begin(start.factor)) for start in self.starts)
        share = float(last["rows"]) / run.rows.n_rows
        return Learned(x, float(last["alpha"]), best.descent.decrease, share, moved, state.refit)

    def _ladder(self, run: Run) -> list[list[Range]]:
        """Blocks of each stage, from few to the share that is learned on in the end."""
        blocks = run.rows.even_blocks(small_enough(run.rows, self.first.rows_wanted, self.share))
        return ladder(run.rows, blocks, self.first.features.map.n_features, self.share)

    def _stages(self, run: Run, state: Descending) -> list[list[Range]]:
        """Blocks of each stage: the starts, then the best of them, at least; with l1 one more, without it."""
        left = self._ladder(run)[state.skipped :]
        stages = 2 * left if len(left) == 1 and len(self.starts) > 1 else left
        return [*stages, stages[-1]] if self.problem.parameters.penalised else stages

    def _is_last(self, run: Run, state: Descending) -> bool:
        """Whether the end of this stage counts; with l1 one more follows, without it."""
        return state.stage >= len(self._stages(run, state)) - 1 - self.problem.parameters.penalised

    def _problem(self, state: Descending) -> Problem:
        """From where l1 has ended, the problem is the one without it."""
        if state.penalised is None:
            return self.problem
        return replace(self.problem, parameters=self.problem.parameters.without_l1(state.penalised.descent.x))

    def _where(self, state: Descending) -> str:
        """The start or the stage under way, and the next iteration in it (0: where it begins), in words."""
        starts = f"start {state.start + 1} of {len(self.starts)}, " * (len(self.starts) > 1)
        return f"{f'stage {state.stage + 1}, ' if state.stage else starts}iteration {state.iteration + 1}"

    def _with_refs(self, run: Run, state: Descending) -> Refs:
        """What the descent keeps where the solve runs."""
        if state.refs is not None:
            return state.refs
        problem, engine = self._problem(state), run.engine
        tol = run.limits.tol * (1.0 if self._is_last(run, state) else ROUGH)
        search = _taken(run, state.search)
        assert search is not None
        program = self.first.with_map(problem.parameters.map(search.descent.trial))
        return Refs(engine.keep("problem", replace(problem, tol=tol)), engine.keep("program", program))

    def _try(self, run: Run, state: Descending) -> Step[Descending]:
        """The first pass of a trial, and if it is accepted the second, which gives the gradient and the next trial."""
        refs, blocks, where = self._with_refs(run, state), self._stages(run, state)[state.stage], self._where(state)
        assert state.search is not None
        verdict, kept = self._judged(run, refs, blocks, where, state.search, state.inner)
        tell(event="trial", objective=verdict.value, accepted=verdict.accepted)
        state = state._replace(search=kept["search"], refs=refs, inner=kept.get("inner", state.inner))
        if verdict.stalled:
            return Step(state._replace(ended="converged"), saved=False)
        if not verdict.accepted:
            return Step(state._replace(refs=refs._replace(program=kept["program"])), saved=False)
        move, after = self._advanced(run, refs, blocks, where, kept)
        row = self._row(state, move, where, blocks)
        iteration = state.iteration + 1
        ended = move.ended or ("max_iter" if iteration >= run.limits.max_iter else "")
        refs = refs._replace(program=after["program"])
        return Step(state._replace(search=after["search"], refs=refs, iteration=iteration, ended=ended), row)

    def _judged(
        self, run: Run, refs: Refs, blocks: list[Range], where: str, search: Search | Ref[Search],
        inner: Inner | Ref[Inner] | None,
    ) -> Reply[Verdict]:  # fmt: skip
        """The passes that give the trial's value, and whether it is accepted."""
        sums = run.sum(refs.program, blocks, f"{where}: adding up X")
        return run.engine.solve(judge, sums, **refs._asdict(), search=search)

    def _advanced(
        self, run: Run, refs: Refs, blocks: list[Range], where: str, kept: dict[str, Any]
    ) -> Reply[Move]:  # fmt: skip
        """The passes of the gradient of a trial that was accepted, and the next trial."""
        pulled = run.sum(kept["pullback"], blocks, f"{where}: gradient")
        about = {"search": kept["search"], "accepted": kept["accepted"]}
        return run.engine.solve(advance, pulled, **refs._asdict(), **about)

    def _row(self, state: Descending, move: Move, where: str, blocks: list[Range]) -> Row:
        """The row of an iteration."""
        alpha = self.problem.alpha or alpha_of(move.log_lam, self.problem.targets)
        values: dict[str, float | np.ndarray] = {
            "objective": move.objective, "validation_error": move.error, "unseen_error": move.unseen,
            "error_rate": move.wrong, "gradient_norm": move.gradient_norm, "alpha": alpha, "stage": state.stage,
            "start": state.start, "sigma": move.sigma,
        }  # fmt: skip
        return Row(where, sum(stop - start for start, stop in blocks), values)

    def _close(self, run: Run, state: Descending) -> Step[Descending]:
        """After a descent: the next start, the next stage from the best start, or the end."""
        end = _taken(run, state.search)
        assert end is not None
        ended, ends, last = state.ended, (*state.ends, end), self._is_last(run, state)
        closed = state._replace(search=None, refs=None, ended="", iteration=-1)
        if not state.stage and state.start + 1 < len(self.starts):
            return Step(closed._replace(ends=ends, start=state.start + 1))
        if state.stage:  # an objective on fewer rows is no smaller one
            closed = closed._replace(ends=ends[-1:])
        else:
            best = int(np.argmin([end.merit for end in ends]))
            closed = closed._replace(start=best, ends=(ends[best],))
        return self._finish(run, closed, ended) if last else Step(closed._replace(stage=state.stage + 1))

    def _finish(self, run: Run, state: Descending, ended: str) -> Step[Descending]:
        """After the last stage: exact zeros, and then a stage without l1, whose bias is removed if the error falls."""
        unit, following = self.problem.unit, state.stage + 1
        if state.penalised is not None:
            after = state.ends[0].at_best().honest_error
            state = state._replace(refit=(unit * state.penalised.honest_error, unit * after))
        ends_at = self._best(run, state).descent.value * unit
        if state.penalised is not None:
            return Step(state._replace(stage=following), None, ended, ends_at=ends_at)
        end, row = self._without_the_vanished(run, state)
        state = state._replace(ends=(end,), stage=following)
        if self.problem.parameters.penalised:
            state, ended = state._replace(penalised=end), ""
        return Step(state, row, ended, ends_at=ends_at)

    def _best(self, run: Run, state: Descending) -> Search:
        """The best point so far, in the parameters that were given: the lowest start, later that of the last stage."""
        now = _taken(run, state.search)
        found = [end.at_best() for end in (*state.ends, now) if end is not None and end.descent.begun]
        if state.penalised is not None:
            begun = state.refit is not None or (now is not None and now.descent.begun)
            return self._unbiased(state, found[-1]) if begun else state.penalised
        return found[-1] if state.stage else min(found, key=lambda search: search.merit)

    def _unbiased(self, state: Descending, after: Search) -> Search:
        """The end of l1, or that of the stage without it if its error is lower."""
        before = state.penalised
        assert before is not None
        if after.honest_error >= before.honest_error:
            return before
        x = self._problem(state).parameters.factor(after.descent.x)
        return after._replace(descent=after.descent._replace(x=x))

    def _without_the_vanished(self, run: Run, state: Descending) -> tuple[Search, Row | None]:
        """The end with exact zeros for sigmas that l1 has all but brought there, unless the objective is worse for it.

        With few features a sigma near zero adds a linear term, which a small alpha makes use of however small it is.
        """
        problem, (end,) = self.problem, state.ends
        x = problem.parameters.switched_off(end.descent.x)
        if x is None:
            return end, None
        blocks, where = self._stages(run, state)[state.stage], f"stage {state.stage + 1}, zeros"
        program = run.engine.keep("program", self.first.with_map(problem.parameters.map(x)))
        refs = Refs(run.engine.keep("problem", problem), program)
        search = Search(begin(x, *problem.parameters.box()), end.log_lam)
        verdict, kept = self._judged(run, refs, blocks, where, search, state.inner)
        if verdict.value > problem.unit * (end.descent.value + run.limits.tol * abs(end.descent.value)):
            return end, None
        move, after = self._advanced(run, refs, blocks, where, kept)
        found = run.engine.take(after["search"])
        found = found._replace(descent=found.descent._replace(decrease=end.descent.decrease))
        return found, self._row(state, move, where, blocks)

    def _first_search(self, state: Descending) -> Search:
        """From a start, or from where the stage before ended, with its curvature."""
        parameters = self._problem(state).parameters
        box = parameters.box()
        if state.penalised is not None:
            return Search(begin(np.zeros_like(state.penalised.descent.x), *box), state.penalised.log_lam)
        if state.stage:
            before = state.ends[-1].at_best()
            return Search(begin(before.descent.x, *box, like=before.descent), before.log_lam)
        start = self.starts[state.start]
        return Search(begin(parameters.begin(start.factor), *box), stretch=start.stretch)


def _taken(run: Run, search: Search | Ref[Search] | None) -> Search | None:
    """The search itself, wherever it is."""
    return search if search is None or isinstance(search, Search) else run.engine.take(search)
