"""Threads: blocks run in parallel, so BLAS inside a block uses one thread (which also fixes its bits)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any


class Counted:
    """A process-wide context: entered by the first thread, left by the last."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.lock = make, threading.Lock()
        self.inside = 0
        self.context: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if not self.inside:
                self.context = self.make()
                self.context.__enter__()
            self.inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.inside -= 1
                if not self.inside:
                    self.context.__exit__(None, None, None)


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


one_blas_thread = Counted(lambda: _controller().limit(limits=1, user_api="blas"))
"""BLAS of this process uses one thread while any thread is inside."""


def thread_count() -> int:
    """Threads of the embedded engine: dask's num_workers if it is set, else the cores this process may use."""
    import dask
    from dask.system import CPU_COUNT

    return int(dask.config.get("num_workers", None) or CPU_COUNT)
