"""Sparse rows in Zarr: a group of `data`, `indices` and `indptr`, read by ranges of rows as csr blocks."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_sparse_group(node: Any) -> bool:
    """Whether a Zarr group holds rows in the csr layout."""
    return str(node.attrs.get("encoding-type", "")).startswith("csr") and "indptr" in node


class SparseRows:
    """What looks like a Zarr array of rows and gives scipy csr blocks."""

    ndim = 2
    shards = None

    def __init__(self, group: Any) -> None:
        self.group, self.store, self.path = group, group.store, group.path
        self.data, self.indices, self.indptr = group["data"], group["indices"], group["indptr"]
        shape = group.attrs.get("shape")
        if (
            not shape
            or len(shape) != 2
            or self.indptr.shape != (shape[0] + 1,)
            or self.data.shape != self.indices.shape
        ):
            raise ValueError(f"the sparse group {group.path!r} of {group.store} is damaged: its arrays do not agree")
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
            raise IndexError("sparse rows are read by ranges without a step")
        bounds = np.asarray(self.indptr[start : max(start, stop) + 1])
        first, last = int(bounds[0]), int(bounds[-1])
        parts = (np.asarray(self.data[first:last]), np.asarray(self.indices[first:last]), bounds - first)
        return csr_array(parts, shape=(len(bounds) - 1, self.shape[1]))
