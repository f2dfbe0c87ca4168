"""What every method of learning is given (Run), and what it has to be (Method).

    state = method.begin(run)
    while it goes on:  state, row = method.step(run, state)            (learn/iterate.py, the only loop)
    result = method.end(run, state, history)

A state never changes: a step makes a new one. So whoever keeps a state can resume from it with the same bits, and
checkpoints, progress, history, limits and Ctrl-C are written once, for every method.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.interrupt import check
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine, Pending, Program, Ref, S, W, Walk
from dkl.engine.row_readers import Range
from dkl.learn.history import Column, History
from dkl.store.checkpoint import Checkpoint

State = TypeVar("State")
Result_co = TypeVar("Result_co", covariant=True)
INTERRUPTED = "interrupted"
"""The reason that is never written down: a resumed fit goes on."""
STALLED = "stalled"
"""The reason of a method that has not converged, and that rounding leaves no step."""


class Limits(NamedTuple):
    """When to stop: iterations, the relative decrease that counts as none, seconds. A resumed fit may have others."""

    max_iter: int = 50
    tol: float = 1e-3
    max_time: float | None = None


class Meter:
    """How many passes a fit has made."""

    def __init__(self) -> None:
        self.passes = 0


@dataclass(frozen=True)
class Run:
    """One fit under way: who adds up which rows, who watches, and when it has to stop."""

    engine: Engine
    rows: Rows
    progress: Progress
    limits: Limits = field(default_factory=Limits)
    checkpoint: Checkpoint | None = None
    finish: bool = False  # take the best point so far, without another step
    meter: Meter = field(default_factory=Meter)
    record: str = "step"  # what the loop's records are called in the checkpoint; another loop of a fit has others

    def sum(self, program: Program[S, W] | Ref[Program[S, W]], blocks: Sequence[Range], name: str) -> Pending[S]:
        """One pass over some blocks, watched."""
        with self._watched(blocks, name):
            return self.engine.sum(program, self.rows, self.progress, blocks)

    def walked(self, walk: Walk[S], ahead: Any, blocks: Sequence[Range], name: str) -> Pending[S]:
        """The next pass of a walk over its blocks, watched."""
        with self._watched(blocks, name):
            return walk.sum(ahead, self.progress)

    @contextmanager
    def _watched(self, blocks: Sequence[Range], name: str) -> Iterator[None]:
        """Progress of one pass, which is counted."""
        check()
        self.progress.name(name).begin(sum(stop - start for start, stop in blocks))
        try:
            self.meter.passes += 1
            yield
        finally:
            self.progress.end()


class Row(NamedTuple):
    """What one iteration found: its place in words, the rows it saw, and the columns of the method's history."""

    where: str
    rows: int
    values: Mapping[str, float | np.ndarray]
    tol: float | None = None  # of the certificate, if it is not that of the run


class Step(NamedTuple, Generic[State]):
    """What one step came to."""

    state: State
    row: Row | None = None  # None: nothing was found that belongs in the history
    ended: str = ""  # why learning has ended, if it has
    saved: bool = True  # whether it is worth a checkpoint
    ends_at: float | None = None  # the objective of the point that is kept, if it is not that of the last row


class Method(Protocol[State, Result_co]):
    """How something is learned: one file each. States are NamedTuples (or dataclasses) of arrays and plain values."""

    state: ClassVar[type]
    history: ClassVar[Mapping[str, Column]]

    def begin(self, run: Run) -> State:
        """Where learning begins."""

    def step(self, run: Run, state: State) -> Step[State]:
        """The next state, and what was found on the way: a few passes and small solves."""

    def end(self, run: Run, state: State, history: History) -> Result_co:
        """What was learned, at the best point so far."""

    def portable(self, run: Run, state: State) -> State:
        """The state without references to where the solve runs, as a checkpoint keeps it."""
        return state

    def resumed(self, run: Run, state: State) -> State:
        """A state from a checkpoint, for the limits of this run."""
        return state

    def reopened(self, run: Run, state: State) -> State:
        """A state that had ended at a limit, which is now further away."""
        return state
