"""Small sums in a fixed order: a pairwise tree over the block index.

Nodes (level, index) are merged as soon as both halves are there, the left half first, so what is added to
what depends on the number of blocks alone. For records whose bound is not known before the pass. Records whose +
is exact need no order, and no tree: one running total.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from dkl.cost import Cost
from dkl.features.rows import Refusal

SMALL = 2**16
"""Bytes of a record of a tree program, about: a few numbers for each column."""


class Addable(Protocol):
    """A small record with +."""

    def __add__(self, other: Self, /) -> Self: ...


V = TypeVar("V", bound=Addable)


class TreeSum(Generic[V]):
    """A sum of records that support +, kept as the complete subtrees seen so far."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[int, int], V] = {}

    def add(self, block: int, value: V) -> None:
        """Take in the value of one block."""
        self._place(0, block, value)

    def merge(self, other: TreeSum[V]) -> None:
        """Take in the blocks of another sum."""
        for (level, index), value in sorted(other.nodes.items()):
            self._place(level, index, value)

    def _place(self, level: int, index: int, value: V) -> None:
        while (level, index ^ 1) in self.nodes:
            twin = self.nodes.pop((level, index ^ 1))
            value = value + twin if index % 2 == 0 else twin + value
            level, index = level + 1, index // 2
        self.nodes[level, index] = value

    def copy(self) -> TreeSum[V]:
        """A tree that can be added to."""
        fresh: TreeSum[V] = TreeSum()
        fresh.nodes = dict(self.nodes)
        return fresh

    def total(self) -> V:
        """The sum; what is left of an incomplete tree is added from the first block to the last."""
        ordered = sorted(self.nodes.items(), key=lambda item: item[0][1] << item[0][0])
        total = ordered[0][1]
        with np.errstate(over="ignore", invalid="ignore"):
            for _, value in ordered[1:]:
                total = total + value
        return total


class RunningSum(Generic[V]):
    """A sum of records whose + is exact in any order: one record, however many blocks there are."""

    def __init__(self, value: V | None = None) -> None:
        self.value = value

    def add(self, block: int, value: V) -> None:
        """Take in the value of one block."""
        self.value = value if self.value is None else self.value + value

    def merge(self, other: RunningSum[V]) -> None:
        """Take in the blocks of another sum."""
        if other.value is not None:
            self.add(0, other.value)

    def copy(self) -> RunningSum[V]:
        """A sum that can be added to."""
        return RunningSum(self.value)

    def total(self) -> V | None:
        """The sum; None without blocks."""
        return self.value


@dataclass
class TreeTotal(Generic[V]):
    """What a tree program accumulates: the sum and the first row that was refused."""

    tree: Any = field(default_factory=TreeSum)  # TreeSum[V] or RunningSum[V]
    refusal: tuple[int, str] | None = None

    def merge(self, other: TreeTotal[V]) -> None:
        """self += other."""
        self.tree.merge(other.tree)
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> TreeTotal[V]:
        """A record that can be added to."""
        return TreeTotal(self.tree.copy(), self.refusal)


class TreeProgram(Generic[V]):
    """A pass whose block values are small records with +; subclasses say what one block is worth."""

    rows_wanted = 8192
    name = "X"  # what refusals call the rows
    task = "sums"  # what the dashboard calls its tasks

    def start(self) -> TreeTotal[V]:
        """Zero."""
        return TreeTotal()

    def workspace(self) -> None:
        """Nothing."""

    def cost(self) -> Cost:
        """What the pass costs: next to nothing beside its blocks."""
        return Cost(self.task, self.rows_wanted, thread_bytes=SMALL, sums_bytes=SMALL)

    def value(self, data: tuple[Any, ...]) -> V:
        """The record of one block."""
        raise TypeError(f"{type(self).__name__} does not say what a block is worth")

    def add(self, sums: TreeTotal[V], workspace: None, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += one block."""
        if not data[0].shape[0]:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused when the total is looked at
            self._add(sums, block, start, data)

    def _add(self, sums: TreeTotal[V], block: int, start: int, data: tuple[Any, ...]) -> None:
        total: V | None = None
        for i in range(0, data[0].shape[0], self.rows_wanted):
            try:
                value = self.value(tuple(None if a is None else a[i : i + self.rows_wanted] for a in data))
            except Refusal as refusal:
                sums.refusal = min(filter(None, (sums.refusal, refusal.at(start + i, self.name))))
                return
            total = value if total is None else total + value
        sums.tree.add(block, total)
