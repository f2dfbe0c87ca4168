"""swarm: a cluster of 16, 64 and 256 workers in simulation, one pass at ImageNet's size.

1,281,167 labels of 1000 classes in chunks of 2048 rows. Labels are really read and counted; blocks of the pass sleep
for as long as real ones would compute (1000 inputs, 40 GFlop/s a thread), `--slower` times as long; sums of the real
size, half a gram and 1000 x d cross products, are really made, merged between workers over TCP and solved on the
scheduler. Workers have one thread each and share a few processes, and all of it shares this machine: what the merges of
hundreds of workers cost on its few cores counts against the efficiency too, which is therefore a lower bound
(`--slower` weighs it less). --sizes 16:4000,64:2000,256:1000 says workers and features; one that would not fit in
memory is left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import zarr

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.prepare.targets import label_targets
from dkl.sums.symmetric import packed_size
from tests.benchmarks.report import report
from tests.benchmarks.swarm_parts import CLASSES, SwarmProgram, row_seconds, weights_of
from tests.relay import Relay

N, CHUNK = 1_281_167, 2048
SIZES = "16:4000,64:2000,256:1000"
HELD = 4
"""Sums of one worker that are in memory at a time, about."""
BARS = {"efficiency_64": 0.9}


@contextmanager
def swarm(workers: int, folder: Path) -> Iterator[tuple[str, psutil.Process, list[psutil.Process]]]:
    """A scheduler process and processes of workers; its address, its process, theirs."""
    file = folder / f"scheduler-{workers}.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1"]
    with ExitStack() as stack:
        started = [subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", file], stderr=subprocess.DEVNULL)]
        stack.callback(lambda: [process.kill() for process in started])
        while not (file.exists() and file.read_text().endswith("}")):
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        hosts = max(2, workers // 32)
        for i in range(hosts):
            share = workers * (i + 1) // hosts - workers * i // hosts
            command = [sys.executable, "-m", "tests.benchmarks.swarm_parts", address, str(share)]
            started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        yield address, psutil.Process(started[0].pid), [psutil.Process(one.pid) for one in started[1:]]


def cpu(processes: list[psutil.Process]) -> float:
    """CPU seconds so far."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def measure(workers: int, d: int, slower: float, y: Any, folder: Path) -> dict[str, float]:
    """One fit: labels, the pass, the solve."""
    from distributed import Client

    from dkl.engine.cluster import Cluster

    found = {}
    with swarm(workers, folder) as (address, scheduler, hosts):
        relay = Relay(address)
        with Client(relay.address, timeout="60s") as client:
            client.wait_for_workers(workers, timeout=300)
            engine, rows = Cluster(client), Rows([Table("zarr", y)], ["y"])
            engine.fetch(engine.sum(SwarmProgram(16, 0.0), rows, Progress(0)))  # the versions are asked for
            begun = time.time()
            label_targets(Table("zarr", y), None, None, Progress(0))
            found["labels"] = time.time() - begun
            before = cpu([scheduler]), cpu(hosts), cpu([psutil.Process()]), relay.received + relay.sent
            begun = time.time()
            total = engine.sum(SwarmProgram(d, slower), rows, Progress(0))
            found["pass"] = time.time() - begun
            last, _ = engine.solve(weights_of, total, rows=N)
            found["last block to weights"] = time.time() - last
            after = cpu([scheduler]), cpu(hosts), cpu([psutil.Process()]), relay.received + relay.sent
        relay.close()
    names = "scheduler CPU", "workers' CPU", "client CPU", "client MB"
    found |= dict(zip(names, (b - a for a, b in zip(before, after, strict=True)), strict=True))
    found["client MB"] /= 1e6
    found["ideal"] = slower * N * row_seconds(d) / workers
    found["efficiency"] = found["ideal"] / found["pass"]
    return found


def run(options: argparse.Namespace) -> None:
    """Every size."""
    figures: dict[str, float] = {}
    table = [("work", f"{N:,} rows in chunks of {CHUNK:,}, {CLASSES:,} classes, blocks {options.slower:g} x as long")]
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        labels = np.random.default_rng(0).integers(0, CLASSES, N).astype(np.int16)
        y = zarr.create_array(Path(name) / "y.zarr", data=labels, chunks=(CHUNK,))
        for size in (options.sizes or SIZES).split(","):
            workers, d = map(int, size.split(":"))
            need = workers * HELD * 8 * (packed_size(d) + CLASSES * d)
            if need > psutil.virtual_memory().available:
                table.append((f"{workers} workers, d = {d:,}", f"left out: it needs {need / 1e9:.0f} GB of memory"))
                continue
            found = measure(workers, d, options.slower, y, Path(name))
            figures[f"efficiency_{workers}"] = found["efficiency"]
            told = "   ".join(f"{key} {value:.2f}" for key, value in found.items())
            table.append((f"{workers} workers, d = {d:,}", told))
    report("swarm", table, figures, {key: bar for key, bar in BARS.items() if key in figures})
