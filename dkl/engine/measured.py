"""What a fit really took, to stand beside the plan: seconds, and the most bytes of this process or of any worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dkl.engine.memory import Plan, process_bytes

if TYPE_CHECKING:
    from dkl.engine.protocol import Engine

SAMPLE_SECONDS, WORKER_SECONDS = 0.02, 1.0
"""Seconds between two looks at this process, and at what the scheduler knows of the workers."""


@dataclass
class Measured:
    """Filled when the block is left."""

    engine: str
    workers: int
    threads: int
    seconds: float = 0.0
    bytes: int = 0

    def told(self) -> dict[str, Any]:
        """As plain values."""
        return dict(vars(self))


@contextmanager
def measuring(engine: Engine) -> Iterator[Measured]:
    """Seconds inside, and peak bytes as often as they are looked at; what cannot be measured fails no fit."""
    found = Measured(engine.name, len(engine.resources()), engine.threads)
    embedded = engine.name == "embedded"
    begun, over = time.monotonic(), threading.Event()

    def look() -> None:
        with suppress(Exception):
            now = process_bytes() if embedded else max(worker.used for worker in engine.resources())
            found.bytes = max(found.bytes, now)

    def watch() -> None:
        while not over.wait(SAMPLE_SECONDS if embedded else WORKER_SECONDS):
            look()

    look()
    thread = threading.Thread(target=watch, name="dkl-measure", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(WORKER_SECONDS)
        found.seconds = time.monotonic() - begun
        look()


def promised(plan: Plan) -> dict[str, Any]:
    """What the plan had promised of the same: bytes of the worst worker and of the solve, and the passes."""
    return {
        "planned_bytes": int(plan.worker_bytes),
        "planned_solve_bytes": int(plan.solve_bytes),
        "limit_bytes": int(plan.worker_limit),
        "planned_passes": float(plan.passes),
    }
