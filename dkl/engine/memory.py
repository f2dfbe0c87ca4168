"""The promise made before running: peak bytes of a worker and of the solve, bytes read, flops, seconds.

    worker = now + overhead + threads (block + tiles + 2 sums) + parameters + held sums
    solve  = now + overhead + sums + what the solver takes

Each is that of the pass which needs most. The terms are stated by programs and solvers (dkl/cost.py). None of them
grows with the number of rows (tiles reach their full size at about a quarter of a million rows).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dkl.cost import Cost, Sizes

if TYPE_CHECKING:
    from dkl.engine.protocol import Engine

OVERHEAD = 64 * 2**20
"""Libraries loaded late (Zarr, LAPACK), thread stacks, and what the allocator keeps back."""
HELD = 6
"""Finished sums a worker may hold or receive at once while they are being added."""
MEASURE_SECONDS = 0.5
"""Of a measurement of speed."""
LEAST_SECONDS = 0.01
"""Seconds that an estimate does not go below."""
SOLVE_SPEED = 0.4
"""Flops per second of a factorisation over those of a product in float64."""


@dataclass(frozen=True)
class Plan:
    """Printed by `dkl.plan`; refused by `check` if it cannot fit. `cost` is that of the first pass."""

    sizes: Sizes
    cost: Cost
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
    solver: str = ""  # how the weights are found, and why
    total_seconds: float | None = None  # of all passes and solves but those of learning
    passes: float = 1.0  # about how many those are
    learns: bool = False  # whether some passes are made by every iteration
    instead: str = ""  # what to type for a fit that does fit
    kept_rows: str = ""  # whether rows stay in memory between passes, if a fit wants that

    @property
    def flops(self) -> float:
        """Of the first pass."""
        return self.sizes.rows * self.cost.flops

    @property
    def bytes_read(self) -> int:
        """By one pass."""
        return self.sizes.rows * self.sizes.row_bytes

    @property
    def block(self) -> int:
        """Rows of the largest block."""
        return self.sizes.block_of(self.cost.rows_wanted)

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
                ways = [f"fewer components (now {self.cost.features:,})"]
                ways.append(f"smaller blocks (now {self.block:,} rows: rechunk X)")
                ways += [f"fewer folds (now {self.cost.folds})"] if self.cost.folds > 1 else []
                ways = [*([self.instead] if self.instead else []), *ways]
                raise MemoryError(
                    f"{what} would need {gib(need)} but may use {gib(limit)}; use {', '.join(ways[:-1])} or {ways[-1]}"
                )

    def _model(self) -> str:
        """What is summed: the gram of features, of a model with its outputs and folds."""
        cost, outputs = self.cost, self.sizes.outputs
        if not outputs:
            return count(cost.features, "feature") + f" of {cost.maps} channels" * (cost.maps > 1)
        return f"{cost.features:,} components, {count(outputs, 'output')}, {count(cost.folds, 'fold')}"

    def _lines(self) -> list[tuple[str, str]]:
        """What is said of it, with the names of the lines."""
        s = self.sizes
        place = "in this process" if self.engine == "embedded" else f"on {self.workers} workers"
        rows = [
            ("data", f"{s.rows:,} rows x {s.inputs:,} inputs, {s.dtype.name}, blocks of {self.block:,} rows"),
            ("model", self._model()),
            ("runs", f"{place}, {self.threads} threads in all"),
            ("peak per worker", f"{gib(self.worker_bytes)} of {gib(self.worker_limit)}"),
            ("peak of the solve", f"{gib(self.solve_bytes)} of {gib(self.solve_limit)}"),
            ("read per pass", gib(self.bytes_read)),
            ("flops per pass", large(self.flops)),
        ]
        if self.kept_rows:
            rows.append(("prepared rows", self.kept_rows))
        if self.solver:
            rows.insert(2, ("solver", self.solver))
        if self.passes > 1:
            rows.append(("passes", f"about {self.passes:,.0f}{' after learning' * self.learns}"))
        if self.seconds is not None and self.solve_seconds is not None:
            rows.append(("time per pass", about(self.seconds)))
            rows.append((f"time of the solve{'s' * (self.passes > 1)}", about(self.solve_seconds)))
        if self.iteration_seconds is not None:
            rows.append(("time to learn", f"{about(self.iteration_seconds)} for each iteration on all rows"))
        if self.total_seconds is not None:
            rows.append(("time in all", f"{about(self.total_seconds)}{', beside learning' * self.learns}"))
        if not self.fits:
            use = f"; use {self.instead}" if self.instead else ""
            rows.append(("verdict", f"does NOT fit: fit() will refuse it{use}"))
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


def large(number: float) -> str:
    """A number of flops for a person."""
    for size, word in ((1e15, "quadrillion"), (1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{float(f'{number / size:.2g}'):,.15g} {word}"
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    """Seconds for a person."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:,.0f} hours"


