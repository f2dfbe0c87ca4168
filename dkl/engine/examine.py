"""What one process says of itself: versions, BLAS, cores, memory, and how fast a thread multiplies.

Functions that travel to workers and to the scheduler by name; each returns plain values.
"""

from __future__ import annotations

import os
import resource
import socket
import time
from typing import Any

import numpy as np

from dkl.engine.memory import measured_speed, memory_limit
from dkl.engine.stamp import STAMP

SECONDS = 2.0
"""Of the measurement of one thread."""


def facts() -> dict[str, Any]:
    """Versions, BLAS, cores and bytes of memory of this process."""
    import psutil
    from dask.system import CPU_COUNT

    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "versions": dict(STAMP),
        "blas": blas(),
        "cores": int(CPU_COUNT),
        "machine_bytes": int(psutil.virtual_memory().total),
        "container_bytes": memory_limit(),
        "ulimit_bytes": None if soft == resource.RLIM_INFINITY else int(soft),
    }


def blas() -> list[dict[str, Any]]:
    """Each BLAS library of this process: name, version, the kind of CPU it has chosen, threads of one call."""
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    import scipy.linalg  # noqa: F401 (brings a BLAS of its own)

    return [
        {
            "library": pool["internal_api"],
            "version": pool.get("version"),
            "cpu": pool.get("architecture"),
            "threads": pool["num_threads"],
        }
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]


def blas_threads(found: dict[str, Any]) -> int:
    """Threads that one call of BLAS starts, of the facts of a process."""
    return max((pool["threads"] for pool in found["blas"]), default=1)


def speed() -> float:
    """Flops per second of one thread in a product of the kind that a pass is made of (rank k, float64)."""
    rates, begun = [], time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        rates.append(measured_speed("float64")[0])
    return float(np.median(rates))


def parcel(size: int) -> np.ndarray:
    """Bytes that do not compress, to be sent."""
    return np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)


async def pull(key: str, dask_scheduler: Any = None) -> float:
    """Seconds in which the scheduler gets the result of a task from its worker, as it gets sums."""
    begun = time.perf_counter()
    answer = await dask_scheduler.gather(keys=[key])
    return time.perf_counter() - begun if answer["status"] == "OK" else float("nan")
