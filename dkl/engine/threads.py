"""Threads: blocks are the parallelism, so BLAS inside a block uses one thread (which also fixes its bits)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

_lock = threading.Lock()
_state: dict[str, Any] = {"depth": 0, "limit": None}


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS of this process uses one thread while anybody is inside."""
    with _lock:
        if not _state["depth"]:
            _state["limit"] = _controller().limit(limits=1, user_api="blas")
            _state["limit"].__enter__()
        _state["depth"] += 1
    try:
        yield
    finally:
        with _lock:
            _state["depth"] -= 1
            if not _state["depth"]:
                _state["limit"].__exit__(None, None, None)


def thread_count() -> int:
    """Threads of the embedded engine: dask's num_workers if it is set, else the cores this process may use."""
    import dask
    from dask.system import CPU_COUNT

    return int(dask.config.get("num_workers", None) or CPU_COUNT)
