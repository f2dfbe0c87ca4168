"""The flags of `dkl cluster` as a request: what belongs together is given together, and sizes are given or proposed."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import click

from dkl.cli.cluster_request import NAME, Request, check, everywhere, memory_of, seconds_of

OF_BATCH = ("time", "queue", "account", "interface")
ONLY = {
    "image": ("kubernetes",),
    "array": ("slurm",),
    "elastic": ("slurm",),
    "worker_time": ("slurm",),
    "folder": ("slurm", "pbs", "local"),
    "python": ("slurm", "pbs", "local"),
    **dict.fromkeys(OF_BATCH, ("slurm", "pbs")),
}
"""Options that only some platforms have."""
PLAIN = ("name", "time", "worker_time", "queue", "account", "interface", "array", "elastic", "tls", "folder", "image")
"""Options that a request takes as they are."""
CPUS = {"local": 1}
"""Cores of a worker, where it is not 4."""
SHORTEST = 300
"""Seconds of a job of Slurm."""


def request_of(platform: str, values: dict[str, Any]) -> Request:
    """The checked request."""
    _check_platform(platform, values)
    check(values)
    if platform == "kubernetes" and values["tls"] and not re.fullmatch(NAME, values["tls"]):
        raise click.UsageError(
            f"--tls {values['tls']!r} is no name of a secret; use letters, digits and -, as in dkl-tls"
        )
    cpus = values["cpus"] or CPUS.get(platform, 4)
    if platform == "slurm" and values["time"] and seconds_of(values["time"]) < SHORTEST:
        raise click.UsageError(
            f"--time {values['time']} is too short; the job is warned 2 minutes before: give 0:05:00"
        )
    sizes = _sizes(platform, values, cpus)
    if sizes["memory"] // 2**20 < cpus:
        raise click.UsageError(f"--memory {values['memory']!r} is not possible; give each of {cpus} cores a MiB")
    given = {name: values[name] for name in PLAIN if values.get(name) is not None}
    python = values["python"] or sys.executable
    if values["tls"] and platform != "kubernetes" and not os.path.isfile(os.path.join(values["tls"], "dask.yaml")):
        raise click.UsageError(f"--tls {values['tls']!r} has no dask.yaml; dkl certificates {values['tls']} makes it")
    if values["scheduler_memory"] is not None:
        sizes["scheduler_memory"] = memory_of(values["scheduler_memory"], "--scheduler-memory")
    return Request(platform, cpus=cpus, python=python, fit=_fit_words(values), **sizes, **given)


def _check_platform(platform: str, values: dict[str, Any]) -> None:
    """Options of other platforms, and those that need another."""
    for name, platforms in ONLY.items():
        if values.get(name) is not None and platform not in platforms:
            flag = f"--{name.replace('_', '-')} {'' if values[name] is True else values[name]}".strip()
            raise click.UsageError(f"{flag} belongs to {' and '.join(platforms)}; leave it out")
    for name, needed in (("config", "data"), ("split", "data"), ("model", "data")):
        if values[name] is not None and values[needed] is None:
            flag = "--fit" if name == "model" else f"--{name}"
            raise click.UsageError(f"{flag} {values[name]} needs the rows; add --for DATA.zarr")
    if values["worker_time"] is not None and not values["elastic"]:
        raise click.UsageError(f"--worker-time {values['worker_time']} belongs to --elastic; add it")
    if values["array"] is not None and values["model"] is None:
        raise click.UsageError(f"--array {values['array']} is for a fit that goes on; add --fit MODEL.zarr")


def _sizes(platform: str, values: dict[str, Any], cpus: int) -> dict[str, Any]:
    """Workers and bytes: as given, or as the plan of the fit proposes."""
    memory = memory_of(values["memory"], "--memory") if values["memory"] is not None else None
    remote = platform == "kubernetes" and memory is not None and values["workers"] is not None
    if values["data"] is None or remote:  # pods may see rows that this machine does not
        for name in ("workers", "memory"):
            if values[name] is None:
                raise click.UsageError(f"--{name} is missing; give it, or --for DATA.zarr, which proposes it")
        return {"workers": values["workers"], "memory": memory, "scheduler_memory": memory}
    from dkl.cli.cluster_size import plan_for, propose

    size = propose(plan_for(values["data"], values["split"], values["config"], cpus), cpus, values["workers"])
    if memory is not None and memory < size.memory:
        raise MemoryError(f"--memory {values['memory']} is too little ({size.why}); use {size.memory // 2**30}GiB")
    return {
        "workers": size.workers,
        "memory": memory or size.memory,
        "scheduler_memory": size.scheduler_memory,
        "why": size.why,
    }


def _fit_words(values: dict[str, Any]) -> tuple[str, ...]:
    """What stands behind `dkl fit`, with paths that mean the same anywhere."""
    if values["model"] is None:
        return ()
    words = [everywhere(values["data"]), everywhere(values["model"])]
    words += ["--config", everywhere(values["config"])] if values["config"] else []
    return (*words, *(["--split", values["split"]] if values["split"] else []))
