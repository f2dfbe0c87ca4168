"""The score of each row's own task: a model of several tasks answers as one of a single output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import MapCost, Sizes
from dkl.features.task_column import columns_apart, numbers_of
from dkl.learn.model import Scores, each_class


@dataclass(frozen=True)
class TaskScores:
    """Scores (rows, 1) of blocks whose column `place` says the task; `values` are those it may have."""

    scores: Scores
    place: int
    values: np.ndarray
    offset = 0.0

    def __call__(self, X: Any) -> np.ndarray:
        return self.plain(X)

    @property
    def intercept(self) -> np.ndarray:
        """Of one output."""
        return np.zeros(1)

    @property
    def sizes(self) -> Sizes:
        """Inputs and outputs."""
        return self.scores.sizes

    @property
    def map_cost(self) -> MapCost:
        """What the features cost."""
        return self.scores.map_cost

    def by_class(self, X: Any) -> np.ndarray:
        """Scores of each of two classes."""
        return each_class(self.plain(X))

    def plain(self, X: Any) -> np.ndarray:
        """The score of the task of each row."""
        rows, column = columns_apart(X, self.place)
        numbers = numbers_of(column, self.values)
        return np.take_along_axis(self.scores.plain(rows), numbers[:, None], axis=1)
