"""Learn sigma: two passes for each iteration, several starts on a share of the blocks, then ever more blocks.

The client asks for passes and hears scalars and sigma; the descent, the sums, the weights and their adjoints stay where
the solve runs. After every iteration the whole state can be written down, and going on from it gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress, tell
from dkl.engine.row_readers import Range
from dkl.learn.history import History
from dkl.learn.objective import Problem, Unweighted, advance, judge
from dkl.learn.search import Move, Search
from dkl.learn.stages import ladder, small_enough
from dkl.learn.standing import Standing, open_standing, written
from dkl.learn.walk import Walk
from dkl.solvers.lbfgs import begin
from dkl.store.checkpoint import Checkpoint
from dkl.sums.gram import GramProgram

ROUGH = 10.0
"""Stages before the last end at this multiple of the tolerance."""


class Start(NamedTuple):
    """Where a descent begins: a multiple of sigma, and of the best alpha there if alpha is held."""

    factor: float = 1.0
    stretch: float = 1.0


@dataclass(frozen=True)
class Schedule:
    """The starts, the share of blocks in the end, and when to stop."""

    starts: tuple[Start, ...]
    share: float
    max_iter: int
    max_time: float | None


@dataclass(frozen=True)
class Learned:
    """The end of learning: the point, alpha, the way there, and why it ended."""

    x: np.ndarray
    alpha: float
    history: History
    reason: str  # "converged", "early_stopping", "max_iter", "max_time" or "interrupted"
    decrease: float  # relative, of the last iteration
    share: float  # of the rows that were learned on in the end
    moved: bool = True  # whether it ended elsewhere than at a start
    refit: tuple[float, float] | None = None  # errors with sigma_l1, and without it on the inputs it selected


def learn_kernel(
    engine: Any,
    rows: Rows,
    problem: Problem,
    first: GramProgram,
    schedule: Schedule,
    progress: Progress,
    checkpoint: Checkpoint | None = None,
    finish: bool = False,
) -> Learned:
    """Descend from every start on few blocks, go on from the best on more; `first` is the pass at the first start.

    finish: take the best point so far, without another iteration.
    """
    standing = open_standing(checkpoint)
    blocks = rows.blocks(small_enough(rows, first.rows_wanted, schedule.share))
    rungs = ladder(rows, blocks, first.features.map.n_features, schedule.share)
    walk = _Walk(engine, rows, problem, first, schedule, progress, checkpoint, standing, rungs)
    try:
        with progress.on_one_line():
            walk.run(finish)
        end = walk.best()
    finally:
        engine.forget()
    standing.history.end_at(end.descent.value * problem.unit)
    last = {name: float(column[-1]) for name, column in standing.history.columns.items() if name in ("alpha", "rows")}
    alpha, share = last["alpha"], last["rows"] / rows.n_rows
    x, decrease = end.descent.x, end.descent.decrease
    moved = not any(np.array_equal(x, problem.parameters.begin(start.factor)) for start in schedule.starts)
    return Learned(x, alpha, standing.history, standing.reason, decrease, share, moved, standing.refit)


class _Walk(Walk):
    """One fit's way through the stages."""

    def __init__(
        self, engine: Any, rows: Rows, problem: Problem, first: GramProgram,
        schedule: Schedule, progress: Progress, checkpoint: Checkpoint | None, standing: Standing,
        rungs: list[list[Range]],
    ) -> None:  # fmt: skip
        limits = schedule.max_time, schedule.max_iter
        super().__init__(engine, rows, problem, progress, standing, *limits, checkpoint, len(schedule.starts))
        self.first, self.schedule, self.rungs, self.given = first, schedule, rungs, problem
        self._release()

    @property
    def stages(self) -> list[list[Range]]:
        """Blocks of each stage: the starts, then the best of them, at least; with l1 one more, without it."""
        left = self.rungs[self.standing.skipped :]
        stages = 2 * left if len(left) == 1 and len(self.schedule.starts) > 1 else left
        return [*stages, stages[-1]] if self.given.parameters.penalised else stages

    @property
    def _last_stage(self) -> int:
        """The stage whose end counts; with l1 one more follows, without it."""
        return len(self.stages) - 1 - self.given.parameters.penalised

    def to_the_end(self) -> None:
        """All stages; in the first, all starts, of which the best goes on."""
        at = self.standing
        while not at.reason:
            blocks, last = self.stages[at.stage], at.stage >= self._last_stage
            try:
                ended = self._descend(blocks, last)
            except Unweighted:  # few blocks may miss a fold, or hold no weight
                if at.stage or at.skipped + 1 == len(self.rungs):
                    raise
                at.skipped += 1
                continue
            if ended == "max_time":  # the search stays, so that more time goes on with it
                at.reason = ended
                self._keep()
                break
            at.search = None
            if at.stage == 0 and at.start + 1 < len(self.schedule.starts):
                at.start += 1
                self._keep()
                continue
            if at.stage:  # an objective on fewer rows is no smaller one
                at.ends = at.ends[-1:]
            else:
                at.start = int(np.argmin([end.merit for end in at.ends]))
                at.ends = [at.ends[at.start]]
            if last:
                self._end(ended, blocks)
            at.stage += 1
            self._keep()
        self.progress.say(self.line())

    def _end(self, ended: str, blocks: list[Range]) -> None:
        """After the last stage: exact zeros, and then a stage without l1, whose bias is removed if the error falls."""
        at, unit = self.standing, self.problem.unit
        if at.penalised is not None:
            at.refit = unit * at.penalised.honest_error, unit * at.ends[0].at_best().honest_error
        at.history.end_at(self.best().descent.value * unit)
        if at.penalised is None:
            at.ends = [self._without_the_vanished(at.ends[0], blocks)]
            if self.given.parameters.penalised:
                at.penalised = at.ends[0]
                self._release()
                return
        at.reason = ended

    def _release(self) -> None:
        """From where l1 has ended, the problem is the one without it."""
        if self.standing.penalised is not None:
            x = self.standing.penalised.descent.x
            self.problem = replace(self.given, parameters=self.given.parameters.without_l1(x))

    def best(self) -> Search:
        """The best point so far, in the parameters that were given: the lowest start, later that of the last stage."""
        at = self.standing
        now = None if at.search is None else self.engine.take(at.search)
        found = [end.at_best() for end in (*at.ends, now) if end is not None and end.descent.begun]
        if at.penalised is not None:
            begun = at.refit is not None or (now is not None and now.descent.begun)
            return self._unbiased(at.penalised, found[-1]) if begun else at.penalised
        return found[-1] if at.stage else min(found, key=lambda search: search.merit)

    def _unbiased(self, before: Search, after: Search) -> Search:
        """The end of l1, or that of the stage without it if its error is lower."""
        if after.honest_error >= before.honest_error:
            return before
        x = self.problem.parameters.factor(after.descent.x)
        return after._replace(descent=after.descent._replace(x=x))

    def reopen(self) -> None:
        """The last stage goes on from its end, if that was reached."""
        at = self.standing
        if at.search is None:
            at.stage, end, at.refit = at.stage - 1, at.ends.pop(), None
            at.search = end._replace(small=0, descent=end.descent._replace(stalled=False))

    def _descend(self, blocks: list[Range], last: bool) -> str:
        """Iterations on some blocks until one of the reasons to stop; the end is noted in the standing."""
        at, tol = self.standing, self.problem.tol * (1.0 if last else ROUGH)
        problem = self.engine.keep("problem", replace(self.problem, tol=tol))
        search = self._first_search() if at.search is None else at.search
        iteration = search.descent.iteration
        ended = "max_iter" if iteration >= self.max_iter else ""  # a resumed fit may have a lower limit
        program = self.engine.keep("program", self.first.with_map(self.problem.parameters.map(search.descent.trial)))
        handle: Any = search
        while not ended:
            sums = self.sweep(program, blocks, f"{self.where()}: adding up X")
            verdict, kept = self.engine.solve(judge, sums, problem=problem, program=program, search=handle)
            handle = kept["search"]
            tell(event="trial", objective=verdict.value, accepted=verdict.accepted)
            if verdict.stalled:
                ended = "converged"
                break
            if not verdict.accepted:
                program = kept["program"]
                ended = "max_time" if self.late() else ""
                continue
            move, after = self._advance(kept, problem, program, blocks)
            handle, program, iteration = after["search"], after["program"], iteration + 1
            self.note(move, blocks)
            ended = self._reason(move, iteration)
            if ended in ("", "max_time"):
                at.search = handle
            if not ended:
                self._keep()
        if ended != "max_time":
            at.ends.append(self.engine.take(handle))
        return ended

    def _advance(self, kept: dict, problem: Any, program: Any, blocks: list[Range]) -> tuple[Move, dict]:
        """The second pass of a trial that was accepted."""
        pulled = self.sweep(kept["pullback"], blocks, f"{self.where()}: gradient")
        about = {"search": kept["search"], "accepted": kept["accepted"]}
        return self.engine.solve(advance, pulled, problem=problem, program=program, **about)

    def _without_the_vanished(self, end: Search, blocks: list[Range]) -> Search:
        """The end with exact zeros for sigmas that l1 has all but brought there, unless the objective is worse for it.

        With few features a sigma near zero adds a linear term, which a small alpha makes use of however small it is.
        """
        x = self.problem.parameters.switched_off(end.descent.x)
        if x is None:
            return end
        problem = self.engine.keep("problem", self.problem)
        program = self.engine.keep("program", self.first.with_map(self.problem.parameters.map(x)))
        search = Search(begin(x, *self.problem.parameters.box()), end.log_lam)
        sums = self.sweep(program, blocks, f"{self.where()}: adding up X")
        verdict, kept = self.engine.solve(judge, sums, problem=problem, program=program, search=search)
        if verdict.value > self.problem.unit * (end.descent.value + self.problem.tol * abs(end.descent.value)):
            return end
        move, after = self._advance(kept, problem, program, blocks)
        self.note(move, blocks)
        found = self.engine.take(after["search"])
        return found._replace(descent=found.descent._replace(decrease=end.descent.decrease))

    def _first_search(self) -> Search:
        """From a start, or from where the stage before ended, with its curvature."""
        at, box = self.standing, self.problem.parameters.box()
        if at.penalised is not None:
            return Search(begin(np.zeros_like(at.penalised.descent.x), *box), at.penalised.log_lam)
        if at.stage:
            before = at.ends[-1].at_best()
            return Search(begin(before.descent.x, *box, like=before.descent), before.log_lam)
        start = self.schedule.starts[at.start]
        return Search(begin(self.problem.parameters.begin(start.factor), *box), stretch=start.stretch)

    def _reason(self, move: Move, iteration: int) -> str:
        if self.late():
            return "max_time"
        if move.ended:
            return move.ended
        return "max_iter" if iteration >= self.schedule.max_iter else ""

    def _keep(self) -> None:
        """Write everything down, if the fit has a checkpoint."""
        if self.checkpoint is not None:
            at = self.standing
            search = None if at.search is None else self.engine.take(at.search)
            ended = len(self.schedule.starts) - 1 + at.stage if at.stage else at.start
            self.save(len(at.history) + ended, written(at, search))
