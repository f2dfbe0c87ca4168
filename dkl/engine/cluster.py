"""The engine on a distributed cluster: sums on the workers, small solves on the scheduler.

Every task can be computed again by the scheduler: a worker may die at any time, and one that joins gets the next task.
"""

from __future__ import annotations

import contextlib
import pkgutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import dask
from distributed.comm import CommClosedError

from dkl.engine import place
from dkl.engine.blocks import Rows
from dkl.engine.handles import Handle
from dkl.engine.kept import KeptSource, Piece, Preparation, shelves_that_fit
from dkl.engine.kept_cluster import ClusterRows
from dkl.engine.log_plugins import spread
from dkl.engine.memory import memory_here, memory_limit
from dkl.engine.names import task_of, unique_key
from dkl.engine.passes import Pass, await_result, quiet_about_large_graphs, workers_of
from dkl.engine.progress import Progress
from dkl.engine.protocol import Pending, Program, R, Ref, Resources, S, T, W, Walk, WalkProgram
from dkl.engine.row_readers import Range
from dkl.engine.solve import solve_sums
from dkl.engine.tasks import Held, consecutive, held_from_scheduler, merge_sums, share
from dkl.engine.versions import WHERE, VersionSkew, check_versions, threads_of
from dkl.engine.walk import ClusterWalk

POOL_CLOSED = "ConnectionPool is closed"
"""What distributed says, as a RuntimeError, if a call begins while the client is closing."""


