"""The promise made before running: peak bytes of a worker and of the solve, bytes read, flops, seconds.

    worker = now + overhead + threads (block + tile + product + sums) + parameters + held sums
    solve  = now + overhead + sums + 8 d x d matrices for each fold solved at the same time

None of the terms grows with the number of rows (tiles reach their full size at about a quarter of a million rows).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dkl.sums.symmetric import LEAF, largest_tile, packed_size

SOLVE_MATRICES, SOLVE_THREADS = 8, 4
"""d x d matrices of one solve, and folds that are solved at the same time, at most."""
OVERHEAD = 64 * 2**20
"""Libraries loaded late (Zarr, LAPACK), thread stacks, and what the allocator keeps back."""
HELD = 6
"""Finished sums a worker may hold or receive at once while they are being added."""
CALIBRATE_SECONDS = 0.5


@dataclass(frozen=True)
class Shape:
    """What the promise depends on: rows, inputs, features, outputs, folds, and the rows of a block and a tile."""

    rows: int
    inputs: int
    features: int
    outputs: int
    folds: int
    block: int
    tile: int
    paired: bool
    is_class: bool
    is_lazy: bool
    dtype: np.dtype
    row_bytes: int
    alphas: int

    @property
    def sums_bytes(self) -> int:
        d = self.features
        return 8 * self.folds * (packed_size(d) + d * (self.outputs + 1))

    @property
    def thread_bytes(self) -> int:
        """One thread: its block (as read, cast, gathered), a tile of features, a product, its sums."""
        d, item = self.features, self.dtype.itemsize
        block = self.block * ((2 * self.row_bytes if self.is_lazy else 0) + 2 * self.cast_bytes)
        targets = self.block * (4 if self.is_class else 3 * self.outputs) * 8
        tile = self.tile * d * item + largest_tile(d) * item
        if self.is_sparse:
            tile += self.tile * d * item
        far = 1024 * (self.inputs + 2 * d) * 8 if item == 4 else 0
        cross = self.outputs * d * (item + (0 if self.is_class else 16))
        return block + targets + tile + far + cross + self.sums_bytes

    @property
    def parameter_bytes(self) -> int:
        frequencies = self.features // 2 if self.paired else self.features
        return frequencies * self.inputs * (2 * 8 + 2 * self.dtype.itemsize) + 64 * self.outputs

    @property
    def solve_bytes(self) -> int:
        d = self.features
        return (
            OVERHEAD
            + self.sums_bytes
            + 8 * min(self.folds, SOLVE_THREADS) * (SOLVE_MATRICES * d * d + 6 * d * self.outputs)
        )

    @property
    def flops(self) -> float:
        """One pass: projection, the symmetric product, cosines, and the cross term."""
        d, frequencies = self.features, self.features // (2 if self.paired else 1)
        cross = d if self.is_class else 2 * d * self.outputs
        return float(self.rows) * (2 * self.inputs * frequencies + d * (d + min(d, LEAF)) + 10 * d + cross)

    @property
    def is_sparse(self) -> bool:
        """Whether rows are stored in fewer bytes than a dense row of bytes would take."""
        return self.row_bytes < self.inputs

    @property
    def cast_bytes(self) -> int:
        """Bytes of a row in compute precision."""
        return 2 * self.row_bytes if self.is_sparse else self.inputs * self.dtype.itemsize

    @property
    def solve_flops(self) -> float:
        """Every factorisation of the choice of alpha and of the last solve, with its triangular solves."""
        d, systems = float(self.features), 1 + (self.folds * self.alphas if self.folds > 1 else 0)
        return systems * (d**3 / 3 + 4 * d * d * self.outputs)

    @property
    def bytes_read(self) -> int:
        return self.rows * self.row_bytes


@dataclass(frozen=True)
class Plan:
    """Printed by `dkl.plan`; refused by `check` if it cannot fit."""

    shape: Shape
    engine: str
    workers: int
    threads: int
    worker_bytes: int
    worker_limit: int
    solve_bytes: int
    solve_limit: int
    seconds: float | None = None
    solve_seconds: float | None = None

    @property
    def flops(self) -> float:
        return self.shape.flops

    @property
    def bytes_read(self) -> int:
        return self.shape.bytes_read

    @property
    def fits(self) -> bool:
        return self.worker_bytes <= self.worker_limit and self.solve_bytes <= self.solve_limit

    def check(self) -> None:
        """Refuse what does not fit, with both numbers and what to change."""
        where = "the solve in this process" if self.engine == "embedded" else "the solve"
        for what, need, limit in (
            ("a worker" if self.engine == "cluster" else "this process", self.worker_bytes, self.worker_limit),
            (where, self.solve_bytes, self.solve_limit),
        ):
            if need > limit:
                raise MemoryError(
                    f"{what} would need {gib(need)} but may use {gib(limit)}; use fewer components (now "
                    f"{self.shape.features:,}), smaller blocks (now {self.shape.block:,} rows: rechunk X) or fewer "
                    f"folds (now {self.shape.folds})"
                )

    def __str__(self) -> str:
        s = self.shape
        place = "in this process" if self.engine == "embedded" else f"on {self.workers} workers"
        rows = [
            ("data", f"{s.rows:,} rows x {s.inputs:,} inputs, {s.dtype.name}, blocks of {s.block:,} rows"),
            ("model", f"{s.features:,} components, {count(s.outputs, 'output')}, {count(s.folds, 'fold')}"),
            ("runs", f"{place}, {self.threads} threads in all"),
            ("peak per worker", f"{gib(self.worker_bytes)} of {gib(self.worker_limit)}"),
            ("peak of the solve", f"{gib(self.solve_bytes)} of {gib(self.solve_limit)}"),
            ("read per pass", gib(self.bytes_read)),
            ("flops per pass", f"{self.flops:.3g}"),
        ]
        if self.seconds is not None and self.solve_seconds is not None:
            rows.append(("time per pass", f"about {duration(self.seconds)}"))
            rows.append(("time of the solve", f"about {duration(self.solve_seconds)}"))
        if not self.fits:
            rows.append(("verdict", "does NOT fit: fit() will refuse it"))
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:>{width}}  {value}" for name, value in rows)


def gib(count: float) -> str:
    """Bytes for a person."""
    if count < 2**18:
        return f"{count / 2**10:.1f} KiB"
    return f"{count / 2**30:.2f} GiB" if count >= 2**27 else f"{count / 2**20:.1f} MiB"


def count(number: int, noun: str) -> str:
    """So many things, with the plural's s."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """Seconds for a person."""
    if seconds < 120:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"


