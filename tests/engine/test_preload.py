"""`--preload dkl.engine.preload`: the scheduler can solve before the first fit, and a worker says what is wrong."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

import pytest
from distributed import Client, Scheduler, Worker

from dkl.engine.alive import alive
from dkl.engine.place import NAME, SolvePlugin
from dkl.engine.preload import worker_faults
from dkl.engine.stamp import STAMP

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

GIB = 2**30
GOOD = {"threads": 2, "limit": 3 * GIB, "cores": 2, "blas": 1, "container": 4 * GIB, "machine": 64 * GIB}


def test_scheduler_has_its_plugin_once(caplog):
    """Started by the preload, and neither started again nor replaced when dask starts plugins and clients register."""

    async def look() -> tuple[str, bool, bool]:
        options = {"dashboard": False, "preload": "dkl.engine.preload", "protocol": "tcp://"}
        async with Scheduler(host="127.0.0.1", port=0, **options) as scheduler:
            first = scheduler.plugins[NAME]
            pool = first.pool
            worker = Worker(scheduler.address, nthreads=1, memory_limit=0, preload="dkl.engine.preload")
            async with worker, Client(scheduler.address, asynchronous=True) as client:
                await client.register_plugin(SolvePlugin(), name=NAME)
            return await asyncio.wrap_future(pool.submit(str, 3)), scheduler.plugins[NAME] is first, first.pool is pool

    caplog.set_level(logging.INFO, "dkl")
    assert asyncio.run(look()) == ("3", True, True)
    said = [record.getMessage() for record in caplog.records if record.name == "dkl.preload"]
    assert sum(f"dkl {STAMP['dkl']}, source {STAMP['source']}" in line for line in said) == 2  # scheduler and worker
    assert any("no memory limit; start it with --memory-limit" in line for line in said)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, []),
        ({"container": 64 * GIB, "limit": 64 * GIB}, []),  # a machine of its own may use all of it
        ({"threads": 4}, ["--nthreads 4, but the container has 2 cores; start it with --nthreads 2"]),
        ({"blas": 2}, ["2 threads of 2 BLAS threads each share 2 cores; set OMP_NUM_THREADS=1"]),
        ({"limit": None}, ["no memory limit; start it with --memory-limit, below the container's 4.00 GiB"]),
        ({"limit": 4 * GIB}, ["--memory-limit 4.00 GiB is all that the container has", "about 3.40 GiB"]),
        ({"threads": 3, "limit": 0}, ["--nthreads 2", "no memory limit"]),
    ],
)
def test_faults_say_what_to_type(change, words):
    """One line for each fault, none for a good worker."""
    told = "\n".join(worker_faults(**GOOD | change))
    assert all(word in told for word in words)
    assert len(told.splitlines()) == len({word.split(",")[0] for word in words if not word.startswith("about")})


def test_health_check():
    """A port at which dask answers is alive; nobody there is not; a container without a port is, while it runs."""

    async def look() -> bool:
        async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
            port = str(scheduler.http_server.port)
            return await asyncio.to_thread(alive, port)

    assert asyncio.run(look())
    assert not alive("1")
    command = [sys.executable, "-m", "dkl.engine.alive"]
    codes = [subprocess.run([*command, *port], capture_output=True).returncode for port in ([], ["1"])]
    assert codes == [0, 1]
