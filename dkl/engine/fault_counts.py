"""What the scheduler has seen of dkl: fits, passes, rows, solves and faults, for its /metrics and its log.

    rows = sum of the rows of parts, each part once;  rows_again = those of parts that were summed again

A part may be summed again because the worker that held its sums has died. So `rows` is the truth, whatever happened:
rows of the data times passes.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

from distributed import SchedulerPlugin

from dkl.engine.part_counts import TOPIC, Value, register
from dkl.engine.run_ids import ids_of

NAME = "dkl-counts"
COUNTERS = (
    ("fits", "Fits that have summed rows."),
    ("passes", "Passes that have summed rows."),
    ("rows", "Rows summed, each part of a pass once."),
    ("rows_again", "Rows of parts that were summed again, as a worker was lost."),
    ("solves", "Small solves in the scheduler process."),
    ("solve_seconds", "Seconds of these solves."),
)
"""Counters of the scheduler: dkl_scheduler_NAME_total."""
FAULTS = ("worker_lost", "part_failed")
"""Values of the label `kind` of dkl_scheduler_faults_total: a worker with parts or sums died; a part raised."""
MOST_KNOWN = 4096
"""Fits and passes that are remembered, so that each counts once."""

logger = logging.getLogger("dkl.fault")
_current: list[CountPlugin] = []


class CountPlugin(SchedulerPlugin):
    """Counts what workers say of their parts, and what becomes of tasks and workers."""

    name = NAME
    idempotent = True

    def __init__(self) -> None:
        self.done: dict[str, float] = dict.fromkeys((name for name, _ in COUNTERS), 0)
        self.faults = dict.fromkeys(FAULTS, 0)
        self.parts: set[str] = set()  # keys of summed parts that may still be summed again
        self.known: OrderedDict[tuple[str, str], None] = OrderedDict()

    @classmethod
    def add_to(cls, scheduler: Any) -> None:
        """Give a scheduler these counters; a second call does nothing."""
        if NAME in scheduler.plugins:
            return
        if not _current:
            register(_read)
        _current[:] = [cls()]  # a process that starts another scheduler shows that one
        scheduler.add_plugin(_current[0], idempotent=True)

    async def start(self, scheduler: Any) -> None:
        """Async, as schedulers that preload it expect."""

    def log_event(self, topic: str, msg: Any) -> None:
        """A worker has summed a part, or has gone."""
        if topic == TOPIC and isinstance(msg, dict):
            self._add_part(msg.get("key"), msg.get("rows"))
        elif topic == "all" and isinstance(msg, dict) and msg.get("action") == "remove-worker":
            self._lose(msg)

    def _add_part(self, key: Any, rows: Any) -> None:
        ids = ids_of(key)
        if ids is None or not isinstance(rows, int):
            return
        if key in self.parts:
            self.done["rows_again"] += rows
            return
        self.parts.add(key)
        self.done["rows"] += rows
        for name, value in (("fits", ids.fit), ("passes", ids.run)):
            if value and (name, value) not in self.known:
                self.known[name, value] = None
                self.done[name] += 1
        while len(self.known) > MOST_KNOWN:
            self.known.popitem(last=False)

    def _lose(self, msg: dict) -> None:
        """A worker that was not asked to go, with work of ours."""
        keys = [*msg.get("processing-tasks", ()), *msg.get("lost-computed-tasks", ())]
        ours = [ids for ids in map(ids_of, keys) if ids is not None]
        if ours and not msg.get("expected"):
            self.faults["worker_lost"] += 1
            fits = ", ".join(sorted({ids.fit for ids in ours if ids.fit})) or "none"
            logger.warning("worker %s is lost: %d tasks run again, of fits %s", msg.get("worker"), len(ours), fits)

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """A task that is forgotten cannot be summed again; one that ends with an error is a fault."""
        if finish == "forgotten":
            self.parts.discard(key)
        elif finish == "erred" and start == "processing" and ids_of(key) is not None:
            self.faults["part_failed"] += 1

    def add_solve(self, seconds: float) -> None:
        """A solve has ended."""
        self.done["solves"] += 1
        self.done["solve_seconds"] += seconds


def _read() -> list[Value]:
    """Every counter of the current scheduler."""
    one = _current[0]
    found: list[Value] = [(f"dkl_scheduler_{name}", about, {}, one.done[name]) for name, about in COUNTERS]
    about = "Workers lost with work of dkl, and parts that failed."
    found += [("dkl_scheduler_faults", about, {"kind": kind}, count) for kind, count in one.faults.items()]
    return found
