"""A sample of rows as they are, with chances proportional to their weights, in one pass that makes no features.

The keys are those of sums/sample.py, so the sample does not depend on blocks, workers or order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.features.rows import Refusal
from dkl.sums.gram import GramProgram, gram_cost
from dkl.sums.sample import RowSample, draw_keys, least
from dkl.sums.tree import RunningSum, TreeTotal


def draw_cost(sizes: Sizes, of: MapCost, folds: int, most: int) -> Cost:
    """What the pass costs: two samples of so many rows."""
    m = sizes.inputs
    return Cost(
        "draw",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=of.features,
        columns=of.columns,
        row_bytes=sizes.target_bytes + 56,
        thread_bytes=8 * 2 * most * (m + 2),
        sums_bytes=8 * most * (m + 2),
        parameter_bytes=of.parameter_bytes + 64 * sizes.outputs,
        flops=20.0,
    )


@dataclass(frozen=True)
class DrawProgram:
    """The pass over the rows of a gram's pass: at most `most` of them, drawn by a hash of their numbers."""

    gram: GramProgram
    most: int
    seed: int
    task = "draw"

    def cost(self) -> Cost:
        """What the pass costs."""
        return draw_cost(self.gram.sizes, self.gram.map_cost, self.gram.folds, self.most)

    @property
    def rows_wanted(self) -> int:
        """The blocks of the gram's pass."""
        return self.gram.rows_wanted

    def start(self) -> TreeTotal[RowSample]:
        """Nothing yet."""
        return TreeTotal(RunningSum())

    def workspace(self) -> None:
        """Nothing."""

    def add(self, sums: TreeTotal[RowSample], workspace: None, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block; rows that cannot be mapped are noted, the first one wins."""
        X, y, weight, _ = data
        if not X.shape[0]:
            return
        try:
            self.gram.features.prepare(X)
        except Refusal as refusal:
            sums.refusal = min(filter(None, (sums.refusal, refusal.at(start))))
            return
        worth = self.gram.targets.row_weight(self.gram.targets.encode(y), weight)
        numbers = np.arange(start, start + X.shape[0])
        keys = draw_keys(numbers, self.seed, np.ones(len(numbers)) if worth is None else worth)
        sums.tree.add(block, least(self.most, keys, numbers, X))
