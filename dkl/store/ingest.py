"""Sources to a Zarr data set in two steps: parse every segment once into a staging folder, then write rows in order.

DEST.ingest holds the request and the parsed parts until DEST is complete. Each step can be killed at any moment: parsed
parts are kept, writing starts over, and the result has the same bits. DEST appears when it is complete (an object store
cannot rename, so there the attribute `complete` is written last).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import Source, SourceError
from dkl.sources.damage import Damaged
from dkl.sources.files import identity
from dkl.sources.find import expand, open_source
from dkl.sources.idx_images import IdxImages
from dkl.sources.images import Images
from dkl.sources.shown import shown
from dkl.store.assemble import assemble
from dkl.store.coords import coords_beside
from dkl.store.dataset import is_ours, mark_incomplete, open_node
from dkl.store.decide import channel_names, check_rows, check_steps, final_dtype, find_target, is_sparse
from dkl.store.folder import Folder, absolute, check_parent, exists, is_url, remove
from dkl.store.recipe import Channel, Recipe
from dkl.store.request import Request
from dkl.store.staging import Aligned, Part, Staging
from dkl.store.survey import make_channel, survey

JOURNAL, RESULT, REPLACED = "ingest.json", "result.zarr", "replaced"
MATRIX = ".matrix.npy"
"""How the names of files with matrices of a recipe end."""


class Opened(NamedTuple):
    """A file of a channel."""

    channel: int
    path: str
    source: Source


def staging_path(dest: str) -> str:
    """The staging folder of a data set's ingest."""
    return f"{absolute(dest)}.ingest"


def begin_ingest(request: Request) -> Folder:
    """Check the request and create the staging folder with it."""
    request.check()
    folder = Folder(staging_path(request.dest))
    busy = FileExistsError(
        f"an ingest of {request.dest!r} is running or was interrupted; run dkl resume {request.dest}, or remove "
        f"{folder.path!r} to start over"
    )
    if absolute(request.dest) in map(absolute, request.sources):
        raise ValueError(f"{request.dest!r} is both a source and the destination; give the data set another name")
    for source in request.sources:
        if absolute(source).startswith(f"{absolute(request.dest)}/"):
            raise ValueError(
                f"{source!r} is inside the destination {request.dest!r}, which would be replaced; give the data set "
                "another name"
            )
    folder.clear()
    if folder.names():
        if request.has_secret and _saved_request(folder) == json.loads(json.dumps(request.to_json())):
            return folder  # its password is not stored, so giving it again resumes
        raise busy
    if exists(request.dest):
        if not request.overwrite:
            raise FileExistsError(f"{request.dest!r} exists; choose another destination or use --overwrite")
        if not is_ours(request.dest):
            raise FileExistsError(
                f"{request.dest!r} is not a data set of dkl and is not overwritten; choose another destination"
            )
    check_parent(request.dest)
    sources = _open_sources(request)
    _check_known_columns(request, sources)
    about = {"format": "dkl-ingest", "version": 1, "request": request.to_json(), "from": os.getcwd()}
    about["secret"] = request.has_secret
    matrices = {f"{name}{MATRIX}": _bytes_of(values) for name, values in request.matrices.items()}
    try:
        folder.begin(JOURNAL, {**about, "origin": _origin(request, sources)}, matrices)
    except FileExistsError:
        raise busy from None
    return folder


def open_ingest(dest: str) -> tuple[Request, Folder, str]:
    """The unfinished ingest of a destination, and the working directory of its relative paths."""
    folder = Folder(staging_path(dest))
    journal = folder.read_json(JOURNAL)
    if not isinstance(journal, dict) or journal.get("format") != "dkl-ingest":
        raise ValueError(f"{folder.path!r} holds no ingest to resume; remove it and start over")
    names = [name for name in folder.names() if name.endswith(MATRIX)]
    matrices = {name.removesuffix(MATRIX): np.load(io.BytesIO(folder.read(name))) for name in names}
    return Request.from_json(journal["request"], matrices), folder, str(journal["from"])


