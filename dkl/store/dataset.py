"""A data set on disk: a Zarr group of labelled arrays that any Zarr or xarray program can read.

    X        (row, input), chunked by rows; sparse rows are a group of `data`, `indices`, `indptr` (csr, as in anndata)
    y        (row,) numbers, or codes of the names in its attribute `classes`
    row      (row,) the row's number in the source
    channel  (input,) the index of the source in the attribute `names`

Each split is such a group. Every chunk is written, with a checksum; the attribute `digest` covers the
attributes and the shapes. The attribute `complete` is written last.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from dkl.sources import safe_zarr
from dkl.sources.damage import ALL_WRITTEN
from dkl.sources.files import one_line
from dkl.sources.intact import check_description
from dkl.sources.recipe_matrices import RECIPE, Matrices, matrices_in, read_matrices
from dkl.sources.shown import shown
from dkl.store.folder import absolute
from dkl.store.record import FORMAT as MODEL
from dkl.store.record import open_attributes, open_record

FORMAT, VERSION = "dkl-dataset", 1
CHUNKS = 8
"""Chunks per shard."""
SMALLEST, LARGEST = 4 * 2**20, 32 * 2**20
"""Bytes of a shard, before compression."""


def cut_rows(rows: int, row_bytes: int) -> tuple[int, int | None]:
    """Rows of a chunk and of a shard (None if there are few chunks); shards grow with the data up to 32 MiB."""
    shard_bytes = min(LARGEST, max(SMALLEST, rows * row_bytes // 128))
    chunk = max(1, shard_bytes // CHUNKS // max(1, row_bytes))
    if rows <= CHUNKS * chunk:
        return max(1, min(chunk, rows)), None
    return chunk, CHUNKS * chunk


class Appender:
    """Appends rows to a Zarr array by whole shards, in the pool's threads, so that no two writes overlap."""

    def __init__(self, array: Any, pool: ThreadPoolExecutor) -> None:
        self.array, self.pool = array, pool
        self.unit = int((array.shards or array.chunks)[0])
        self.waiting: list[np.ndarray] = []
        self.held = self.place = 0
        self.running: list[Future] = []

    def add(self, block: np.ndarray) -> None:
        """Append rows; full shards are written."""
        self.waiting.append(block)
        self.held += len(block)
        if self.held >= self.unit:
            self._write(self.held - self.held % self.unit)

    def close(self) -> None:
        """Write the remaining rows and wait for all writes."""
        if self.held:
            self._write(self.held)
        for future in self.running:
            future.result()
        if self.place != self.array.shape[0]:
            raise RuntimeError(f"{self.array.name} got {self.place} of {self.array.shape[0]} rows; ingest again")

    def _write(self, count: int) -> None:
        together = self.waiting[0] if len(self.waiting) == 1 else np.concatenate(self.waiting)
        self.waiting, self.held = ([together[count:]] if count < len(together) else []), len(together) - count
        for i in range(0, count, self.unit):
            if len(self.running) > 3:
                self.running.pop(0).result()
            stop = min(i + self.unit, count)
            self.running.append(self.pool.submit(self._put, self.place + i, together[i:stop]))
        self.place += count

    def _put(self, start: int, block: np.ndarray) -> None:
        self.array[start : start + len(block)] = block


def create_rows(group: Any, name: str, shape: tuple, dtype: Any, cut: tuple[int, int | None], dimensions: list) -> Any:
    """An array chunked by rows; every chunk is written, with a checksum.

    zstd at level 1 writes a third faster than at the default level and is hardly larger.
    """
    from zarr.codecs import Crc32cCodec, ZstdCodec

    chunk, shard = cut
    rest = shape[1:]
    return group.create_array(
        name,
        shape=shape,
        dtype=dtype,
        chunks=(chunk, *rest),
        shards=None if shard is None else (shard, *rest),
        dimension_names=dimensions,
        compressors=[ZstdCodec(level=1), Crc32cCodec()],
        attributes={ALL_WRITTEN: True},
        config={"write_empty_chunks": True},
    )


def open_node(path: str) -> Any:
    """The Zarr group or array at a path or URL; raises ValueError if there is none."""
    try:
        return safe_zarr.open_node(absolute(path))
    except safe_zarr.UnsafeZarr:
        raise
    except ImportError as error:
        raise ValueError(f"{shown(path)!r} cannot be opened: {error} (pip install 'dkl[s3]' for S3)") from None
    except Exception as error:  # zarr's own errors differ by store and version
        if os.path.isfile(path):
            raise ValueError(f"{path!r} is a file, not a Zarr store; run dkl ingest to make a data set of it") from None
        raise ValueError(f"{shown(path)!r} is not a Zarr array or group: {one_line(error)}") from None


def is_dataset(path: str) -> bool:
    """Whether the path is a data set or one split of it; raises ValueError if it is incomplete."""
    try:
        node = open_node(path)
    except ValueError:
        return False
    if node.attrs.get("format") != FORMAT:
        return False
    check_complete(dict(node.attrs), path)
    return True


def is_ours(path: str) -> bool:
    """Whether the path is a data set of dkl, complete or not."""
    try:
        return open_node(path).attrs.get("format") == FORMAT
    except ValueError:
        return False


def mark_incomplete(path: str) -> None:
    """Mark a data set and its splits as incomplete."""
    import zarr

    root = zarr.open_group(path, mode="r+")
    for group in (root, *(root[name] for name in root.attrs.get("splits", []))):
        group.attrs["complete"] = False


def check_complete(attributes: dict, path: str) -> None:
    """Refuse an incomplete data set, or one of a later dkl."""
    if attributes.get("complete") is not True:
        raise ValueError(f"{path!r} was not ingested completely; run dkl resume {os.fspath(path)}")
    version = attributes.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(f"{path!r} has format version {version!r}, and this dkl reads up to {VERSION}; upgrade dkl")


def choose_split(path: str, wanted: str | None, preferred: str) -> str:
    """The path of a split: the wanted one, else the preferred one; the data set itself if it has no splits."""
    attributes = dict(open_node(path).attrs) if is_dataset(path) else {}
    splits = list(attributes.get("splits", []))
    if not splits:
        if wanted is not None:
            raise ValueError(f"{path!r} has no splits; leave --split {wanted} out, or ingest with --split {wanted}=0.2")
        return path
    others = [name for name in splits if name != "train"]  # prefer rows that were not trained on
    split = wanted or (preferred if preferred in splits else others[0])
    if split not in splits:
        raise ValueError(f"{path!r} has no split {split!r}; use one of {', '.join(splits)}")
    return f"{path.rstrip('/')}/{split}"


def recipe_of(path: str) -> dict | None:
    """The recipe of a data set, of one of its splits, or of a model; None for any other Zarr node."""
    node = open_node(path)
    attributes = dict(node.attrs)
    if attributes.get("format") == MODEL:
        return open_attributes(path).get("fitted", {}).get("recipe")
    if attributes.get("format") != FORMAT:
        return None
    check_complete(attributes, path)
    check_description(node, path)
    return attributes.get("recipe")


def matrices_of(path: str, most_bytes: int) -> Matrices:
    """The matrices of that recipe, from the data set, one of its splits, or the model."""
    node = open_node(path)
    if node.attrs.get("format") != MODEL:
        return read_matrices(matrices_in(node, path))
    if recipe_of(path) is None:
        return {}
    _, arrays = open_record(path, most_bytes)
    return {name.removeprefix(RECIPE): values for name, values in arrays.items() if name.startswith(RECIPE)}
