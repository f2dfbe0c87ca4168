"""One pass over a cluster, driven from the client.

Two parts per thread are in flight, one towards the end: no part waits behind another while a thread idles.
Finished sums are merged on the worker that was asked for them: it holds a small constant number of them, and
the client asks the scheduler for nothing in between: over a slow link, or with many workers, a question for every merge
is what bounds a pass. Sums are exact or tree-ordered (sums/), so the order of merging changes no bit.
"""

from __future__ import annotations

import queue
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import dask
from distributed import wait

from dkl.engine.blocks import Part
from dkl.engine.interrupt import check
from dkl.engine.names import unique_key
from dkl.engine.progress import Progress
from dkl.engine.tasks import copy_held, merge_sums, sum_part
from dkl.engine.threads import Counted
from dkl.engine.versions import check_versions, threads_of

MERGE = 3
"""Finished sums of one worker that are merged at a time."""
POLL_SECONDS = 1.0
"""Seconds between two polls of the cluster's workers."""
NO_WORKERS_SECONDS = 30.0
"""Seconds without workers before a pass fails (dask config dkl.no-workers-timeout)."""


class Pass:
    """One running pass: waiting parts, running tasks, and finished sums to merge."""

    def __init__(
        self, client: Any, held: Any, task: str, parts: list[Part], delayed: dict, progress: Progress
    ) -> None:  # fmt: skip
        self.client, self.task = client, task
        self.held, self.progress = held, progress
        self.delayed = delayed
        self.shared: dict = {}
        self.users = Counter(key for part in parts for key in part.needs)
        self.copies: dict[str, Any] = {}
        self.waiting = deque(parts)
        self.running: dict[Any, tuple[int, str]] = {}
        self.idle: dict[Any, str] = {}  # finished sums, and the worker that was asked for them
        self.workers: dict[str, int] = {}
        self.looked = -POLL_SECONDS
        self.alive = Alive(client)
        self.finished: queue.SimpleQueue = queue.SimpleQueue()

    def total(self) -> Any:
        """Run all parts; returns the future of the total."""
        try:
            while self.waiting or self.running or len(self.idle) > 1:
                self._submit()
                self._collect(self._next())
            check_versions(self.client)  # workers that joined since the last poll may have summed parts
            return next(iter(self.idle))
        except BaseException:
            self.client.cancel([*self.running, *self.idle, *self.copies.values(), self.held], force=True)
            raise

    def _look(self) -> None:
        """Poll the workers; new ones get a copy of the parameters, peer to peer."""
        if time.monotonic() - self.looked < POLL_SECONDS:
            return
        self.workers = threads_of(self.client)
        self.looked = time.monotonic()
        for address in self.workers.keys() - self.copies.keys():
            self.copies[address] = self.client.submit(
                copy_held,
                self.held,
                key=unique_key("spread"),
                workers=[address],
                allow_other_workers=True,
            )

    def _submit(self) -> None:
        """Keep two parts per thread in flight, one of the last; results are merged before many more are made."""
        self._look()
        load = Counter(address for rows, address in self.running.values() if rows)
        ahead = 2 if len(self.waiting) > sum(self.workers.values()) else 1
        for address, threads in sorted(self.workers.items(), key=lambda item: load[item[0]] / item[1]):
            while self.waiting and load[address] < ahead * threads:
                part = self._take(address)
                if part is None:
                    break
                self._begin(part, address)
                load[address] += 1

    def _take(self, address: str) -> Part | None:
        """The next part for a worker."""
        return self.waiting.popleft()

    def _begin(self, part: Part, address: str) -> None:
        """Submit a part."""
        arguments = self.copies[address], part, self._needs(part)
        self._start(self.task, sum_part, arguments, part.n_rows, address, **near(address))

    def _needs(self, part: Part) -> dict:
        """Futures of values that the part shares with others: submitted for the first part, released with the last."""
        missing = [key for key in part.needs if key not in self.shared]
        if missing:
            futures = self.client.compute([self.delayed[key] for key in missing])
            self.shared.update(zip(missing, futures, strict=True))
        needs = {key: self.shared[key] for key in part.needs}
        for key in part.needs:
            self.users[key] -= 1
            if not self.users[key]:
                del self.shared[key]
        return needs

    def _start(
        self, task: str, function: Callable[..., Any], arguments: tuple, rows: int, address: str, **where: Any
    ) -> None:  # fmt: skip
        future = self.client.submit(function, *arguments, key=unique_key(task), **where)
        self.running[future] = rows, address
        future.add_done_callback(self.finished.put)

    def _next(self) -> list[Any]:
        """Finished futures, at least one; raises if there are no workers for too long."""
        while True:
            check()
            try:
                done = [self.finished.get(timeout=1.0)]
            except queue.Empty:
                self.alive.check()
                self._submit()
                continue
            while not self.finished.empty():
                done.append(self.finished.get())
            return done

    def _collect(self, done: list[Any]) -> None:
        """Collect results and merge those on the same worker."""
        for future in done:
            rows, address = self.running.pop(future)
            if future.status == "error":
                raise future.exception()
            if future.status == "cancelled":
                raise RuntimeError(f"the task {future.key} was cancelled: the scheduler closed or restarted; fit again")
            self.progress.advance(rows)
            self.idle[future] = address
        for home, group in self._groups():
            for sums in group:
                del self.idle[sums]
            self._start("merge", merge_sums, tuple(group), 0, home, priority=10, **near(home))

    def _groups(self) -> list[tuple[str, list[Any]]]:
        """Finished sums to merge now, and where: those of one worker, and in the end pairs of any two workers."""
        homes: dict[str, list[Any]] = {}
        for future, address in self.idle.items():
            homes.setdefault(address if address in self.workers else "", []).append(future)
        enough = MERGE if self.waiting else 2
        groups = [(home, group) for home, group in homes.items() if len(group) >= enough]
        if groups or self.waiting:
            return groups
        busy = {address for _, address in self.running.values()}  # what these add comes to the same worker
        left = [future for future, address in self.idle.items() if address not in busy]
        return [(self.idle[left[i]], left[i : i + 2]) for i in range(0, len(left) - 1, 2)]


