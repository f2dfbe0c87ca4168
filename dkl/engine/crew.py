"""Tasks of an ingest on a cluster: pure, small in and out, and run again by the scheduler if their worker is lost."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from distributed.comm import CommClosedError

from dkl.engine.interrupt import check
from dkl.engine.names import unique_key
from dkl.engine.passes import Alive, await_result, workers_of
from dkl.engine.versions import check_versions

AHEAD = 2
"""Tasks in flight for each thread."""
WINDOW = 4
"""Folded results, for each thread, that may wait for their turn."""


class Crew:
    """The workers behind a client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        check_versions(client)

    def _room(self, each: int) -> int:
        return each * max(1, sum(w["nthreads"] for w in workers_of(self.client).values()))

    def hold(self, value: Any) -> Any:
        """A future of a value; workers hand it on to each other."""
        return self.client.submit(_same, value, key=unique_key("spread"))

    def run(self, task: str, function: Callable[..., Any], calls: Sequence[tuple]) -> Iterator[tuple[int, Any]]:
        """(number of the call, its result) of each, as they finish."""
        waiting, running = deque(enumerate(calls)), dict[Any, int]()
        finished: queue.SimpleQueue = queue.SimpleQueue()
        alive = Alive(self.client)
        try:
            while waiting or running:
                check()
                room = self._room(AHEAD) if waiting else 0
                while waiting and len(running) < room:
                    number, call = waiting.popleft()
                    future = self.client.submit(function, *call, key=unique_key(task))
                    running[future] = number
                    future.add_done_callback(finished.put)
                try:
                    future = finished.get(timeout=1.0)
                except queue.Empty:
                    alive.check()
                    continue
                yield running.pop(future), self._result(future)
        except CommClosedError as error:
            raise _lost(error) from error
        finally:
            if running and self.client.status == "running":
                self.client.cancel(list(running), force=True)

    def fold(self, task: str, function: Callable[..., Any], merge: Callable[..., Any], calls: Sequence[tuple]) -> Any:
        """The results merged in order, by the workers; only the total comes here."""
        total, totals, window = None, deque[Any](), self._room(WINDOW)
        try:
            for call in calls:
                check()
                part = self.client.submit(function, *call, key=unique_key(task))
                total = self.client.submit(merge, total, part, key=unique_key("merge"), priority=10)
                totals.append(total)
                del part
                if len(totals) > window:
                    await_result(self.client, totals.popleft())
            await_result(self.client, total)
            return self._result(total)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel([*totals, *([] if total is None else [total])], force=True)
            raise

    def _result(self, future: Any) -> Any:
        if future.status == "error":
            raise future.exception()
        if future.status == "cancelled":
            raise RuntimeError(
                f"the task {future.key} was cancelled: the scheduler closed or restarted; dkl resume continues"
            )
        return future.result()


def _same(value: Any) -> Any:
    return value


def _lost(error: Exception) -> RuntimeError:
    """The error of a scheduler that is gone."""
    why = str(error).split("\n")[0] or type(error).__name__
    return RuntimeError(f"the connection to the scheduler is lost ({why}); start it again, and dkl resume the ingest")
