"""How many workers a fit has use for, and how much memory they need: from its plan, by the speed of this machine.

workers = min(work of the passes / 10 minutes, blocks / cores)
memory  = peak of the plan / the share of it at which a worker pauses
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dkl.cli.cluster_request import SHARE

GIB = 2**30
TARGET = 600.0
"""Seconds that the passes should take."""
ITERATIONS = 30
"""Of learning, about."""
PAUSE = 0.8
"""Share of --memory-limit at which dask pauses a worker."""


@dataclass(frozen=True)
class Size:
    """A proposal, what it must not go below, and why."""

    workers: int
    memory: int
    scheduler_memory: int
    why: str


def propose(plan: Any, cpus: int, workers: int | None = None) -> Size:
    """The size for a plan that was made for one process of so many threads; a given number of workers stays."""
    from dkl.engine.memory import about, blocks_of, count, gib

    memory = _round_up(plan.worker_bytes / PAUSE / SHARE)
    scheduler = _round_up(plan.solve_bytes / PAUSE)
    blocks = blocks_of(plan.sizes, plan.cost)
    solves = plan.solve_seconds or 0.0
    work = max(0.0, (plan.total_seconds or 0.0) - solves) + ITERATIONS * (plan.iteration_seconds or 0.0)
    most = max(1, -(-blocks // cpus))
    wanted = max(1, -(-int(work) // int(TARGET)))
    chosen = workers or min(wanted, most)
    reasons = [
        f"{count(blocks, 'block')} of {plan.block:,} rows",
        f"passes take {about(work)} on {count(cpus, 'core')}",
    ]
    if workers is None:
        end = f"more than {most} would be idle" if wanted > most else f"they end in {about(work / chosen)}"
        reasons.append(f"{count(chosen, 'worker')}: {end}")
    reasons += [f"a worker needs {gib(plan.worker_bytes)}", f"the solve {gib(plan.solve_bytes)}"]
    return Size(chosen, memory, scheduler, "; ".join(reasons))


def plan_for(data: str, split: str | None, config: str | None, cpus: int) -> Any:
    """The plan of `dkl fit DATA --config FILE` in one process of so many threads."""
    import dask

    from dkl.cli.config import merge
    from dkl.cli.fit import build, with_dtype
    from dkl.cli.open import task_of, training_rows

    options = merge({}, config)
    rows = training_rows(data, split)
    task, family = task_of(rows, options.pop("task")), options.pop("model")
    model = build({"estimator": task, "family": family, "params": with_dtype(options, rows)})
    with dask.config.set(num_workers=cpus):
        return model.plan(rows, rows)


def _round_up(size: float) -> int:
    """Whole GiB."""
    return max(1, int(-(-size // GIB))) * GIB
