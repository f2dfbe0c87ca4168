"""What every source gives: its columns, then segments that are cheap to make and batches that are worth a thread.

    for segment in source.segments(): batch = source.parse(segment)

Segments come in order and depend on the source alone, so a batch can be made again after a kill, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from dkl.sources.shown import clean


class SourceError(ValueError):
    """A source that cannot be read, in one sentence that names it, without the secrets of a URL."""

    def __init__(self, said: str) -> None:
        super().__init__(clean(said))


class Unreachable(OSError):
    """Bytes that could not be read now, in one sentence; trying again may help."""

    def __init__(self, said: str) -> None:
        super().__init__(clean(said))


class Coded(NamedTuple):
    """A column of text: the number of each row's name, -1 where it is missing."""

    codes: np.ndarray  # (n,) int32
    names: list[str]


class Column(NamedTuple):
    """An input of the source."""

    name: str
    is_text: bool = False


class Segment(NamedTuple):
    """What `parse` takes: a piece of the source, its number, and the bytes of the source it stands for."""

    number: int
    data: Any
    size: int = 0


@dataclass(frozen=True)
class Batch:
    """Consecutive rows. X holds the columns that are numbers, in order, dense or csr; NaN is a missing value."""

    X: Any  # (n, k)
    text: dict[str, Coded] = field(default_factory=dict)
    y: np.ndarray | Coded | None = None  # float64 numbers, or names


@dataclass(frozen=True)
class Reading:
    """What the user says about a source; `inputs` are the columns wanted, by name, if that is known beforehand."""

    format: str | None = None
    target: str | None = None
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing: str = "refuse"
    na: tuple[str, ...] = ()
    delimiter: str | None = None
    header: bool | None = None
    encoding: str = "utf-8"
    descriptor: str = "pixels"
    resize: tuple[int, int] | None = None
    inputs: tuple[Column, ...] | None = None
    left_out: str = ""  # where the target was, if rows without names have one column more than the inputs


class Source(Protocol):
    """A file, folder or data set that gives rows. columns is None if they are numbers, and how many is not known."""

    name: str
    columns: list[Column] | None
    has_target: bool
    size: int | None  # bytes, for progress

    def segments(self) -> Iterator[Segment]:
        """Pieces in order; cheap."""

    def parse(self, segment: Segment) -> Batch:
        """The rows of a piece; safe in any thread."""


def coded(values: Any) -> Coded:
    """Texts as codes of their sorted names; None and NaN are missing."""
    import pandas as pd

    codes, names = pd.factorize(np.asarray(values, dtype=object), sort=False, use_na_sentinel=True)
    order = np.argsort(np.asarray(names, dtype=object), kind="stable")
    rank = np.empty(len(names) + 1, np.int32)
    rank[order], rank[-1] = np.arange(len(names), dtype=np.int32), -1
    return Coded(rank[codes], [str(names[i]) for i in order])


def refuse_missing(path: str, where: str, column: str) -> SourceError:
    """The sentence for a missing value that nobody said what to do with."""
    return SourceError(
        f"{path!r} has a missing value in {where}, column {column!r}; say --missing drop (such rows), mean or zero"
    )


def column_number(name: str, names: list[str], what: str, path: str) -> int:
    """The position of a column given by name or by position (from 0; -1 is the last)."""
    if name in names:
        return names.index(name)
    try:
        position = int(name)
    except ValueError:
        import difflib

        near = difflib.get_close_matches(name, names, n=1)
        hint = (
            f"did you mean {near[0]!r}?"
            if near
            else f"there are {', '.join(map(repr, names[:8]))}" + (" ..." if len(names) > 8 else "")
        )
        raise SourceError(f"{path!r} has no column {name!r} ({what}); {hint}") from None
    if not -len(names) <= position < len(names):
        raise SourceError(f"{path!r} has {len(names)} columns; {what} {position} is not one of them (0 is the first)")
    return position % len(names)
