"""dkl doctor: what is wrong with a cluster (or this machine) before a fit finds out, and what to change."""

from __future__ import annotations

import json
import math
from typing import Any

import click

from dkl.cli.layout import Verb, grid, pairs
from dkl.cli.places import try_place
from dkl.cli.where import cluster, runs_somewhere

MOST_SHOWN = 3
"""Processes with the same finding that are named; --json has all."""


@click.command(
    cls=Verb,
    example="dkl doctor\ndkl doctor --scheduler cluster.json s3://bucket/rows.zarr --checkpoint s3://bucket/model.zarr",
    help="Compare versions, BLAS, threads and memory of all processes, try to read DATA and to write to the checkpoint "
    "from every worker, and measure each worker for five seconds. Exit code 1 if anything is wrong.",
)
@click.argument("data", required=False, metavar="[DATA]", type=click.Path())
@click.option("--checkpoint", metavar="PATH", type=click.Path(), help="Where a fit would write: a model, a checkpoint.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@runs_somewhere
def doctor(data: str | None, checkpoint: str | None, as_json: bool, **where: Any) -> int:
    """The verb."""
    from dkl.engine.active import active_client
    from dkl.engine.findings import findings

    with cluster(**where):
        client = active_client() if where["workers"] or where["scheduler"] else None
        facts = examine(client, data, checkpoint)
    found = findings(facts)
    wrong = [one for one in found if one.level == "wrong"]
    if as_json:
        click.echo(json.dumps(plain({"ok": not wrong, "findings": [one._asdict() for one in found], **facts})))
    else:
        click.echo(show(facts))
        for (level, what), who in grouped(found).items():
            more = f" and {len(who) - MOST_SHOWN} more" if len(who) > MOST_SHOWN else ""
            click.echo(f"\n{level}: {', '.join(who[:MOST_SHOWN])}{more}: {what}")
        count = len(grouped(wrong))
        said = {0: "nothing is wrong", 1: "1 thing is wrong"}.get(count, f"{count} things are wrong")
        click.echo(f"\n{said}")
    return 1 if wrong else 0


def grouped(found: list[Any]) -> dict[tuple[str, str], list[str]]:
    """Who has the same finding."""
    groups: dict[tuple[str, str], list[str]] = {}
    for one in found:
        groups.setdefault((one.level, one.what), []).append(one.who)
    return groups


def examine(client: Any, data: str | None, checkpoint: str | None) -> dict[str, Any]:
    """The answers of every process."""
    from dkl.engine.checkup import Somewhere

    place = Somewhere(client)
    places = [(data, False), (checkpoint, True)]
    return {
        "scheduler_address": place.where,
        "version_faults": place.versions,
        **place.facts(),
        "flops": place.speeds(),
        "bytes_per_second": place.links(),
        "places": [try_place(place, path, written) for path, written in places if path is not None],
    }


def show(facts: dict[str, Any]) -> str:
    """Client, scheduler and a line for each worker."""
    parts = [pairs([("client", _about(facts["client"])), *_scheduler(facts)])]
    rows = [
        [address, one["threads"], _gib(one["memory_limit"]), _rate(facts["flops"], address, 1e9),
         _rate(facts["bytes_per_second"], address, 1e6)]
        for address, one in facts["workers"].items()
    ]  # fmt: skip
    if rows:
        parts.append(grid(["worker", "threads", "memory limit", "GFLOP/s", "MB/s to the scheduler"], rows))
    elif not facts["scheduler_address"]:
        parts[0] += f"\n speed  {facts['flops'][''] / 1e9:.3g} GFLOP/s on all cores"
    return "\n\n".join(parts)


def _scheduler(facts: dict[str, Any]) -> list[tuple[str, str]]:
    if not facts["scheduler_address"]:
        return []
    one = facts["scheduler"]
    about = "it cannot be asked" if one is None else f"{1000 * one['round_trip_seconds']:.1f} ms away, {_about(one)}"
    return [("scheduler", f"{facts['scheduler_address']}, {about}")]


def _about(one: dict[str, Any]) -> str:
    from dkl.engine.memory import count

    versions = ", ".join(
        f"{name} {one['versions'][name]}" for name in ("dkl", "python", "numpy", "dask", "distributed")
    )
    blas = ", ".join(
        f"{b['library']} {b['version']} for {b['cpu']}, {count(b['threads'], 'thread')}" for b in one["blas"]
    )
    return f"{one['host']}: {versions}; {blas}; {one['cores']} cores, {_gib(one['container_bytes'])}"


def _gib(count: int | None) -> str:
    from dkl.engine.memory import gib

    return gib(count) if count else "none"


def _rate(rates: dict[str, float], address: str, unit: float) -> float | None:
    rate = rates.get(address, math.nan)
    return None if math.isnan(rate) else rate / unit


def plain(value: Any) -> Any:
    """JSON has no nan."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value
