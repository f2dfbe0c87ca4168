"""The engine on a distributed cluster.

A pass is at most a few tasks for each thread: each reads its blocks, maps them and adds them up. Finished sums
are added where they lie, as they come, so a worker holds a small constant number of them; sums are exact or
tree-ordered (sums/), so who adds what changes no bit. Every task can be computed again by the scheduler: a
worker may die at any time, and one that joins gets the next task.
"""

from __future__ import annotations

import itertools
import queue
import time
import uuid
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import wait

from dkl.engine import place
from dkl.engine.blocks import Part, Rows
from dkl.engine.progress import Progress
from dkl.engine.threads import one_blas_thread

TASKS_PER_THREAD = 4
MOST_BLOCKS = 16
"""Blocks of one task: what a dying worker loses, and how often progress is seen."""
MOST_TASKS = 1024
"""Tasks of one pass, about, however many blocks there are."""
MERGE = 3
"""Finished sums of one worker that are added together."""
LOOK = 1.0
"""Seconds between two looks at who is in the cluster."""
PATIENCE = 30.0
"""Seconds without any worker before a pass is given up (dask config dkl.no-workers-timeout)."""


class _Held:
    """A program on a worker, with the workspaces that its tasks hand to one another."""

    def __init__(self, program: Any) -> None:
        self.program = program
        self.spaces: list[Any] = []

    def __reduce__(self) -> tuple:
        return _Held, (self.program,)

    @contextmanager
    def workspace(self) -> Iterator[Any]:
        """A workspace that nobody else is using."""
        try:
            space = self.spaces.pop()
        except IndexError:
            space = self.program.workspace()
        yield space
        self.spaces.append(space)


def _copy(held: _Held) -> _Held:
    """The same program on another worker."""
    return held


def _sum_part(held: _Held, part: Part, shared: list[dict]) -> Any:
    """The task of a pass: read, map and add the blocks of one part."""
    for column, values in zip(part.columns, shared, strict=True):
        if values:
            column.values = values
    sums = held.program.start()
    with one_blas_thread(), held.workspace() as workspace:
        for block, start, data in part.read():
            held.program.add(sums, workspace, block, start, data)
    return sums


def _merge(*sums: Any) -> Any:
    total = sums[0].copy()
    for other in sums[1:]:
        total.merge(other)
    return total


class Cluster:
    """Sums on the workers, small solves on the scheduler (or the client)."""

    name = "cluster"

    def __init__(self, client: Any, where: str = "scheduler") -> None:
        self.client, self.where = client, where
        if where == "scheduler":
            try:
                place.register(client)
            except Exception as error:  # whatever a managed scheduler answers, the fit can go on here
                warnings.warn(
                    f"the scheduler does not take dkl's plugin ({type(error).__name__}: {error}); "
                    "the client solves instead (place='client' says so without this warning)",
                    UserWarning,
                    stacklevel=3,
                )
                self.where = "client"

    @property
    def threads(self) -> int:
        return sum(w["nthreads"] for w in self.workers.values())

    @property
    def workers(self) -> dict:
        return self.client.scheduler_info(n_workers=-1)["workers"]

    def sum(self, program: Any, rows: Rows, progress: Progress) -> Any:
        """A future of the program's sums over all rows."""
        self._await_workers()
        blocks = rows.blocks(program.rows_wanted)
        parts = rows.cut(share(blocks, self.threads))
        progress.begin(rows.n_rows)
        with _quiet_about_large_graphs():
            held = self.client.submit(_Held, program, key=_key("parameters"), pure=False)
        run = _Pass(self, held, parts, self._shared(rows, parts), progress)
        try:
            return run.total()
        finally:
            progress.end()

    def _shared(self, rows: Rows, parts: list[Part]) -> list[dict]:
        """Futures of what several parts need."""
        out = []
        for values in rows.shared(parts):
            keys = list(values)
            out.append(dict(zip(keys, self.client.compute([values[k] for k in keys]), strict=True)) if keys else {})
        return out

    def _await_workers(self) -> None:
        deadline = time.monotonic() + patience()
        while not self.workers:
            if time.monotonic() > deadline:
                raise no_workers()
            time.sleep(0.1)

    def solve(self, function: Callable[..., Any], sums: Any, **options: Any) -> Any:
        """function(sums, **options) in the scheduler process, or here if place is 'client'."""
        if self.where == "client":
            with one_blas_thread():
                return function(self.fetch(sums), **options)
        try:
            return place.solve_on_scheduler(self.client, function, sums, options)
        except place.LostSums:
            wait([sums], timeout=patience())
            return place.solve_on_scheduler(self.client, function, sums, options)

    def fetch(self, sums: Any) -> Any:
        """The sums, brought here: for records that are small."""
        return sums.result()


