"""Sparse rows whose arrays fit together: checked before any compiled code follows their indices.

    indptr[0] = 0,  indptr[i] <= indptr[i + 1],  indptr[rows] <= stored values,  0 <= indices < columns

What is checked is O(stored values), vectorised. A column that a row has twice is allowed: its values are added, as
scipy does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.features.refusal import Refusal


def check_compressed(indptr: Any, indices: Any, values: int, width: int, lines: int) -> None:
    """Refuse the first row (counted from the block's first) that reaches outside; of csr, or of any like it."""
    indptr, indices = np.asarray(indptr), np.asarray(indices)
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise Refusal(0, f"{{name}} is no sparse matrix: its indices are {indices.dtype}, indptr {indptr.dtype}")
    if indptr.shape != (lines + 1,) or indices.shape != (values,):
        sizes = f"{lines} rows have {indptr.size} bounds, {values} values and {indices.size} columns"
        raise Refusal(0, f"{{name}} is no sparse matrix: {sizes}; let indptr have one more than rows, the others agree")
    if indptr[0] != 0:
        raise Refusal(0, f"row {{row}} of {{name}} begins at entry {indptr[0]}, not at 0; its indptr is damaged")
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        raise Refusal(int(np.argmax(falls)), "row {row} of {name} ends before it begins; its indptr is damaged")
    if indptr[-1] > values:
        row = int(np.searchsorted(indptr, values, side="right")) - 1
        raise Refusal(row, f"row {{row}} of {{name}} ends after the last of {values} values; its indptr is damaged")
    used = indices[: int(indptr[-1])]
    if used.size and (used.min() < 0 or used.max() >= width):
        first = int(np.argmax((used < 0) | (used >= width)))
        row = int(np.searchsorted(indptr, first, side="right")) - 1
        raise Refusal(row, f"row {{row}} of {{name}} has column {used[first]}, but there are {width} columns")


def as_csr(X: Any) -> Any:
    """A scipy.sparse matrix of any format as csr, with arrays that fit together; else a Refusal."""
    if X.ndim != 2:
        raise Refusal(0, f"{{name}} has {X.ndim} dimensions; give rows and columns")
    rows, columns = X.shape
    kind = X.format
    if kind == "csr":
        check_compressed(X.indptr, X.indices, len(X.data), columns, rows)
        return X
    if kind == "csc":
        try:
            check_compressed(X.indptr, X.indices, len(X.data), rows, columns)
        except Refusal as refusal:
            said = str(refusal).replace("row", "\0").replace("column", "row").replace("\0", "column")
            raise Refusal(0, said.replace("{", "{{").replace("}", "}}").replace(" X ", " {name} ")) from None
    elif kind == "bsr":
        high, wide = X.blocksize
        try:
            check_compressed(X.indptr, X.indices, len(X.data), columns // wide, rows // high)
        except Refusal as refusal:
            raise Refusal(refusal.row * high, f"{refusal.template} of {high} x {wide} blocks") from None
    elif kind == "lil":
        if X.rows.shape != (rows,) or any(len(a) != len(b) for a, b in zip(X.rows, X.data, strict=True)):
            raise Refusal(0, f"{{name}} is no sparse matrix of {rows} rows: its lists differ in length")
    elif kind == "dia":
        _check_offsets(X, rows, columns)
    else:
        X = X.tocoo()
        _check_coordinates(X, rows, columns)
    X = X.tocsr()
    check_compressed(X.indptr, X.indices, len(X.data), columns, rows)
    return X


def _check_offsets(X: Any, rows: int, columns: int) -> None:
    """Diagonals lie between the corners; scipy leaves others out without a word."""
    if X.data.ndim != 2 or len(X.offsets) != len(X.data):
        sizes = f"{len(X.data)} diagonals and {len(X.offsets)} offsets"
        raise Refusal(0, f"{{name}} is no sparse matrix: it has {sizes}")
    outside = (X.offsets <= -rows) | (X.offsets >= columns)
    if outside.any():
        offset = X.offsets[int(np.argmax(outside))]
        raise Refusal(0, f"{{name}} has a diagonal at offset {offset}, but there are {rows} rows, {columns} columns")


def _check_coordinates(X: Any, rows: int, columns: int) -> None:
    if not len(X.row) == len(X.col) == len(X.data):
        sizes = f"{len(X.row)} rows, {len(X.col)} columns and {len(X.data)} values"
        raise Refusal(0, f"{{name}} is no sparse matrix: it has {sizes}")
    for found, size, what in ((X.row, rows, "row"), (X.col, columns, "column")):
        if len(found) and (found.min() < 0 or found.max() >= size):
            entry = int(np.argmax((found < 0) | (found >= size)))
            where = f"row {X.row[entry]}, column {X.col[entry]}"
            raise Refusal(0, f"{{name}} has an entry at {where}, but there are {size} {what}s")
