"""The interface of a source: its columns, then segments (cheap to cut) and batches (parsed in threads).

    for segment in source.segments(): batch = source.parse(segment)

Segments come in order and depend on the source alone. So a batch can be parsed again after a kill, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from dkl.sources.shown import clean


class SourceError(ValueError):
    """A source that cannot be read. The message is one sentence, names the source and shows no secret of a URL."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))


class Unreachable(OSError):
    """Bytes that cannot be read now; a retry may help."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))


class Coded(NamedTuple):
    """A column of text: a code into `names` for each row, -1 where it is missing."""

    codes: np.ndarray  # (n,) int32
    names: list[str]


class Column(NamedTuple):
    """An input of the source."""

    name: str
    is_text: bool = False


class Segment(NamedTuple):
    """The argument of `parse`: a piece of the source, its number, and its bytes in the source."""

    number: int
    data: Any
    size: int = 0


@dataclass(frozen=True)
class Batch:
    """Consecutive rows. X holds the columns that are numbers, in order, dense or csr; NaN is a missing value."""

    X: Any  # (n, k)
    text: dict[str, Coded] = field(default_factory=dict)
    y: np.ndarray | Coded | None = None  # float64 numbers, or names


class Patches(NamedTuple):
    """How patches are cut from an image: (height, width), how many of each region, and the seed of their places."""

    shape: tuple[int, int]
    of_each: int
    seed: int
    regions: tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """How the user wants a source read; `inputs` are the columns of a recipe, if the source must match one."""

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
    patches: Patches | None = None
    inputs: tuple[Column, ...] | None = None
    left_out: str = ""  # the target's position, for rows without names that have one column more than the inputs


class Source(Protocol):
    """A file, folder or data set of rows. `columns` is None if all are numbers and their count is not known yet."""

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
    """The error of a missing value, if missing='refuse'."""
    return SourceError(
        f"{path!r} has a missing value in {where}, column {column!r}; use --missing drop (drops such rows), mean or "
        "zero"
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
        raise SourceError(
            f"{path!r} has {len(names)} columns; {what} {position} is out of range (0 is the first, -1 the last)"
        )
    return position % len(names)