class Cluster:
    """Sums on the workers, small solves on the scheduler (or the client)."""

    name = "cluster"

    def __init__(self, client: Any, where: str = "scheduler") -> None:
        self.client, self.where = client, where
        check_versions(client)
        spread(client)
        self.owner = client.id, unique_key("fit")
        self.present: dict[str, Any] = {}  # workers after the last pass over kept rows
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
        return sum(threads_of(self.client).values())

    @property
    def workers(self) -> dict:
        return workers_of(self.client)

    def sum(
        self,
        program: Program[S, W] | Ref[Program[S, W]],
        rows: Rows | KeptSource,
        progress: Progress,
        blocks: Sequence[Range] | Sequence[Piece] | None = None,
    ) -> Pending[S]:
        """A future of the sums over all rows, or over some blocks of a pass whose progress the caller shows."""
        own = cast(Program[S, W] | Handle[Program[S, W]], program)  # all that a reference can be here
        if isinstance(rows, ClusterRows):
            return self._sum_pieces(own, rows, progress, cast(Sequence[Piece], blocks or ()))
        assert isinstance(rows, Rows)
        with self._reached(), quiet_about_large_graphs():
            self.wait_for_workers()
            make = held_from_scheduler if isinstance(own, Handle) else Held
            held = self.client.submit(make, own, key=unique_key("spread"))
            await_result(self.client, held)
            leg = self._blocks(own, rows) if blocks is None else cast(Sequence[Range], blocks)
            parts = rows.cut(rows.by_chunk(consecutive(share(leg, max(1, self.threads)))))
            shared = rows.shared(parts)
            if blocks is None:
                progress.begin(rows.n_rows)
            try:
                total: Pending[S] = Pass(self.client, held, task_of(own), parts, shared, progress).total()
            finally:
                if blocks is None:
                    progress.end()
            return total

    def _sum_pieces(
        self, program: Program[S, W] | Handle[Program[S, W]], rows: ClusterRows, progress: Progress,
        pieces: Sequence[Piece],
    ) -> Pending[S]:  # fmt: skip
        """A future of the sums over pieces of kept rows; all tasks are submitted at once, as such a pass is short."""
        with self._reached(), quiet_about_large_graphs():
            if not self.present:
                self.wait_for_workers()
                self.present = self.workers
            make = held_from_scheduler if isinstance(program, Handle) else Held
            held = self.client.submit(make, program, key=unique_key("spread"))
            parts = rows.parts(pieces, self.present)
            total = rows.total(held, task_of(program), parts)
            try:
                await_result(self.client, total)
            except BaseException:
                self.client.cancel([held, total], force=True)
                raise
            self.present = check_versions(self.client)  # workers that joined meanwhile may have summed parts
            if total.status == "error":
                raise total.exception()
            progress.advance(sum(part.n_rows for part in parts))
            return cast(Pending[S], total)

    def hold(self, rows: Rows, shelves: Sequence[Range], preparation: Preparation, shelf_bytes: int) -> ClusterRows:
        """Rows for many passes: prepared once, and kept by the workers as far as they have memory."""
        free = sum(max(0, one.limit - one.used) for one in self.resources())
        return ClusterRows(self.client, rows, shelves, preparation, shelves_that_fit(len(shelves), shelf_bytes, free))

    def walk(self, program: WalkProgram[S, W], rows: Rows, blocks: Sequence[Range]) -> Walk[S]:
        """Passes whose parts stay on the workers that remember their rows."""
        with self._reached(), quiet_about_large_graphs():
            self.wait_for_workers()
            held = self.client.submit(Held, program, key=unique_key("spread"))
            await_result(self.client, held)
            parts = rows.cut(rows.by_chunk(consecutive(share(blocks, max(1, self.threads)))))
            return ClusterWalk(self.client, held, program.task, parts, rows, self._reached)

    @staticmethod
    def _blocks(program: Program[S, W] | Handle[Program[S, W]], rows: Rows) -> list[Range]:
        """The blocks that the program wants."""
        if isinstance(program, Handle):
            raise TypeError(
                f"{program.name!r} is on the scheduler; say which blocks to sum: engine.sum(..., blocks=...)"
            )
        return rows.blocks(program.rows_wanted)

    def wait_for_workers(self) -> None:
        """A cluster that grows with its work may begin with no worker; the task that calls the first needs no dkl."""
        if not threads_of(self.client):
            call = self.client.submit(pkgutil.resolve_name, WHERE, key=unique_key("version"))
            await_result(self.client, call)
            check_versions(self.client)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """Whatever goes wrong because the scheduler is gone, or a newcomer has another dkl, is said as that."""
        try:
            yield
        except VersionSkew:
            raise
        except Exception as error:
            is_closed = isinstance(error, CommClosedError) or str(error) == POOL_CLOSED
            is_lost = self.client.status != "running" or is_closed
            if not is_lost:
                check_versions(self.client)
            if not is_lost or (isinstance(error, RuntimeError) and not is_closed):  # the user's, or one of ours
                raise
            why = str(error).split("\n")[0] or type(error).__name__
            raise RuntimeError(
                f"the connection to the scheduler is lost ({why}); start it again and refit (a checkpoint goes on)"
            ) from error

    def resources(self) -> list[Resources]:
        """Threads, bytes in use and bytes allowed of each worker; a nanny pauses one at its share of the limit."""
        pause = dask.config.get("distributed.worker.memory.pause", None) or 1.0
        found = [
            Resources(w["nthreads"], w["metrics"]["memory"], int(pause * (w["memory_limit"] or memory_limit())))
            for w in self.workers.values()
        ]
        return found or [Resources(1, 0, memory_limit())]

    def solve_memory(self) -> tuple[int, int]:
        """Bytes in use, and allowed, where the solve runs."""
        found: tuple[int, int] = (
            self.client.run_on_scheduler(memory_here) if self.where == "scheduler" else memory_here()
        )
        return found

    def run_once(self, function: Callable[..., R], *args: object) -> R:
        """function(*args) on one worker."""
        return self._result(self._submit("measure", function, *args))

    def solve(self, function: Callable[..., R], sums: Pending[S], **options: object) -> R:
        """function(sums, **options) in the scheduler process, or here if place is 'client'."""
        if self.where == "client":
            return solve_sums(function, self.fetch(sums), options)
        future = cast(Any, sums)
        while True:
            with self._reached():
                await_result(self.client, future)
                if future.status == "error":
                    raise future.exception()
                try:
                    return place.solve_on_scheduler(self.client, function, future, options, self.owner)
                except place.LostSums:
                    time.sleep(0.1)  # the scheduler is having them computed again

    def keep(self, name: str, value: T) -> Ref[T]:
        """A handle of a value that goes to where the solve runs."""
        if self.where == "client":
            return cast(Ref[T], value)
        kept: Handle[T] = Handle(*self.owner, name)
        with self._reached():
            self.client.run_on_scheduler(place.put, kept, value)
        return cast(Ref[T], kept)

    def take(self, ref: Ref[T]) -> T:
        """The value of a handle, brought here."""
        if not isinstance(ref, Handle):
            return cast(T, ref)
        with self._reached():
            value: T = self.client.run_on_scheduler(place.take, ref)
        return value

    def forget(self) -> None:
        """Let go of everything that was kept."""
        if self.where == "scheduler" and self.client.status == "running":
            with contextlib.suppress(Exception):  # a scheduler that is gone keeps nothing
                self.client.run_on_scheduler(place.forget, self.owner)
        self.owner = self.client.id, unique_key("fit")  # what comes later is kept under another name

    def combine(self, total: Pending[S], part: Pending[S]) -> Pending[S]:
        """A future of total + part."""
        return cast(Pending[S], self._submit("merge", merge_sums, total, part))

    def apply(self, function: Callable[..., R], sums: Pending[S], *args: object) -> R:
        """function(sums, *args) on the worker that holds the sums."""
        return self._result(self._submit("keep", function, sums, *args))

    def rebase(self, total: Pending[S], function: Callable[..., S], *args: object) -> Pending[S]:
        """total as function(*args) gives it: if its worker is lost, it is made again from that alone."""
        return self.load(function, *args)

    def load(self, function: Callable[..., S], *args: object) -> Pending[S]:
        """A future of function(*args), which gives sums, on a worker."""
        return cast(Pending[S], self._submit("load", function, *args))

    def _submit(self, task: str, function: Callable[..., R], *args: object) -> Ref[R]:
        with self._reached():
            self.wait_for_workers()
            future = self.client.submit(function, *args, key=unique_key(task))
            await_result(self.client, future)
        return future

    def fetch(self, sums: Pending[S]) -> S:
        """The sums, brought here: for records that are small."""
        return self._result(cast(Ref[S], sums))

    def _result(self, future: Ref[R]) -> R:
        """What a future comes to, brought here."""
        with self._reached():
            await_result(self.client, future)
            value: R = cast(Any, future).result()
        return value
