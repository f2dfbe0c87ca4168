"""python -m dkl.cli.elastic SETTINGS FOLDER: a scheduler here, its workers in Slurm jobs that dask-jobqueue replaces.

    jobs -> N whenever one ends, is cancelled or has served its lifetime

`dkl cluster slurm --elastic` writes the script that starts it; SIGTERM ends it, and cancels the workers' jobs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERVAL = "5s"
"""Between looks at how many workers there are."""


@contextmanager
def elastic_cluster(settings: dict[str, Any], folder: str) -> Iterator[Any]:
    """The cluster; workers come when the queue lets them."""
    import dask
    from distributed import Security

    try:
        from dask_jobqueue import SLURMCluster
    except ModuleNotFoundError:
        sys.exit("dkl: elastic jobs need the package dask-jobqueue; pip install 'dkl[slurm]'")

    network = {"interface": settings["interface"]} if settings["interface"] else {}
    safe = {"protocol": "tls", "security": Security()} if settings["tls"] else {}
    config = os.environ.get("DASK_CONFIG")
    prologue = ["export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1"]
    with (
        dask.config.set({"distributed.scheduler.preload": ["dkl.engine.preload"]}),
        SLURMCluster(
            queue=settings["queue"],
            account=settings["account"],
            cores=settings["cpus"],
            processes=1,
            memory=f"{settings['memory']}B",
            job_mem=settings["job_memory"],
            walltime=settings["walltime"],
            job_name=settings["name"],
            log_directory=folder,
            local_directory=os.environ.get("TMPDIR", "/tmp"),
            death_timeout=300,
            job_script_prologue=prologue + ([f"export DASK_CONFIG={config}"] if config else []),
            worker_extra_args=[
                "--lifetime", f"{settings['lifetime']}s", "--lifetime-stagger", f"{settings['stagger']}s",
                "--no-dashboard", "--preload", "dkl.engine.preload",
            ],
            scheduler_options={"port": 0, "dashboard_address": "127.0.0.1:0", **network},
            silence_logs="error",
            **network,
            **safe,
        ) as cluster,
    ):  # fmt: skip
        count = settings["workers"]
        cluster.adapt(minimum_jobs=count, maximum_jobs=count, interval=INTERVAL)
        yield cluster


def main(text: str, folder: str) -> int:
    """Until SIGTERM."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with elastic_cluster(json.loads(text), folder) as cluster:
        part = os.path.join(folder, "scheduler.json.part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump({"address": cluster.scheduler_address, "type": "Scheduler"}, file)
        os.replace(part, os.path.join(folder, "scheduler.json"))
        over.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
