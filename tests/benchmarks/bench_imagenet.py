"""imagenet: a synthetic set of ImageNet's size in Zarr on disk, trained out of core in one pass.

1,281,167 rows of 1000 histogram bins in float32 (5.1 GB), 1000 classes, 3000 components of the skewed chi2 kernel, on
two single-threaded worker processes. Bare BLAS (projection and symmetric product) is timed on a part of the rows.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import dkl
from tests.benchmarks.bench_pass import bare_blas
from tests.benchmarks.report import report, watch_memory

N, M, D, CLASSES, CHUNK = 1_281_167, 1000, 3000, 1000, 8192
BARE_ROWS = 32768
BARS = {"peak_gib": 3.0}


def make_block(start: int, stop: int, centres: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Histograms whose bins lean towards their class's, and the labels."""
    rng = np.random.default_rng(start)
    labels = rng.integers(0, CLASSES, stop - start)
    X = rng.random((stop - start, M), dtype=np.float32)
    X *= X
    X *= centres[labels]
    X /= X.sum(axis=1, keepdims=True)
    return X, labels


def make_data(folder: Path) -> tuple[str, np.ndarray]:
    """Write the set, chunk by chunk."""
    rng = np.random.default_rng(0)
    centres = (0.2 + rng.random((CLASSES, M), dtype=np.float32) ** 4).astype(np.float32)
    array = zarr.create_array(folder / "X.zarr", shape=(N, M), chunks=(CHUNK, M), dtype="f4", compressors=None)
    y = np.empty(N, np.int64)

    def write(start: int) -> None:
        stop = min(N, start + CHUNK)
        array[start:stop], y[start:stop] = make_block(start, stop, centres)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(0, N, CHUNK)))
    return str(folder / "X.zarr"), y


def bare_seconds() -> float:
    """Bare BLAS of all rows, from a part of them in memory, on all cores."""
    rng = np.random.default_rng(0)
    X, space = rng.random((BARE_ROWS, M), dtype=np.float32), np.ones((BARE_ROWS, D), np.float32)
    omega = rng.standard_normal((M, D // 2), dtype=np.float32)
    bare_blas(X, omega, space, BARE_ROWS)
    start = time.perf_counter()
    bare_blas(X, omega, space, BARE_ROWS)
    return (time.perf_counter() - start) * N / BARE_ROWS


def fit(path: str, y: np.ndarray) -> tuple[Any, float]:
    """The fit and its seconds."""
    model = dkl.SingleKernelClassifier("skewed_chi2", n_components=D, sigma=0.05, skew=1e-3, alpha=1.0, random_state=0)
    start = time.perf_counter()
    model.fit(path, y)
    return model, time.perf_counter() - start


def run(options: argparse.Namespace) -> None:
    """Measure."""
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        free = shutil.disk_usage(folder).free
        if free < 8e9:
            print(f"imagenet: skipped, it needs 8 GB of disk and {folder} has {free / 1e9:.1f} GB free (--scratch DIR)")
            return
        path, y = make_data(Path(folder))
        bare = [bare_seconds()]
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster),
            watch_memory() as peak,
        ):
            model, seconds = fit(path, y)
        bare.append(bare_seconds())
        accuracy = model.score(zarr.open_array(path, mode="r")[:4096], y[:4096])
    figures = {
        "seconds": seconds,
        "rows_per_second": N / seconds,
        "blas_fraction": float(np.mean(bare)) / seconds,
        "peak_gib": peak.most / 2**30,
    }
    rows = [
        ("work", f"{N:,} x {M:,} in Zarr on disk, {CLASSES:,} classes, {D:,} components"),
        ("time", f"{seconds:.1f} s   {N / seconds:,.0f} rows/s, reading, one pass, the solve and all"),
        ("bare BLAS", f"{np.mean(bare):.1f} s   {figures['blas_fraction']:.2f} of its speed"),
        ("accuracy on 4096 training rows", f"{accuracy:.3f} (chance 0.001)"),
    ]
    rows += [(f"peak of process {pid}", f"{most / 2**30:.2f} GiB") for pid, most in peak.bytes.items()]
    report("imagenet", rows, figures, BARS)
