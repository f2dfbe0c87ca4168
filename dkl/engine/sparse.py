"""Sparse rows in Zarr: a group of `data`, `indices` and `indptr`, read by ranges of rows as csr blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.features.refusal import Refusal
from dkl.features.sparse import check_compressed
from dkl.sources.damage import Damaged, place_of, read_rows
from dkl.sources.whole import whole


def is_sparse_group(node: Any) -> bool:
    """Whether a Zarr group holds rows in the csr layout."""
    return str(node.attrs.get("encoding-type", "")).startswith("csr") and "indptr" in node


class SparseRows:
    """Sparse rows with the interface of a Zarr array; slices are scipy csr blocks."""

    ndim = 2
    shards = None

    def __init__(self, group: Any) -> None:
        self.group, self.store, self.path = group, group.store, group.path
        self.data, self.indices, self.indptr = (whole(group[name]) for name in ("data", "indices", "indptr"))
        if self.indptr.dtype.kind not in "iu" or self.indices.dtype.kind not in "iu":
            raise ValueError(
                f"the sparse group {group.path!r} of {group.store} has indices of dtype {self.indices.dtype} and "
                "indptr of "
                f"dtype {self.indptr.dtype}; store integers"
            )
        shape = group.attrs.get("shape")
        if (
            not shape
            or len(shape) != 2
            or self.indptr.shape != (shape[0] + 1,)
            or self.data.shape != self.indices.shape
        ):
            raise ValueError(
                f"the sparse group {group.path!r} of {group.store} is damaged: its arrays do not match; write it again"
            )
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = self.data.dtype
        rows = int(group.attrs.get("block_rows") or self.indptr.chunks[0])
        self.chunks = (max(1, min(rows, self.shape[0])), self.shape[1])

    @property
    def row_bytes(self) -> int:
        """Bytes of a stored row, on average."""
        item = self.data.dtype.itemsize + self.indices.dtype.itemsize
        return -(-int(self.data.shape[0]) * item // max(1, self.shape[0])) + 8

    def __getitem__(self, key: Any) -> Any:
        from scipy.sparse import csr_array

        rows = key[0] if isinstance(key, tuple) else key
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise IndexError(f"sparse rows are sliced with step 1, not {step}; slice the csr block that comes back")
        return self._read(start, max(start, stop), csr_array)

    def _read(self, start: int, stop: int, make: Any) -> Any:
        """Rows start .. stop-1; inconsistent arrays are refused before scipy uses them."""
        bounds = np.asarray(read_rows(self.indptr, start, stop + 1))
        first, last, stored = int(bounds[0]), int(bounds[-1]), int(self.data.shape[0])
        if not 0 <= first <= last <= stored:
            row = start + int(np.argmax((bounds < 0) | (bounds < first) | (bounds > stored)))
            row = max(start, row - 1)
            raise Damaged(f"{self._place} is damaged: row {row} reaches outside its {stored} entries; write it again")
        if (start == 0 and first) or (stop == self.shape[0] and last != stored):
            raise Damaged(
                f"{self._place} is damaged: its rows hold entries {first} to {last}, but {stored} are stored; write it "
                "again"
            )
        data, indices = (np.asarray(read_rows(array, first, last)) for array in (self.data, self.indices))
        try:
            check_compressed(bounds - first, indices, len(data), self.shape[1], stop - start)
        except Refusal as refusal:
            raise Damaged(f"{self._place} is damaged: {refusal.at(start)[1]}") from None
        return make((data, indices, bounds - first), shape=(stop - start, self.shape[1]))

    @property
    def _place(self) -> str:
        return place_of(self)
