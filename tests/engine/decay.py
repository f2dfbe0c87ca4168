"""A program that remembers rows, for tests of walks. Workers import this module, so it needs little."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dkl.cost import Cost
from dkl.sums.row_memory import RowMemory
from dkl.sums.tree import TreeTotal

CHUNK = 25
"""Rows of a block."""


@dataclass(frozen=True)
class Decay:
    """Every row has a value: it begins at x_0, and each step s makes it 1 / (1 + value^2) + s x_1."""

    ahead: tuple[float, ...] = ()
    memory: RowMemory = field(default_factory=RowMemory)
    task = "decay"
    rows_wanted = CHUNK

    def after(self, ahead: tuple[float, ...]) -> Decay:
        return replace(self, ahead=ahead)

    def cost(self) -> Cost:
        return Cost("decay", CHUNK)

    def start(self) -> TreeTotal:
        return TreeTotal()

    def workspace(self) -> None:
        return None

    def add(self, sums: TreeTotal, workspace: None, block: int, start: int, data: tuple[Any, ...]) -> None:
        rows = data[0]
        known, values = self.memory.get(block, len(self.ahead))
        value = values[0].copy() if known else rows[:, 0].copy()
        for step in self.ahead[known:]:
            value = 1 / (1 + value * value) + step * rows[:, 1]
        self.memory.put(block, len(self.ahead), [value])
        sums.tree.add(block, np.append((rows * value[:, None]).sum(axis=0), len(self.ahead) - known))
