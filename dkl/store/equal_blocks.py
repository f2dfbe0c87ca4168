"""Rows taken in by blocks of equal size, whatever pieces they come in: constants do not depend on segments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

BLOCK, CELLS = 8192, 2**20
"""Rows, and entries, of a block."""


class EqualBlocks:
    """Sums over rows of so many columns, block by block in row order; a kind of sum says what `_add` does."""

    def __init__(self, width: int) -> None:
        self.waiting: list[Any] = []
        self.block = max(1, min(BLOCK, CELLS // max(1, width)))

    def add(self, X: Any) -> None:
        """Add rows, by blocks of equal size."""
        self.waiting.append(X)
        if sum(part.shape[0] for part in self.waiting) < self.block:
            return
        rows = _stack(self.waiting)
        whole = rows.shape[0] - rows.shape[0] % self.block
        for start in range(0, whole, self.block):
            self._add(rows[start : start + self.block])
        self.waiting = [rows[whole:]]

    def finish(self) -> Self:
        """Add the remaining rows."""
        rows = _stack(self.waiting) if self.waiting else None
        if rows is not None and rows.shape[0]:
            self._add(rows)
        self.waiting = []
        return self

    def _add(self, X: Any) -> None:
        raise TypeError(f"{type(self).__name__} does not say what it sums")


def _stack(parts: list[Any]) -> Any:
    if hasattr(parts[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)
