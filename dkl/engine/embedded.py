"""The engine in one process: threads take blocks as they come, each into its own sums; no graph, no cluster."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from dkl.engine.blocks import Part, Rows
from dkl.engine.progress import Progress
from dkl.engine.threads import one_blas_thread, thread_count


class Embedded:
    """Sums and small solves in this process."""

    name = "embedded"

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or thread_count()

    def sum(self, program: Any, rows: Rows, progress: Progress) -> Any:
        """The program's sums over all rows."""
        blocks = rows.blocks(program.rows_wanted)
        parts = rows.cut([[block] for block in blocks])
        self._fill_shared(rows, parts)
        todo, lock = deque(parts), threading.Lock()
        progress.begin(rows.n_rows)

        def work() -> Any:
            sums, workspace = program.start(), program.workspace()
            while True:
                with lock:
                    if not todo:
                        return sums
                    part = todo.popleft()
                for block, start, data in part.read():
                    program.add(sums, workspace, block, start, data)
                    progress.advance(data[0].shape[0])

        with one_blas_thread():
            try:
                results = self._run(work, min(self.threads, len(parts)), todo)
            finally:
                progress.end()
        total = results[0]
        for other in results[1:]:
            total.merge(other)
        return total

    @staticmethod
    def _run(work: Callable[[], Any], threads: int, todo: deque) -> list[Any]:
        """work() on every thread; an error or Ctrl-C leaves nothing to do for the others."""
        if threads == 1:
            return [work()]
        with ThreadPoolExecutor(threads, thread_name_prefix="dkl") as pool:
            futures = [pool.submit(work) for _ in range(threads)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                return [future.result() for future in futures]
            finally:
                todo.clear()

    @staticmethod
    def _fill_shared(rows: Rows, parts: list[Part]) -> None:
        """Values that several blocks of a Dask array need are computed once."""
        for i, shared in enumerate(rows.shared(parts)):
            if not shared:
                continue
            import dask

            values = dict(zip(shared, dask.compute(*shared.values(), scheduler="threads"), strict=True))
            for part in parts:
                part.columns[i].values = {key: values[key] for key in part.columns[i].needs}

    def solve(self, function: Callable[..., Any], sums: Any, **options: Any) -> Any:
        """function(sums, **options), here."""
        with one_blas_thread():
            return function(sums, **options)

    def fetch(self, sums: Any) -> Any:
        """The sums themselves."""
        return sums
