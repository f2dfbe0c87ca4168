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


def run(options: argparse.Namespace) -> None:
    """Measure."""
    from distributed import Client, LocalCluster

    from dkl.engine.cluster import Cluster

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, M), dtype=np.float32), rng.standard_normal(N)
    program, quiet = make_program(N, M, D), Progress(0)
    one_thread = {"threads_per_worker": 1, "dashboard_address": None}
    with (
        tempfile.TemporaryDirectory(dir=options.scratch) as folder,
        LocalCluster(n_workers=1, **one_thread) as single,
        LocalCluster(n_workers=2, **one_thread) as double,
        Client(single) as one,
        Client(double) as two,
    ):
        stored = zarr.create_array(Path(folder) / "X.zarr", data=X, chunks=(N // 64, M), compressors=None)
        rows_ = Rows([Table("zarr", stored), Table("memory", y), None, None], ["X", "y", "weight", "cv"])
        seconds = alternate(
            options.repeats,
            one=lambda: Cluster(one).sum(program, rows_, quiet),
            two=lambda: Cluster(two).sum(program, rows_, quiet),
            bare_one=lambda: bare_on(one),
            bare_two=lambda: bare_on(two),
        )
    limit = median_ratio(seconds["bare_one"], seconds["bare_two"])
    rows = [("work", f"{N:,} x {M} -> {D} features")]
    rows += [(name, f"{statistics.median(values):7.2f} s") for name, values in seconds.items()]
    rows.append(("bare BLAS on this machine scales by", f"{limit:.2f}"))
    report("scaling", rows, {"speedup": median_ratio(seconds["one"], seconds["two"]), "bare_speedup": limit}, BARS)
