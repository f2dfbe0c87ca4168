"""How many rows are mapped at once in a pass of rank-k products."""

from __future__ import annotations

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