def make_plan(engine: Any, shape: Shape, calibrate: bool = False) -> Plan:
    """What the engine will need for that shape: the worst worker's peak and its limit, and the same for the solve."""
    demands = [
        (worker["used"] + _pass_bytes(shape, min(worker["threads"], _parallel(shape))), worker["limit"])
        for worker in engine.resources()
    ]
    need, limit = max(demands, key=lambda pair: pair[0] / pair[1])
    solve_used, solve_limit = engine.solve_memory()
    seconds = solve_seconds = None
    if calibrate:
        rate, cosine_seconds = engine.run_once(calibrated, shape.dtype.name)
        threads = min(engine.threads, _parallel(shape))
        seconds = (shape.flops / rate + shape.rows * shape.features * cosine_seconds) / threads
        solve_seconds = shape.solve_flops / (0.4 * rate * shape.dtype.itemsize / 8)
    return Plan(
        shape, engine.name, len(demands), engine.threads, need, limit, solve_used + shape.solve_bytes, solve_limit,
        seconds, solve_seconds,
    )  # fmt: skip


def _pass_bytes(shape: Shape, threads: int) -> int:
    return (
        OVERHEAD + threads * (shape.thread_bytes + shape.sums_bytes) + shape.parameter_bytes + HELD * shape.sums_bytes
    )


def _parallel(shape: Shape) -> int:
    return max(1, -(-shape.rows // max(1, shape.block)))


def memory_here() -> tuple[int, int]:
    """Bytes this process uses, and may use."""
    return process_bytes(), process_bytes() + available_bytes()


def calibrated(dtype: str) -> tuple[float, float]:
    """Flops per second of one thread in a product, and seconds of one cosine."""
    from dkl.engine.threads import one_blas_thread
    from dkl.features.trigonometry import cosine

    a = np.random.default_rng(0).standard_normal((1024, 512)).astype(dtype)
    b, out = a.copy(), np.empty((512, 512), dtype)
    rates, trig, begin = [], [], time.perf_counter()
    with one_blas_thread():
        while time.perf_counter() - begin < CALIBRATE_SECONDS:
            start = time.perf_counter()
            np.matmul(a.T, b, out=out)
            middle = time.perf_counter()
            cosine(b)
            b += 1
            rates.append(2 * 1024 * 512 * 512 / (middle - start))
            trig.append((time.perf_counter() - middle) / a.size)
    return float(np.median(rates)), float(np.median(trig))


def process_bytes() -> int:
    """Resident bytes of this process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def available_bytes() -> int:
    """Bytes this process may still take: of the machine, and of its container."""
    import psutil

    return min(int(psutil.virtual_memory().available), max(0, memory_limit() - process_bytes()))


def memory_limit() -> int:
    """Bytes of the machine, or of the container if that is less."""
    import psutil

    limit = int(psutil.virtual_memory().total)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            limit = min(limit, int(text))
    return limit
