"""dkl resume: finish an interrupted ingest or fit."""

from __future__ import annotations

import os
from typing import Any

import click

from dkl.cli.layout import Verb
from dkl.cli.log import log_option
from dkl.cli.where import cluster, runs_somewhere


@click.command(
    cls=Verb,
    example="dkl resume model.zarr\ndkl resume model.zarr --max-iter 100\ndkl resume --finish model.zarr\n"
    "dkl resume covtype.zarr",
    help="Resume the interrupted ingest or fit of PATH. Finished work is not repeated, and the result is bit for bit "
    "that of an uninterrupted run. Nothing happens if PATH is complete.",
)
@click.argument("path", type=click.Path())
@click.option("--finish", is_flag=True, help="Fit: stop now, with the best sigma or weights so far.")
@click.option("--max-iter", type=click.IntRange(1), metavar="N", help="Fit: new limit of iterations.")
@click.option("--max-time", type=float, metavar="SECONDS", help="Fit: new limit, counted from the start of the fit.")
@click.option("--tol", type=float, metavar="VALUE", help="Fit: new tolerance.")
@log_option
@runs_somewhere
def resume(
    path: str, finish: bool, max_iter: int | None, max_time: float | None, tol: float | None, log: str | None,
    **where: Any,
) -> None:  # fmt: skip
    """The verb."""
    given = {"max_iter": max_iter, "max_time": max_time, "tol": tol}
    limits = {name: value for name, value in given.items() if value is not None}
    asked = [*(["--finish"] if finish else []), *("--" + name.replace("_", "-") for name in limits)]
    if finish and limits:
        raise click.UsageError(f"--finish stops learning, so {asked[1]} has no effect; give one of them")
    _resume(path, finish, limits, asked, log, where)


def _resume(path: str, finish: bool, limits: dict, asked: list[str], log: str | None, where: dict) -> None:
    from dkl.cli import fit, ingest
    from dkl.cli.log import event_log
    from dkl.cli.restart import interrupted_run, with_limits
    from dkl.store.dataset import is_dataset
    from dkl.store.folder import Folder, absolute, exists
    from dkl.store.ingest import check_resumable, open_ingest, staging_path
    from dkl.store.record import open_attributes

    path = path.rstrip("/").removesuffix(".ingest").removesuffix(".fit")
    Folder(staging_path(path)).clear()
    run = interrupted_run(path)
    if run is not None:
        run = with_limits({**run, "model": absolute(path)}, limits)
        fit.build(run)
        fit.finish(run, where, log, now=finish)
        return
    if asked and exists(path):
        raise ValueError(f"{asked[0]} is for an interrupted fit; {path!r} is complete, so fit it again")
    if asked and Folder(staging_path(path)).names():
        raise ValueError(f"{asked[0]} is for a fit; {path!r} is an ingest: dkl resume {path}")
    if Folder(staging_path(path)).names():
        request, folder, begun_in = open_ingest(path)
        check_resumable(request, folder)
        with event_log(log, "resume", dest=path), cluster(**where):
            os.chdir(begun_in)  # where its relative paths begin
            ingest.finish(request, folder, where)
        return
    if exists(path):
        if not is_dataset(path):
            open_attributes(path)
        click.echo(f"{path} is complete; there is nothing to resume")
        return
    raise ValueError(f"there is no interrupted run at {path!r}; give the path of the data set or model it should make")
