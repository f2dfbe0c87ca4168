"""pass: n rows of m inputs to d float32 features and their gram, through the engine, against bare BLAS.

Bare BLAS is the projection and the symmetric product on arrays in memory, on two BLAS threads, whichever of whole
arrays or row blocks is faster: no cosine, no dask, no reading.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import numpy as np
import zarr
from scipy.linalg.blas import ssyrk

from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.features.fourier import FourierMap
from dkl.kernels import find_kernel
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets
from tests.benchmarks.report import alternate, median_ratio, report

N, M, D = 200_000, 128, 2048
BARS = {"embedded": 0.85, "cluster": 0.80}


def make_program(n: int, m: int, d: int) -> GramProgram:
    """The pass of a gaussian kernel with one regression target."""
    rng = np.random.default_rng(1)
    unit = rng.standard_normal((m, d // 2))
    features = FourierMap(find_kernel("gaussian"), unit, np.full(m, m**-0.5), np.empty(0), 1.0, "paired")
    one = np.ones(1)
    targets = Targets(float(n), 1, shift=0 * one, absolute=n * one, square=n * one)
    return GramProgram(features.at(np.float32), targets, n)


def bare_blas(X: np.ndarray, omega: np.ndarray, space: np.ndarray, step: int) -> None:
    """Projection into both halves of a feature matrix, and the symmetric product, `step` rows at a time."""
    D = omega.shape[1]
    for i in range(0, len(X), step):
        Psi = space[: len(X[i : i + step])]
        np.matmul(X[i : i + step], omega, out=Psi[:, :D])
        ssyrk(1.0, Psi.T, trans=0)


def run(options: argparse.Namespace) -> None:
    """Measure."""
    from distributed import Client, LocalCluster

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, M), dtype=np.float32), rng.standard_normal(N)
    program, quiet = make_program(N, M, D), Progress(0)
    omega = program.features.omega
    space = rng.standard_normal((N, D), dtype=np.float32)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        stored = zarr.create_array(Path(folder) / "X.zarr", data=X, chunks=(N // 64, M), compressors=None)
        in_memory = Rows([Table("memory", X), Table("memory", y), None, None], ["X", "y", "weight", "cv"])
        on_disk = Rows([Table("zarr", stored), Table("memory", y), None, None], ["X", "y", "weight", "cv"])
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            from dkl.engine.cluster import Cluster

            engines = Embedded(), Cluster(client)
            seconds = alternate(
                options.repeats,
                whole=lambda: bare_blas(X, omega, space, N),
                blocks=lambda: bare_blas(X, omega, space, 8192),
                embedded=lambda: engines[0].sum(program, in_memory, quiet),
                cluster=lambda: engines[1].sum(program, on_disk, quiet),
            )
    bare = [min(a, b) for a, b in zip(seconds["whole"], seconds["blocks"], strict=True)]
    figures = {name: median_ratio(bare, seconds[name]) for name in ("embedded", "cluster")}
    flops = N * (2.0 * M * D / 2 + D * D)
    rows = [("work", f"{N:,} x {M} -> {D} features, {flops:.3g} flops in bare BLAS")]
    for name, values in {"bare BLAS": bare, **seconds}.items():
        middle = statistics.median(values)
        share = statistics.median(bare) / middle
        rows.append((name, f"{middle:7.3f} s   {flops / middle / 1e9:6.0f} GF/s   {share:5.2f} of bare BLAS"))
    report("pass", rows, figures, BARS)
