"""Any input as a table: numpy or scipy.sparse in memory, a Dask array, or a Zarr array on disk.

pandas and xarray are taken apart here and their labels kept, so that what comes out looks like what went in.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dkl.engine.active import active_client
from dkl.engine.sparse import SparseRows, is_sparse_group


@dataclass(frozen=True)
class Labels:
    """What xarray knew of the rows: the name of their dimension and its coordinates."""

    row_dim: str
    row_coords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """kind is 'memory', 'dask' or 'zarr'; array has one or two dimensions, rows first."""

    kind: str
    array: Any
    labels: Labels | None = None
    input_coords: Mapping[str, np.ndarray] = field(default_factory=dict)
    names: np.ndarray | None = None  # what the numbers of a stored y stand for
    about: Mapping[str, Any] = field(default_factory=dict)  # attributes of the group it lies in

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
    """Whether X must not be turned into one numpy array."""
    if isinstance(X, (str, os.PathLike)) or _is_zarr(X) or _is_dask(X):
        return True
    if not _is_xarray(X):
        return False
    return _is_dask(_main_variable(X, "X").data) if _is_dataset(X) else _is_dask(X.data)


def is_labelled(X: Any) -> bool:
    """Whether X is an xarray object."""
    return _is_xarray(X)


def open_table(X: Any, name: str = "X") -> Table:
    """X as a Table; nothing is read that need not be."""
    if isinstance(X, (str, os.PathLike)):
        return _open_zarr(os.fspath(X), name)
    if _is_zarr(X):
        return Table("zarr", X)
    if _is_xarray(X):
        return _open_xarray(X, name)
    if _is_dask(X):
        return Table("dask", _dask_array(X, name))
    if hasattr(X, "tocsr"):
        return Table("memory", X.tocsr())
    return Table("memory", np.asarray(X))


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
    """An array, or the member `name` of a group whose coordinates lie beside it."""
    import zarr

    if "://" not in path:
        path = os.path.abspath(path)  # workers may stand in another directory
    try:
        node = zarr.open(path, mode="r")
    except (FileNotFoundError, KeyError, ValueError, OSError, ImportError) as error:
        raise ValueError(f"cannot open {path!r} as a Zarr array or group: {error}") from error
    if isinstance(node, zarr.Array):
        return Table("zarr", node)
    _refuse_incomplete(node, path)
    if name not in node:
        there = sorted(node.keys())
        hint = f"give {path}/{node.attrs['splits'][0]}" if node.attrs.get("splits") else "give the array's own path"
        raise ValueError(f"the Zarr group {path!r} has no array {name!r}, only {there}; {hint}")
    member = node[name]
    if isinstance(member, zarr.Group):
        if not is_sparse_group(member):
            raise ValueError(f"{name!r} of {path!r} is a group; give an array, or sparse rows (data, indices, indptr)")
        member = SparseRows(member)
    width = member.shape[-1]
    beside = ((key, array) for key, array in node.arrays() if key not in ("X", "y", "row") and name == "X")
    coords = {key: array[:] for key, array in beside if array.shape == (width,)}
    classes = member.attrs.get("classes") if name == "y" else None
    return Table(
        "zarr",
        member,
        input_coords=coords,
        names=None if classes is None else np.array(classes),
        about=dict(node.attrs),
    )


def _refuse_incomplete(node: Any, path: str) -> None:
    """A data set whose writing did not come to its end is not one."""
    if node.attrs.get("format") == "dkl-dataset" and node.attrs.get("complete") is not True:
        raise ValueError(f"{path!r} was not ingested to its end; dkl resume goes on with it")


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
    return Table(inner.kind, inner.array, labels, input_coords)


def _dask_array(X: Any, name: str) -> Any:
    """A Dask array in row chunks of known sizes."""
    if not hasattr(X, "map_blocks"):
        X = X.to_dask_array()
    if X.dtype.kind in "OUS" and name == "X":
        raise ValueError(f"{name} has dtype {X.dtype}; encode strings as numbers first")
    if X.ndim > 1 and X.numblocks[1] > 1:
        warnings.warn(
            f"columns of {name} are split as {X.chunks[1]} and are put together; {name}.rechunk({{1: -1}}) avoids this",
            UserWarning,
            stacklevel=2,
        )
        X = X.rechunk({1: -1})
    return X


def with_known_rows(table: Table) -> Table:
    """The same table with the chunk lengths of a Dask array counted: one pass, if they are not known."""
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
