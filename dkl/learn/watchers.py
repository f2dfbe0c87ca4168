"""What watches the loop (learn/iterate.py): history, time, progress and checkpoint, each for any method."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

import numpy as np

from dkl.engine.interrupt import Watch
from dkl.engine.progress import tell
from dkl.learn.history import History
from dkl.learn.run import Limits, Method, Row, Run, State, Step
from dkl.store.packed import pack

SPOKEN = 0.2
"""Seconds between two lines about iterations."""
DRAWN = ("objective", "validation_loss")
"""What a notebook draws of every iteration: the first that there is."""
LEARNING, CERTIFICATES = "step", ("certificate", "residual")
"""What the records of a loop that learns sigma are called, and columns that say how near weights are to their end."""


@dataclass
class Loop(Generic[State]):
    """One loop under way: the last state that a step has reached, and why it ended, if it has."""

    state: State
    history: History
    reason: str = ""
    seconds: float = 0.0
    limits: Limits = field(default_factory=Limits)
    row: Row | None = None  # the last one

    def start_clock(self) -> None:
        """Time goes on from what earlier fits have used."""
        self.begun = time.monotonic() - self.seconds

    def look_at_clock(self) -> None:
        """Seconds of learning so far."""
        self.seconds = time.monotonic() - self.begun


class Bookkeeping(NamedTuple):
    """What a checkpoint keeps of a loop beside the method's state and the history."""

    reason: str
    seconds: float
    passes: int
    limits: Limits


class Watcher(Generic[State]):
    """Sees every step; it may give the loop a reason to end."""

    def after(self, loop: Loop[State], step: Step[State]) -> None:
        """A step has been taken."""

    def close(self, loop: Loop[State]) -> None:
        """The loop has ended."""


class KeepHistory(Watcher[State]):
    """One row of the history for each iteration, and an event; from then on Ctrl-C loses nothing."""

    def __init__(self, run: Run, watch: Watch) -> None:
        self.run, self.watch = run, watch

    def after(self, loop: Loop[State], step: Step[State]) -> None:
        """Append the row."""
        if step.ends_at is not None:
            loop.history.end_at(step.ends_at)
        if step.row is None:
            return
        counted = {"seconds": loop.seconds, "rows": step.row.rows, "passes": self.run.meter.passes}
        loop.history.append({**step.row.values, **counted})
        loop.row, self.watch.ready = step.row, True
        plain = {name: value for name, value in loop.history.last.items() if not isinstance(value, np.ndarray)}
        tell(event="iteration", number=len(loop.history) - 1, **plain)


class KeepTime(Watcher[State]):
    """Ends the loop when its time is over, however many steps are left."""

    def __init__(self, run: Run) -> None:
        self.limit = run.limits.max_time

    def after(self, loop: Loop[State], step: Step[State]) -> None:
        """Look at the clock."""
        if not loop.reason and self.limit is not None and loop.seconds >= self.limit:
            loop.reason = "max_time"


class ShowProgress(Watcher[State]):
    """A line about the last iteration, a few times a second."""

    def __init__(self, run: Run) -> None:
        self.progress, self.shown, self.tol = run.progress, 0.0, None if run.record == LEARNING else run.limits.tol

    def after(self, loop: Loop[State], step: Step[State]) -> None:
        """Show the line, if it is time for one; the objective is drawn where that is possible."""
        if step.row is not None and (drawn := [v for v in DRAWN if v in step.row.values]):
            self.progress.point(float(step.row.values[drawn[0]]))
        if step.row is not None and loop.seconds - self.shown > SPOKEN:
            self.shown = loop.seconds
            self.progress.say(line_of(loop, self.tol), certificate_of(loop, self.tol))

    def close(self, loop: Loop[State]) -> None:
        """Leave the last line standing."""
        if loop.row is not None:
            self.progress.say(line_of(loop, self.tol), certificate_of(loop, self.tol))


def line_of(loop: Loop[Any], tol: float | None = None) -> str:
    """Where the loop stands, in words; tol: of the certificate of weights, None if sigma is learned."""
    last, where = loop.history.last, "" if loop.row is None else loop.row.where
    figures = [f"objective {last['objective']:.5g}"] if "objective" in last else []
    if certificate := certificate_of(loop, tol):
        figures.append(certificate)
    elif "gradient_norm" in last:
        figures.append(f"gradient {last['gradient_norm']:.2g}")
    what = "learning" if tol is None else "weights"
    where = where.removeprefix(f"{what}, ")
    return ", ".join([f"{what} on {last['rows']:,.0f} rows: {where}", *figures, f"{last['seconds']:.0f} s"])


def certificate_of(loop: Loop[Any], tol: float | None) -> str:
    """The certificate of weights, and what it has to be."""
    name = next((name for name in CERTIFICATES if name in loop.history.columns), None)
    if name is None or tol is None:
        return ""
    wanted = tol if loop.row is None or loop.row.tol is None else loop.row.tol
    return f"{name} {loop.history.last[name]:.0e} of {wanted:.0e}"


class SaveSteps(Watcher[State]):
    """Writes the state down after each step that is worth it, if the run has a checkpoint."""

    def __init__(self, run: Run, method: Method[State, Any]) -> None:
        self.run, self.method = run, method
        self.saved = 0 if run.checkpoint is None else run.checkpoint.newest(run.record)

    def after(self, loop: Loop[State], step: Step[State]) -> None:
        """Write everything that a later process needs to go on; its number is above all before."""
        if self.run.checkpoint is None or not (step.saved or loop.reason):
            return
        about = Bookkeeping(loop.reason, loop.seconds, self.run.meter.passes, loop.limits)
        columns = loop.history.arrays()
        tree, arrays = pack((self.method.portable(self.run, loop.state), about, columns))
        self.saved += 1
        self.run.checkpoint.save_step(self.saved, {"step": tree}, arrays, self.run.record)
