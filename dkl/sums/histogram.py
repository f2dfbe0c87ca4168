"""A histogram of all entries on a logarithmic grid that is fixed before the pass: counts add up in any order.

bin floor(8 log2 x) + 1280 of 2560: eight for each octave, from 2^-160 to 2^160, so that every positive float32 has one.
An entry counts as much as its row weighs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.features.additive import check_histograms
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram

PER_OCTAVE, LOWEST, BINS = 8, -160, 2560


class LogHistogram(NamedTuple):
    """Counts of positive entries by bin, the number of all entries, and the largest one."""

    counts: np.ndarray  # (BINS,), whole numbers in float64 if there are no weights
    entries: float
    largest: float

    def __add__(self, other: LogHistogram) -> LogHistogram:  # type: ignore[override]
        return LogHistogram(self.counts + other.counts, self.entries + other.entries, max(self.largest, other.largest))

    @property
    def middles(self) -> np.ndarray:
        """Middles of the bins that hold something."""
        return 2.0 ** ((np.flatnonzero(self.counts) + 0.5) / PER_OCTAVE + LOWEST)

    @property
    def shares(self) -> np.ndarray:
        """Share of all entries, zeros among them, in the bins that hold something."""
        return self.counts[self.counts > 0] / self.entries


def log_histogram(values: np.ndarray, entries: float, weight: np.ndarray | None = None) -> LogHistogram:
    """The histogram of some values (those that are zero may be left out), of so many entries."""
    seen = values > 0 if weight is None else (values > 0) & (weight > 0)
    positive = np.asarray(values, np.float64)[seen]
    place = np.floor(PER_OCTAVE * np.log2(positive)).astype(np.int64) - PER_OCTAVE * LOWEST
    weights = None if weight is None else weight[seen]
    counts = np.bincount(np.clip(place, 0, BINS - 1), weights, minlength=BINS).astype(np.float64)
    return LogHistogram(counts, entries, float(positive.max(initial=0.0)))


class HistogramProgram(TreeProgram[LogHistogram]):
    """Pass over X: the LogHistogram of all entries."""

    task = "histogram"

    def __init__(self, who: str, name: str = "X") -> None:
        self.who, self.name = who, name

    def value(self, data: tuple[Any, ...]) -> LogHistogram:
        """The histogram of one block."""
        X = check_histograms(data[0], self.who, np.dtype(np.float64))
        values = X.data if hasattr(X, "tocoo") else X.ravel()
        if len(data) == 1 or data[1] is None:
            return log_histogram(values, X.shape[0] * X.shape[1])
        w = check_weights(data[1], X.shape[0])
        each = np.diff(X.indptr) if hasattr(X, "tocoo") else X.shape[1]
        return log_histogram(values, float(w.sum()) * X.shape[1], np.repeat(w, each))
