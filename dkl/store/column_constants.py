"""Shift and factor of each column, from the training rows.

minmax    (x - (low + high) / 2) * 2 / (high - low), in [-1, 1]        (sparse: x / max |x|)
standard  (x - mean) / deviation                                       (sparse: x / deviation)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.store.equal_blocks import EqualBlocks

TINY = 1e-300
"""A smaller range counts as constant: its inverse may overflow."""


class Spread(EqualBlocks):
    """Count, mean, sum of squared deviations, minimum and maximum of each column, without missing values."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.count, self.mean, self.square = np.zeros(width), np.zeros(width), np.zeros(width)
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)

    def _add(self, X: Any) -> None:
        if hasattr(X, "indptr"):
            self._add_sparse(X)
            return
        X = X.astype(np.float64)
        known = ~np.isnan(X)
        count = known.sum(axis=0)
        filled = X if known.all() else np.where(known, X, 0.0)
        mean = filled.sum(axis=0) / np.maximum(count, 1)
        centred = np.where(known, X - mean, 0.0)
        self._merge(count, mean, np.einsum("ij,ij->j", centred, centred))
        self.low = np.minimum(self.low, np.where(known, X, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(known, X, -np.inf).max(axis=0))

    def _add_sparse(self, X: Any) -> None:
        width, n = len(self.mean), X.shape[0]
        known = ~np.isnan(X.data)
        columns, data = X.indices[known], X.data[known]
        entries = np.bincount(columns, minlength=width)
        count = n - np.bincount(X.indices[~known], minlength=width)
        mean = np.bincount(columns, data, width) / np.maximum(count, 1)
        square = np.bincount(columns, (data - mean[columns]) ** 2, width) + (count - entries) * mean**2
        self._merge(count, mean, square)
        zero = np.where(entries < count, 0.0, np.inf)
        low, high = zero.copy(), -zero
        np.minimum.at(low, columns, data)
        np.maximum.at(high, columns, data)
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)

    def merge(self, after: Spread) -> None:
        """Add the sums of the rows that follow."""
        self._merge(after.count, after.mean, after.square)
        self.low, self.high = np.minimum(self.low, after.low), np.maximum(self.high, after.high)

    def _merge(self, count: np.ndarray, mean: np.ndarray, square: np.ndarray) -> None:
        total = self.count + count
        share = count / np.maximum(total, 1)
        step = mean - self.mean
        self.square += square + step**2 * self.count * share
        self.mean += step * share
        self.count = total

    def constants(self, scale: str, sparse: bool) -> tuple[np.ndarray, np.ndarray] | None:
        """(shift, factor); the factor of a constant column is 1."""
        if scale == "standard":
            deviation = np.sqrt(self.square / np.maximum(self.count, 1))
            flat = deviation <= 1e-14 * np.abs(self.mean)
            return np.zeros_like(self.mean) if sparse else self.mean, 1 / np.where(flat, 1.0, deviation)
        if scale == "minmax":
            low, high = np.where(self.count > 0, self.low, 0.0), np.where(self.count > 0, self.high, 0.0)
            if sparse:
                most = np.maximum(np.abs(low), np.abs(high))
                return np.zeros_like(most), 1 / np.where(most > TINY, most, 1.0)
            half = high / 2 - low / 2
            return low + half, 1 / np.where(half > TINY, half, 1.0)
        return None
