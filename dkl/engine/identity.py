"""The identity of rows: path and modification time, the name of a Dask graph, or a digest of rows in memory.

A checkpoint uses it to refuse other rows. A Dask array over Zarr keeps its name when the files change, so the Zarr
arrays in its graph are found too (by pickling the graph to a null file).
"""

from __future__ import annotations

import contextlib
import os
import sys
from hashlib import sha256
from typing import Any

import cloudpickle
import numpy as np
from dask.base import tokenize

from dkl.engine.tables import Table
from dkl.sources.shown import clean


def identity(table: Table | None) -> Any:
    """JSON values that change when the rows do, as far as that shows without reading them."""
    if table is None:
        return None
    array = table.array
    shape = [None if size != size else int(size) for size in array.shape]
    if table.kind == "zarr":
        return [clean(str(array.store)), array.path, shape, str(array.dtype), table.about.get("id"), _written(array)]
    if table.kind == "dask":
        return [array.name, shape, str(array.dtype), [_written(source) for source in zarr_sources(array)]]
    return [tokenize(array), shape, str(array.dtype)]


def digest(function: Any) -> str:
    """A name of a fitted function: another one if any of its arrays differs."""
    return sha256(cloudpickle.dumps(function)).hexdigest()


def zarr_sources(array: Any) -> list:
    """The Zarr arrays in the graph of a Dask array, up to the first object that cannot be pickled."""
    finder = _Finder(_Nowhere())
    with contextlib.suppress(Exception):  # a user's object may raise anything; keep what was found
        finder.dump(array.__dask_graph__())
    return finder.found


class _Nowhere:
    """A file that discards what is written."""

    def write(self, data: Any) -> int:
        """Discard."""
        return len(data)


class _Finder(cloudpickle.Pickler):
    """Collects Zarr arrays and skips objects that hold data, which the graph's name already covers."""

    def __init__(self, file: _Nowhere) -> None:
        super().__init__(file)
        self.found: list = []

    def persistent_id(self, obj: Any) -> str | None:
        """A placeholder for objects that are not pickled."""
        zarr = sys.modules.get("zarr")
        if zarr is not None and isinstance(obj, zarr.Array):
            self.found.append(obj)
            return "zarr"
        holds = isinstance(obj, np.ndarray) or (not isinstance(obj, type) and hasattr(obj, "to_numpy"))
        return "data" if holds else None


def _written(array: Any) -> list | None:
    """The number of files of a local Zarr array, and the latest modification time."""
    root = getattr(array.store, "root", None) or getattr(array.store, "path", None)
    if root is None or not os.path.isdir(root):
        return None
    times = []
    for folder, _, names in os.walk(os.path.join(root, array.path)):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile, or a dangling link
                times.append(os.stat(os.path.join(folder, name)).st_mtime_ns)
    return [len(times), max(times, default=0)]
