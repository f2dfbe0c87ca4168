"""dkl resume: go on with what was interrupted."""

from __future__ import annotations

import os
from typing import Any

import click

from dkl.cli.log import log_option
from dkl.cli.shape import Verb
from dkl.cli.where import runs_somewhere


@click.command(
    cls=Verb,
    example="dkl resume model.zarr\ndkl resume covtype.zarr",
    help="Go on with the ingest or the fit that was to make PATH. What has been done is not done again, and the result "
    "is, bit for bit, that of a run that was never interrupted. Nothing happens if PATH is complete.",
)
@click.argument("path", type=click.Path())
@log_option
@runs_somewhere
def resume(path: str, log: str | None, **where: Any) -> None:
    """The verb."""
    from dkl.cli import fit, ingest
    from dkl.cli.log import event_log
    from dkl.store.dataset import is_dataset
    from dkl.store.folder import Folder, absolute, exists
    from dkl.store.ingest import check_resumable, open_ingest, staging_path
    from dkl.store.record import open_attributes

    path = path.rstrip("/").removesuffix(".ingest").removesuffix(".fit")
    for begun in (fit.run_path(path), staging_path(path)):
        Folder(begun).clear()
    run = Folder(fit.run_path(path)).read_json(fit.RUN)
    if run is not None:
        if not isinstance(run, dict) or run.get("format") != "dkl-fit":
            raise ValueError(f"{fit.run_path(path)!r} holds no fit that could go on; remove it and fit again")
        fit.finish({**run, "model": absolute(path)}, where, log)
        return
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
