"""How many rows are mapped at once, and cutting rows into tiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

TILE_BYTES = 96 * 2**20
"""Features of one tile take at most this much."""


def tile_rows(n: int, d: int, dtype: np.dtype) -> int:
    """Rows mapped at once: enough to hide the d x d addition, few enough to share small data among threads."""
    most = 8192 if dtype == np.float32 else 4096
    return int(max(256, min(most, max(512, n // 32), TILE_BYTES // (d * dtype.itemsize))))


def most_rows(tile: int) -> int:
    """Rows of the largest tile that cutting n rows into round(n / tile) equal parts can give."""
    return 3 * tile // 2 + 1


def even_tiles(n: int, weight: np.ndarray | None, most: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices of n rows, as even as they can be with at most `most` rows each, and the weights of their rows."""
    parts = -(-n // most)
    for i in range(parts):
        rows = slice(i * n // parts, (i + 1) * n // parts)
        yield rows, np.ones(rows.stop - rows.start) if weight is None else weight[rows]
