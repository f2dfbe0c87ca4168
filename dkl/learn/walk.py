"""What every way of learning does on the client: passes that are watched, rows of the history, a limit of time."""

from __future__ import annotations

import time
from typing import Any

from dkl.engine.blocks import Rows
from dkl.engine.columns import Range
from dkl.engine.progress import Progress, tell
from dkl.learn.objective import Move, Problem, lam_of
from dkl.learn.standing import Standing


class Walk:
    """One fit's way; the standing is where it is."""

    def __init__(
        self, engine: Any, rows: Rows, problem: Problem, progress: Progress, standing: Standing, max_time: float | None
    ) -> None:
        self.engine, self.rows, self.problem, self.progress = engine, rows, problem, progress
        self.standing, self.max_time = standing, max_time
        self.begun, self.told_before = time.monotonic() - standing.seconds, 0.0

    def sweep(self, program: Any, blocks: list[Range], name: str) -> Any:
        """One pass over some blocks, watched."""
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
            "objective": move.objective, "validation_error": move.error, "unseen_error": move.unseen, "error_rate": move.wrong,
            "gradient_norm": move.gradient_norm, "alpha": alpha, "seconds": at.seconds, "rows": count,
            "passes": at.passes, "stage": at.stage, "start": at.start,
        }  # fmt: skip
        tell(event="iteration", number=len(at.history), **row)
        at.history.append(**row, sigma=move.sigma)
        if at.seconds - self.told_before > 0.2:
            self.told_before = at.seconds
            self.progress.say(self.line())

    def line(self) -> str:
        """Where it stands, in words."""
        columns = self.standing.history.columns
        return (
            f"learning on {columns['rows'][-1]:,.0f} rows: iteration {len(self.standing.history)}, objective "
            f"{columns['objective'][-1]:.5g}, gradient {columns['gradient_norm'][-1]:.2g}, "
            f"{columns['seconds'][-1]:.0f} s"
        )
