"""A stretch: consecutive segments of one source that one worker reads and parses, known before any row is read.

What `first` and `last` count is the source's own: blocks of bytes, row groups, or segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dkl.sources.batch import Segment

SEGMENTS = 4
"""Segments of about 8 MiB in a stretch."""


@dataclass
class Stretch:
    """Where it begins and ends (None: at the end of the source), and what its reader has seen."""

    first: int = 0
    last: int | None = None
    odd: bool = False  # whether an odd number of quotes comes before it, as far as is known
    quotes: int = 0  # counted while it was read
    exact: bool = False  # whether the lines before it are counted too, for messages


def stretches(count: int, each: int = 0) -> list[Stretch]:
    """`count` units in stretches of so many; the last one reads on to the end."""
    each = each or SEGMENTS
    cuts = [Stretch(first, first + each) for first in range(0, max(1, count), each)]
    cuts[-1].last = None
    return cuts


def stretches_of(source: Any) -> list[Stretch]:
    """The stretches of a source: one, if it can only be read from its beginning."""
    return source.stretches() if hasattr(source, "stretches") else [Stretch()]


def segments_of(source: Any, stretch: Stretch) -> Iterator[Segment]:
    """The segments of a stretch of a source."""
    return source.segments(stretch) if hasattr(source, "stretches") else source.segments()


def within(stretch: Stretch | None, segments: Iterator[Segment]) -> Iterator[Segment]:
    """Those segments of a source that are in the stretch, if the others cost nothing."""
    for segment in segments:
        if stretch is None or (stretch.first <= segment.number and segment.number < (stretch.last or float("inf"))):
            yield segment


def settle(found: list[Stretch | None]) -> tuple[list[int], int]:
    """Which stretches of a source were read inside quotes though they do not begin there, or the other way around, and
    up to which the beginnings are known; `found` are those that have been read, None those that have not.
    """
    wrong, odd = list[int](), False
    for k, stretch in enumerate(found):
        if stretch is None:
            return wrong, k
        if stretch.odd != odd:
            wrong.append(k)
        odd ^= bool(stretch.quotes % 2)
    return wrong, len(found)
