"""What this worker has summed: rows, parts, seconds and failures, for its /metrics and for the scheduler's.

A finished part is an event of the topic `dkl`, sent with the worker's next message: no round trip. It travels before
the word that the task is done, so at the end of a pass the scheduler has counted all of its rows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

TOPIC = "dkl"
WORKER = (
    ("rows", "Rows that this worker has summed."),
    ("parts", "Parts of passes that this worker has summed."),
    ("sum_seconds", "Seconds in which threads of this worker summed."),
    ("failed_parts", "Parts that ended with an error."),
)
"""Counters of a worker: dkl_worker_NAME_total."""

Value = tuple[str, str, dict[str, str], float]
"""A counter: its name, what it counts, its labels, and the count."""

logger = logging.getLogger("dkl.part")
done: dict[str, float] = dict.fromkeys((name for name, _ in WORKER), 0)
_lock = threading.Lock()


@contextmanager
def counted(rows: int) -> Iterator[None]:
    """Count the rows of a part when it is summed, or its failure."""
    expose()
    start = time.perf_counter()
    try:
        yield
    except Exception as error:
        _add(failed_parts=1)
        logger.error("a part of %d rows failed: %s: %s", rows, type(error).__name__, error)
        raise
    seconds = time.perf_counter() - start
    _add(rows=rows, parts=1, sum_seconds=seconds)
    logger.debug("%d rows in %.3g s", rows, seconds, extra={"dkl": {"rows": rows, "seconds": seconds}})
    _tell_scheduler(rows)


def _add(**more: float) -> None:
    with _lock:
        for name, value in more.items():
            done[name] += value


def _tell_scheduler(rows: int) -> None:
    from distributed import get_worker

    try:
        worker = get_worker()
        worker.log_event(TOPIC, {"key": worker.get_current_task(), "rows": rows})
    except (ValueError, KeyError, AttributeError):  # a task outside a worker, as tests call it
        return


@lru_cache(maxsize=1)
def expose() -> bool:
    """Add the counters to this process's metrics, once; False without prometheus_client."""
    return register(lambda: [(f"dkl_worker_{name}", about, {}, done[name]) for name, about in WORKER])


def register(read: Callable[[], list[Value]]) -> bool:
    """Add counters to this process's metrics; `read` is asked at every scrape. False without prometheus_client."""
    try:
        from prometheus_client import REGISTRY
        from prometheus_client.core import CounterMetricFamily
    except ImportError:
        return False

    class Counters:
        """What prometheus_client asks for values."""

        def describe(self) -> list[Any]:
            """Names are not asked for twice."""
            return []

        def collect(self) -> Iterator[Any]:
            """Every counter; those of one name are one family."""
            families: dict[str, Any] = {}
            for name, about, labels, value in read():
                family = families.setdefault(name, CounterMetricFamily(name, about, labels=list(labels)))
                family.add_metric(list(labels.values()), value)
            yield from families.values()

    REGISTRY.register(Counters())
    return True
