"""dkl inspect: what lies at a path."""

from __future__ import annotations

import json
from typing import Any

import click

from dkl.cli.describe import describe
from dkl.cli.layout import Verb, grid, pairs
from dkl.estimators.summary import held_out_key, lines, names, plain, spread
from dkl.sources.shown import shown

MOST_CLASSES = 20


@click.command(
    cls=Verb,
    example="dkl inspect covtype.zarr\ndkl inspect covtype.zarr --verify\ndkl inspect model.zarr --json",
    help="Show what PATH holds: a data set, one of its splits, a model, any Zarr, or an interrupted run.",
)
@click.argument("path", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--verify", "verified", is_flag=True, help="Read every chunk; list damaged and missing ones.")
def inspect(path: str, as_json: bool, verified: bool) -> None:
    """The verb."""
    if verified:
        return _verify(path, as_json)
    try:
        found = describe(path)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path!r} is damaged: an entry is missing ({error}); make it again") from None
    found["path"] = shown(found["path"])
    click.echo(json.dumps(found) if as_json else show(found))
    return None


def _verify(path: str, as_json: bool) -> None:
    """Read everything; exit code 1 if anything is wrong."""
    from dkl.engine.memory import available_bytes
    from dkl.engine.progress import Progress
    from dkl.engine.threads import thread_count
    from dkl.store.verify import verify

    found = verify(path, available_bytes(), thread_count(), Progress())
    damaged, count = found["damaged"], found["chunks"]
    if as_json:
        click.echo(json.dumps(found))
    elif damaged:
        click.echo("\n".join([*(entry["why"] for entry in damaged), f"\n{path}: {len(damaged):,} damaged or missing"]))
    else:
        lacks = "" if found["sure"] else "; it has no checksums (an older dkl made it): ingest the source again"
        click.echo(f"{path}: {count:,} chunks read, nothing is damaged{_absent(found['absent'])}{lacks}")
    if damaged:
        raise click.exceptions.Exit(1)


def _absent(chunks: list[dict]) -> str:
    """Chunks that an older data set does not hold."""
    if not chunks:
        return " or missing"
    more = f" and {len(chunks) - 3:,} more" if len(chunks) > 3 else ""
    return (
        "; not there, all zeros or lost: " + ", ".join(f"chunk {c['chunk']} of {c['array']}" for c in chunks[:3]) + more
    )


def show(found: dict) -> str:
    """The same for a person."""
    if found["kind"] == "data set":
        return "\n\n".join([_show_head(found), *(_show_split(split) for split in found["splits"])])
    if found["kind"] == "zarr":
        rows = [
            [a["name"] or ".", _times(a["shape"]), a["dtype"], _times(a["chunks"]), _bytes(a["bytes"])]
            for a in found["arrays"]
        ]
        return f"Zarr {found['path']}\n\n" + grid(["array", "shape", "dtype", "chunks", "size"], rows)
    if found["kind"] == "model":
        return _show_model(found)
    if found["kind"] == "transformer":
        return _show_transformer(found)
    facts = [_fact(key, value) for key, value in found.items() if key not in ("kind", "path")]
    if found["kind"] == "checkpoint":
        return f"checkpoint {found['path']}\n\n{pairs(facts)}\n\nfit(resume=True) of the same model and rows resumes it"
    return f"{found['kind']} of {found['path']}\n\n{pairs(facts)}\n\ndkl resume {found['path']} resumes it"


def _fact(key: str, value: Any) -> tuple[str, str]:
    """A line about something unfinished; of many parameters only those that somebody has chosen."""
    if key == "map_is_drawn":
        return "map", "drawn" if value else "not drawn yet"
    if key == "params":
        from dkl.cli.options import BY_NAME

        chosen = {name: item for name, item in value.items() if name not in BY_NAME or item != BY_NAME[name].default}
        return "options", plain(chosen) or "all as they are by default"
    return key.replace("_", " "), plain(value)


def _show_head(found: dict) -> str:
    scale = ", ".join(dict.fromkeys(found["scale"]))
    rows = [
        ("task", found["task"]),
        ("target", found["target"] or "-"),
        ("scale", scale),
        ("missing values", found["missing"] + (f", {found['dropped']:,} rows left out" if found["dropped"] else "")),
        ("inputs", names(found["input_names"])),
    ]
    if not found["checksums"]:
        rows.append(("layout", "older, without checksums: damage may go unnoticed; ingest the source again"))
    return f"data set {found['path']}\n\n{pairs(rows)}"


def _show_split(split: dict) -> str:
    cut = f"chunks of {split['chunk_rows']:,} rows"
    if split["shard_rows"]:
        cut += f", shards of {split['shard_rows']:,}"
    layout = (
        split["dtype"] if split["layout"] == "dense" else f"{split['dtype']}, sparse ({split['density']:.1%} stored)"
    )
    target = split["target_range"]
    rows = [
        (split["split"] or "rows", f"{split['rows']:,} rows x {split['inputs']:,} inputs, {layout}"),
        ("cut into", cut),
        ("size", f"{_bytes(split['bytes'])}, {_bytes(split['stored_bytes'])} on disk"),
    ]
    if target:
        rows.append(("target", f"{target[0]:.6g} to {target[1]:.6g}"))
    parts = [pairs(rows)]
    counts = split["class_counts"]
    if counts:
        most = sorted(counts, key=lambda name: -counts[name])[:MOST_CLASSES]
        lines = [[name, counts[name], f"{counts[name] / split['rows']:.1%}"] for name in counts if name in most]
        parts.append(grid(["class", "rows", "share"], lines))
        if len(counts) > len(most):
            parts[-1] += f"\n... and {len(counts) - len(most):,} smaller classes (--json has all)"
    lines = [[c["name"], c["inputs"], c["low"], c["high"]] for c in split["channels"]]
    parts.append(grid(["channel", "inputs", "least", "greatest"], lines))
    return "\n\n".join(parts)


def _show_transformer(found: dict) -> str:
    learned = found["found"]
    channels = f" in {learned['channels']:,} channels" if "channels" in learned else ""
    share = f", {learned['variance']:.1%} of the variance" if "variance" in learned else ""
    rows = [
        ("estimator", found["estimator"]),
        ("features", f"{found['components']:,} of {found['inputs']:,} inputs{channels}{share}"),
        *([("sigma found", spread(list(learned["sigma"].values())))] if "sigma" in learned else []),
        *((name, str(value)) for name, value in found["params"].items()),
        *_show_lack(found),
    ]
    return f"transformer {found['path']}\n\n{pairs(rows)}"


def _show_lack(found: dict) -> list[tuple[str, str]]:
    """What a model of an earlier version lacks."""
    return [("lacks", found["lacks"])] if found["lacks"] else []


def _show_model(found: dict) -> str:
    scales = ", ".join(dict.fromkeys(found["scale"]))
    new_rows = f"files are prepared as the training rows were (scale {scales})" if found["recipe"] else "come as Zarr"
    rows = [*lines(found), ("new rows", new_rows), *_show_lack(found)]
    text = f"model {found['path']}\n\n{pairs(rows)}"
    if "cv" in found:
        key = held_out_key(found)
        head = ["alpha", f"cross-validated {key.replace('_', ' ')}"]
        text += "\n\n" + grid(head, [[c["alpha"], c[key]] for c in found["cv"]])
    return text


def _times(shape: list[int]) -> str:
    return " x ".join(f"{size:,}" for size in shape)


def _bytes(count: int) -> str:
    from dkl.engine.memory import gib

    return gib(count)
