"""Sources to a Zarr data set in two steps: parse every segment once into a staging folder, then write rows in order.

DEST.ingest holds the request and the parsed parts until DEST stands. Each step can be killed at any moment; the parts
that are there are kept, the writing begins again, and the result has the same bits. DEST itself appears when it is
complete (on an object store, which cannot rename, its attribute `complete` appears last).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dkl.sources.batch import Source, SourceError
from dkl.sources.files import identity
from dkl.sources.find import expand, open_source
from dkl.store.assemble import Target, assemble
from dkl.store.dataset import is_ours, open_node
from dkl.store.folder import Folder, absolute, check_parent, exists, is_url, remove
from dkl.store.recipe import Recipe
from dkl.store.request import REMEMBERED, Request
from dkl.store.staging import Aligned, Part, Staging
from dkl.store.survey import make_channel, survey, target_name

JOURNAL, RESULT = "ingest.json", "result.zarr"
EXACT = 2.0**53
"""Whole numbers from here on are not all exact in float64."""
SPARSE_BELOW = 0.25
"""Share of entries that are stored, above which sparse sources become dense rows."""


def staging_path(dest: str) -> str:
    """Where the unfinished ingest of a data set lies."""
    return f"{absolute(dest)}.ingest"


def begin_ingest(request: Request) -> Folder:
    """Check what can be checked, and open the staging folder with the request in it."""
    request.check()
    folder = Folder(staging_path(request.dest))
    busy = FileExistsError(
        f"an ingest of {request.dest!r} is under way or was interrupted; dkl resume {request.dest} goes on, or remove "
        f"{folder.path!r} to begin again"
    )
    folder.clear()
    if folder.names():
        raise busy
    if exists(request.dest):
        if not request.overwrite:
            raise FileExistsError(f"{request.dest!r} exists; choose another destination or say --overwrite")
        if not is_ours(request.dest) or absolute(request.dest) in map(absolute, request.sources):
            raise FileExistsError(f"{request.dest!r} is a source, or no data set of dkl; it is not overwritten")
    check_parent(request.dest)
    sources = _open_sources(request)
    about = {"format": "dkl-ingest", "version": 1, "request": request.to_json(), "from": os.getcwd()}
    try:
        folder.begin(JOURNAL, {**about, "origin": _origin(request, sources)})
    except FileExistsError:
        raise busy from None
    return folder


def open_ingest(dest: str) -> tuple[Request, Folder, str]:
    """The unfinished ingest of a destination, and the working directory that its paths begin from."""
    folder = Folder(staging_path(dest))
    journal = folder.read_json(JOURNAL)
    if not isinstance(journal, dict) or journal.get("format") != "dkl-ingest":
        raise ValueError(f"{folder.path!r} holds no ingest that could go on; remove it and begin again")
    return Request.from_json(journal["request"]), folder, str(journal["from"])


def run_ingest(request: Request, folder: Folder, threads: int, progress: Any) -> None:
    """Go on from whatever has been done; at the end the data set stands and the staging folder is gone."""
    with folder.locked():
        origin = folder.read_json(JOURNAL)["origin"]
        if not _stands(request, origin):
            sources = _open_sources(request)
            if _origin(request, sources) != origin:
                raise ValueError(f"the sources of {request.dest!r} have changed; remove {folder.path!r} to begin again")
            try:
                _run(request, folder, sources, origin, threads, progress)
            except SourceError:
                folder.end(JOURNAL)  # what the source holds will not change by trying again
                raise
        folder.end(JOURNAL)


def _run(request: Request, folder: Folder, sources: list, origin: Any, threads: int, progress: Any) -> None:
    staging = Staging(folder, _staging_dtype(request))
    with ThreadPoolExecutor(threads, thread_name_prefix="dkl-ingest") as pool:
        for number, (name, source) in enumerate(sources):
            progress.name(f"reading {name}").begin(source.size or 0, "bytes")
            staging.stage(number, source, pool, 2 * threads, progress)
            progress.end()
        _write(request, folder, staging, sources, origin, pool, progress)


def _stands(request: Request, origin: Any) -> bool:
    """Whether the data set was finished, and only the staging folder was left to remove."""
    if not is_ours(request.dest):
        return False
    attributes = open_node(request.dest).attrs
    return attributes.get("complete") is True and attributes.get("origin") == origin


def _open_sources(request: Request) -> list[tuple[str, Source]]:
    """(path, source) of every file of every channel, in order."""
    like = request.recipe and Recipe.from_json(request.recipe)
    if like and request.n_channels != len(like.channels):
        raise ValueError(
            f"{request.n_channels} sources were given; the data were made of {len(like.channels)} channels"
        )
    opened = []
    for s, path in enumerate(request.sources):
        for d, descriptor in enumerate(request.descriptor):
            channel = 0 if request.rows else s * len(request.descriptor) + d
            known = like.channels[channel] if like else None
            for file in expand(path):
                opened.append((file, open_source(file, request.reading(descriptor, known))))
    return opened


def _origin(request: Request, sources: list[tuple[str, Source]]) -> list:
    """What changes when the request or a source does."""
    asked = hashlib.sha256(json.dumps(request.to_json()).encode()).hexdigest()
    return json.loads(json.dumps([asked, *([os.path.basename(path), identity(path)] for path, _ in sources)]))


def _staging_dtype(request: Request) -> np.dtype | None:
    """Numbers that nothing is computed with are staged as they will be stored."""
    if request.recipe is None and set(request.scale) <= {"none"} and request.missing in ("refuse", "drop"):
        return np.dtype("float64" if request.dtype == "float64" else "float32")
    return None


def _write(
    request: Request, folder: Folder, staging: Staging, sources: list, origin: Any, pool: ThreadPoolExecutor,
    progress: Any,
) -> None:  # fmt: skip
    import zarr

    like = request.recipe and Recipe.from_json(request.recipe)
    parts, firsts = _channels(request, staging, sources)
    _check_rows(parts, [source.name for _, source in firsts])
    if not like:
        scales = request.scale * len(parts) if len(request.scale) == 1 else request.scale
        names = _channel_names(firsts, request)
        channels = tuple(
            make_channel(name, source, channel, scale, request)
            for name, (_, source), channel, scale in zip(names, firsts, parts, scales, strict=True)
        )
    else:
        channels = like.channels
    sparse = _is_sparse(request, parts, channels)
    target = _target(request, parts, firsts)
    aligned = Aligned(staging, parts, pool)
    found = survey(aligned, channels, request, sparse, fixed=bool(like))
    for name, rows in zip(request.split_names or ("the data set",), found.rows, strict=True):
        if not rows:
            raise SourceError(
                f"no row is left for {name}; there are {sum(p.rows for p in parts[0]):,} rows in the source"
            )
    dtype = like.dtype if like else _dtype(request, parts)
    reading = {name: getattr(request, name) for name in REMEMBERED}
    recipe = Recipe(found.channels, dtype, request.missing, target.name, json.loads(json.dumps(reading)))
    place = absolute(request.dest) if is_url(request.dest) else os.path.join(folder.path, RESULT)
    remove(place)
    root = zarr.open_group(place, mode="w", zarr_format=3)
    progress.name(f"writing {os.path.basename(request.dest)}")
    assemble(root, aligned, found, recipe, target, request, sparse, origin, pool, progress)
    if not is_url(request.dest):
        _put_in_place(place, absolute(request.dest), os.path.join(folder.path, "replaced"), request.overwrite)


def _put_in_place(place: str, dest: str, aside: str, overwrite: bool) -> None:
    """Rename the finished data set to its name; one that it replaces goes to the staging folder, and with it."""
    if os.path.lexists(dest):
        if not overwrite:
            raise FileExistsError(f"{dest!r} has appeared during the ingest; move it away and dkl resume")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(dest, aside)
    os.rename(place, dest)


def _channels(request: Request, staging: Staging, sources: list) -> tuple[list[list[Part]], list]:
    """The parts of each channel, and its first source; files of one pattern, or of --rows, are further rows."""
    parts: list[list[Part]] = []
    firsts: list = []
    number = 0
    for s, path in enumerate(request.sources):
        for d, _ in enumerate(request.descriptor):
            for f, _ in enumerate(expand(path)):
                mine = staging.parts(number)
                further = f > 0 or (request.rows and s > 0)
                if further:
                    first = firsts[d if request.rows else -1][1]
                    if first.columns != sources[number][1].columns:
                        raise SourceError(f"{sources[number][0]!r} and {firsts[-1][0]!r} have different columns")
                    parts[d if request.rows else -1] += mine
                else:
                    parts.append(mine)
                    firsts.append(sources[number])
                number += 1
    return parts, firsts


def _check_rows(parts: list[list[Part]], names: list[str]) -> None:
    counts = [sum(part.rows for part in channel) for channel in parts]
    if not min(counts):
        raise SourceError(f"{names[int(np.argmin(counts))]!r} has no rows")
    if len(set(counts)) > 1:
        found = ", ".join(f"{name!r} {count:,}" for name, count in zip(names, counts, strict=True))
        raise SourceError(
            f"sources have different numbers of rows ({found}); channels have the same rows (say --rows if the sources "
            "are further rows of one table)"
        )


def _channel_names(firsts: list, request: Request) -> list[str]:
    names = [source.name for _, source in firsts]
    if len(request.descriptor) > 1:
        names = [f"{name} {request.descriptor[i % len(request.descriptor)]}" for i, name in enumerate(names)]
    return [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]


def _is_sparse(request: Request, parts: list[list[Part]], channels: Any) -> bool:
    all_sparse = all(part.summary["sparse"] for channel in parts for part in channel)
    if request.layout == "sparse" and not all_sparse:
        raise SourceError("layout sparse needs sources that are sparse (svmlight, scipy.sparse npz)")
    if request.layout != "auto":
        return request.layout == "sparse"
    entries = sum(part.summary["entries"] for channel in parts for part in channel) if all_sparse else 0
    cells = sum(part.rows for part in parts[0]) * sum(channel.n_inputs for channel in channels)
    return all_sparse and entries <= SPARSE_BELOW * cells


def _dtype(request: Request, parts: list[list[Part]]) -> str:
    """float32, unless the user says otherwise or small whole numbers can stay what they are."""
    if request.dtype != "auto":
        return request.dtype
    kinds = {part.summary["dtype"] for channel in parts for part in channel}
    texts = any(part.summary["text"] for channel in parts for part in channel)
    small = len(kinds) == 1 and kinds <= {"uint8", "int8", "uint16", "int16"}
    return kinds.pop() if small and not texts and set(request.scale) <= {"none"} else "float32"


def _target(request: Request, parts: list[list[Part]], firsts: list) -> Target:
    """What the target is: names, classes or numbers. Whole numbers are classes if there are few for so many rows."""
    for channel, (path, source) in zip(parts, firsts, strict=True):
        summaries = [part.summary for part in channel]
        if not source.has_target:
            continue
        name = target_name(source, request)
        if len({"labels" in s for s in summaries}) > 1:
            raise SourceError(f"the target of {path!r} is text in some rows and numbers in others; make it one of them")
        if "labels" in summaries[0]:
            if request.task == "regression":
                raise SourceError(f"the target of {path!r} is text; it cannot be used for regression")
            return Target("text", name, sorted(set().union(*(s.get("labels", []) for s in summaries))))
        values = [s.get("values") for s in summaries]
        distinct = set().union(*(v for v in values if v is not None)) if None not in values else None
        rows = sum(part.rows for part in channel)
        sizes = [s["largest"] for s in summaries]
        if request.task != "regression" and None not in sizes and max(sizes) >= EXACT:
            raise SourceError(
                f"the target of {path!r} holds {max(sizes):.0f}, a whole number that float64 cannot tell from "
                "its neighbours; say --task regression if it is a measure, or write classes as text"
            )
        if request.task == "classification":
            if distinct is None:
                raise SourceError(f"the target of {path!r} has too many values, or broken ones, to be classes")
            return Target("classification", name)
        few = distinct is not None and len(distinct) <= max(20, math.isqrt(rows))
        return Target("classification" if few and request.task == "auto" else "regression", name)
    if request.task != "auto":
        raise SourceError(f"task {request.task!r} needs a target, and no source has one; say --target")
    return Target("none")
