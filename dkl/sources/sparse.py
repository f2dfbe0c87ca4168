"""Sparse rows as csr: row i has the values data[indptr[i]:indptr[i + 1]] in the columns indices[...]."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import first_where
from dkl.sources.batch import Batch, Reading, SourceError, refuse_missing
from dkl.sources.columns import all_finite
from dkl.sources.dense import check_labels
from dkl.sources.labels import as_target
from dkl.sources.raw import SEGMENT, kept_dtype

MOST_EMPTY = 2**20
"""Columns that a matrix may declare, however few values it stores."""


def row_cuts(indptr: np.ndarray, item_bytes: int) -> list[tuple[int, int]]:
    """(first, last + 1) rows of pieces of about one segment."""
    cuts, first, rows = [], 0, len(indptr) - 1
    stored = SEGMENT // max(1, item_bytes)
    while first < rows:
        last = int(np.searchsorted(indptr, indptr[first] + stored, side="right")) - 1
        last = min(max(last, first + 1), first + max(1, SEGMENT // 8), rows)
        cuts.append((first, last))
        first = last
    return cuts


def check_indptr(path: str, indptr: np.ndarray, rows: int, stored: tuple[int, ...]) -> np.ndarray:
    """indptr as int64; refused if it does not match the rows and the stored values."""
    indptr = np.asarray(indptr).astype(np.int64)
    fits = indptr.shape == (rows + 1,) and indptr[0] == 0 and (np.diff(indptr) >= 0).all()
    if not fits or any(indptr[-1] != count for count in stored):
        raise SourceError(
            f"{path!r} is damaged: indptr does not match {rows} rows and {stored} values and indices; save it again"
        )
    if not rows:
        raise SourceError(f"{path!r} has no rows; give at least one")
    return indptr


def check_sparse_shape(path: str, shape: Any) -> tuple[int, int]:
    """(rows, columns) of a sparse matrix."""
    sizes = tuple(int(size) for size in np.ravel(shape))
    if len(sizes) != 2 or min(sizes) < 0 or not sizes[1]:
        raise SourceError(f"{path!r} has shape {sizes}; give a matrix of rows and columns")
    return sizes[0], sizes[1]


def check_columns(path: str, width: int, stored: int) -> None:
    """Refuse far more columns than stored values, as each column costs memory."""
    if width > max(MOST_EMPTY, stored):
        raise SourceError(
            f"{path!r} declares {width:,} columns but stores only {stored:,} values; save only the columns it uses"
        )


def sparse_batch(
    path: str, parts: tuple[np.ndarray, np.ndarray, np.ndarray], width: int, labels: Any, first: int, how: Reading
) -> Batch:
    """A csr batch of (data, indices, indptr); a bad value is refused with its row, counted from 0."""
    from scipy.sparse import csr_matrix

    data, indices, indptr = parts
    data = np.ascontiguousarray(data, kept_dtype(data.dtype, path))
    indices = np.ascontiguousarray(indices, np.int64)
    outside = (indices < 0) | (indices >= width)
    if outside.any():
        raise SourceError(
            f"{path!r} is damaged: it has the column {indices[outside][0]}, but declares {width} columns; save it again"
        )
    if width < 2**31 and len(data) < 2**31:
        indices, indptr = indices.astype(np.int32), indptr.astype(np.int32)
    X = csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, width))
    X.sort_indices()
    again = np.flatnonzero(np.diff(X.indices) == 0)
    again = again[~np.isin(again + 1, X.indptr)]
    if len(again):
        row = first + int(np.searchsorted(X.indptr, again[0], side="right")) - 1
        raise SourceError(
            f"{path!r} has column {X.indices[again[0]]} twice in row {row}; call X.sum_duplicates() first"
        )
    if not all_finite(X):
        _check_values(path, X, first, how)
    y = None if labels is None else as_target(labels)
    check_labels(path, y, first, how)
    return Batch(X, {}, y)


def _check_values(path: str, X: Any, first: int, how: Reading) -> None:
    if found := first_where(X, np.isinf):
        row, column, value = found
        raise SourceError(
            f"{path!r} row {first + row}, column '{column}' holds {value}, which is not a finite number; correct it"
        )
    if how.missing == "refuse" and (found := first_where(X, np.isnan)):
        raise refuse_missing(path, f"row {first + found[0]}", str(found[1]))
