"""Any input as a table: numpy or scipy.sparse in memory, a Dask array, or a Zarr array on disk.

The labels of pandas and xarray are kept, so that results have the type of the input.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dkl.checks import warn_user
from dkl.engine.active import active_client
from dkl.engine.labels import RowLabels, pandas_rows, xarray_rows
from dkl.engine.sparse import SparseRows, is_sparse_group
from dkl.features.refusal import Refusal
from dkl.features.rows import refuse_masked
from dkl.features.sparse import as_csr
from dkl.sources.coords import dims_of, input_coords
from dkl.sources.files import one_line
from dkl.sources.intact import check_chunks, check_description, is_older
from dkl.sources.recipe_matrices import matrices_in
from dkl.sources.safe_zarr import UnsafeZarr, check_held, checked, has_member, member, open_node
from dkl.sources.shown import shown
from dkl.sources.whole import whole


@dataclass(frozen=True)
class Labels:
    """xarray's labels of the rows: the name of their dimension and its coordinates."""

    row_dim: str
    row_coords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """kind is 'memory', 'dask' or 'zarr'; array has one or two dimensions, rows first."""

    kind: str
    array: Any
    labels: Labels | None = None
    input_coords: Mapping[str, np.ndarray] = field(default_factory=dict)
    names: np.ndarray | None = None  # class names of a stored y's codes
    about: Mapping[str, Any] = field(default_factory=dict)  # attributes of its group
    matrices: Mapping[str, Any] = field(default_factory=dict)  # of the recipe in them, unread
    rows: RowLabels | None = None  # labels that y, weights and folds must match
    input_dim: str | None = None  # the name in input_coords of the inputs' index

    @property
    def input_labels(self) -> np.ndarray | None:
        """The index of the inputs: their names if they are strings."""
        return None if self.input_dim is None else self.input_coords.get(self.input_dim)

    @property
    def is_lazy(self) -> bool:
        return self.kind != "memory"

    @property
    def is_sparse(self) -> bool:
        """Whether blocks of rows are csr."""
        like = getattr(self.array, "_meta", self.array)
        return hasattr(like, "tocsr") or isinstance(like, SparseRows)

    @property
    def n_columns(self) -> int:
        return self.array.shape[1] if self.array.ndim > 1 else 1


def is_lazy(X: Any) -> bool:
    """Whether X is on disk or a Dask array, and so must not be loaded as one numpy array."""
    if isinstance(X, (str, os.PathLike)) or _is_zarr(X) or _is_dask(X):
        return True
    if not _is_xarray(X):
        return False
    return _is_dask(_main_variable(X, "X").data) if _is_dataset(X) else _is_dask(X.data)


def is_labelled(X: Any) -> bool:
    """Whether X is an xarray object."""
    return _is_xarray(X)


def labelled_rows(X: Any) -> Table:
    """X, unconverted, with the labels of its rows."""
    if not _is_xarray(X):
        return Table("memory", X, rows=pandas_rows(X))
    array = _main_variable(X, "X") if _is_dataset(X) else X
    return Table("memory", array, rows=xarray_rows(array))


def put_together(X: Any, table: Table) -> Any:
    """X with the data of its table, in which split columns are already rechunked."""
    if table.kind != "dask" or hasattr(X, "columns") or _is_dataset(X):
        return X
    return X.copy(data=table.array) if _is_xarray(X) else table.array


def open_table(X: Any, name: str = "X") -> Table:
    """X as a Table; no rows are read."""
    if isinstance(X, (str, os.PathLike)):
        return _open_zarr(os.fspath(X), name)
    if _is_zarr(X):
        return Table("zarr", whole(checked(X, f"{X.store}/{X.path}")))
    if _is_xarray(X):
        return _open_xarray(X, name)
    if _is_dask(X):
        return Table("dask", _dask_array(X, name))
    if hasattr(X, "tocsr"):
        return Table("memory", checked_csr(X, name))
    return Table("memory", in_memory(X, name), rows=pandas_rows(X))


def in_memory(X: Any, name: str) -> np.ndarray:
    """X as numpy; a masked or NA entry is refused with its row."""
    if (
        hasattr(X, "isna")
        and hasattr(X, "to_numpy")
        and not isinstance(getattr(X, "dtype", None), (np.dtype, type(None)))
    ):
        missing = np.asarray(X.isna())
        if missing.any():
            raise ValueError(f"{name} is missing (NA) at row {int(np.argmax(missing))}; remove the row or fill it")
        kind = getattr(X.dtype, "kind", "O")
        return X.to_numpy(X.dtype.numpy_dtype) if kind in "fiub" and hasattr(X.dtype, "numpy_dtype") else X.to_numpy()
    try:
        refuse_masked(X, name)
    except Refusal as refusal:
        raise ValueError(str(refusal)) from None
    return np.asarray(X)


def checked_csr(X: Any, name: str = "X") -> Any:
    """A scipy.sparse matrix as csr; refused if its arrays are inconsistent."""
    try:
        return as_csr(X)
    except Refusal as refusal:
        raise ValueError(refusal.at(0, name)[1]) from None


def _is_dask(X: Any) -> bool:
    return hasattr(X, "__dask_graph__") and hasattr(X, "npartitions")


def _is_zarr(X: Any) -> bool:
    zarr = sys.modules.get("zarr")
    return zarr is not None and isinstance(X, zarr.Array)


def _is_xarray(X: Any) -> bool:
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(X, (xarray.DataArray, xarray.Dataset))


