"""Map a block function over the rows of any table; the result has the type of the input."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dkl.engine.names import unique_key
from dkl.engine.tables import Labels, Table
from dkl.engine.threads import one_blas_thread, thread_count
from dkl.features.refusal import Refusal
from dkl.features.sparse import as_csr
from dkl.sources.damage import read_rows

ROWS = 2048
"""Rows of a block in memory."""


def apply_rows(
    task: str, function: Callable[[Any], Any], table: Table, columns: int | None, dtype: Any, keeps_zeros: bool = False
) -> Any:
    """function over the rows: numpy for rows in memory, a lazy Dask array otherwise, labelled if the table is.

    `columns` is the width of the result, None if it is 1-D. keeps_zeros: sparse blocks give sparse results.
    `task` names lazy blocks on the dashboard.
    """
    if keeps_zeros and table.is_sparse:
        assert columns is not None
        return _apply_sparse(task, function, table, columns, dtype)
    result = (
        _apply_memory(function, table.array, columns, dtype)
        if not table.is_lazy
        else _apply_lazy(task, function, table, columns, dtype)
    )
    return result if table.labels is None else _labelled(result, table.labels)


def _apply_memory(function: Callable[[Any], np.ndarray], X: Any, columns: int | None, dtype: Any) -> np.ndarray:
    n = X.shape[0]
    out = np.empty(n if columns is None else (n, columns), dtype)

    def work(start: int) -> None:
        try:
            out[start : start + ROWS] = function(X[start : start + ROWS])
        except Refusal as refusal:
            raise ValueError(refusal.at(start)[1]) from None

    starts = range(0, n, ROWS)
    with one_blas_thread():
        if len(starts) <= 1:
            for start in starts:
                work(start)
        else:
            with ThreadPoolExecutor(min(thread_count(), len(starts))) as pool:
                list(pool.map(work, starts))
    return out


def _apply_sparse(task: str, function: Callable[[Any], Any], table: Table, columns: int, dtype: Any) -> Any:
    """csr for csr in memory, a lazy Dask array of csr blocks otherwise."""
    from scipy.sparse import csr_array, vstack

    X = table.array
    if table.is_lazy:
        return _apply_lazy(task, function, table, columns, dtype, csr_array((0, columns), dtype=dtype))

    def work(start: int) -> Any:
        try:
            return function(X[start : start + ROWS])
        except Refusal as refusal:
            raise ValueError(refusal.at(start)[1]) from None

    parts = [work(start) for start in range(0, X.shape[0], ROWS)]
    return vstack(parts, format="csr", dtype=dtype)


def _apply_lazy(
    task: str, function: Callable[[Any], Any], table: Table, columns: int | None, dtype: Any, meta: Any = None
) -> Any:
    from dask import delayed

    X = as_dask(table)
    held = delayed(function, name=unique_key("model"), traverse=False)
    how = {"function": held, "dtype": dtype, "token": f"dkl-{task}"}
    if columns is None:
        return X.map_blocks(_call, **how, drop_axis=1, meta=np.empty(0, dtype))
    meta = np.empty((0, 0), dtype) if meta is None else meta
    return X.map_blocks(_call, **how, chunks=(X.chunks[0], (columns,)), meta=meta)


def as_dask(table: Table) -> Any:
    """The rows of a lazy table as a Dask array."""
    X = table.array
    if table.kind != "zarr":
        return X
    import dask.array as da

    chunks = ((X.shards or X.chunks)[0], -1)[: X.ndim]
    return da.from_array(_Named(X), chunks=chunks, asarray=False, meta=X[:0])


class _Named:
    """An array on disk for Dask's graph; errors name the damaged chunk."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __dask_tokenize__(self) -> Any:
        from dask.base import normalize_token

        return normalize_token(self.array)

    def __getitem__(self, key: Any) -> Any:
        rows, *rest = key if isinstance(key, tuple) else (key,)
        start, stop, step = rows.indices(self.shape[0])
        block = read_rows(self.array, start, max(start, stop))[::step]
        return block[(slice(None), *rest)] if any(part != slice(None) for part in rest) else block


def take_inputs(table: Table, inputs: np.ndarray) -> Table:
    """Some columns of a table, lazily if it is lazy."""
    if not table.is_lazy:
        return Table("memory", table.array[:, inputs])
    X = as_dask(table)
    chunks, meta = (X.chunks[0], (len(inputs),)), X._meta[:, inputs[:0]]
    taken = X.map_blocks(_take, inputs=inputs, dtype=X.dtype, chunks=chunks, meta=meta, token="dkl-inputs")
    return Table("dask", taken)


def _take(block: Any, inputs: np.ndarray) -> Any:
    return as_csr(block)[:, inputs] if hasattr(block, "tocsr") else block[:, inputs]


def _call(block: Any, function: Callable[[Any], np.ndarray]) -> np.ndarray:
    with one_blas_thread():
        try:
            return function(block)
        except Refusal as refusal:
            raise ValueError(f"{refusal} (rows are counted from the start of the block)") from None


def _labelled(result: Any, labels: Labels) -> Any:
    import xarray as xr

    dims = (labels.row_dim, "component")[: result.ndim]
    return xr.DataArray(result, dims=dims, coords=dict(labels.row_coords)).rename(None)  # drop the Dask graph's name
