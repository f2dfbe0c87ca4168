"""Results of rows that go to disk: each block is written where it is computed, and the output is complete or absent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.identity import digest, identity
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.row_readers import Range
from dkl.engine.stream import write_rows
from dkl.engine.tables import Table, with_known_rows
from dkl.store.feature_regions import FeatureRegions
from dkl.store.folder import absolute
from dkl.store.regions import Regions

ROWS = 2048
"""Approximate rows of a block of features."""
MOST = 16384
"""Rows of a chunk that is read whole for one block."""


def request_of(table: Table, function: Any, *asked: Any) -> str:
    """A name of these results of these rows: another model, or rows that have changed, have another."""
    return sha256(json.dumps([identity(table), digest(function), *asked]).encode()).hexdigest()


def write_regions(
    regions: Regions, function: Callable[[Any], Any], rows: Rows, blocks: Sequence[Range], overwrite: bool,
    progress: Progress,
) -> int:  # fmt: skip
    """Begin or go on, write what is missing, complete it; returns the number of rows."""
    if rows.reads_zarr:  # no two workers write the same chunk
        assert all(stop - start == regions.block for start, stop in blocks[:-1])
    done = regions.begin(overwrite)
    try:
        write_rows(engine_for(rows.is_lazy, "client"), function, rows, regions.write, blocks, done, progress)
    except ValueError:  # it would be refused again
        regions.abandon()
        raise
    regions.end()
    return rows.n_rows


def write_features(
    table: Table, function: Callable[[Any], Any], columns: int, dtype: Any, path: str, overwrite: bool,
    progress: Progress,
) -> int:  # fmt: skip
    """function(X) of every row, as the array `X` of a Zarr group at `path`; returns the number of rows."""
    if not path.endswith(".zarr"):
        raise ValueError(f"{path!r} must end in .zarr; features are written as a Zarr group")
    table = with_known_rows(table)
    rows = Rows([table], ["X"])
    _refuse_inside(table, path)
    if not rows.reads_zarr and engine_for(rows.is_lazy, "client").name == "cluster":
        raise ValueError(
            f"X is a {type(table.array).__name__}, which workers cannot read from disk; give the path of Zarr rows, or "
            f"write transform(X) with its method to_zarr({path!r})"
        )
    blocks, dtype = _blocks(rows, table), np.dtype(dtype)
    block = blocks[0][1] - blocks[0][0]
    name = request_of(table, function, "features", block, columns, dtype.str)
    regions = FeatureRegions(path, name, rows.n_rows, block, columns, dtype)
    return write_regions(regions, function, rows, blocks, overwrite, progress)


def _refuse_inside(table: Table, path: str) -> None:
    """Refuse to replace the rows that are read: an object store cannot rename, so they would go first."""
    store = table.array.store if table.kind == "zarr" else None
    root = str(getattr(store, "root", None) or getattr(store, "path", None) or "").strip("/")
    place = absolute(path).rpartition("://")[2].strip("/")
    if root and f"{root}/".startswith(f"{place}/"):
        raise ValueError(f"X is in {path!r}, which would be replaced; give another name")


def _blocks(rows: Rows, table: Table) -> list[Range]:
    """Row ranges of one size: whole chunks of Zarr rows, not shards, unless a chunk has too many rows for features."""
    if table.kind == "dask":
        return rows.blocks(ROWS)  # in order, by this process
    chunk = table.array.chunks[0] if table.kind == "zarr" else ROWS
    step = ROWS if chunk > MOST else chunk * max(1, ROWS // chunk)
    return [(start, min(start + step, rows.n_rows)) for start in range(0, rows.n_rows, step)]
