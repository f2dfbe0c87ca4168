"""dkl resume: go on with what was interrupted."""

from __future__ import annotations

import os
from typing import Any

import click

from dkl.cli.layout import Verb
from dkl.cli.log import log_option
from dkl.cli.where import runs_somewhere


@click.command(
    cls=Verb,
    example="dkl resume model.zarr\ndkl resume model.zarr --max-iter 100\ndkl resume --finish model.zarr\n"
    "dkl resume covtype.zarr",
    help="Go on with the ingest or the fit that was to make PATH. What has been done is not done again, and the result "
    "is, bit for bit, that of a run that was never interrupted. Nothing happens if PATH is complete.",
)
@click.argument("path", type=click.Path())
@click.option("--finish", is_flag=True, help="Of a fit: learn no further, solve with the best sigma so far.")
@click.option("--max-iter", type=click.IntRange(1), metavar="N", help="Of a fit: another limit from here on.")
@click.option("--max-time", type=float, metavar="SECONDS", help="Likewise, counted from the fit's beginning.")
@click.option("--tol", type=float, metavar="VALUE", help="Likewise.")
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
        raise click.UsageError(f"--finish learns no further, so it has no use for {asked[1]}; give one of them")
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
        raise ValueError(f"{asked[0]} is for a fit that was interrupted; {path!r} is complete, so fit it again")
    if asked and Folder(staging_path(path)).names():
        raise ValueError(f"{asked[0]} is for a fit; {path!r} is an ingest, which dkl resume {path} goes on with")
    if Folder(staging_path(path)).names():
        request, folder, begun_in = open_ingest(path)
        check_resumable(request, folder)
        with event_log(log, "resume", dest=path):
            os.chdir(begun_in)  # where its relative paths begin
            ingest.finish(request, folder, where["threads"])
        return
    if exists(path):
        if not is_dataset(path):
            open_attributes(path)
        click.echo(f"{path} is complete; there is nothing to resume")
        return
    raise ValueError(f"nothing was interrupted at {path!r}; give the data set or the model that was to be made")