def _is_dataset(X: Any) -> bool:
    return hasattr(X, "data_vars")


def _open_zarr(path: str, name: str) -> Table:
    """An array, or the member `name` of a group, with its coordinates."""
    import zarr

    if "://" not in path:
        path = os.path.abspath(path)  # workers may have another working directory
    try:
        node = open_node(path)
    except UnsafeZarr:
        raise
    except Exception as error:  # zarr's own errors differ by store and version
        raise ValueError(f"cannot open {shown(path)!r} as a Zarr array or group: {one_line(error)}") from None
    if isinstance(node, zarr.Array):
        check_held(node, path)
        return Table("zarr", whole(node), rows=RowLabels("zarr", dims_of(node)))
    _refuse_incomplete(node, path)
    _refuse_damaged(node, path, name)
    if not has_member(node, name, path):
        there = sorted(node.keys())
        hint = f"give {path}/{node.attrs['splits'][0]}" if node.attrs.get("splits") else "give the array's own path"
        raise ValueError(f"the Zarr group {shown(path)!r} has no array {name!r}, only {there}; {hint}")
    rows = _member_rows(node, name, path)
    dims = dims_of(rows)
    coords = input_coords(node, rows) if name == "X" else {}
    classes = rows.attrs.get("classes") if name == "y" else None
    return Table(
        "zarr",
        rows,
        input_coords=coords,
        names=None if classes is None else np.array(classes),
        about=dict(node.attrs),
        matrices=matrices_in(node, path) if name == "X" else {},
        rows=RowLabels("zarr", dims),
        input_dim=dims[1] if dims[1:] else None,
    )


def _member_rows(node: Any, name: str, path: str) -> Any:
    """The member `name` of a group: an array or sparse rows."""
    found = member(node, name, path)
    if hasattr(found, "shape"):
        check_held(found, f"{path}/{name}")
        return whole(found)
    if not is_sparse_group(found):
        raise ValueError(
            f"{name!r} of {shown(path)!r} is a group; give an array, or sparse rows (data, indices, indptr)"
        )
    for part in ("data", "indices", "indptr"):
        check_held(member(found, part, f"{path}/{name}"), f"{path}/{name}/{part}")
    return SparseRows(found)


def _refuse_incomplete(node: Any, path: str) -> None:
    """Refuse a data set whose ingest did not finish."""
    if node.attrs.get("format") == "dkl-dataset" and node.attrs.get("complete") is not True:
        raise ValueError(f"{path!r} was not ingested completely; run dkl resume {path}")
    if node.attrs.get("format") == "dkl-features" and node.attrs.get("complete") is not True:
        raise ValueError(f"{path!r} was not written completely; call transform_to again, or remove it")


def _refuse_damaged(node: Any, path: str, name: str) -> None:
    """Refuse damage that shows without reading rows; other damage shows when they are read."""
    if node.attrs.get("format") != "dkl-dataset":
        return
    check_description(node, path)
    if is_older(dict(node.attrs)) and name in node:
        check_chunks(node, path, name)


def _main_variable(X: Any, name: str) -> Any:
    if name in X:
        return X[name]
    two = [v for v in X.data_vars.values() if v.ndim == 2]
    if len(two) != 1:
        raise ValueError(f"the Dataset has variables {list(X.data_vars)}; name one of them {name!r} or pass it alone")
    return two[0]


def _open_xarray(X: Any, name: str) -> Table:
    array = _main_variable(X, name) if _is_dataset(X) else X
    row_dim = array.dims[0]
    row_coords = {k: c for k, c in array.coords.items() if c.dims == (row_dim,)}
    inputs = array.dims[1:2]
    input_coords = {k: np.asarray(c.values) for k, c in array.coords.items() if c.dims == inputs and inputs}
    labels = Labels(row_dim, row_coords)
    inner = open_table(array.data, name)
    input_dim = str(inputs[0]) if inputs and inputs[0] in array.indexes else None
    return Table(inner.kind, inner.array, labels, input_coords, rows=xarray_rows(array), input_dim=input_dim)


def _dask_array(X: Any, name: str) -> Any:
    """A Dask array in row chunks of known sizes."""
    if not hasattr(X, "map_blocks"):
        X = X.to_dask_array()
    if X.dtype.kind in "OUS" and name == "X":
        raise ValueError(f"{name} has dtype {X.dtype}; encode strings as numbers first")
    if X.ndim > 1 and X.numblocks[1] > 1:
        warn_user(
            f"columns of {name} are split into chunks {X.chunks[1]} and are merged; use {name}.rechunk({{1: -1}})"
        )
        X = X.rechunk({1: -1})
    return X


def with_known_rows(table: Table) -> Table:
    """The table with known chunk lengths; unknown ones of a Dask array are counted in one pass."""
    X = table.array
    if table.kind != "dask" or not any(np.isnan(size) for size in X.chunks[0]):
        return table
    active_client()
    drop = list(range(1, X.ndim))
    ones = ((1,) * X.numblocks[0],)
    lengths = X.map_blocks(_length, dtype=np.int64, drop_axis=drop, chunks=ones, token="dkl-count").compute()
    sizes = (tuple(map(int, lengths)), *X.chunks[1:])
    known = X.map_blocks(_same, dtype=X.dtype, chunks=sizes, token="dkl-rows")
    return replace(table, array=known)


def _length(block: Any) -> np.ndarray:
    return np.array([block.shape[0]])


def _same(block: Any) -> Any:
    return block
