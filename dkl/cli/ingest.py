"""dkl ingest: files to a Zarr data set."""

from __future__ import annotations

import time
from typing import Any

import click

from dkl.cli.layout import Verb, several
from dkl.cli.log import event_log, log_option
from dkl.cli.where import NAMES, cluster, is_spread, runs_somewhere

FORMATS = ("csv", "svmlight", "parquet", "npy", "npz", "idx", "images", "zarr", "sklearn")
HALVES = ("left", "right", "top", "bottom")
EXAMPLE = """dkl ingest covtype.csv.xz covtype.zarr --scale standard --split test=0.2
dkl ingest images-idx3-ubyte.gz images.zarr --target labels-idx1-ubyte.gz --scale gcn,zca
dkl ingest textures/ textures.zarr --patches 16 --split test=right
dkl ingest a9a.t.svm.xz a9a-test.zarr --like a9a.zarr
dkl ingest mfeat-fou.csv mfeat-kar.csv mfeat.zarr             # two channels of the same rows
dkl ingest 's3://bucket/part-*.parquet' s3://bucket/rows.zarr --scheduler tcp://host:8786"""


def _split(ctx: Any, param: Any, value: tuple[str, ...]) -> tuple[tuple[str, float | str], ...]:
    found: list[tuple[str, float | str]] = []
    for text in several(ctx, param, value):
        name, _, share = text.partition("=")
        if share in HALVES:
            found.append((name, share))
            continue
        try:
            found.append((name, float(share)))
        except ValueError:
            raise click.BadParameter(f"{text!r} is not NAME=SHARE; use for example --split test=0.2") from None
    return tuple(found)


def _patch(ctx: Any, param: Any, value: str | None) -> tuple[int, int] | None:
    """A square, or a height and a width."""
    return _size(ctx, param, f"{value}x{value}" if value is not None and value.isdecimal() else value)


def _size(ctx: Any, param: Any, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    try:
        height, width = (int(word) for word in value.lower().split("x"))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not HEIGHTxWIDTH; use for example {param.opts[0]} 32x32") from None
    if height < 1 or width < 1:
        raise click.BadParameter(f"{value!r} has no pixels; use for example {param.opts[0]} 32x32")
    return height, width


@click.command(
    cls=Verb,
    example=EXAMPLE,
    help="Read each SOURCE (a file, URL, quoted pattern, folder of images, Zarr, or sklearn:digits; gzip, bz2 or xz "
    "too) and write the data set DEST. Several sources are channels of the same rows.",
)
@click.argument("sources", nargs=-1, metavar="SOURCE...", type=click.Path())
@click.argument("dest", metavar="DEST.zarr", type=click.Path())
@click.option("--target", help="Column of y: name, or position (-1 is the last, the default); a file of labels; none.")
@click.option(
    "--task",
    default="auto",
    help="classification or regression (default: classes if text, or few different whole numbers).",
)
@click.option(
    "--scale",
    multiple=True,
    callback=several,
    metavar="STEPS",
    help="minmax ([-1, 1]), standard, l1 (histograms), gcn[:BIAS] (contrast of a row), zca[:EPS] (whitening); several "
    "in order: gcn,zca. Several sources: one entry for each, with + between steps.",
)
@click.option(
    "--categorical", multiple=True, callback=several, help="Columns to encode one-hot; auto: all that hold text."
)
@click.option("--drop", multiple=True, callback=several, help="Columns to leave out.")
@click.option("--missing", default="refuse", help="What to do with missing values: drop (the row), mean, zero.")
@click.option("--na", multiple=True, callback=several, help="Further words that mark a missing value, as '?'.")
@click.option(
    "--split",
    multiple=True,
    callback=_split,
    metavar="NAME=SHARE",
    help="Hold out a share of the rows, e.g. test=0.2; of patches also a half of each image, e.g. test=right.",
)
@click.option("--seed", default=0, help="Seed of the split, and of the places of patches.")
@click.option("--rows", is_flag=True, help="Stack the sources as rows instead of channels.")
@click.option(
    "--like", metavar="PATH", type=click.Path(), help="Columns, categories and scales of this data set or model."
)
@click.option("--dtype", default="auto", help="float32 (default; small whole numbers stay) or float64.")
@click.option("--layout", default="auto", help="dense or sparse rows (default: sparse if under 1/4 is stored).")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    metavar="NAME",
    help="csv, svmlight, parquet, npy, npz, idx, images, zarr (default: by content).",
)
@click.option("--delimiter", help="Delimiter of CSV (default: by content).")
@click.option("--header/--no-header", default=None, help="Whether CSV has a header (default: by content).")
@click.option("--encoding", default="utf-8", help="Encoding of text files.")
@click.option(
    "--descriptor",
    multiple=True,
    callback=several,
    help="Of images: pixels, hog, hog:4, lbp, color; several are channels.",
)
@click.option("--resize", callback=_size, metavar="HxW", help="Resize images.")
@click.option("--patches", callback=_patch, metavar="SIDE", help="Cut images into patches: 16, or 16x32.")
@click.option("--per-image", type=click.IntRange(1), metavar="N", help="Patches of each image or half (default: 1000).")
@click.option("--overwrite", is_flag=True, help="Replace DEST (on a local disk: when the new one is complete).")
@log_option
@runs_somewhere
def ingest(sources: tuple[str, ...], dest: str, like: str | None, log: str | None, **how: Any) -> None:
    """The verb."""
    from dkl.cli.open import recipe_at
    from dkl.engine.memory import available_bytes
    from dkl.store.dataset import matrices_of
    from dkl.store.ingest import begin_ingest
    from dkl.store.request import Request, request_like

    where = {name: how.pop(name) for name in NAMES}
    how["format"] = how.pop("format_")
    how["scale"] = how["scale"] or ("none",)
    how["descriptor"] = how["descriptor"] or ("pixels",)
    if like is None:
        request = Request(sources, dest, **how)
    else:
        request = request_like(recipe_at(like), sources, dest, how, matrices_of(like, available_bytes()))
    with event_log(log, "ingest", sources=list(sources), dest=dest), cluster(**where):
        folder = begin_ingest(request, spread=is_spread(where))
        finish(request, folder, where)


def finish(request: Any, folder: Any, where: dict[str, Any]) -> None:
    """Run an ingest that has begun to its end, and print the data set."""
    from dkl.cli.describe import describe_dataset
    from dkl.cli.exits import Interrupted, Terminated
    from dkl.cli.inspect import show
    from dkl.engine.memory import available_bytes
    from dkl.engine.progress import Progress
    from dkl.engine.threads import thread_count
    from dkl.prepare.ingest import crew_for
    from dkl.store.ingest import run_ingest

    start = time.monotonic()
    try:
        crew = crew_for("cluster", ()) if is_spread(where) else None
        run_ingest(request, folder, where["threads"] or thread_count(), Progress(), available_bytes(), crew)
    except KeyboardInterrupt as error:
        kind = Terminated if isinstance(error, Terminated) else Interrupted
        raise kind(f"interrupted; dkl resume {request.dest} continues from here") from None
    click.echo(show(describe_dataset(request.dest)))
    click.echo(f"\n{request.dest} is complete after {time.monotonic() - start:.1f} s")
