"""What a pass and the solve after it cost, known before they run: bytes, flops and cosines.

    a map states what the features of a row cost      MapCost      features/
    a program states what one pass costs              Cost         sums/
    a solver states what the solve costs              SolveCost    solvers/

The engine adds them up (engine/memory.py). It knows these records, and no algorithm. No cost grows with the number of
rows, but for flops: they are those of one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sizes:
    """What is known before anything is drawn: the rows, how they are stored, and the targets.

    A program knows its rows, inputs and targets alone; who plans knows how rows are stored and cut into blocks too.
    """

    rows: int
    inputs: int
    dtype: np.dtype[Any]  # in which features are computed
    outputs: int = 0  # columns of y, or classes
    is_class: bool = False
    row_bytes: int = 0  # of a stored row; of sparse rows the mean
    is_lazy: bool = False
    largest_block: Callable[[int], int] | None = field(default=None, compare=False, repr=False)

    @property
    def item(self) -> int:
        """Bytes of a computed number."""
        return int(self.dtype.itemsize)

    @property
    def is_sparse(self) -> bool:
        """Whether a stored row takes fewer bytes than a dense row of bytes would."""
        return 0 < self.row_bytes < self.inputs

    @property
    def target_bytes(self) -> int:
        """Of one row: its code, copies of it and its weight; or its values, encoded and weighted."""
        return 32 if self.is_class else 24 * self.outputs

    def block_of(self, rows_wanted: int) -> int:
        """Rows of the largest block of a pass that wants so many."""
        return min(self.rows, rows_wanted) if self.largest_block is None else self.largest_block(rows_wanted)

    def block_row_bytes(self, columns: int) -> int:
        """Bytes of one row of a block: as read, in compute precision, and as so many columns of t(X)."""
        one = 2 * self.row_bytes if self.is_sparse else self.inputs * self.item
        terms = columns // self.inputs if columns > self.inputs else 0
        return 2 * (1 + terms) * one + (2 * self.row_bytes if self.is_lazy else 0)


@dataclass(frozen=True)
class MapCost:
    """What a feature map costs; `pull_` is what its pullback takes beside."""

    features: int
    columns: int  # of t(X)
    parameter_bytes: int
    flops: float  # for each row
    cosines: float  # for each row, or other functions that take as long
    scratch_bytes: int = 0  # of a thread beside the tile that is written
    sparse_row_bytes: int = 0  # of each row of a tile, if rows are sparse
    pull_bytes: int = 0  # of a thread
    pull_row_bytes: int = 0  # of each row of a tile
    pull_flops: float = 0.0  # for each row
    movable: int = 0  # numbers that may be learned beside one for each input


@dataclass(frozen=True)
class SolveCost:
    """What a solve takes beside the sums that it is given."""

    bytes: int = 0
    flops: float = 0.0

    def __add__(self, other: SolveCost) -> SolveCost:
        return SolveCost(self.bytes + other.bytes, self.flops + other.flops)


@dataclass(frozen=True)
class Cost:
    """One pass, and the solve after it."""

    name: str  # a word for people
    rows_wanted: int  # in a block
    features: int = 0  # of all its maps
    maps: int = 1
    folds: int = 1
    columns: int = 0  # of t(X)
    row_bytes: int = 0  # of each row of a block beside its inputs
    thread_bytes: int = 0  # of a thread beside its block and its sums: tiles, products
    sparse_bytes: int = 0  # of a thread, if rows are sparse
    sums_bytes: int = 0
    parameter_bytes: int = 0
    flops: float = 0.0  # for each row
    cosines: float = 0.0  # for each row
    solve: SolveCost = SolveCost()
    repeated: bool = False  # whether every iteration of learning makes this pass
    count: float = 1.0  # how often a fit makes it, about; of a repeated pass, how often an iteration does

    def then(self, solve: SolveCost) -> Cost:
        """The same pass with a solve after it."""
        return replace(self, solve=self.solve + solve)

    def again(self) -> Cost:
        """The same pass, made by every iteration."""
        return replace(self, repeated=True)

    def made(self, count: float) -> Cost:
        """The same pass, made about so often by one fit."""
        return replace(self, repeated=False, count=count)
