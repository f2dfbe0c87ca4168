"""Where a small solve runs: in the scheduler process, in a thread off its event loop.

The sums go from a worker to the scheduler and stay there; the client gets what the function returns.
The plugin keeps one thread, so the scheduler answers heartbeats during a solve of any length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from distributed import SchedulerPlugin
from distributed.protocol import Serialize, Serialized, deserialize

from dkl.engine.threads import one_blas_thread

NAME = "dkl-solve"


class LostSums(RuntimeError):
    """The worker that held the sums has died; the scheduler is having them computed again."""


class SolvePlugin(SchedulerPlugin):
    """One thread of the scheduler process for small dense problems."""

    name = NAME
    idempotent = True

    async def start(self, scheduler: Any) -> None:
        """Called when the plugin arrives; async also for schedulers that preload it."""
        self.scheduler = scheduler
        self.pool = ThreadPoolExecutor(1, thread_name_prefix=NAME)

    async def close(self) -> None:
        """Called when the scheduler closes."""
        self.pool.shutdown(wait=False)

    async def run(self, function: Callable[..., Any], key: str, options: dict) -> Any:
        """function(value of key, **options) in the thread."""
        answer = await self.scheduler.gather(keys=[key])
        if answer["status"] != "OK":
            raise LostSums(f"the sums {key} were lost before the scheduler could fetch them; fit again")
        value = answer["data"][key]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, _solve, function, value, options)


def _solve(function: Callable[..., Any], value: Any, options: dict) -> Any:
    if isinstance(value, Serialized):
        value = deserialize(value.header, value.frames)
    elif isinstance(value, Serialize):  # a scheduler in the client's process
        value = value.data
    with one_blas_thread():
        return function(value, **options)


async def _on_scheduler(function: Callable[..., Any], key: str, options: dict, dask_scheduler: Any = None) -> Any:
    return await dask_scheduler.plugins[NAME].run(function, key, options)


def register(client: Any) -> None:
    """Give the scheduler its solving thread (once; a second time does nothing)."""
    client.register_plugin(SolvePlugin(), name=NAME)


def solve_on_scheduler(client: Any, function: Callable[..., Any], future: Any, options: dict) -> Any:
    """function(result of future, **options), computed in the scheduler process."""
    return client.run_on_scheduler(_on_scheduler, function, future.key, options)
