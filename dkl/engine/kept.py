"""Rows that stay prepared between passes, and passes over pieces of them.

    shelf   consecutive rows (an even block), read and prepared once: what `Preparation.prepared` makes of them
    Piece   part j of J of the rows of one set of one shelf, in an order that a seed gives

Prepared rows stay in memory if they fit; otherwise only those of the newest shelves do, and others are read again.
Either way the pieces, and so every bit of what is added up, are the same. A pass over pieces is a pass of `Engine.sum`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from dkl.engine.blocks import Part, Rows
from dkl.engine.row_readers import NO_SHARED, Range


class Preparation(Protocol):
    """A frozen record that travels to the workers: what rows become before they are kept."""

    def prepared(self, start: int, data: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
        """For each set of rows (those that train, those that are held out) arrays with the same rows.

        A row that cannot be taken raises a ValueError that names it.
        """


class Piece(NamedTuple):
    """Part `number` of `of` of one set of the rows of a shelf, in the order of `seed`; () is that of the data."""

    shelf: int
    set: int
    number: int
    of: int
    seed: tuple[int, ...] = ()

    def rows(self, n: int) -> Any:
        """Which of n rows."""
        low, high = self.number * n // self.of, (self.number + 1) * n // self.of
        if not self.seed:
            return slice(low, high)
        return order_of((*self.seed, self.shelf), n)[low:high]


@lru_cache(maxsize=256)
def order_of(seed: tuple[int, ...], n: int) -> np.ndarray:
    """A permutation of n rows: the pieces of a shelf share it for an epoch."""
    return np.random.default_rng(np.random.SeedSequence(seed)).permutation(n)


@dataclass(frozen=True)
class KeptPart:
    """Pieces of one shelf, numbered as the pass numbers them: (number, piece)."""

    pieces: list[tuple[int, Piece]]
    key: Any
    rows: int
    home: str | None = None  # the worker that keeps the shelf

    @property
    def n_rows(self) -> int:
        return self.rows

    @property
    def needs(self) -> set:
        return {self.key}

    def read(self, shared: Mapping = NO_SHARED) -> Any:
        """(number, first row, arrays) of each piece."""
        shelf = shared[self.key]
        for number, piece in self.pieces:
            arrays = shelf[piece.set]
            rows = piece.rows(arrays[0].shape[0])
            yield number, 0, tuple(None if a is None else a[rows] for a in arrays)


class KeptSource(Protocol):
    """Rows that an engine holds for many passes."""

    @property
    def n_rows(self) -> int:
        """All rows."""

    @property
    def stays(self) -> bool:
        """Whether all of them are kept."""


KEPT_SHARE = 0.5
"""Share of the free memory that kept rows may take."""
LEAST_SHELVES = 9
"""Shelves that are kept at least: those whose pieces are shuffled among each other, and one more."""


def shelves_that_fit(count: int, shelf_bytes: int, free: int) -> int:
    """How many of the shelves stay in so much free memory."""
    return int(min(count, max(LEAST_SHELVES, KEPT_SHARE * free // max(1, shelf_bytes))))


class KeptRows:
    """The shelves of some rows in this process; `most` of them stay."""

    def __init__(self, rows: Rows, shelves: Sequence[Range], preparation: Preparation, most: int) -> None:
        self.rows, self.ranges, self.preparation, self.most = rows, list(shelves), preparation, max(1, most)
        self.n_rows = rows.n_rows
        self.readers = rows.cut([[one] for one in self.ranges])
        self.delayed = rows.shared(self.readers)
        self.found: OrderedDict[int, tuple] = OrderedDict()
        self.lock = threading.Lock()
        self.reading: dict[int, threading.Lock] = {}

    @property
    def stays(self) -> bool:
        """Whether all of them are kept."""
        return self.most >= len(self.ranges)

    def parts(self, pieces: Sequence[Piece], threads: int) -> list[KeptPart]:
        """One part for each piece: threads take them as they come."""
        return [self._part([(number, piece)]) for number, piece in enumerate(pieces)]

    def _part(self, pieces: list[tuple[int, Piece]]) -> KeptPart:
        shelf = pieces[0][1].shelf
        start, stop = self.ranges[shelf]
        return KeptPart(pieces, shelf, sum((stop - start) // piece.of for _, piece in pieces))

    def values_of(self, part: KeptPart) -> Mapping:
        """The shelf of a part: kept, or read now by the first thread that asks."""
        number = part.key
        with self.lock:
            if number in self.found:
                self.found.move_to_end(number)
                return {number: self.found[number]}
            one = self.reading.setdefault(number, threading.Lock())
        with one:
            with self.lock:
                if number in self.found:
                    return {number: self.found[number]}
            shelf = read_shelf(self.readers[number], self.preparation, self._shared(self.readers[number]))
            with self.lock:
                self.found[number] = shelf
                while len(self.found) > self.most:
                    self.found.popitem(last=False)
        return {number: shelf}

    def release(self, part: KeptPart) -> None:
        """Shelves are let go of when newer ones need their place."""

    def _shared(self, reader: Part) -> Mapping:
        """Values that the reader of a shelf shares with others."""
        if not reader.needs:
            return NO_SHARED
        import dask

        keys = list(reader.needs)
        return dict(zip(keys, dask.compute(*(self.delayed[key] for key in keys), scheduler="synchronous"), strict=True))


def read_shelf(part: Part, preparation: Preparation, shared: Mapping = NO_SHARED) -> tuple:
    """The rows of a shelf, read and prepared."""
    _, start, data = next(iter(part.read(shared)))
    return preparation.prepared(start, data)
