"""The engine in one process: threads take blocks as they come, each into its own sums; no graph, no cluster."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, cast

from dkl.engine.blocks import Part, Rows
from dkl.engine.interrupt import LOOK, check
from dkl.engine.kept import KeptRows, KeptSource, Piece, Preparation, shelves_that_fit
from dkl.engine.memory import memory_here
from dkl.engine.progress import Progress
from dkl.engine.protocol import Pending, Program, R, Ref, Resources, S, T, W, Walk, WalkProgram
from dkl.engine.row_readers import Range
from dkl.engine.solve import solve_sums
from dkl.engine.tasks import consecutive, share
from dkl.engine.threads import one_blas_thread, thread_count


class Embedded:
    """Sums and small solves in this process."""

    name = "embedded"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or thread_count()
        self.helpers: ThreadPoolExecutor | None = None  # beside the thread that asks for a sum

    def sum(
        self,
        program: Program[S, W] | Ref[Program[S, W]],
        rows: Rows | KeptSource,
        progress: Progress,
        blocks: Sequence[Range] | Sequence[Piece] | None = None,
    ) -> Pending[S]:
        """The program's sums over all rows, or over some blocks of a pass whose progress the caller shows."""
        own = cast(Program[S, W], program)  # a reference is the value itself
        parts, shared = self._parts(own, rows, blocks)
        todo, lock = deque(parts), threading.Lock()
        if blocks is None:
            progress.begin(rows.n_rows)

        def work() -> S:
            sums, workspace = own.start(), own.workspace()
            while True:
                check()
                with lock:
                    if not todo:
                        return sums
                    part = todo.popleft()
                try:
                    for block, start, data in part.read(shared.values_of(part)):
                        own.add(sums, workspace, block, start, data)
                        progress.advance(data[0].shape[0])
                except BaseException:
                    todo.clear()
                    raise
                shared.release(part)

        with one_blas_thread():
            try:
                results = self._run(work, min(self.threads, len(parts)), todo)
            finally:
                if blocks is None:
                    progress.end()
        total = results[0]
        for other in results[1:]:
            total.merge(other)
        return cast(Pending[S], total)

    def _parts(
        self, program: Program[S, W], rows: Rows | KeptSource, blocks: Sequence[Any] | None
    ) -> tuple[Sequence[Any], _Shared | KeptRows]:
        """What threads take one after the other, and where the values come from that parts share."""
        if isinstance(rows, KeptRows):
            return rows.parts(blocks or (), self.threads), rows
        assert isinstance(rows, Rows)
        leg: Sequence[Range] = rows.blocks(program.rows_wanted) if blocks is None else blocks
        groups = consecutive(share(leg, self.threads)) if rows.cuts_chunks(leg) else [[block] for block in leg]
        parts = rows.cut(rows.by_chunk(groups))
        return parts, _Shared(rows.shared(parts), parts)

    def hold(self, rows: Rows, shelves: Sequence[Range], preparation: Preparation, shelf_bytes: int) -> KeptRows:
        """Rows for many passes: prepared once, and kept as far as there is memory."""
        used, limit = memory_here()
        return KeptRows(rows, shelves, preparation, shelves_that_fit(len(shelves), shelf_bytes, limit - used))

    def walk(self, program: WalkProgram[S, W], rows: Rows, blocks: Sequence[Range]) -> Walk[S]:
        """Passes in this process, where the program itself remembers."""
        return _Walk(self, program, rows, blocks)

    def _run(self, work: Callable[[], R], threads: int, todo: deque[Any]) -> list[R]:
        """work() on every thread, this one among them; an error or Ctrl-C leaves nothing to do for the others."""
        if threads <= 1:
            return [work()]
        if self.helpers is None:
            self.helpers = ThreadPoolExecutor(max(1, self.threads - 1), thread_name_prefix="dkl")
        futures = [self.helpers.submit(work) for _ in range(threads - 1)]
        try:
            first = work()
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, LOOK, FIRST_EXCEPTION)
                check()
                if any(future.exception() for future in done):
                    break
            return [first, *(future.result() for future in futures)]
        finally:
            todo.clear()
            wait(futures)

    def resources(self) -> list[Resources]:
        """Threads, bytes in use and bytes allowed of the one worker, this process."""
        used, limit = memory_here()
        return [Resources(self.threads, used, limit)]

    def solve_memory(self) -> tuple[int, int]:
        """Bytes in use, and allowed, where the solve runs."""
        return memory_here()

    def run_once(self, function: Callable[..., R], *args: object) -> R:
        """function(*args) where blocks are summed."""
        return function(*args)

    def solve(self, function: Callable[..., R], sums: Pending[S], **options: object) -> R:
        """function(sums, **options), here."""
        return solve_sums(function, cast(S, sums), options)

    def keep(self, name: str, value: T) -> Ref[T]:
        """The value itself."""
        return cast(Ref[T], value)

    def take(self, ref: Ref[T]) -> T:
        """The value itself."""
        return cast(T, ref)

    def forget(self) -> None:
        """Nothing is kept anywhere."""

    def fetch(self, sums: Pending[S]) -> S:
        """The sums themselves."""
        return cast(S, sums)

    def combine(self, total: Pending[S], part: Pending[S]) -> Pending[S]:
        """total + part."""
        self.fetch(total).merge(self.fetch(part))
        return total

    def apply(self, function: Callable[..., R], sums: Pending[S], *args: object) -> R:
        """function(sums, *args) where the sums lie."""
        return function(sums, *args)

    def rebase(self, total: Pending[S], function: Callable[..., S], *args: object) -> Pending[S]:
        """total, which function(*args) would give too."""
        return total

    def load(self, function: Callable[..., S], *args: object) -> Pending[S]:
        """function(*args), which gives sums, where sums belong."""
        return cast(Pending[S], function(*args))


@dataclass(frozen=True)
class _Walk(Generic[S, W]):
    """Passes of one program."""

    engine: Embedded
    program: WalkProgram[S, W]
    rows: Rows
    blocks: Sequence[Range]

    def sum(self, ahead: Any, progress: Progress) -> Pending[S]:
        """One pass."""
        return self.engine.sum(self.program.after(ahead), self.rows, progress, self.blocks)


class _Shared:
    """Values that several parts need: computed when the first one comes, dropped after the last."""

    def __init__(self, delayed: dict, parts: list[Part]) -> None:
        self.delayed, self.lock = delayed, threading.Lock()
        self.values: dict = {}
        self.users = Counter(key for part in parts for key in part.needs)

    def values_of(self, part: Part) -> Mapping:
        """What the part needs."""
        if not part.needs:
            return {}
        import dask

        with self.lock:
            missing = [key for key in part.needs if key not in self.values]
            computed = dask.compute(*(self.delayed[key] for key in missing), scheduler="synchronous")
            self.values.update(zip(missing, computed, strict=True))
            return {key: self.values[key] for key in part.needs}

    def release(self, part: Part) -> None:
        """The part is done."""
        with self.lock:
            for key in part.needs:
                self.users[key] -= 1
                if not self.users[key]:
                    del self.values[key]
