"""dkl cluster: the manifest or job script of a cluster, printed or submitted."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from dkl.cli.layout import Verb

PLATFORMS = ("kubernetes", "slurm", "pbs", "local")
SUBMIT = {"kubernetes": ["kubectl", "apply", "-f", "-"], "slurm": ["sbatch"], "pbs": ["qsub"]}
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
    from dkl.cli.cluster_flags import request_of

    request = request_of(platform, values)
    script = _text(request, values["config"])
    if request.why:
        click.echo(f"dkl: {request.why}", err=True)
    if not applies:
        click.echo(script, nl=False)
    elif shows:
        raise click.UsageError(f"--print shows the {platform} cluster and --apply starts it; give one of them")
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
