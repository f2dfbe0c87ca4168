"""Scripts of batch systems and of this machine, from templates: @name@ is a value, and a line without its value goes.

Values are numbers, words of PATTERNS, or quoted for the shell.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from importlib.resources import files

import click

from dkl.cli.cluster_request import MIB, Request, everywhere, seconds_of
from dkl.engine.memory import count

PATIENCE = 600
"""Seconds in which workers of an allocation must have come; jobs of workers may wait in the queue all the time."""


def script_of(request: Request) -> str:
    """The script of a platform but Kubernetes."""
    elastic = request.elastic
    name = f"{request.platform}-elastic" if elastic else request.platform
    return fill(template(f"{name}.sh"), _values(request) | ({"settings": _settings(request)} if elastic else {}))


def template(name: str) -> str:
    """The text of a template."""
    return (files("dkl.cli") / "templates" / name).read_text(encoding="utf-8")


def fill(text: str, values: Mapping[str, object]) -> str:
    """The text with its values; a line one of whose values is None is left out."""
    lines = []
    for line in text.splitlines():
        names = re.findall(r"@([a-z_]+)@", line)
        if all(values[name] is not None for name in names):
            lines.append(re.sub(r"@([a-z_]+)@", lambda found: str(values[found[1]]), line))
    return "\n".join(lines) + "\n"


def _values(request: Request) -> dict[str, object]:
    """What the templates name."""
    together = request.memory if request.elastic else max(request.memory, request.scheduler_memory)
    again = template("slurm-again.sh").rstrip("\n") if request.platform == "slurm" else None
    patience = seconds_of(request.time) if request.elastic else PATIENCE
    fit = {"fit": shlex.join(request.fit), "again": again, "patience": patience}
    body = fill(template("fit.sh"), fit) if request.fit else template("open.sh")
    return {
        "name": request.name,
        "workers": request.workers,
        "crew": count(request.workers, "worker"),
        "cores": count(request.cpus, "core"),
        "tasks": request.workers + 1,
        "cpus": request.cpus,
        "memory": together // MIB,
        "memory_per_cpu": together // MIB // request.cpus,
        "scheduler_memory": request.scheduler_memory // MIB,
        "limit": request.limit,
        "time": request.time,
        "queue": request.queue,
        "account": request.account,
        "array": request.array,
        "interface": request.interface,
        "folder": shlex.quote(everywhere(request.folder)),
        "python": shlex.quote(request.python),
        "dask_config": request.tls and shlex.quote(os.path.join(everywhere(request.tls), "dask.yaml")),
        "why": request.why,
        "body": body.rstrip("\n"),
    }


def _settings(request: Request) -> str:
    """What dkl/cli/elastic.py reads; a worker ends before its job does, not all at once."""
    for what, path in (("folder", request.folder), ("python", request.python), ("tls", request.tls)):
        if path is not None and re.search(r"[^\w./+=@%:~-]", everywhere(path)):
            raise click.UsageError(
                f"--{what} {path!r}: dask-jobqueue cannot quote it; use a path of letters and digits"
            )
    time = request.worker_time or request.time
    spare = max(30, seconds_of(time) // 12)
    if seconds_of(time) < 2 * spare:
        raise click.UsageError(f"--worker-time {time!r} is not possible; give a worker at least a minute")
    settings = {
        "workers": request.workers,
        "cpus": request.cpus,
        "memory": request.limit * MIB,
        "job_memory": f"{request.memory // MIB}M",
        "walltime": time,
        "lifetime": seconds_of(time) - spare,
        "stagger": spare * 4 // 5,
        "name": f"{request.name}-worker",
        "queue": request.queue,
        "account": request.account,
        "interface": request.interface,
        "tls": request.tls is not None,
    }
    return shlex.quote(json.dumps(settings))
