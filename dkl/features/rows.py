"""A block of rows in compute precision, or a refusal that names the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import first_where, not_finite, not_finite_entries


class Refusal(ValueError):
    """A row that cannot be used; `row` counts from the block's first row and fills {row} of the template."""

    def __init__(self, row: int, template: str) -> None:
        super().__init__(template.format(row=row))
        self.row, self.template = row, template

    def __reduce__(self) -> tuple:
        return Refusal, (self.row, self.template)

    def at(self, start: int) -> tuple[int, str]:
        """(row, sentence) counted from the first row of the data, if the block begins at `start`."""
        return start + self.row, self.template.format(row=start + self.row)


def finite_inputs(X: Any, dtype: np.dtype) -> Any:
    """X of a dense or sparse block in the compute dtype; entries that are not finite are refused."""
    given = X if hasattr(X, "astype") else np.asarray(X)
    with np.errstate(over="ignore"):
        X = given.astype(dtype, copy=False)
    if hasattr(X, "tocsr"):
        X = given = _canonical(X.tocsr())
    refuse_not_finite(X, "X", given)
    return X


def _canonical(X: Any) -> Any:
    """The same csr block with repeated entries added."""
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
                f"{name} contains {given[row, column]:g} at row {{row}}, column {column}, too large for "
                f"{block.dtype}; scale the inputs or use dtype='float64'",
            )
        raise Refusal(row, not_finite(name, "{row}", column, value))
