"""far: a client near its cluster, and the same client over a link of 50 ms and 10 Mbit/s.

The rows lie on disk beside the workers, so only what the client itself sends and receives goes over the link. Fits are
alternated; each is a fit of one pass with five folds, and one that learns sigma, whose passes and solves are many.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import dkl
from tests.benchmarks.report import report
from tests.slow_link import Traffic, slow_link

ROOT = Path(__file__).parents[2]
ROUND_TRIP, BITS = 0.05, 10e6
BARS = {"one_pass_seconds_added": 5.0, "received_mb": 1.0}
WORKERS, ROWS, INPUTS, FEATURES = 2, 100_000, 20, 300


@contextlib.contextmanager
def cluster(folder: str) -> Iterator[int]:
    """A scheduler and two workers of one thread, in processes of their own; the scheduler's port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    dask = [sys.executable, "-m", "dask"]
    quiet: dict[str, Any] = {
        "cwd": folder,
        "env": os.environ | {"PYTHONPATH": str(ROOT)},
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    here = ["--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", ":0"]
    processes = [subprocess.Popen([*dask, "scheduler", "--port", str(port), *here], **quiet)]
    worker = [*dask, "worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1", "--no-nanny", *here]
    processes += [subprocess.Popen(worker, **quiet) for _ in range(WORKERS)]
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        yield port
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait(10)


def counting(address: str) -> Any:
    """A client that counts its calls which wait for the scheduler's answer."""
    from distributed import Client

    class Counting(Client):
        def sync(self, func: Any, *args: Any, **kwargs: Any) -> Any:
            self.calls[getattr(func, "__qualname__", "?").removesuffix(".<locals>._").rpartition(".")[2]] += 1
            return super().sync(func, *args, **kwargs)

        calls: Counter[str] = Counter()

    return Counting(address)


def models() -> dict[str, Callable[[], Any]]:
    """Fits that are compared."""
    common = {"n_components": FEATURES, "random_state": 0, "verbose": 0}
    return {
        "one_pass": lambda: dkl.SingleKernelRegressor(sigma=1.0, alpha=[0.1, 1.0, 10.0], cv=5, **common),
        "learned": lambda: dkl.SingleKernelRegressor(learn="cv", groups="each", starts=1, max_iter=5, **common),
    }


def run(options: argparse.Namespace) -> None:
    """Measure near and far in turn."""
    from distributed import wait

    rows = options.rows or ROWS
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, INPUTS), dtype=np.float32)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(rows)
    times: dict[tuple[str, str], list[float]] = {}
    traffic: dict[str, Traffic] = {}
    calls: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder, cluster(folder) as port:
        group = zarr.open_group(Path(folder) / "rows.zarr", mode="w")
        group.create_array("X", data=X, chunks=(rows // 32, INPUTS), compressors=None)
        group.create_array("y", data=y, chunks=(rows // 32,), compressors=None)
        data = str(Path(folder) / "rows.zarr")
        with slow_link(port, ROUND_TRIP, BITS) as link:
            ports = {"near": port, "far": link.port}
            for repeat in range(options.repeats + 1):
                for name, make in models().items():
                    for where, at in ports.items():
                        with counting(f"tcp://127.0.0.1:{at}") as client:
                            client.wait_for_workers(WORKERS)
                            wait(client.submit(abs, -1))
                            client.calls.clear()
                            before, begun = link.traffic(), time.monotonic()
                            make().fit(data)
                            seconds = time.monotonic() - begun
                            after, calls[name] = link.traffic(), Counter(client.calls)
                        if repeat:  # the first of each warms the workers up
                            times.setdefault((name, where), []).append(seconds)
                        if where == "far":
                            traffic[name] = Traffic(*(b - a for a, b in zip(before, after, strict=True)))
    table = [("work", f"{rows:,} rows x {INPUTS} inputs, {FEATURES} features, {WORKERS} workers of one thread")]
    table.append(("link", f"{1000 * ROUND_TRIP:.0f} ms for a round trip, {BITS / 1e6:.0f} Mbit/s each way"))
    figures: dict[str, float] = {}
    for name in models():
        near, far = (statistics.median(times[name, where]) for where in ("near", "far"))
        sent, received = (count / 1e6 for count in traffic[name][:2])
        table.append(
            (f"{name}: near, far", f"{near:.2f} s, {far:.2f} s; {sent:.2f} MB sent, {received:.2f} MB received")
        )
        asked = ", ".join(f"{what} {count}" for what, count in calls[name].most_common())
        table.append(
            (f"{name}: calls that wait", f"{sum(calls[name].values())} ({asked}); {traffic[name].turns} turns")
        )
        added = statistics.median(b - a for a, b in zip(times[name, "near"], times[name, "far"], strict=True))
        figures |= {f"{name}_seconds_added": added, f"{name}_near": near, f"{name}_far": far}
        figures |= {f"{name}_calls": sum(calls[name].values()), f"{name}_turns": traffic[name].turns}
    figures["received_mb"] = max(received / 1e6 for _, received, _ in traffic.values())
    report("far", table, figures, BARS)
