"""Sources to a Zarr data set in two steps: parse every segment once into a staging folder, then write rows in order.

DEST.ingest holds the request and the parsed parts until DEST is complete. Each step can be killed at any moment: parsed
parts are kept, writing starts over, and the result has the same bits. DEST appears when it is complete (an object store
cannot rename, so there the attribute `complete` is written last).
"""

from __future__ import annotations

import io
import json
import os
from typing import Any

import numpy as np

from dkl.sources.batch import SourceError
from dkl.sources.damage import Damaged
from dkl.sources.files import forget_listings
from dkl.store.crew import Crew
from dkl.store.dataset import is_ours, open_node
from dkl.store.decide import check_steps
from dkl.store.folder import Folder, absolute, check_parent, exists, is_url, remove
from dkl.store.here import Here
from dkl.store.opened import Opened, open_sources, origin_of
from dkl.store.opened import open_sources as _open_sources
from dkl.store.recipe import Channel
from dkl.store.request import Request
from dkl.store.spread import JOURNAL, Spread
from dkl.store.write import REPLACED, write

MATRIX = ".matrix.npy"
"""How the names of files with matrices of a recipe end."""


def staging_path(dest: str) -> str:
    """The staging folder of a data set's ingest."""
    return f"{absolute(dest)}.ingest"


def begin_ingest(request: Request, spread: bool = False) -> Folder:
    """Check the request and create the staging folder with it; `spread`: workers of a cluster will open the files."""
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
    sources = open_sources(request, all_of_them=False) if spread else _open_sources(request)
    _check_known_columns(request, sources)
    about = {"format": "dkl-ingest", "version": 1, "request": request.to_json(), "from": os.getcwd()}
    about["secret"] = request.has_secret
    matrices = {f"{name}{MATRIX}": _bytes_of(values) for name, values in request.matrices.items()}
    try:
        folder.begin(JOURNAL, {**about, "origin": origin_of(request, sources)}, matrices)
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
        columns = None if file.source is None else file.source.columns
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


def run_ingest(
    request: Request, folder: Folder, threads: int, progress: Any, room: int | None = None, crew: Crew | None = None
) -> None:  # fmt: skip
    """Resume from what has been staged; in the end the data set is complete and the staging folder removed.

    `room` is the number of bytes that matrices may take; None: no limit. A crew is the workers of a cluster.
    """
    with folder.locked():
        origin = folder.read_json(JOURNAL)["origin"]
        if not _is_finished(request, origin):
            sources = _open_sources(request) if crew is None else open_sources(request, all_of_them=False)
            if origin_of(request, sources) != origin:
                raise ValueError(f"the sources of {request.dest!r} have changed; remove {folder.path!r} to start over")
            hands = Here(request, folder, threads) if crew is None else Spread(request, folder, crew, origin)
            try:
                with hands:
                    staged = hands.stage(sources, progress)
                    _check_unchanged(request, sources, origin)
                    write(request, folder, hands, sources, staged, origin, progress, room)
            except (SourceError, Damaged):
                _give_up(request, folder)  # a retry would fail in the same way
                raise
        folder.end(JOURNAL)


def _check_unchanged(request: Request, sources: list[Opened], origin: Any) -> None:
    """Refuse sources that changed while they were read: their rows may be of two versions."""
    forget_listings([file.path for file in sources])
    now = origin_of(request, sources)
    changed = [file.path for file, was, is_ in zip(sources, origin[1:], now[1:], strict=True) if was != is_]
    if changed:
        raise SourceError(f"{changed[0]!r} changed while it was read; ingest again when nothing writes to it")


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
