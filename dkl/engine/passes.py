"""One pass over a cluster, driven from the client.

Two parts per thread are in flight at any time. Finished sums are merged on the worker that holds them, so each worker
holds a small constant number of them. Sums are exact or tree-ordered (sums/), so the order of merging changes no bit.
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
from dkl.engine.versions import check_versions

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
        self.idle: list[Any] = []
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
            return self.idle[0]
        except BaseException:
            self.client.cancel([*self.running, *self.idle, *self.copies.values(), self.held], force=True)
            raise

    def _look(self) -> None:
        """Poll the workers; new ones get a copy of the parameters, peer to peer."""
        if time.monotonic() - self.looked < POLL_SECONDS:
            return
        self.workers = {address: w["nthreads"] for address, w in check_versions(self.client).items()}
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
        """Keep two parts per thread in flight; results are merged before many more are made."""
        self._look()
        load = Counter(address for _, address in self.running.values())
        for address, threads in sorted(self.workers.items(), key=lambda item: load[item[0]]):
            while self.waiting and load[address] < 2 * threads:
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
        self._start(self.task, sum_part, (self.copies[address], part, self._needs(part)), part.n_rows, address)

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
            rows, _ = self.running.pop(future)
            if future.status == "error":
                raise future.exception()
            if future.status == "cancelled":
                raise RuntimeError(f"the task {future.key} was cancelled: the scheduler closed or restarted; fit again")
            self.progress.advance(rows)
            self.idle.append(future)
        last = not self.waiting and not self.running
        if len(self.idle) < 2 or (len(self.idle) < MERGE and not last):
            return
        homes: dict[str, list[Any]] = {}
        for key, workers in self.client.who_has(self.idle).items():
            homes.setdefault(workers[0] if workers else "", []).append(key)
        by_key = {future.key: future for future in self.idle}
        groups = {home: [by_key[k] for k in keys] for home, keys in homes.items()}
        enough = 2 if last else MERGE
        groups = {home: group for home, group in groups.items() if len(group) >= enough}
        if not groups and last:
            groups = {f"pair {i}": self.idle[i : i + 2] for i in range(0, len(self.idle) - 1, 2)}
        for home, group in groups.items():
            where = {"workers": [home], "allow_other_workers": True} if home in self.workers else {}
            self.idle = [future for future in self.idle if future not in group]
            self._start("merge", merge_sums, tuple(group), 0, "", priority=10, **where)


class Alive:
    """Checks that the scheduler and some worker are alive."""

    def __init__(self, client: Any) -> None:
        self.client, self.unseen = client, 0.0

    def check(self) -> None:
        """Raise if the connection is lost, a new worker has another dkl, or there is no worker for too long."""
        if self.client.status not in ("running", "connecting"):
            raise RuntimeError(f"the connection to the scheduler is {self.client.status}; restart it and fit again")
        if check_versions(self.client):
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
