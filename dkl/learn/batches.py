"""The steps of an epoch: which pieces of the kept rows each one takes.

Rows are cut into even shelves, shelves into pieces of at most 512 rows, and a step takes as many pieces as make up a
batch. In every epoch the rows of a shelf come in another order, and so do the pieces: shelves are taken a few at a
time, in a permutation from SeedSequence([seed, epoch]), and their pieces are shuffled among each other, so that rows
that are read again and again are read once for all pieces of their shelves. All of it follows from the number of rows
and of inputs: chunks, workers and memory change nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from dkl.engine.kept import Piece
from dkl.engine.row_readers import Range

PIECE = 512
"""Rows of a piece, at most: what one thread takes at a time."""
TOGETHER = 8
"""Shelves whose pieces are shuffled among each other."""
SHELF_NUMBERS, LEAST_SHELF, MOST_SHELF = 2**21, 512, 8192
"""Numbers of a shelf, about, and its rows."""
STEPS, LEAST_BATCH, MOST_BATCH = 64, 32, 8192
"""Steps of an epoch by default, about, and rows of a step."""


def default_batch(rows: int) -> int:
    """Rows of a step: the power of two near a 64th of all, from 32 to 8192."""
    return int(np.clip(2 ** round(np.log2(max(1.0, rows / STEPS))), LEAST_BATCH, MOST_BATCH))


def shelf_rows(columns: int) -> int:
    """Rows of a shelf with so many numbers in a row, at most."""
    return int(np.clip(SHELF_NUMBERS // max(1, columns), LEAST_SHELF, MOST_SHELF))


@dataclass(frozen=True)
class Batches:
    """How shelves are cut into pieces, and pieces put into steps; set 0 of a shelf trains, set 1 is held out."""

    shelves: tuple[Range, ...]
    batch: int
    seed: int
    share: float = 1.0  # of the rows that train
    piece: int = PIECE  # rows of a piece, at most

    @property
    def by_step(self) -> int:
        """Pieces of a step."""
        return -(-self.batch // self.piece)

    def pieces_of(self, shelf: int) -> int:
        """Pieces of the rows of a shelf that train."""
        start, stop = self.shelves[shelf]
        return max(1, round((stop - start) * self.share * self.by_step / self.batch))

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-sum(map(self.pieces_of, range(len(self.shelves)))) // self.by_step)

    def epoch(self, number: int) -> list[list[Piece]]:
        """The pieces of each step of an epoch."""
        counts = [self.pieces_of(shelf) for shelf in range(len(self.shelves))]
        if self.steps == 1:  # a step of all rows needs no order
            return [[Piece(i, 0, j, count) for i, count in enumerate(counts) for j in range(count)]]
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, number]))
        order, found = rng.permutation(len(counts)), []
        for i in range(0, len(order), TOGETHER):
            some = [(int(s), j) for s in order[i : i + TOGETHER] for j in range(counts[s])]
            found += [some[k] for k in rng.permutation(len(some))]
        cuts = [k * len(found) // self.steps for k in range(self.steps + 1)]
        seed = self.seed, number
        return [
            [Piece(s, 0, j, counts[s], seed) for s, j in sorted(found[low:high])]
            for low, high in itertools.pairwise(cuts)
        ]

    def held_out(self) -> list[Piece]:
        """Pieces of all rows that are held out."""
        found = []
        for shelf, (start, stop) in enumerate(self.shelves):
            count = max(1, round((stop - start) * (1 - self.share) / self.piece))
            found += [Piece(shelf, 1, j, count) for j in range(count)]
        return found
