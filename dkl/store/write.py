"""From staged parts to a data set in its place: what needs all parts is decided; then hands survey and write rows."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Protocol

import numpy as np

from dkl.sources.batch import SourceError
from dkl.store.assemble import Preparation
from dkl.store.dataset import is_ours, mark_incomplete
from dkl.store.decide import channel_names, check_rows, check_steps, final_dtype, find_target, is_sparse
from dkl.store.folder import Folder, absolute, is_url, remove
from dkl.store.opened import Opened, check_alike
from dkl.store.recipe import Channel, Recipe
from dkl.store.request import Request
from dkl.store.staging import Part
from dkl.store.survey import Survey, make_channel

RESULT, REPLACED = "result.zarr", "replaced"


class Hands(Protocol):
    """Who parses, surveys and writes the rows: threads of this process, or workers of a cluster."""

    def stage(self, files: list[Opened], progress: Any) -> list[list[Part]]:
        """The parts of every file, staged, in order."""

    def survey(
        self, parts: list[list[Part]], channels: tuple[Channel, ...], sparse: bool, fixed: bool
    ) -> Survey:  # fmt: skip
        """Constants of the channels, and rows of the splits."""

    def assemble(
        self, place: str, parts: list[list[Part]], found: Survey, prepared: Preparation, origin: Any,
        firsts: list[Opened], progress: Any,
    ) -> None:  # fmt: skip
        """Write the data set at a place, up to its attribute `complete`."""


def staging_dtype(request: Request) -> np.dtype | None:
    """The dtype of staged numbers, if nothing is computed with them before they are stored."""
    if request.recipe is None and set(request.scale) <= {"none"} and request.missing in ("refuse", "drop"):
        return np.dtype("float64" if request.dtype == "float64" else "float32")
    return None


def write(
    request: Request, folder: Folder, hands: Hands, sources: list[Opened], staged: list[list[Part]], origin: Any,
    progress: Any, room: int | None,
) -> None:  # fmt: skip
    """The data set of the staged parts of every file, in its place; `room` is the bytes that matrices may take."""
    like = request.recipe and Recipe.from_json(request.recipe, request.matrices)
    parts, firsts = channels_of(sources, staged)
    check_rows(parts, [file.source.name for file in firsts])
    if not like:
        names = channel_names(firsts, request)
        channels = tuple(
            make_channel(name, file.source, channel, scale, request)
            for name, file, channel, scale in zip(names, firsts, parts, request.scales, strict=True)
        )
    else:
        channels = like.channels
    sparse = is_sparse(request, parts, channels)
    check_steps(channels, sparse, room)
    target = find_target(request, parts, firsts)
    found = hands.survey(parts, channels, sparse, bool(like))
    for name, rows in zip(request.split_names or ("the data set",), found.rows, strict=True):
        if not rows:
            raise SourceError(
                f"none of the {sum(p.rows for p in parts[0]):,} rows is left for {name}; change --split or --missing"
            )
    dtype = like.dtype if like else final_dtype(request, parts)
    reading = {name: getattr(request, name) for name in request.remembered}
    recipe = Recipe(found.channels, dtype, request.missing, target.name, json.loads(json.dumps(reading)))
    place = absolute(request.dest) if is_url(request.dest) else os.path.join(folder.path, RESULT)
    progress.name(f"writing {os.path.basename(request.dest)}")
    prepared = Preparation(recipe, target, request, sparse)
    hands.assemble(place, parts, found, prepared, origin, sources, progress)
    if not is_url(request.dest):
        put_in_place(place, absolute(request.dest), os.path.join(folder.path, REPLACED), request.overwrite)


def empty_group(place: str) -> Any:
    """A new Zarr group in the place of whatever is there."""
    import zarr

    if is_url(place) and is_ours(place):
        mark_incomplete(place)  # objects are deleted one by one, and the rest must not look complete
    remove(place)
    return zarr.open_group(place, mode="w", zarr_format=3)


def put_in_place(place: str, dest: str, aside: str, overwrite: bool) -> None:
    """Rename the finished data set into place; one that it replaces is moved to the staging folder first."""
    if os.path.lexists(dest):
        if not overwrite:
            raise FileExistsError(f"{dest!r} appeared during the ingest; move it away and run dkl resume {dest}")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(dest, aside)
    os.rename(place, dest)


def channels_of(sources: list[Opened], staged: list[list[Part]]) -> tuple[list[list[Part]], list[Opened]]:
    """The parts of each channel, and its first source; files of one pattern or of --rows are further rows."""
    parts: dict[int, list[Part]] = {}
    firsts: dict[int, Opened] = {}
    for file, own in zip(sources, staged, strict=True):
        first = firsts.setdefault(file.channel, file)
        if file.source is not None:
            check_alike(file.path, file.source, first.path, first.source.columns)
        parts.setdefault(file.channel, []).extend(own)
    order = sorted(parts)
    return [parts[c] for c in order], [firsts[c] for c in order]