def about(seconds: float) -> str:
    """An estimate of seconds for a person."""
    return f"about {duration(seconds)}" if seconds >= LEAST_SECONDS else f"less than {duration(LEAST_SECONDS)}"


def make_plan(engine: Engine, sizes: Sizes, passes: Sequence[Cost], measure: bool = False, kept: int = 0) -> Plan:
    """What the engine will need: the peak of the worst worker in the worst pass, and of the worst solve.

    The first pass gives the plan its features, folds, flops and seconds. `measure` adds times: of one such pass, of
    all solves, of an iteration of learning, and of everything but learning. `kept` are bytes that the model also keeps.
    """
    workers = engine.resources()
    demands = [(w.used + max(pass_bytes(sizes, passes, one, w.threads) for one in passes), w.limit) for w in workers]
    need, limit = max(demands, key=lambda pair: pair[0] / pair[1])
    solve_used, solve_limit = engine.solve_memory()
    solve = OVERHEAD + kept + max(one.sums_bytes + one.solve.bytes for one in passes)
    seconds = solve_seconds = iteration = total = None
    once, repeated = [one for one in passes if not one.repeated], [one for one in passes if one.repeated]
    if measure:
        rate, cosine = engine.run_once(measured_speed, sizes.dtype.name)
        speed = _Speed(rate, cosine, SOLVE_SPEED * rate * sizes.item / 8, engine.threads)
        seconds = speed.of_pass(sizes, passes[0])
        solve_seconds = sum(one.count * one.solve.flops for one in once) / speed.solve_rate
        total = solve_seconds + sum(one.count * speed.of_pass(sizes, one) for one in once) if once else None
        if repeated:
            iteration = sum(
                one.count * (speed.of_pass(sizes, one) + one.solve.flops / speed.solve_rate) for one in repeated
            )
    return Plan(
        sizes, passes[0], engine.name, len(workers), engine.threads, need, limit, solve_used + solve, solve_limit,
        seconds, solve_seconds, iteration, total_seconds=total, passes=sum(one.count for one in once),
        learns=bool(repeated),
    )  # fmt: skip


@dataclass(frozen=True)
class _Speed:
    """Flops per second and seconds of a cosine of one thread, flops per second of a solve, and threads."""

    rate: float
    cosine: float
    solve_rate: float
    threads: int

    def of_pass(self, sizes: Sizes, cost: Cost) -> float:
        """Seconds of one pass; threads beyond the blocks are idle."""
        row = cost.flops / self.rate + cost.cosines * self.cosine
        return sizes.rows * row / min(self.threads, blocks_of(sizes, cost))


def pass_bytes(sizes: Sizes, passes: Sequence[Cost], cost: Cost, threads: int) -> int:
    """What one of the passes takes of a worker; larger sums of another pass may still be held."""
    row = sizes.block_row_bytes(cost.columns) + cost.row_bytes
    thread = sizes.block_of(cost.rows_wanted) * row + cost.thread_bytes + 2 * cost.sums_bytes
    if sizes.is_sparse:
        thread += cost.sparse_bytes
    other = max(one.sums_bytes for one in passes) - cost.sums_bytes
    busy = min(threads, blocks_of(sizes, cost))
    return OVERHEAD + busy * thread + cost.parameter_bytes + HELD * cost.sums_bytes + other


def blocks_of(sizes: Sizes, cost: Cost) -> int:
    """Blocks of a pass, at least one."""
    return max(1, -(-sizes.rows // max(1, sizes.block_of(cost.rows_wanted))))


def memory_here() -> tuple[int, int]:
    """Bytes this process uses, and may use."""
    return process_bytes(), process_bytes() + available_bytes()


def measured_speed(dtype: str) -> tuple[float, float]:
    """Flops per second of one thread in a product, and seconds of one cosine."""
    from dkl.engine.threads import one_blas_thread
    from dkl.features.trigonometry import cosine

    a = np.random.default_rng(0).standard_normal((1024, 512)).astype(dtype)
    b, out = a.copy(), np.empty((512, 512), dtype)
    rates, trig, begin = [], [], time.perf_counter()
    with one_blas_thread():
        while time.perf_counter() - begin < MEASURE_SECONDS:
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
