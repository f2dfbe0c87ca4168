"""dkl plan: what a fit will need, before it runs."""

from __future__ import annotations

import json
from typing import Any

import click

from dkl.cli.config import merge
from dkl.cli.families import ModelVerb
from dkl.cli.options import BY_NAME, model_options
from dkl.cli.where import cluster, runs_somewhere


@click.command(
    cls=ModelVerb,
    example="dkl plan covtype.zarr --n-components 5000 --cv 5\ndkl plan rows.zarr --n-components 20000 --workers 8",
    help="Print peak memory, bytes, flops and time of `dkl fit DATA` with these options. Exit code 3: not enough "
    "memory.",
)
@click.argument("data", metavar="DATA.zarr", type=click.Path())
@click.option("--split", help="The split to fit to.")
@click.option("--config", metavar="FILE.toml", type=click.Path(), help="Read options from a file; flags win.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@model_options
@runs_somewhere
def plan(data: str, split: str | None, config: str | None, as_json: bool, **flags: Any) -> int:
    """The verb."""
    from dkl.cli.exits import NO_ROOM
    from dkl.cli.fit import build, with_dtype
    from dkl.cli.open import task_of, training_rows

    where = {name: flags.pop(name) for name in list(flags) if name not in BY_NAME}
    options = merge(flags, config)
    rows = training_rows(data, split)
    task, family = task_of(rows, options.pop("task")), options.pop("model")
    model = build({"estimator": task, "family": family, "params": with_dtype(options, rows)})
    with cluster(**where):
        found = model.plan(rows, rows)
    if as_json:
        figures = (
            "engine",
            "workers",
            "threads",
            "worker_bytes",
            "worker_limit",
            "solve_bytes",
            "solve_limit",
            "seconds",
            "iteration_seconds",
            "solve_seconds",
            "total_seconds",
            "passes",
            "flops",
            "bytes_read",
            "fits",
        )
        values = {name: getattr(found, name) for name in figures}
        click.echo(json.dumps(values))
    else:
        click.echo(str(found))
    return 0 if found.fits else NO_ROOM
