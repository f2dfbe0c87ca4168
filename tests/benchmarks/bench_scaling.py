"""scaling: the pass of bench_pass on one and on two single-threaded worker processes.

Beside it stands what the machine itself allows: bare BLAS on one and on two such processes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from tests.benchmarks.bench_pass import D, M, N, bare_blas, make_program
from tests.benchmarks.report import alternate, median_ratio, report

BARS = {"speedup": 1.85}
SHARE = N // 8


def bare_share(rows: int) -> None:
    """Bare BLAS of some rows, inside a worker."""
    rng = np.random.default_rng(0)
    X, space = rng.standard_normal((rows, M), dtype=np.float32), np.ones((rows, D), np.float32)
    bare_blas(X, rng.standard_normal((M, D // 2), dtype=np.float32), space, rows)


def bare_on(client: Any) -> None:
    """Bare BLAS of all rows, shared among the workers."""
    client.gather(client.map(bare_share, [SHARE] * 8, pure=False))


def measure(workers: int, program: Any, rows: Rows) -> tuple[float, float]:
    """Seconds of the engine's pass and of bare BLAS on a cluster of so many workers, after a warm-up of each."""
    from distributed import Client, LocalCluster

    from dkl.engine.cluster import Cluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        seconds = alternate(
            1,
            engine=lambda: Cluster(client).sum(program, rows, Progress(0)),
            bare=lambda: bare_on(client),
        )
    return seconds["engine"][0], seconds["bare"][0]


def run(options: argparse.Namespace) -> None:
    """Measure one and two workers in turn, each cluster alone on the machine."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, M), dtype=np.float32), rng.standard_normal(N)
    program = make_program(N, M, D)
    times: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        stored = zarr.create_array(Path(folder) / "X.zarr", data=X, chunks=(N // 64, M), compressors=None)
        rows = Rows([Table("zarr", stored), Table("memory", y), None, None], ["X", "y", "weight", "cv"])
        for _ in range(options.repeats):
            for workers, seconds in times.items():
                seconds.append(measure(workers, program, rows))
    engine = {workers: [e for e, _ in seconds] for workers, seconds in times.items()}
    bare = {workers: [b for _, b in seconds] for workers, seconds in times.items()}
    figures = {"speedup": median_ratio(engine[1], engine[2]), "bare_speedup": median_ratio(bare[1], bare[2])}
    table = [("work", f"{N:,} x {M} -> {D} features")]
    for name, values in (("engine", engine), ("bare BLAS", bare)):
        for workers, seconds in values.items():
            table.append((f"{name}, {workers} worker{'s' * (workers > 1)}", f"{statistics.median(seconds):7.2f} s"))
    table.append(("bare BLAS on this machine scales by", f"{figures['bare_speedup']:.2f}"))
    report("scaling", table, figures, BARS)
