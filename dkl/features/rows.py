"""A block of rows in compute precision, or a refusal that names the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import first_where, not_finite, not_finite_entries
from dkl.features.refusal import Refusal
from dkl.features.sparse import as_csr

__all__ = ["Refusal", "dense", "entry_ends", "finite_inputs", "refuse_not_finite"]


def finite_inputs(X: Any, dtype: np.dtype) -> Any:
    """X of a dense or sparse block in the compute dtype; entries that are not finite are refused."""
    given = X if hasattr(X, "astype") else np.asarray(X)
    refuse_not_real(given, "{name}")
    if hasattr(given, "tocsr"):
        given = as_csr(given)
    with np.errstate(over="ignore"):
        X = given.astype(dtype, copy=False)
    if isinstance(X, np.ma.MaskedArray):
        X = given = X.data
    if hasattr(X, "tocsr"):
        X = given = _canonical(X)
    refuse_not_finite(X, "{name}", given)
    return X


def refuse_not_real(block: Any, name: str) -> None:
    """Refuse what a cast would make real in silence: complex numbers, texts, objects, dates, and masked entries."""
    kind = block.dtype.kind
    if kind == "c":
        raise Refusal(
            0,
            f"Complex data not supported: {name} has dtype {block.dtype} in the block from row {{row}} on; use "
            "real and imaginary parts",
        )
    if kind not in "fiub":
        raise Refusal(
            0, f"{name} has dtype {block.dtype} in the block from row {{row}} on; make its entries numbers first"
        )
    refuse_masked(block, name)


def refuse_masked(block: Any, name: str) -> None:
    """Refuse a masked array that masks something; without that it is what its data are."""
    if not isinstance(block, np.ma.MaskedArray) or not np.ma.is_masked(block):
        return
    mask = np.ma.getmaskarray(block)
    row, column = divmod(int(np.argmax(mask)), mask[0].size)
    where = f"row {{row}}, column {column}" if mask.ndim > 1 else "row {row}"
    raise Refusal(row, f"{name} is masked at {where}; remove the row or fill it")


def _canonical(X: Any) -> Any:
    """The same csr block with repeated entries added; its arrays may have changed since scipy last looked."""
    X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def entry_ends(block: Any) -> tuple[Any, Any]:
    """The least and the largest entry (NaN if there is one), zeros of a block without entries."""
    data = block.data if hasattr(block, "tocoo") else block
    return (data.min(), data.max()) if data.size else (0.0, 0.0)


def refuse_not_finite(block: Any, name: str, given: Any = None) -> None:
    """Its ends tell whether a block is clean; only a dirty one is searched. `given` is the block before a cast."""
    clean = all(map(np.isfinite, entry_ends(block)))
    bad = None if clean else first_where(block, not_finite_entries)
    if bad is not None:
        row, column, value = bad
        if given is not None and np.isfinite(given[row, column]):
            raise Refusal(
                row,
                f"{name} contains {given[row, column]:g} at row {{row}}, column {{column}}, too large for "
                f"{block.dtype}; scale the inputs or use dtype='float64'",
                column,
            )
        raise Refusal(row, not_finite(name, "{row}", "{column}", value), column)


def dense(T: Any) -> np.ndarray:
    """A few rows as a dense array."""
    rows: np.ndarray = T.toarray() if hasattr(T, "toarray") else T
    return rows
