"""dkl in the processes of a cluster before the first fit: `dask scheduler --preload dkl.engine.preload`, workers too.

The scheduler gets the plugin that solves. A worker says what would slow it down or have it killed: threads beyond its
cores, BLAS threads beyond its cores, a memory limit that its container does not have. Both log their versions.
"""

from __future__ import annotations

import logging
from typing import Any

from dkl.engine import logs
from dkl.engine.memory import gib, memory_limit

logger = logging.getLogger("dkl.preload")


async def dask_setup(server: Any) -> None:
    """Called by dask when a scheduler, a worker or a nanny begins."""
    from distributed import Scheduler, Worker

    from dkl.engine.stamp import STAMP

    _show_log(server)
    logger.info(", ".join(f"{name} {version}" for name, version in STAMP.items()))
    if isinstance(server, Scheduler):
        from dkl.engine.place import SolvePlugin

        plugin = SolvePlugin()
        await plugin.start(server)  # the scheduler answers clients before it starts what a preload has added
        server.add_plugin(plugin, idempotent=True)
    elif isinstance(server, Worker):
        from dkl.engine.part_counts import expose

        expose()  # /metrics has dkl's counters, at zero
        import dkl.sums.gram  # noqa: F401 (numpy, scipy and the sums: loaded now, not by the first task)

        for fault in worker_faults(server.state.nthreads, server.memory_manager.memory_limit, *_around()):
            logger.warning("%s: %s", server.address_safe, fault)


def worker_faults(threads: int, limit: int | None, cores: int, blas: int, container: int, machine: int) -> list[str]:
    """What is wrong with a worker of so many threads and bytes, and what to type instead.

    `cores` are those that its container may use, `blas` the threads that one call of BLAS starts; `container` and
    `machine` are bytes of memory.
    """
    faults = []
    if threads > cores:
        faults.append(f"--nthreads {threads}, but the container has {cores} cores; start it with --nthreads {cores}")
    if threads * blas > cores and blas > 1:
        faults.append(
            f"{threads} threads of {blas} BLAS threads each share {cores} cores; set OMP_NUM_THREADS=1, "
            "OPENBLAS_NUM_THREADS=1 and MKL_NUM_THREADS=1 in its environment"
        )
    if not limit:
        faults.append(f"no memory limit; start it with --memory-limit, below the container's {gib(container)}")
    elif container < machine and limit >= container:
        faults.append(
            f"--memory-limit {gib(limit)} is all that the container has, so it is killed before it pauses; "
            f"start it with about {gib(0.85 * container)}"
        )
    return faults


def _around() -> tuple[int, int, int, int]:
    """Cores, BLAS threads, and bytes of memory of the container and of the machine."""
    import psutil
    from dask.system import CPU_COUNT
    from threadpoolctl import threadpool_info

    blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return int(CPU_COUNT), max(blas, default=1), memory_limit(), int(psutil.virtual_memory().total)


def _show_log(server: Any) -> None:
    """Records of dkl go where those of distributed go, if nobody has said where (as DKL_LOG does)."""
    from distributed import Scheduler

    logs.adopt("scheduler" if isinstance(server, Scheduler) else str(server.address_safe))
    ours = logging.getLogger("dkl")
    if all(isinstance(handler, logging.NullHandler) for handler in ours.handlers) and not logging.getLogger().handlers:
        for handler in logging.getLogger("distributed").handlers:
            ours.addHandler(handler)
        ours.setLevel(logging.INFO)
