"""The survey by workers: rows of the splits counted piece by piece, constants learned group by group.

A group is as many training rows as one group of `EqualBlocks`, so that its sums, merged in row order, have the bits of
the survey in one process.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import Batch
from dkl.store.constants import learner_of
from dkl.store.crew import Crew, Job
from dkl.store.equal_blocks import EqualBlocks, group_rows
from dkl.store.recipe import Channel
from dkl.store.staging import Aligned, Part
from dkl.store.survey import Placement, Survey, learners_of, split_of

PIECES = 16
"""Pieces that one task counts."""


class Slice(NamedTuple):
    """Rows start .. stop-1 of some channels, as the parts that hold them."""

    channels: list[list[Part]]
    firsts: list[int]
    rows: tuple[int, int]

    def aligned(self, job: Job, pool: ThreadPoolExecutor) -> Aligned:
        """The rows, read by this worker."""
        return Aligned(job.staging(), self.channels, pool, self.firsts, self.rows)


def slice_of(aligned: Aligned, start: int, stop: int) -> Slice:
    """Some rows of all channels."""
    return Slice(*aligned.between(start, stop), (start, stop))


@dataclass(frozen=True)
class Counted:
    """Where pieces begin, and rows and stored entries of each split before each of them; the last entry is all."""

    cuts: np.ndarray
    rows: np.ndarray
    entries: np.ndarray

    def pieces(self, split: int, first: int, last: int, of: np.ndarray | None = None) -> tuple[int, int, int]:
        """(start, stop) of the source rows that hold rows first .. last-1 of a split, and how many to leave out."""
        before = (self.rows if of is None else of)[:, split]
        a, b = int(np.searchsorted(before, first, "right")) - 1, int(np.searchsorted(before, last, "left"))
        return int(self.cuts[a]), int(self.cuts[b]), first - int(before[a])


def count_pieces(held: tuple[Job, tuple[Channel, ...]], part: Slice, read: bool, sparse: bool) -> np.ndarray:
    """The task: rows, and stored entries, of each split in each piece: (2, pieces, splits)."""
    job, channels = held
    count = len(job.request.split) + 1
    place, found = Placement(job.request, channels), []
    with ThreadPoolExecutor(1) as pool:
        for start, stop, pieces in _pieces(job, part, pool, read):
            split = split_of(start, stop, job.request) if pieces is None else place(start, pieces)
            rows, entries = np.bincount(split[split >= 0], minlength=count), np.zeros(count, np.int64)
            if sparse and pieces is not None:
                stored = sum(np.diff(batch.X.indptr) for batch in pieces)
                entries += np.bincount(split[split >= 0], stored[split >= 0], count).astype(np.int64)
            found.append((rows, entries))
    return np.array(found, np.int64).transpose(1, 0, 2)


def _pieces(job: Job, part: Slice, pool: Any, read: bool) -> Iterator[tuple[int, int, list[Batch] | None]]:
    aligned = part.aligned(job, pool)
    if read:
        yield from ((start, start + pieces[0].X.shape[0], pieces) for start, pieces in aligned)
    else:
        cuts = aligned.cuts()
        yield from ((a, b, None) for a, b in itertools.pairwise(cuts))


def learn_group(
    held: tuple[Job, tuple[Channel, ...]], i: int, sparse: bool, part: Slice, skip: int, count: int
) -> EqualBlocks:
    """The task: what some training rows of a channel add to its constants."""
    job, channels = held
    alone = len(part.channels) == 1
    learner = learner_of(channels[i], sparse, job.request)
    assert learner is not None
    place = Placement(job.request, channels[i : i + 1] if alone else channels)
    with ThreadPoolExecutor(1) as pool:
        for start, pieces in part.aligned(job, pool):
            split = place(start, pieces)
            rows = np.flatnonzero(split == 0)[skip : skip + count]
            skip = max(0, skip - int((split == 0).sum()))
            count -= len(rows)
            if len(rows):
                learner.add(pieces[0 if alone else i].X[rows])
    return learner.sums.finish()


def merge_groups(total: EqualBlocks | None, group: EqualBlocks) -> EqualBlocks:
    """The task: the sums of the rows so far, and of the next group."""
    merged = type(group)(group.width)
    if total is not None:
        merged.merge(total)
    merged.merge(group)
    return merged


def spread_survey(
    crew: Crew, job: Job, aligned: Aligned, channels: tuple[Channel, ...], sparse: bool, fixed: bool
) -> tuple[Survey, Counted]:
    """Constants of the channels, and where the rows of the splits are."""
    are_sparse = [parts[0].summary["sparse"] for parts in aligned.channels]
    counted = _count(crew, job, aligned, channels, sparse)
    learners = {} if fixed else learners_of(channels, are_sparse, job.request)
    while learners:
        held = crew.hold((job, channels))
        for i, learner in learners.items():
            groups = _groups(job, aligned, counted, i, channels[i].width)
            calls = [(held, i, are_sparse[i], *group) for group in groups]
            if calls:  # none: every training row was dropped, and the learner says what one process says
                learner.sums = crew.fold("learn", learn_group, merge_groups, calls)
        channels = tuple(learners[i].learned() if i in learners else c for i, c in enumerate(channels))
        learners = learners_of(channels, are_sparse, job.request)
    return Survey(channels, counted.rows[-1].tolist(), counted.entries[-1].tolist()), counted


def _count(crew: Crew, job: Job, aligned: Aligned, channels: tuple[Channel, ...], sparse: bool) -> Counted:
    cuts, held = aligned.cuts(), crew.hold((job, channels))
    read = sparse or job.request.missing == "drop"
    starts = range(0, len(cuts) - 1, PIECES)
    bounds = [(cuts[a], cuts[min(a + PIECES, len(cuts) - 1)]) for a in starts]
    calls = [(held, slice_of(aligned, *rows), read, sparse) for rows in bounds]
    found = dict(crew.run("count", count_pieces, calls))
    both = np.concatenate([found[k] for k in range(len(calls))], axis=1)
    before = np.concatenate([np.zeros_like(both[:, :1]), np.cumsum(both, axis=1)], axis=1)
    return Counted(np.array(cuts), before[0], before[1])


def _groups(job: Job, aligned: Aligned, counted: Counted, i: int, width: int) -> Iterator[tuple[Slice, int, int]]:
    """(rows of the source, training rows among them to leave out, and to take) of each group of a channel."""
    total, size = int(counted.rows[-1, 0]), group_rows(width)
    for first in range(0, total, size):
        last = min(first + size, total)
        start, stop, skip = counted.pieces(0, first, last)
        part = slice_of(aligned, start, stop)
        if job.request.missing != "drop":
            part = Slice(part.channels[i : i + 1], part.firsts[i : i + 1], part.rows)
        yield part, skip, last - first
