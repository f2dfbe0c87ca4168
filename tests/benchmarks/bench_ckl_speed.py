"""ckl_speed: an epoch of a network of cosines against the same network in torch, and on one and two worker processes.

50,000 rows of covtype, 512 cosines, seven classes, float32, steps of 1024 rows, both on two threads; torch has its own
shuffled batches, automatic gradients and SGD with momentum. Needs torch (`pip install torch`, a CPU build will do) in
the environment of the benchmark alone. Two clusters of single-threaded workers then train in steps of 8192 rows from
Zarr; the bytes are those of a step's parameters, which go to each worker, and of the sums that come back.
"""

from __future__ import annotations

import pickle
import statistics
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import dask
import numpy as np
import zarr

import dkl
from tests.benchmarks.data import covtype
from tests.benchmarks.report import median_ratio, report

ROWS, D, BATCH, WIDE_BATCH, EPOCHS = 50_000, 512, 1024, 8192, 4
RATE, MOMENTUM = 0.1, 0.9
BARS = {"time_ratio": 1.0}


def torch_epoch(X: np.ndarray, y: np.ndarray, threads: int) -> Callable[[], None]:
    """A function that trains torch's network for one epoch."""
    try:
        import torch
    except ImportError:
        sys.exit("ckl_speed compares with torch, which is not installed here; pip install torch")
    torch.set_num_threads(threads)
    rows, codes = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))
    omega = torch.nn.Parameter(torch.randn(D, X.shape[1]) * X.shape[1] ** -0.5)
    phase = torch.nn.Parameter(2 * np.pi * torch.rand(D))
    last = torch.nn.Linear(D, int(y.max()) + 1)
    steps = torch.optim.SGD([omega, phase, *last.parameters()], lr=RATE, momentum=MOMENTUM)

    def epoch() -> None:
        order = torch.randperm(len(rows))
        for i in range(0, len(rows), BATCH):
            some = order[i : i + BATCH]
            cosines = (2 / D) ** 0.5 * torch.cos(torch.nn.functional.linear(rows[some], omega, phase))
            loss = torch.nn.functional.cross_entropy(last(cosines), codes[some])
            steps.zero_grad(set_to_none=True)
            loss.backward()
            steps.step()

    return epoch


def model(batch: int) -> dkl.ContinuousKernelClassifier:
    """The same network here."""
    return dkl.ContinuousKernelClassifier(
        n_components=D, batch_size=batch, learning_rate=RATE, momentum=MOMENTUM, momentum_start=MOMENTUM,
        max_iter=EPOCHS, validation=None, random_state=0, verbose=0,
    )  # fmt: skip


def epoch_seconds(data: Any, batch: int = BATCH) -> float:
    """Seconds of an epoch after the first one."""
    return float(np.diff(model(batch).fit(*data).history_["seconds"]).min())


def timed(job: Callable[[], None], clock: Callable[[], float]) -> float:
    """Seconds of a call."""
    begun = clock()
    job()
    return clock() - begun


def on_cluster(path: str, workers: int) -> float:
    """Seconds of an epoch on so many single-threaded worker processes."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        return epoch_seconds((path,), WIDE_BATCH)


def bytes_of_step(X: np.ndarray, y: np.ndarray) -> tuple[int, int]:
    """Bytes of a program, and of its sums."""
    from dkl.sums.cosine_networks import CosineNetworks

    seen: list[Any] = []
    make = CosineNetworks.program

    def program(self: CosineNetworks, *given: Any) -> Any:
        seen.append(make(self, *given))
        return seen[-1]

    CosineNetworks.program = program  # type: ignore[method-assign]
    try:
        model(BATCH).set_params(max_iter=1).fit(X, y)
    finally:
        CosineNetworks.program = make  # type: ignore[method-assign]
    return len(pickle.dumps(seen[-1])), len(pickle.dumps(seen[-1].start()))


def run(options: Namespace) -> None:
    """Measure."""
    X, y = covtype(options)
    some = np.random.default_rng(0).permutation(len(y))[:ROWS]
    X, y = X[some], np.unique(y[some], return_inverse=True)[1]
    X = np.ascontiguousarray((X - X.mean(0)) / np.maximum(X.std(0), 1e-6), np.float32)
    ours, theirs, ours_cpu, theirs_cpu = [], [], [], []
    for _ in range(options.repeats):
        epoch = torch_epoch(X, y, 2)
        epoch()
        theirs.append(min(timed(epoch, time.perf_counter) for _ in range(EPOCHS - 1)))
        with dask.config.set(num_workers=2):
            ours.append(epoch_seconds((X, y)))
        epoch = torch_epoch(X, y, 1)
        theirs_cpu.append(min(timed(epoch, time.process_time) for _ in range(2)))
        with dask.config.set(num_workers=1):
            whole = [
                timed(lambda e=e: model(BATCH).set_params(max_iter=e).fit(X, y), time.process_time) for e in (1, 3)
            ]
            ours_cpu.append((whole[1] - whole[0]) / 2)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        group = zarr.open_group(folder, mode="w")
        group.create_array("X", data=X, chunks=(5000, X.shape[1]))
        group.create_array("y", data=y, chunks=(5000,))
        one, two = on_cluster(folder, 1), on_cluster(folder, 2)
    sent, back = bytes_of_step(X, y)
    rows = [
        ("epoch, dkl / torch", f"{statistics.median(ours):.2f} s / {statistics.median(theirs):.2f} s on two threads"),
        ("CPU of an epoch", f"{statistics.median(ours_cpu):.2f} s / {statistics.median(theirs_cpu):.2f} s on one"),
        ("epoch on 1 -> 2 workers", f"{one:.2f} s -> {two:.2f} s, steps of {WIDE_BATCH:,} rows"),
        ("bytes of a step", f"{sent:,} to each worker, {back:,} of sums from each"),
    ]
    figures = {
        "time_ratio": median_ratio(ours, theirs), "cpu_ratio": median_ratio(ours_cpu, theirs_cpu),
        "workers_speedup": one / two, "bytes_sent": sent, "bytes_back": back,
    }  # fmt: skip
    report("ckl_speed", rows, figures, BARS)
