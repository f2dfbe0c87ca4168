"""Where a small solve runs: in the scheduler process, in a thread off its event loop.

The sums go from a worker to the scheduler and stay there; the client gets what the function returns. Values that the
function keeps in a `Reply` stay there too, for the next solve or for the workers, and the client gets handles. The
plugin has one thread, so the scheduler answers heartbeats during a solve of any length.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from distributed import SchedulerPlugin
from distributed.protocol import Serialize, Serialized
from distributed.protocol.serialize import merge_and_deserialize

from dkl.engine.fault_counts import NAME as COUNTS
from dkl.engine.fault_counts import CountPlugin
from dkl.engine.handles import Handle, Reply
from dkl.engine.run_ids import ids_of
from dkl.engine.solve import solve_sums

NAME = "dkl-solve"

logger = logging.getLogger("dkl.scheduler")


class LostSums(RuntimeError):
    """The worker that held the sums has died; the scheduler recomputes them."""


class SolvePlugin(SchedulerPlugin):
    """One thread of the scheduler process for small dense problems."""

    name = NAME
    idempotent = True

    async def start(self, scheduler: Any) -> None:
        """Called when the plugin is registered, and again when a scheduler that preloaded it begins."""
        if hasattr(self, "pool"):
            return
        self.scheduler = scheduler
        CountPlugin.add_to(scheduler)
        self.pool = ThreadPoolExecutor(1, thread_name_prefix=NAME)
        self.values: dict[Handle, Any] = {}
        self.ended: set[tuple[str, str]] = set()

    async def close(self) -> None:
        """Called when the scheduler closes."""
        self.pool.shutdown(wait=False)

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Drop the values of a client that has left."""
        for kept in [kept for kept in self.values if kept.client == client]:
            del self.values[kept]
        self.ended = {owner for owner in self.ended if owner[0] != client}

    def forget(self, owner: tuple[str, str]) -> None:
        """Drop the values of a fit that has ended, and those that a running solve would still keep."""
        self.ended.add(owner)
        for kept in [kept for kept in self.values if (kept.client, kept.fit) == owner]:
            del self.values[kept]

    def take(self, kept: Handle) -> Any:
        """The value of a handle."""
        if kept not in self.values:
            raise RuntimeError(
                f"the scheduler no longer has the {kept.name} of this fit (was it restarted?); fit again"
            )
        return self.values[kept]

    def put(self, kept: Handle, value: Any) -> None:
        """Keep a value, replacing an older one of the same name, unless its client or fit has ended."""
        if kept.client in self.scheduler.clients and (kept.client, kept.fit) not in self.ended:
            self.values[kept] = value

    async def run(self, function: Callable[..., Any], key: str, options: dict, owner: tuple[str, str]) -> Any:
        """function(value of key, **options) in the thread; values that it keeps belong to the owner."""
        options = {name: self.take(value) if isinstance(value, Handle) else value for name, value in options.items()}
        answer = await self.scheduler.gather(keys=[key])
        if answer["status"] != "OK":
            raise LostSums(f"the sums {key} were lost before the scheduler could fetch them; fit again")
        value = answer["data"][key]
        loop, begun = asyncio.get_running_loop(), time.monotonic()
        result = await loop.run_in_executor(self.pool, _solve, function, value, options)
        self._count(function, time.monotonic() - begun, owner[1])
        if not isinstance(result, Reply):
            return result
        handles = {name: Handle(*owner, name) for name in result.kept}
        for name, kept in handles.items():
            self.put(kept, result.kept[name])
        return Reply(result.told, handles)

    def _count(self, function: Callable[..., Any], seconds: float, fit: str) -> None:
        self.scheduler.plugins[COUNTS].add_solve(seconds)
        about, ids = getattr(function, "__name__", "solve"), ids_of(fit)
        facts = {"seconds": seconds, "fit": ids.fit if ids is not None else ""}
        logger.info("%s: %.3g s", about, seconds, extra={"dkl": {"event": "solve", "name": about, **facts}})


def _solve(function: Callable[..., Any], value: Any, options: dict) -> Any:
    if isinstance(value, Serialized):  # the wire has cut large arrays into pieces of `distributed.comm.shard` bytes
        value = merge_and_deserialize(value.header, value.frames)
    elif isinstance(value, Serialize):  # the scheduler runs in the client's process
        value = value.data
    return solve_sums(function, value, options)


class Refused(NamedTuple):
    """A ValueError as a result: raised on the scheduler, it would be logged there and here with its traceback."""

    error: ValueError


async def _on_scheduler(
    function: Callable[..., Any], key: str, options: dict, owner: tuple[str, str], dask_scheduler: Any = None
) -> Any:
    try:
        return await dask_scheduler.plugins[NAME].run(function, key, options, owner)
    except ValueError as error:
        return Refused(error.with_traceback(None))


async def take(kept: Handle, dask_scheduler: Any = None) -> Any:
    """The value of a handle; runs on the scheduler."""
    return dask_scheduler.plugins[NAME].take(kept)


async def put(kept: Handle, value: Any, dask_scheduler: Any = None) -> None:
    """Keep a value under a handle; runs on the scheduler."""
    dask_scheduler.plugins[NAME].put(kept, value)


async def forget(owner: tuple[str, str], dask_scheduler: Any = None) -> None:
    """Drop all values of an owner; runs on the scheduler."""
    dask_scheduler.plugins[NAME].forget(owner)


def register(client: Any) -> None:
    """Register the plugin on the scheduler; a second call does nothing."""
    client.register_plugin(SolvePlugin(), name=NAME)


def solve_on_scheduler(
    client: Any, function: Callable[..., Any], future: Any, options: dict, owner: tuple[str, str]
) -> Any:
    """function(result of future, **options), computed in the scheduler process; its ValueError is raised here."""
    answer = client.run_on_scheduler(_on_scheduler, function, future.key, options, owner)
    if isinstance(answer, Refused):
        raise answer.error
    return answer