class _Pass:
    """One pass under way: parts waiting, tasks running, and finished sums that wait to be added."""

    def __init__(self, cluster: Cluster, held: Any, parts: list[Part], shared: list[dict], progress: Progress) -> None:
        self.cluster, self.client = cluster, cluster.client
        self.held, self.shared, self.progress = held, shared, progress
        self.copies: dict[str, Any] = {}
        self.waiting = deque(parts)
        self.running: dict[Any, tuple[int, str]] = {}
        self.idle: list[Any] = []
        self.workers: dict[str, int] = {}
        self.looked = -LOOK
        self.done_rows, self.unseen = 0, 0.0
        self.finished: queue.SimpleQueue = queue.SimpleQueue()

    def total(self) -> Any:
        """Run everything; the future of the one sum that is left."""
        try:
            while self.waiting or self.running or len(self.idle) > 1:
                self._submit()
                self._collect(self._next())
            return self.idle[0]
        except BaseException:
            self.client.cancel([*self.running, *self.idle, *self.copies.values(), self.held], force=True)
            raise

    def _look(self) -> None:
        """Who is there: newcomers get a copy of the parameters, peer to peer, and then work."""
        if time.monotonic() - self.looked < LOOK:
            return
        self.workers = {address: w["nthreads"] for address, w in self.cluster.workers.items()}
        self.looked = time.monotonic()
        for address in self.workers.keys() - self.copies.keys():
            self.copies[address] = self.client.submit(
                _copy, self.held, key=_key("parameters"), pure=False, workers=[address], allow_other_workers=True
            )

    def _submit(self) -> None:
        """Keep two parts for each thread under way; results are merged before many more are made."""
        self._look()
        load = Counter(address for _, address in self.running.values())
        for address, threads in sorted(self.workers.items(), key=lambda item: load[item[0]]):
            while self.waiting and load[address] < 2 * threads:
                part = self.waiting.popleft()
                needs = [
                    {k: v for k, v in values.items() if k in getattr(column, "needs", ())}
                    for column, values in zip(part.columns, self.shared, strict=True)
                ]
                self._start(_sum_part, (self.copies[address], part, needs), part.n_rows, address)
                load[address] += 1

    def _start(self, function: Callable[..., Any], arguments: tuple, rows: int, address: str, **where: Any) -> None:
        key = _key(function.__name__.strip("_"))
        with _quiet_about_large_graphs():
            future = self.client.submit(function, *arguments, key=key, pure=False, **where)
        self.running[future] = rows, address
        future.add_done_callback(self.finished.put)

    def _next(self) -> list[Any]:
        """Futures that have finished; waits for one, and gives up if there is nobody left to work."""
        while True:
            try:
                done = [self.finished.get(timeout=1.0)]
            except queue.Empty:
                self._check_alive()
                self._submit()
                continue
            while not self.finished.empty():
                done.append(self.finished.get())
            return done

    def _check_alive(self) -> None:
        if self.client.status not in ("running", "connecting"):
            raise RuntimeError(f"the connection to the scheduler is {self.client.status}; start it again and refit")
        if self.cluster.workers:
            self.unseen = 0.0
            return
        self.unseen = self.unseen or time.monotonic()
        if time.monotonic() - self.unseen > patience():
            raise no_workers()

    def _collect(self, done: list[Any]) -> None:
        """Take results in and add those that lie on the same worker."""
        for future in done:
            rows, _ = self.running.pop(future)
            if future.status == "error":
                raise future.exception()
            if future.status == "cancelled":
                raise RuntimeError("the pass was cancelled: the scheduler closed or restarted; refit")
            self.done_rows += rows
            self.idle.append(future)
        self.progress.at(self.done_rows)
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
            groups = {"": self.idle[:2]}
        for home, group in groups.items():
            where = {"workers": [home], "allow_other_workers": True} if home else {}
            self.idle = [future for future in self.idle if future not in group]
            self._start(_merge, tuple(group), 0, "", priority=10, **where)


def share(blocks: list, threads: int) -> list[list]:
    """Consecutive groups of blocks: about TASKS_PER_THREAD for each thread, ever smaller at the end.

    The last `threads` groups hold one block, those before them two, then four, so that threads end together.
    """
    size = min(MOST_BLOCKS, -(-len(blocks) // (TASKS_PER_THREAD * threads)))
    size = max(1, size, len(blocks) // MOST_TASKS)
    sizes, left, step = [], len(blocks), 1
    while left:
        for _ in range(threads):
            take = min(step, left)
            sizes.append(take)
            left -= take
            if not left:
                break
        step = min(size, 2 * step)
    cuts = [0]
    for take in reversed(sizes):
        cuts.append(cuts[-1] + take)
    return [blocks[a:b] for a, b in itertools.pairwise(cuts)]


def patience() -> float:
    """Seconds without workers before giving up."""
    return float(dask.config.get("dkl.no-workers-timeout", PATIENCE))


def no_workers() -> RuntimeError:
    """The sentence for a cluster with nobody in it."""
    return RuntimeError(
        f"the cluster has had no worker for {patience():g} s; start workers and fit again "
        "(dask config dkl.no-workers-timeout sets how long to wait)"
    )


def _key(name: str) -> str:
    return f"dkl-{name}-{uuid.uuid4().hex}"


@contextmanager
def _quiet_about_large_graphs() -> Iterator[None]:
    """Parameters and targets in memory are part of the graph on purpose: the scheduler can make them again."""
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "4GB"}):
        yield
