"""Rows taken in by blocks of equal size, whatever pieces they come in: constants do not depend on segments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

BLOCK, CELLS = 8192, 2**20
"""Rows, and entries, of a block."""
GROUP = 16
"""Blocks of a group."""


class EqualBlocks:
    """Sums over rows of so many columns, block by block in row order, and group by group.

    The sums of a group of blocks depend on its rows alone, so that workers can make them; groups are added in row
    order. A kind of sum says what `_add` (a block) and `merge` (the sums of the rows that follow) do.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.waiting: list[Any] = []
        self.block = block_rows(width)
        self.group: Any = None  # sums of the same kind
        self.blocks = 0

    def add(self, X: Any) -> None:
        """Add rows, by blocks of equal size."""
        self.waiting.append(X)
        if sum(part.shape[0] for part in self.waiting) < self.block:
            return
        rows = _stack(self.waiting)
        whole = rows.shape[0] - rows.shape[0] % self.block
        for start in range(0, whole, self.block):
            self._take(rows[start : start + self.block])
        self.waiting = [rows[whole:]]

    def finish(self) -> Self:
        """Add the remaining rows."""
        rows = _stack(self.waiting) if self.waiting else None
        if rows is not None and rows.shape[0]:
            self._take(rows)
        self.waiting = []
        self._end_group()
        return self

    def _take(self, X: Any) -> None:
        """A block of the current group."""
        if self.group is None:
            self.group = type(self)(self.width)
        self.group._add(X)
        self.blocks += 1
        if self.blocks % GROUP == 0:
            self._end_group()

    def _end_group(self) -> None:
        if self.group is not None:
            self.merge(self.group)
            self.group = None

    def _add(self, X: Any) -> None:
        raise TypeError(f"{type(self).__name__} does not say what it sums")

    def merge(self, after: Self) -> None:
        """Add the sums of the rows that follow."""
        raise TypeError(f"{type(self).__name__} does not say what it sums")


def block_rows(width: int) -> int:
    """Rows of a block."""
    return max(1, min(BLOCK, CELLS // max(1, width)))


def group_rows(width: int) -> int:
    """Rows of a group of blocks."""
    return GROUP * block_rows(width)


def _stack(parts: list[Any]) -> Any:
    if hasattr(parts[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)
