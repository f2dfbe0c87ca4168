"""Timing, peak memory, and the two forms in which a benchmark speaks."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


def alternate(
    repeats: int, clock: Callable[[], float] = time.perf_counter, **jobs: Callable[[], object]
) -> dict[str, list[float]]:
    """Seconds of each job, run in turn `repeats` times after one warm-up, so that drift of the machine hits all."""
    for job in jobs.values():
        job()
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            start = clock()
            job()
            seconds[name].append(clock() - start)
    return seconds


def median_ratio(above: list[float], below: list[float]) -> float:
    """Median over repeats of above / below, each pair measured side by side."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


AT_MOST = {
    "below",
    "differences",
    "hangs",
    "lost",
    "error_ratio",
    "log_loss_ratio",
    "memory_ratio",
    "time_ratio",
    "peak_gib",
    "seconds",
    "cost_ratio",
    "sigma_ratio",
    "minutes",
    "angle",
    "certificates_missed",
    "worst_excess",
    "weights_error",
    "solver_ratio",
    "ours_exponent",
    "one_pass_seconds_added",
    "received_mb",
}


class Peak:
    """The largest resident memory seen of each process."""

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}

    @property
    def most(self) -> int:
        return max(self.bytes.values(), default=0)


def own_peak() -> int:
    """Peak resident bytes of this process alone (ru_maxrss would count those of the process it was forked from)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


@contextmanager
def watch_memory(every: float = 0.02) -> Iterator[Peak]:
    """Peak resident memory of this process and its children while inside."""
    peak, stop, me = Peak(), threading.Event(), psutil.Process()

    def look() -> None:
        while not stop.is_set():
            for process in [me, *me.children(recursive=True)]:
                try:
                    rss = process.memory_info().rss
                except psutil.Error:
                    continue
                peak.bytes[process.pid] = max(peak.bytes.get(process.pid, 0), rss)
            stop.wait(every)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def report(name: str, rows: list[tuple[str, str]], figures: dict[str, float], bars: dict[str, float]) -> None:
    """Print the table with the bars, and last the JSON line; figures named here in AT_MOST must stay below theirs."""
    for key, bar in bars.items():
        sign = "<=" if key in AT_MOST else ">="
        told = f"{figures[key]:.3f}" if abs(figures[key]) >= 0.01 or not figures[key] else f"{figures[key]:.1e}"
        rows.append((key, f"{told}   (to be {sign} {bar:g})"))
    width = max(len(label) for label, _ in rows)
    print(f"\n{name}")
    for label, value in rows:
        print(f"  {label:<{width}}  {value}")
    figures = {key: float(f"{value:.4g}") for key, value in figures.items()}
    print(json.dumps({"name": name, "figures": figures, "bars": bars}), flush=True)
