"""The promise made before running: peak bytes of a worker and of the solve, bytes read, flops, seconds.

    worker = now + overhead + threads (block + tile + product + sums) + parameters + held sums
    solve  = now + overhead + sums + 9 d x d matrices for each fold solved at the same time

The terms are those of a shape (engine/shape.py). None of them grows with the number of rows (tiles reach their full
size at about a quarter of a million rows).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dkl.engine.shape import OVERHEAD, Shape

HELD = 6
"""Finished sums a worker may hold or receive at once while they are being added."""
SOLVES = 3
"""Factorisations of an iteration that learns alpha too, about."""
CALIBRATE_SECONDS = 0.5


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
    iteration_seconds: float | None = None

    @property
    def flops(self) -> float:
        return self.shape.flops

    @property
    def bytes_read(self) -> int:
        return self.shape.bytes_read

    @property
    def fits(self) -> bool:
        return self.worker_bytes <= self.worker_limit and self.solve_bytes <= self.solve_limit

    @property
    def tightness(self) -> float:
        """Need over limit, where that is largest."""
        return max(self.worker_bytes / max(1, self.worker_limit), self.solve_bytes / max(1, self.solve_limit))

    def check(self) -> None:
        """Refuse what does not fit, with both numbers and what to change."""
        where = "the solve in this process" if self.engine == "embedded" else "the solve"
        for what, need, limit in (
            ("a worker" if self.engine == "cluster" else "this process", self.worker_bytes, self.worker_limit),
            (where, self.solve_bytes, self.solve_limit),
        ):
            if need > limit:
                folds = f" or fewer folds (now {self.shape.folds})" if self.shape.folds > 1 else ""
                raise MemoryError(
                    f"{what} would need {gib(need)} but may use {gib(limit)}; use fewer components (now "
                    f"{self.shape.features:,}){',' if folds else ' or'} smaller blocks (now {self.shape.block:,} rows: "
                    f"rechunk X){folds}"
                )

    def _model(self) -> str:
        """What is summed: the gram of features, of a model with its outputs and folds."""
        s = self.shape
        if not s.outputs:
            return f"{count(sum(s.widths) or s.features, 'feature')}" + f" of {len(s.widths)} channels" * bool(s.widths)
        return f"{s.features:,} components, {count(s.outputs, 'output')}, {count(s.folds, 'fold')}"

    def _lines(self) -> list[tuple[str, str]]:
        """What is said of it, with the names of the lines."""
        s = self.shape
        place = "in this process" if self.engine == "embedded" else f"on {self.workers} workers"
        rows = [
            ("data", f"{s.rows:,} rows x {s.inputs:,} inputs, {s.dtype.name}, blocks of {s.block:,} rows"),
            ("model", self._model()),
            ("runs", f"{place}, {self.threads} threads in all"),
            ("peak per worker", f"{gib(self.worker_bytes)} of {gib(self.worker_limit)}"),
            ("peak of the solve", f"{gib(self.solve_bytes)} of {gib(self.solve_limit)}"),
            ("read per pass", gib(self.bytes_read)),
            ("flops per pass", f"{self.flops:.3g}"),
        ]
        if self.seconds is not None and self.solve_seconds is not None:
            rows.append(("time per pass", f"about {duration(self.seconds)}"))
            rows.append(("time of the solve", f"about {duration(self.solve_seconds)}"))
        if self.iteration_seconds is not None:
            rows.append(("time to learn", f"about {duration(self.iteration_seconds)} for each iteration on all rows"))
        if not self.fits:
            rows.append(("verdict", "does NOT fit: fit() will refuse it"))
        return rows

    def __str__(self) -> str:
        rows = self._lines()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:>{width}}  {value}" for name, value in rows)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The lines as a table, for a notebook's cell."""
        cells = (
            f"<tr><th style='text-align:right'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._lines()
        )
        return f"<table>{''.join(cells)}</table>"


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
    seconds = solve_seconds = iteration = None
    if calibrate:
        rate, cosine_seconds = engine.run_once(calibrated, shape.dtype.name)
        threads = min(engine.threads, _parallel(shape))
        seconds = (shape.flops / rate + shape.rows * shape.features * cosine_seconds) / threads
        solve_seconds = shape.solve_flops / (0.4 * rate * shape.dtype.itemsize / 8)
        if shape.objective is not None:
            again = (shape.learning_flops / rate + 2 * shape.rows * shape.features * cosine_seconds) / threads
            iteration = seconds + again + SOLVES * shape.systems * solve_seconds
    return Plan(
        shape, engine.name, len(demands), engine.threads, need, limit, solve_used + shape.solve_bytes, solve_limit,
        seconds, solve_seconds, iteration,
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
