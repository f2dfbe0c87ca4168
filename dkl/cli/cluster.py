"""dkl cluster: the manifest or job script of a cluster, printed or submitted."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import click

from dkl.cli.layout import Verb

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
PLATFORMS = ("kubernetes", "slurm", "pbs", "local")
SUBMIT = {"kubernetes": ["kubectl", "apply", "-f", "-"], "slurm": ["sbatch"], "pbs": ["qsub"]}
CPUS = {"local": 1}
"""Cores of a worker, where it is not 4."""
SHORTEST = 300
"""Seconds of a job of Slurm."""
EXAMPLE = """dkl cluster slurm --workers 8 --cpus 4 --memory 16GiB --time 2:00:00 > job.sh
dkl cluster slurm --for rows.zarr --config fit.toml --fit model.zarr --apply
dkl cluster kubernetes --workers 8 --memory 16GiB --image dkl:0.1.0 | kubectl apply -f -
dkl cluster local --workers 2 --memory 2GiB --apply"""


@click.command(
    cls=Verb,
    example=EXAMPLE,
    help="Print the manifest or job script of a cluster on PLATFORM (kubernetes, slurm, pbs, local), or start it. "
    "With --for the size comes from the plan of a fit; with --fit it ends with that fit, and goes on from its "
    "checkpoint if it is started again.",
)
@click.argument("platform", type=click.Choice(PLATFORMS))
@click.option("--workers", type=click.IntRange(1, 100_000), help="Workers.")
@click.option("--cpus", type=click.IntRange(1, 1024), help="Cores, and threads, of a worker [4; local: 1].")
@click.option("--memory", help="Memory of a worker: 16GiB.")
@click.option("--scheduler-memory", help="Memory of the scheduler, which solves (that of a worker).")
@click.option("--for", "data", metavar="DATA.zarr", help="Size it for a fit to these rows.")
@click.option("--config", metavar="FILE.toml", help="The options of that fit.")
@click.option("--split", help="The split of that fit.")
@click.option("--fit", "model", metavar="MODEL.zarr", help="Run that fit, and end.")
@click.option("--name", default="dkl", help="Of the cluster [dkl].")
@click.option("--tls", metavar="DIR", help="Speak TLS with the files of dkl certificates DIR; kubernetes: a secret.")
@click.option("--image", help="kubernetes: dkl's image, in which everything runs.")
@click.option("--time", metavar="H:MM:SS", help="slurm, pbs: time limit [4:00:00].")
@click.option("--queue", help="slurm, pbs: partition or queue.")
@click.option("--account", help="slurm, pbs: account.")
@click.option("--interface", help="slurm, pbs: network of the cluster, as ib0.")
@click.option("--folder", help="Where logs and the scheduler file go, shared by all nodes [.].")
@click.option("--python", metavar="PATH", help="Python of the cluster (this one).")
@click.option("--array", type=click.IntRange(1, 1000), metavar="N", help="slurm: N jobs in turn; each goes on.")
@click.option("--elastic", is_flag=True, default=None, help="slurm: a job for each worker, replaced if it ends.")
@click.option("--worker-time", metavar="H:MM:SS", help="slurm --elastic: time limit of a worker (--time).")
@click.option("--print", "shows", is_flag=True, help="Print it (the default).")
@click.option("--apply", "applies", is_flag=True, help="Submit it with kubectl, sbatch or qsub, or start it here.")
def cluster(platform: str, shows: bool, applies: bool, **values: Any) -> None:
    """The verb."""
    request = _request(platform, values)
    script = _text(request, values["config"])
    if request.why:
        click.echo(f"dkl: {request.why}", err=True)
    if not applies:
        click.echo(script, nl=False)
    elif shows:
        raise click.UsageError("--print shows it and --apply starts it; give one of them")
    elif platform == "local":
        sys.stdout.flush()
        os.execvp("bash", ["bash", "-c", script])
    else:
        click.echo(_submit(platform, script), nl=False)


def _text(request: Any, config: str | None) -> str:
    """The manifest or script."""
    from dkl.cli.cluster_manifest import manifest_of
    from dkl.cli.cluster_scripts import script_of

    if request.platform != "kubernetes":
        return script_of(request)
    if config is None or "://" in config:
        return manifest_of(request)
    from dkl.cli.config import read_config

    read_config(config)  # a mistake in it is told now
    with open(config, encoding="utf-8") as file:
        return manifest_of(request, file.read())


def _request(platform: str, values: dict[str, Any]) -> Any:
    """The checked request."""
    from dkl.cli.cluster_request import NAME, Request, check, memory_of, seconds_of

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
    rest = (
        "name",
        "image",
        "time",
        "worker_time",
        "queue",
        "account",
        "interface",
        "array",
        "elastic",
        "tls",
        "folder",
    )
    given = {name: values[name] for name in rest if values.get(name) is not None}
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
    from dkl.cli.cluster_request import memory_of

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
    from dkl.cli.cluster_request import everywhere

    if values["model"] is None:
        return ()
    words = [everywhere(values["data"]), everywhere(values["model"])]
    words += ["--config", everywhere(values["config"])] if values["config"] else []
    return (*words, *(["--split", values["split"]] if values["split"] else []))


def _submit(platform: str, script: str) -> str:
    """Hand the script to the batch system; what it said."""
    import shutil
    import subprocess

    command = SUBMIT[platform]
    if shutil.which(command[0]) is None:
        said = f"{command[0]!r} is not installed here"
        file = "cluster.yaml" if platform == "kubernetes" else "job.sh"
        typed = " ".join(command[:-1] if platform == "kubernetes" else command)
        raise ValueError(f"{said}; write it with --print > {file}, and type {typed} {file} where it is")
    done = subprocess.run(command, input=script, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]} refused it: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout
