"""What every way of learning does on the client: passes that are watched, rows of the history, and when it ends.

It ends by itself, at a limit, or when the user stops it (Ctrl-C); in the last two cases the standing stays where it is,
so that a later fit can go on from it.
"""

from __future__ import annotations

import time
from typing import Any

from dkl.engine.blocks import Rows
from dkl.engine.interrupt import Interruption, Watch, check, watching
from dkl.engine.progress import Progress, tell
from dkl.engine.row_readers import Range
from dkl.learn.history import legs_of
from dkl.learn.objective import Problem, lam_of
from dkl.learn.search import Move
from dkl.learn.standing import Standing, allows_more
from dkl.store.checkpoint import Checkpoint

LIMITS = ("max_iter", "tol", "max_time")
"""What a fit that goes on may change."""
INTERRUPTED = "interrupted"
"""The reason that is never written down: whoever goes on, goes on."""


class Walk:
    """One fit's way; the standing is where it is."""

    beginning = 1
    """Rows of the history of each start and stage that no step led to: where it began."""

    def __init__(
        self, engine: Any, rows: Rows, problem: Problem, progress: Progress, standing: Standing,
        max_time: float | None, max_iter: int, checkpoint: Checkpoint | None, starts: int = 1,
    ) -> None:  # fmt: skip
        self.engine, self.rows, self.problem, self.progress = engine, rows, problem, progress
        self.standing, self.max_time, self.max_iter = standing, max_time, max_iter
        self.checkpoint, self.starts = checkpoint, starts
        self.saved = 0 if checkpoint is None else checkpoint.newest("step")
        self.begun, self.told_before = time.monotonic() - standing.seconds, 0.0
        self.watch = Watch()

    def run(self, finish: bool = False) -> None:
        """To the end, to a limit, or to where the user stops it; `finish` stops before the first iteration."""
        max_time = None if self.max_time is None else float(self.max_time)
        at, limits = self.standing, {"max_iter": int(self.max_iter), "max_time": max_time, "tol": self.problem.tol}
        if finish and not at.reason:
            if not len(at.history):
                raise ValueError("nothing has been learned yet that could be finished with; fit(resume=True) goes on")
            at.reason = INTERRUPTED
            return
        if allows_more(at, limits) and not finish:
            if self.checkpoint is not None:
                self.checkpoint.forget_sums()  # of a sigma that is now left
            at.reason = ""
            self.reopen()
        if not at.reason:
            at.limits = limits
        with watching() as self.watch:
            self.watch.ready = len(at.history) > 0
            try:
                self.to_the_end()
            except Interruption:
                at.reason = INTERRUPTED

    def to_the_end(self) -> None:
        """All iterations that are left."""
        raise NotImplementedError

    def reopen(self) -> None:
        """Let a standing that had ended be one that goes on."""

    def save(self, number: int, about: tuple[dict, dict]) -> None:
        """Write a standing down; its number is above all before, whatever has been reopened."""
        assert self.checkpoint is not None
        self.saved = max(number, self.saved + 1)
        self.checkpoint.save_step(self.saved, *about)

    def sweep(self, program: Any, blocks: list[Range], name: str) -> Any:
        """One pass over some blocks, watched."""
        check()
        self.progress.name(name).begin(sum(stop - start for start, stop in blocks))
        try:
            self.standing.passes += 1
            return self.engine.sum(program, self.rows, self.progress, blocks)
        finally:
            self.progress.end()

    def late(self) -> bool:
        """Whether no further iteration may begin."""
        return self.max_time is not None and time.monotonic() - self.begun >= self.max_time

    def note(self, move: Move, blocks: list[Range]) -> None:
        """A row of the history, an event, and a line for whoever watches."""
        at = self.standing
        at.seconds = time.monotonic() - self.begun
        alpha = self.problem.alpha or lam_of(move.log_lam, self.problem.targets)
        count = sum(stop - start for start, stop in blocks)
        row = {
            "objective": move.objective, "validation_error": move.error, "unseen_error": move.unseen,
            "error_rate": move.wrong, "gradient_norm": move.gradient_norm, "alpha": alpha, "seconds": at.seconds,
            "rows": count, "passes": at.passes, "stage": at.stage, "start": at.start,
        }  # fmt: skip
        at.history.append(**row, sigma=move.sigma)
        self.watch.ready = True
        tell(event="iteration", number=len(at.history) - 1, **row)
        if at.seconds - self.told_before > 0.2:
            self.told_before = at.seconds
            self.progress.say(self.line())

    def where(self) -> str:
        """The start or the stage under way, and the next iteration in it (0: where it begins), in words."""
        return self._place(self.standing.stage, self.standing.start, 1)

    def _place(self, stage: int, start: int, ahead: int) -> str:
        history = self.standing.history
        legs = legs_of(history.columns, self.beginning) if len(history) else []
        done = next((leg.iterations for leg in legs if (leg.stage, leg.start) == (stage, start)), -self.beginning)
        named = f"stage {stage + 1}, " if stage else f"start {start + 1} of {self.starts}, " * (self.starts > 1)
        return f"{named}iteration {done + ahead}"

    def line(self) -> str:
        """Where it stands, in words."""
        last = {name: column[-1] for name, column in self.standing.history.columns.items()}
        where = self._place(int(last["stage"]), int(last["start"]), 0)
        return (
            f"learning on {last['rows']:,.0f} rows: {where}, objective {last['objective']:.5g}, gradient "
            f"{last['gradient_norm']:.2g}, {last['seconds']:.0f} s"
        )
