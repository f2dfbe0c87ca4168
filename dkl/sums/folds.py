"""Fold of a row from its global index alone: chunks and workers cannot change it.

Of every K consecutive rows each fold gets one, in an order drawn by a hash of the index, so folds differ by
at most one row in size.
"""

from __future__ import annotations

import numpy as np

_M1, _M2, _STEP = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0x9E3779B97F4A7C15)


def hash_rows(rows: np.ndarray, seed: int) -> np.ndarray:
    """splitmix64 of (row, seed): 64 well mixed bits for each row."""
    z = (rows.astype(np.uint64) + np.uint64(1)) * _STEP + np.uint64(seed & (2**64 - 1))
    z = (z ^ (z >> np.uint64(30))) * _M1
    z = (z ^ (z >> np.uint64(27))) * _M2
    return z ^ (z >> np.uint64(31))


def fold_of(start: int, stop: int, folds: int, seed: int) -> np.ndarray:
    """Fold number, 0 .. folds-1, of rows start .. stop-1."""
    low, high = start // folds, -(-stop // folds)
    keys = hash_rows(np.arange(low * folds, high * folds), seed).reshape(-1, folds)
    ranks = keys.argsort(axis=1, kind="stable").argsort(axis=1)
    return ranks.ravel()[start - low * folds : stop - low * folds]


def held_out(start: int, stop: int, share: tuple[int, int], seed: int) -> np.ndarray:
    """1 for rows that are held out, 0 for the others; of every q consecutive rows p are, if share = (p, q)."""
    p, q = share
    return (fold_of(start, stop, q, seed) < p).astype(int)
