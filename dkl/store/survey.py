"""Before the first row is written: the columns, the split of each row, and the constants of the scales.

Constants come from the training rows, in row order (store/constants.py).
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.sources.batch import Batch, Coded, Column, SourceError
from dkl.store.constants import Learner, learner_of
from dkl.store.equal_blocks import CELLS
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
    shape = getattr(source, "image_shape", None)
    return dataclasses.replace(channel, target=target_name(source, request), image_shape=shape)


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
    """The split of rows start .. stop-1 by a hash of the row number, or by the region of a patch; 0 is train."""
    if not request.split:
        return np.zeros(stop - start, np.int64)
    if request.region is not None:
        return np.arange(start, stop) // request.patch_count % 2
    share = hash_rows(np.arange(start, stop), request.seed) / 2.0**64
    edges = np.cumsum([float(s) for _, s in reversed(request.split)])[::-1]
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


@dataclass(frozen=True)
class Survey:
    """The channels with their constants; rows, and stored entries of sparse rows, of each split."""

    channels: tuple[Channel, ...]
    rows: list[int]
    entries: list[int]


def survey(aligned: Aligned, channels: tuple[Channel, ...], request: Request, sparse: bool, fixed: bool) -> Survey:
    """Read all rows, if needed, and again for each step that follows another one with constants.

    `fixed` channels have their constants already.
    """
    are_sparse = [parts[0].summary["sparse"] for parts in aligned.channels]
    learners = {} if fixed else learners_of(channels, are_sparse, request)
    place, count = Placement(request, channels), len(request.split) + 1
    if not learners and not sparse and request.missing != "drop":
        total = sum(part.rows for part in aligned.channels[0])
        starts = range(0, total, CELLS)
        shares = [np.bincount(split_of(a, min(a + CELLS, total), request), minlength=count) for a in starts]
        return Survey(channels, np.sum(shares, axis=0).tolist(), [0] * count)
    rows, entries = _read(aligned, place, learners, sparse, count)
    while learners:
        channels = tuple(learners[i].learned() if i in learners else c for i, c in enumerate(channels))
        learners = learners_of(channels, are_sparse, request)
        if learners:
            _read(aligned, place, learners, False, count)
    return Survey(channels, rows.tolist(), entries.tolist())


def _read(
    aligned: Aligned, place: Placement, learners: dict[int, Learner], sparse: bool, count: int
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """One pass: training rows to the learners; rows, and stored entries of sparse rows, of each split."""
    rows, entries = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for start, pieces in aligned:
        split = place(start, pieces)
        rows += np.bincount(split[split >= 0], minlength=count)
        if sparse:
            stored = sum(np.diff(batch.X.indptr) for batch in pieces)
            entries += np.bincount(split[split >= 0], stored[split >= 0], count).astype(np.int64)
        for i, learner in learners.items():
            learner.add(pieces[i].X if (split == 0).all() else pieces[i].X[split == 0])
    return rows, entries


def learners_of(channels: tuple[Channel, ...], are_sparse: list[bool], request: Request) -> dict[int, Learner]:
    """What the training rows have to tell next, by channel; nothing once all constants are known."""
    found = {i: learner_of(c, sparse, request) for i, (c, sparse) in enumerate(zip(channels, are_sparse, strict=True))}
    return {i: learner for i, learner in found.items() if learner is not None}
