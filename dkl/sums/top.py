"""The k highest scores of each class: top k of a union = top k of the tops of its parts, exact in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.sums.tree import RunningSum, TreeProgram, TreeTotal

ROWS = 2048
"""Rows whose scores are looked at together."""


def top_cost(sizes: Sizes, of: MapCost, k: int) -> Cost:
    """What the pass costs: features and scores of a tile, and the k scores of each class, sorted and joined."""
    d, c, item = of.features, max(2, sizes.outputs), sizes.item
    return Cost(
        "calibrate",
        rows_wanted=ROWS,
        features=d,
        columns=of.columns,
        thread_bytes=ROWS * d * item + 8 * c * (4 * ROWS + 4 * k) + of.scratch_bytes,
        sparse_bytes=ROWS * of.sparse_row_bytes,
        sums_bytes=8 * c * k,
        parameter_bytes=of.parameter_bytes + d * c * item + 16 * c,
        flops=of.flops + 2.0 * d * c,
        cosines=of.cosines,
    )


class TopScores(NamedTuple):
    """How many rows there were, and the k highest scores of each class over them (all of them if there are fewer)."""

    k: int
    rows: int
    scores: np.ndarray  # (c, k), in no order

    def __add__(self, other: TopScores) -> TopScores:  # type: ignore[override]
        return top_scores(self.k, self.rows + other.rows, np.hstack([self.scores, other.scores]))

    @property
    def thresholds(self) -> np.ndarray:
        """The k-th highest score of each class (c,); the lowest if there are fewer rows."""
        return np.asarray(self.scores.min(axis=1) + 0.0)  # of -0 and 0, which are equal, always 0


def top_scores(k: int, rows: int, scores: np.ndarray) -> TopScores:
    """The record of some scores (c, any number)."""
    if scores.shape[1] > k:
        scores = np.partition(scores, -k, axis=1)[:, -k:]
    return TopScores(k, rows, scores.copy())  # a slice would hold on to the whole


@dataclass(frozen=True)
class TopProgram(TreeProgram[TopScores]):
    """The pass over X and the weights; a row without weight is no row. `sizes` and `of` say what scores cost."""

    scores: Callable[[Any], np.ndarray]  # of a block, (rows, c)
    k: int
    sizes: Sizes
    of: MapCost
    rows_wanted = ROWS
    task = "calibrate"

    def start(self) -> TreeTotal[TopScores]:
        """Nothing yet, and no tree: blocks may come in any order."""
        return TreeTotal(RunningSum())

    def cost(self) -> Cost:
        """What the pass costs."""
        return top_cost(self.sizes, self.of, self.k)

    def value(self, data: tuple[Any, ...]) -> TopScores:
        """The record of one block."""
        scores = self.scores(data[0])
        if data[1] is not None:
            scores = scores[np.asarray(data[1]) > 0]
        return top_scores(self.k, len(scores), scores.T)
