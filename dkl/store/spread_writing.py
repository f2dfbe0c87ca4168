"""Rows written by workers: a task for some whole chunks of a split, so that no two write the same file.

A task notes what it has seen of its rows once they are written; a resumed ingest goes on after these notes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import Batch
from dkl.store.assemble import Preparation
from dkl.store.coords import RowCoords, coords_beside, storable
from dkl.store.crew import Job
from dkl.store.dataset import LARGEST
from dkl.store.opened import Opened
from dkl.store.seen import Seen
from dkl.store.spread_survey import Counted, Slice, slice_of
from dkl.store.staging import Aligned


@dataclass(frozen=True)
class Writing:
    """What every task that writes has to know."""

    job: Job
    place: str
    prepared: Preparation
    groups: list[str]  # paths of the splits in the data set
    coords: tuple[int, ...]  # files whose coordinates the rows have

    def row_coords(self) -> RowCoords:
        """The coordinates of the rows, from their sources."""
        opened = [Opened(self.job.files[n].channel, self.job.files[n].path, self.job.source(n)) for n in self.coords]
        return RowCoords(coords_beside(opened))


class Region(NamedTuple):
    """Rows of a split that one task writes: all arrays (dense), or those of one kind (sparse)."""

    kind: str  # rows, bounds or entries
    split: int
    first: int
    last: int  # what it writes: rows, bounds or entries first .. last-1
    part: Slice
    skip: int  # rows of the split in the slice that come before those that it needs
    need: int  # how many it needs
    before: int  # stored entries of the split before the slice

    @property
    def name(self) -> str:
        """The name of its note."""
        return f"wrote-{self.split}-{self.kind}-{self.first}.json"


def regions(aligned: Aligned, counted: Counted, split: int, arrays: dict[str, Any], sparse: bool) -> Iterator[Region]:
    """The regions of a split; each is whole chunks of all arrays that it has."""
    rows, entries = int(counted.rows[-1, split]), int(counted.entries[-1, split])

    def region(kind: str, first: int, last: int, a: int, b: int, of: np.ndarray) -> Region:
        start, stop, skip = counted.pieces(split, a, b, of)
        row = int(np.searchsorted(counted.cuts, start))
        before = int(counted.entries[row, split])
        return Region(kind, split, first, last, slice_of(aligned, start, stop), skip, b - a, before)

    step = _step(arrays["row" if sparse else "X"])
    for first in range(0, rows, step):
        last = min(first + step, rows)
        yield region("rows", first, last, first, last, counted.rows)
    if not sparse:
        return
    step = _step(arrays["X/indptr"])
    for first in range(0, rows + 1, step):  # bound i is the end of row i - 1
        last = min(first + step, rows + 1)
        yield region("bounds", first, last, max(0, first - 1), last - 1, counted.rows)
    step = _step(arrays["X/data"])
    for first in range(0, entries, step):
        last = min(first + step, entries)
        yield region("entries", first, last, first, last, counted.entries)


def _step(array: Any) -> int:
    """Rows of one task: a few files of an array, of about 32 MiB together."""
    unit = int((array.shards or array.chunks)[0])
    width = int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize
    return unit * max(1, LARGEST // max(1, unit * width))


def write_region(writing: Writing, region: Region) -> dict:
    """The task: write a region, and note what was seen of its rows."""
    import zarr

    with ThreadPoolExecutor(1) as pool:
        arrays, told = KINDS[region.kind](writing, region, pool)
    staging = writing.job.staging()  # refused if another ingest has begun meanwhile
    root = zarr.open_group(writing.place, mode="r+")
    path = writing.groups[region.split]
    for name, values in arrays.items():
        _put((root[path] if path else root)[name], region, values)
    staging.folder.write(region.name, json.dumps(told).encode())
    return told


def _rows(writing: Writing, region: Region, pool: Any) -> tuple[dict, dict]:
    """Inputs (dense), targets, row numbers and coordinates."""
    prepared, coords = writing.prepared, writing.row_coords()
    seen, sparse = Seen(prepared.recipe, prepared.target.has_classes), prepared.sparse
    arrays = {"row": np.empty(region.need, np.int64)}
    if not sparse:
        arrays["X"] = np.empty((region.need, prepared.recipe.n_inputs), prepared.recipe.dtype)
    labels: dict[str, list[np.ndarray]] = {}
    place = 0
    for start, pieces, rows in _chosen(writing, region, pool):
        X, y, numbers = prepared.inputs(pieces)[rows], prepared.targets(start, pieces), start + rows
        y = None if y is None else y[rows]
        here = slice(place, place + len(rows))
        if not sparse:
            arrays["X"][here] = X
        arrays["row"][here] = numbers
        if y is not None:
            arrays.setdefault("y", np.empty(region.need, y.dtype))[here] = y
        for name, values in coords.read(start, start + pieces[0].X.shape[0]).items():
            labels.setdefault(name, []).append(storable(values[rows]))
        seen.add(X, y, numbers)
        place += len(rows)
    arrays = {name: values[:place] for name, values in arrays.items()}
    return arrays | {name: np.concatenate(parts) for name, parts in labels.items()}, seen.to_json()


def _bounds(writing: Writing, region: Region, pool: Any) -> tuple[dict, dict]:
    """Where sparse rows end among the entries of the split."""
    whole = region._replace(skip=0, need=region.skip + region.need)
    lengths = [_lengths(pieces)[rows] for _, pieces, rows in _chosen(writing, whole, pool)]
    bounds = region.before + np.concatenate(
        [[0], np.cumsum(np.concatenate(lengths))]
    )  # from the first row of the slice
    skip = region.skip + (region.first > 0)
    return {"X/indptr": bounds[skip : skip + region.last - region.first]}, {}


def _entries(writing: Writing, region: Region, pool: Any) -> tuple[dict, dict]:
    """Stored values and their columns."""
    every = region._replace(skip=0, need=region.part.rows[1])
    blocks = [writing.prepared.inputs(pieces)[rows] for _, pieces, rows in _chosen(writing, every, pool)]
    here = slice(region.skip, region.skip + region.need)
    return {f"X/{name}": np.concatenate([getattr(X, name) for X in blocks])[here] for name in ("data", "indices")}, {}


KINDS = {"rows": _rows, "bounds": _bounds, "entries": _entries}


def _lengths(pieces: list[Batch]) -> np.ndarray:
    """Stored entries of each row."""
    found: np.ndarray = sum(np.diff(batch.X.indptr).astype(np.int64) for batch in pieces)
    return found


def _chosen(writing: Writing, region: Region, pool: Any) -> Iterator[tuple[int, list[Batch], np.ndarray]]:
    """(first row of the pieces, the pieces, which of their rows the region needs), where there are any."""
    skip, count = region.skip, region.need
    for start, pieces in region.part.aligned(writing.job, pool):
        own = np.flatnonzero(writing.prepared.place(start, pieces) == region.split)
        rows = own[skip : skip + count]
        skip, count = max(0, skip - len(own)), count - len(rows)
        if len(rows):
            yield start, pieces, rows


def _put(array: Any, region: Region, values: np.ndarray) -> None:
    """Write what the region is, all of it, also chunks of zeros."""
    if len(values) != region.last - region.first:
        raise RuntimeError(
            f"{array.name} got {len(values)} of its entries {region.first} to {region.last - 1}; ingest again"
        )
    array.with_config({"write_empty_chunks": True})[region.first : region.last] = values
