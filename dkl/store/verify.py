"""Read every chunk of a data set, a model or any Zarr node once, and name those that are damaged or missing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from dkl.sources.damage import ALL_WRITTEN, Damaged, cut_of, read_rows
from dkl.sources.files import one_line
from dkl.sources.intact import check_description, is_older, may_be_zeros, members, missing_chunks, stored_names
from dkl.sources.whole import whole
from dkl.store.dataset import FORMAT, check_complete, open_node
from dkl.store.record import FORMAT as MODEL
from dkl.store.record import open_record


class Piece(NamedTuple):
    """A file of an array: the array's name, the chunk's key and its rows."""

    array: Any
    name: str
    chunk: str
    start: int
    stop: int


def verify(path: str, most_bytes: int, threads: int, progress: Any) -> dict:
    """Chunks read and damaged; in older data sets `absent` chunks are zeros or lost, and `sure` is False."""
    node = open_node(path)
    kind = node.attrs.get("format")
    if kind == MODEL:
        return _verify_model(path, most_bytes)
    found: list[dict] = []
    absent: list[dict] = []
    pieces: list[Piece] = []
    if kind == FORMAT:
        check_complete(dict(node.attrs), path)
        for name in (None, *node.attrs.get("splits", [])):
            _check_group(node if name is None else node[name], path, name, found, absent, pieces)
    else:
        pieces = [piece for name, array in _arrays(node) for piece in _pieces(array, name)]
    progress.name("verifying").begin(sum(_bytes(piece) for piece in pieces), "bytes")
    try:
        with ThreadPoolExecutor(threads, thread_name_prefix="dkl-verify") as pool:
            for piece, why in zip(pieces, pool.map(_read, pieces), strict=True):
                if why is not None:
                    entry = {"array": piece.name, "chunk": piece.chunk, "entries": [piece.start, piece.stop]}
                    found.append({**entry, "why": why})
                progress.advance(_bytes(piece))
    finally:
        progress.end()
    sure = not is_older(dict(node.attrs))
    return {"path": path, "chunks": len(pieces), "damaged": found, "absent": absent, "sure": sure}


def _verify_model(path: str, most_bytes: int) -> dict:
    found = []
    try:
        open_record(path, most_bytes)
    except ValueError as error:
        found.append({"array": "", "chunk": "", "entries": [], "why": str(error)})
    count = len(open_node(path).attrs.get("arrays", {}))
    return {"path": path, "chunks": count, "damaged": found, "absent": [], "sure": True}


def _check_group(
    group: Any, path: str, split: str | None, found: list[dict], absent: list[dict], pieces: list[Piece]
) -> None:  # fmt: skip
    """Check the attributes of one group, and list the files of its arrays to read."""
    place = path if split is None else f"{path.rstrip('/')}/{split}"
    try:
        check_description(group, place)
        arrays = {name: array for name, array in members(group).items() if hasattr(array, "shape")}
    except Exception as error:  # the metadata may be unreadable
        found.append({"array": split or "", "chunk": "", "entries": [], "why": one_line(error)})
        return
    stored = stored_names(place) if arrays else set()
    for name, array in arrays.items():
        label = name if split is None else f"{split}/{name}"
        lost = set(missing_chunks(array, name, stored))
        for number, piece in enumerate(_pieces(array, label)):
            entries = (piece.start, piece.stop)
            if number in lost and array.attrs.get(ALL_WRITTEN) is not True:
                entry = {"array": label, "chunk": piece.chunk, "entries": list(entries)}
                if not may_be_zeros(name, dict(group.attrs), array, *entries):
                    found.append({**entry, "why": f"chunk {piece.chunk} of {place}/{name} is missing"})
                elif name != "channel":  # a single channel has number zero, stored or not
                    absent.append(entry)
                continue
            pieces.append(piece)


def _arrays(node: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(node, "shape"):
        yield "", node
        return
    for name, member in node.members(max_depth=None):
        if hasattr(member, "shape"):
            yield name, member


def _pieces(array: Any, name: str) -> Iterator[Piece]:
    """The files of an array by rows; pieces of a foreign array have all columns."""
    if not array.ndim:
        return
    cut, opened = cut_of(array), whole(array)
    unit = cut.unit if cut else int((getattr(array, "shards", None) or array.chunks)[0])
    for number, start in enumerate(range(0, array.shape[0], max(1, unit))):
        key = cut.key(number) if cut else str(number)
        yield Piece(opened, name, key, start, min(start + unit, array.shape[0]))


def _bytes(piece: Piece) -> int:
    array = piece.array
    return int(array.nbytes * (piece.stop - piece.start) // max(1, array.shape[0]))


def _read(piece: Piece) -> str | None:
    try:
        read_rows(piece.array, piece.start, piece.stop)
    except Damaged as error:
        return str(error)
    except Exception as error:  # stores and codecs raise any exception
        return f"{piece.name} cannot be read: {one_line(error)}"
    return None
