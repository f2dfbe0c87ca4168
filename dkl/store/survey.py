"""Before the first row is written: the columns, the split of each row, and the constants of the scales.

    minmax    (x - (low + high) / 2) * 2 / (high - low), in [-1, 1]        (sparse: x / max |x|)
    standard  (x - mean) / deviation                                       (sparse: x / deviation)

Constants come from the training rows, in row order.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Coded, Column, SourceError
from dkl.store.folder import is_url
from dkl.store.recipe import Channel
from dkl.store.request import Request
from dkl.store.staging import Aligned, Part
from dkl.sums.folds import hash_rows


def target_name(source: Any, request: Request) -> str:
    """The target to ask of a like source later: a name, a position, or none."""
    if not source.has_target:
        return "none"
    named = getattr(source, "target_name", None)
    if named is None and request.target is not None and (is_url(request.target) or os.path.isfile(request.target)):
        return "none"  # a separate file of labels belongs to these rows only
    return named or request.target or ""


def make_channel(name: str, source: Any, parts: list[Part], scale: str, request: Request) -> Channel:
    """The channel of the parts, without constants."""
    summaries, columns = [part.summary for part in parts], source.columns
    channel = _bare_channel(name, columns, summaries, scale)
    return dataclasses.replace(channel, target=target_name(source, request))


def _bare_channel(name: str, columns: list[Column] | None, summaries: list[dict], scale: str) -> Channel:
    if columns is not None:
        texts = [column.name for column in columns if column.is_text]
        categories = {t: sorted(set().union(*(s["text"][t] for s in summaries))) for t in texts}
        return Channel(name, tuple(columns), len(columns) - len(texts), 0, categories, scale)
    if all(s["sparse"] for s in summaries):
        lowest, highest = min(s["lowest"] for s in summaries), max(s["highest"] for s in summaries)
        base = min(1, lowest)
        return Channel(name, None, max(1, highest - base + 1), base, scale=scale)
    widths = {s["width"] for s in summaries}
    if len(widths) > 1:
        raise SourceError(f"the rows of {name!r} have {sorted(widths)} numbers; make them all as long")
    return Channel(name, None, widths.pop(), scale=scale)


def split_of(start: int, stop: int, request: Request) -> np.ndarray:
    """The split of rows start .. stop-1 by a hash of the row number; 0 is train."""
    if not request.split:
        return np.zeros(stop - start, np.int64)
    share = hash_rows(np.arange(start, stop), request.seed) / 2.0**64
    edges = np.cumsum([s for _, s in reversed(request.split)])[::-1]
    return np.sum(share[:, None] < edges, axis=1)


@dataclass(frozen=True)
class Placement:
    """Assigns rows to splits, alike for the survey and for writing."""

    request: Request
    channels: tuple[Channel, ...]

    def __call__(self, start: int, pieces: list[Batch]) -> np.ndarray:
        """The split of each row; -1 if it is dropped for a missing value."""
        split = split_of(start, start + pieces[0].X.shape[0], self.request)
        if self.request.missing == "drop":
            for channel, batch in zip(self.channels, pieces, strict=True):
                split[channel.missing_rows(batch) | _missing_target(batch)] = -1
        return split


def _missing_target(batch: Batch) -> Any:
    if batch.y is None:
        return False
    return batch.y.codes < 0 if isinstance(batch.y, Coded) else np.isnan(batch.y)


TINY = 1e-300
"""A smaller range counts as constant: its inverse may overflow."""
BLOCK, CELLS = 8192, 2**20
"""Rows, and entries, of a block. Blocks do not follow segments, so the constants do not depend on them."""


class Spread:
    """Count, mean, sum of squared deviations, minimum and maximum of each column, without missing values."""

    def __init__(self, width: int) -> None:
        self.count, self.mean, self.square = np.zeros(width), np.zeros(width), np.zeros(width)
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)
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

    def finish(self) -> Spread:
        """Add the remaining rows."""
        if self.waiting:
            self._add(_stack(self.waiting))
        self.waiting = []
        return self

    def _add(self, X: Any) -> None:
        if not X.shape[0]:
            return
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


@dataclass(frozen=True)
class Survey:
    """The channels with their constants; rows, and stored entries of sparse rows, of each split."""

    channels: tuple[Channel, ...]
    rows: list[int]
    entries: list[int]


def survey(aligned: Aligned, channels: tuple[Channel, ...], request: Request, sparse: bool, fixed: bool) -> Survey:
    """Read all rows, if needed; `fixed` channels have their constants already."""
    place, count = Placement(request, channels), len(request.split) + 1
    wanted = {i for i, c in enumerate(channels) if not fixed and (c.scale in ("minmax", "standard") or _fills(request))}
    total = sum(part.rows for part in aligned.channels[0])
    if not wanted and not sparse and request.missing != "drop":
        starts = range(0, total, CELLS)
        shares = [np.bincount(split_of(a, min(a + CELLS, total), request), minlength=count) for a in starts]
        return Survey(channels, np.sum(shares, axis=0).tolist(), [0] * count)
    rows, entries = np.zeros(count, np.int64), np.zeros(count, np.int64)
    spreads = {i: Spread(channels[i].width) for i in wanted}
    for start, pieces in aligned:
        split = place(start, pieces)
        rows += np.bincount(split[split >= 0], minlength=count)
        if sparse:
            stored = sum(np.diff(batch.X.indptr) for batch in pieces)
            entries += np.bincount(split[split >= 0], stored[split >= 0], count).astype(np.int64)
        for i, spread in spreads.items():
            X = pieces[i].X if (split == 0).all() else pieces[i].X[split == 0]
            spread.add(_shifted(X, channels[i]))
    made = tuple(
        _with_constants(channel, spreads[i].finish(), aligned.channels[i][0].summary["sparse"], request)
        if i in wanted
        else channel
        for i, channel in enumerate(channels)
    )
    return Survey(made, rows.tolist(), entries.tolist())


def _stack(parts: list[Any]) -> Any:
    if hasattr(parts[0], "indptr"):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def _fills(request: Request) -> bool:
    return request.missing in ("mean", "zero")


def _shifted(X: Any, channel: Channel) -> Any:
    """Sparse rows with indices from 0, in the width of the channel."""
    if not hasattr(X, "indptr"):
        return X
    from scipy.sparse import csr_array

    return csr_array((X.data, X.indices - channel.base, X.indptr), shape=(X.shape[0], channel.width))


def _with_constants(channel: Channel, spread: Spread, sparse: bool, request: Request) -> Channel:
    if _fills(request):
        fill = np.where(spread.count > 0, spread.mean, 0.0) if request.missing == "mean" else np.zeros(channel.width)
        channel = dataclasses.replace(channel, fill=tuple(fill.tolist()))
    constants = spread.constants(channel.scale, sparse)
    if constants is None:
        return channel
    return dataclasses.replace(channel, shift=tuple(constants[0].tolist()), factor=tuple(constants[1].tolist()))