def _check_known_columns(request: Request, sources: list[Opened]) -> None:
    """Refuse steps that do not suit columns that are known before any row is read."""
    for file in () if request.recipe else sources:
        columns = file.source.columns
        if columns is not None:
            texts: dict[str, list[str]] = {column.name: [] for column in columns if column.is_text}
            scale, width = request.scales[file.channel], len(columns) - len(texts)
            channel = Channel(file.source.name, tuple(columns), width, categories=texts, scale=scale)
            check_steps((channel,), False, None)


def _bytes_of(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def _saved_request(folder: Folder) -> Any:
    """The request of an unfinished ingest."""
    journal = folder.read_json(JOURNAL)
    return journal.get("request") if isinstance(journal, dict) else None


def check_resumable(request: Request, folder: Folder) -> None:
    """Refuse to resume if a source needs its password or signature again."""
    if folder.read_json(JOURNAL).get("secret"):
        raise ValueError(
            f"the source {request.sources[0]!r} was given with a password or a token, which is not stored; type the "
            "same "
            f"dkl ingest ... {request.dest} again, with it, to resume"
        )


def run_ingest(request: Request, folder: Folder, threads: int, progress: Any, room: int | None = None) -> None:
    """Resume from what has been staged; in the end the data set is complete and the staging folder removed.

    `room` is the number of bytes that matrices may take; None: no limit.
    """
    with folder.locked():
        origin = folder.read_json(JOURNAL)["origin"]
        if not _is_finished(request, origin):
            sources = _open_sources(request)
            if _origin(request, sources) != origin:
                raise ValueError(f"the sources of {request.dest!r} have changed; remove {folder.path!r} to start over")
            try:
                _run(request, folder, sources, origin, threads, progress, room)
            except (SourceError, Damaged):
                _give_up(request, folder)  # a retry would fail in the same way
                raise
        folder.end(JOURNAL)


def _run(
    request: Request, folder: Folder, sources: list, origin: Any, threads: int, progress: Any, room: int | None
) -> None:  # fmt: skip
    staging = Staging(folder, _staging_dtype(request))
    with ThreadPoolExecutor(threads + 1, thread_name_prefix="dkl-ingest") as pool:  # one thread waits for the disk
        for number, file in enumerate(sources):
            progress.name(f"reading {shown(file.path)}").begin(file.source.size or 0, "bytes")
            try:
                staging.stage(number, file.source, pool, 2 * threads, progress)
            finally:
                progress.end()
        _write(request, folder, staging, sources, origin, pool, progress, room)


def _give_up(request: Request, folder: Folder) -> None:
    """Remove the staging folder and restore the data set that was to be replaced."""
    aside = os.path.join(folder.path, REPLACED)
    if is_url(request.dest):
        if is_ours(request.dest) and open_node(request.dest).attrs.get("complete") is not True:
            remove(request.dest)
    elif os.path.isdir(aside) and not os.path.lexists(absolute(request.dest)):
        os.rename(aside, absolute(request.dest))
    folder.end(JOURNAL)


def _is_finished(request: Request, origin: Any) -> bool:
    """Whether the data set is complete and only the staging folder is left to remove."""
    if not is_ours(request.dest):
        return False
    attributes = open_node(request.dest).attrs
    return attributes.get("complete") is True and attributes.get("origin") == origin


def _open_sources(request: Request) -> list[Opened]:
    """Every file of every channel, in order."""
    like = request.recipe and Recipe.from_json(request.recipe)
    if like and request.n_channels != len(like.channels):
        raise ValueError(
            f"{request.n_channels} sources were given; the data set has {len(like.channels)} channels, so give as many"
        )
    opened = []
    for s, path in enumerate(request.sources):
        for d, descriptor in enumerate(request.descriptor):
            channel = d if request.rows else s * len(request.descriptor) + d
            known = like.channels[channel] if like else None
            for file in expand(path):
                source = open_source(file, request.reading(descriptor, known))
                if descriptor != "pixels" and not isinstance(source, Images | IdxImages):
                    raise SourceError(
                        f"descriptor={descriptor!r} applies to images (a folder, or an IDX file), and {file!r} holds "
                        "none; leave --descriptor out"
                    )
                if request.patches is not None and not isinstance(source, Images):
                    raise SourceError(
                        f"--patches are cut from a folder of images, and {file!r} is none; leave --patches out"
                    )
                opened.append(Opened(channel, file, source))
    return opened


def _origin(request: Request, sources: list[Opened]) -> list:
    """Values that change when the request or a source does."""
    asked = hashlib.sha256(json.dumps(request.to_json()).encode()).hexdigest()
    return json.loads(
        json.dumps([asked, *([os.path.basename(shown(file.path)), identity(file.path)] for file in sources)])
    )


def _staging_dtype(request: Request) -> np.dtype | None:
    """The dtype of staged numbers, if nothing is computed with them before they are stored."""
    if request.recipe is None and set(request.scale) <= {"none"} and request.missing in ("refuse", "drop"):
        return np.dtype("float64" if request.dtype == "float64" else "float32")
    return None


def _write(
    request: Request, folder: Folder, staging: Staging, sources: list, origin: Any, pool: ThreadPoolExecutor,
    progress: Any, room: int | None,
) -> None:  # fmt: skip
    import zarr

    like = request.recipe and Recipe.from_json(request.recipe, request.matrices)
    parts, firsts = _channels(staging, sources)
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
    aligned = Aligned(staging, parts, pool)
    found = survey(aligned, channels, request, sparse, fixed=bool(like))
    for name, rows in zip(request.split_names or ("the data set",), found.rows, strict=True):
        if not rows:
            raise SourceError(
                f"none of the {sum(p.rows for p in parts[0]):,} rows is left for {name}; change --split or --missing"
            )
    dtype = like.dtype if like else final_dtype(request, parts)
    reading = {name: getattr(request, name) for name in request.remembered}
    recipe = Recipe(found.channels, dtype, request.missing, target.name, json.loads(json.dumps(reading)))
    place = absolute(request.dest) if is_url(request.dest) else os.path.join(folder.path, RESULT)
    if is_url(place) and is_ours(place):
        mark_incomplete(place)  # objects are deleted one by one, and the rest must not look complete
    remove(place)
    root = zarr.open_group(place, mode="w", zarr_format=3)
    progress.name(f"writing {os.path.basename(request.dest)}")
    assemble(root, aligned, found, recipe, target, request, sparse, origin, pool, progress, coords_beside(sources))
    if not is_url(request.dest):
        _put_in_place(place, absolute(request.dest), os.path.join(folder.path, REPLACED), request.overwrite)


def _put_in_place(place: str, dest: str, aside: str, overwrite: bool) -> None:
    """Rename the finished data set into place; one that it replaces is moved to the staging folder first."""
    if os.path.lexists(dest):
        if not overwrite:
            raise FileExistsError(f"{dest!r} appeared during the ingest; move it away and run dkl resume {dest}")
        shutil.rmtree(aside, ignore_errors=True)
        os.rename(dest, aside)
    os.rename(place, dest)


def _channels(staging: Staging, sources: list[Opened]) -> tuple[list[list[Part]], list[Opened]]:
    """The parts of each channel, and its first source; files of one pattern or of --rows are further rows."""
    parts: dict[int, list[Part]] = {}
    firsts: dict[int, Opened] = {}
    for number, file in enumerate(sources):
        first = firsts.setdefault(file.channel, file)
        if first.source.columns != file.source.columns:
            raise SourceError(f"{file.path!r} and {first.path!r} have different columns; give files with the same ones")
        parts.setdefault(file.channel, []).extend(staging.parts(number))
    order = sorted(parts)
    return [parts[c] for c in order], [firsts[c] for c in order]
