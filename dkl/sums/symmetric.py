"""Symmetric d x d sums stored as half a matrix: Psi' Psi by halves.

    [A B]' [A B]  =  A'A (again by halves),  A'B (one product),  B'B (again by halves)

Most of the work is in large general products, which run faster than a symmetric rank-k call, and the
lower half is never computed, stored, added or sent.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dkl.sums.order_free import add_exactly

LEAF = 512
"""Diagonal blocks of at most this width are computed whole."""


class Tile(NamedTuple):
    """Rows and columns of the matrix that stand at [start, stop) of the packed vector."""

    rows: slice
    columns: slice
    start: int
    stop: int


@lru_cache(maxsize=64)
def half_layout(d: int) -> tuple[Tile, ...]:
    """Tiles that cover the upper half of a d x d matrix."""
    tiles: list[Tile] = []

    def place(rows: slice, columns: slice) -> None:
        start = tiles[-1].stop if tiles else 0
        size = (rows.stop - rows.start) * (columns.stop - columns.start)
        tiles.append(Tile(rows, columns, start, start + size))

    def divide(low: int, high: int) -> None:
        if high - low <= LEAF:
            place(slice(low, high), slice(low, high))
            return
        middle = (low + high) // 2
        place(slice(low, middle), slice(middle, high))
        divide(low, middle)
        divide(middle, high)

    divide(0, d)
    return tuple(tiles)


def packed_size(d: int) -> int:
    """Entries of the packed half of a d x d matrix."""
    return half_layout(d)[-1].stop


def largest_tile(d: int) -> int:
    """Entries of the largest tile."""
    return max(tile.stop - tile.start for tile in half_layout(d))


def add_rank_k(packed: np.ndarray, Psi: np.ndarray, C: Any, buffer: np.ndarray) -> None:
    """packed += Psi' Psi, rounded to the grid of C; buffer holds `largest_tile` entries of Psi's dtype."""
    for rows, columns, start, stop in half_layout(Psi.shape[1]):
        left = Psi[:, rows]
        right = left if rows == columns else Psi[:, columns]
        product = buffer[: stop - start].reshape(left.shape[1], right.shape[1])
        np.matmul(left.T, right, out=product)
        add_exactly(packed[start:stop], product, C)


def unpack(packed: np.ndarray, d: int) -> np.ndarray:
    """The full symmetric matrix."""
    full = np.empty((d, d))
    for rows, columns, start, stop in half_layout(d):
        tile = packed[start:stop].reshape(rows.stop - rows.start, columns.stop - columns.start)
        full[rows, columns] = tile
        if rows != columns:
            full[columns, rows] = tile.T
    return full