class Alive:
    """Checks that the scheduler and some worker are alive."""

    def __init__(self, client: Any) -> None:
        self.client, self.unseen = client, 0.0

    def check(self) -> None:
        """Raise if the connection is lost, a new worker has another dkl, or there is no worker for too long."""
        if self.client.status not in ("running", "connecting"):
            raise RuntimeError(f"the connection to the scheduler is {self.client.status}; restart it and fit again")
        if threads_of(self.client):
            self.unseen = 0.0
            return
        self.unseen = self.unseen or time.monotonic()
        if time.monotonic() - self.unseen > patience():
            raise no_workers()


def await_result(client: Any, future: Any) -> None:
    """Wait until the future is done; raises if there are no workers for too long."""
    alive = Alive(client)
    while True:
        check()
        try:
            wait([future], timeout=1.0)
            return
        except TimeoutError:
            alive.check()


def near(address: str) -> dict[str, Any]:
    """Where a task should run: on that worker if it can; anywhere if there is none."""
    return {"workers": [address], "allow_other_workers": True} if address else {}


def workers_of(client: Any) -> dict[str, Any]:
    """The scheduler's info of its workers, by address."""
    return client.scheduler_info(n_workers=-1).get("workers", {})


def patience() -> float:
    """Seconds without workers before a pass fails."""
    return float(dask.config.get("dkl.no-workers-timeout", NO_WORKERS_SECONDS))


def no_workers() -> RuntimeError:
    """The error of a cluster without workers."""
    seconds = patience()
    return RuntimeError(
        f"the cluster has had no worker for {seconds:g} s; start workers, with this dkl, and fit again "
        "(dask config dkl.no-workers-timeout sets how long to wait)"
    )


quiet_about_large_graphs = Counted(lambda: dask.config.set({"distributed.admin.large-graph-warning-threshold": "4GB"}))
"""Parameters and targets in memory are in the graph on purpose, so that the scheduler can recompute them."""
