"""A loss of several tasks: a row counts in the score of its own task alone.

    l(z, (y, t)) = l_of(z_t, y)                        t: the number of the row's task, of scores z (rows, tasks)

Targets are two columns: the value, or the code of one of two classes, and the number of the task.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkl.losses.loss import Loss, ScoreSizes


@dataclass(frozen=True)
class OfTask:
    """`of` is a loss of one score."""

    of: Loss
    is_class = False  # of the targets, which are two columns

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """That of the own score."""
        return self.of.value(own_scores(z, y), self._targets(y))

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Zero in the scores of other tasks."""
        return spread_over(self.of.slope(own_scores(z, y), self._targets(y)), z, y)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Likewise."""
        return spread_over(self.of.curvature(own_scores(z, y), self._targets(y)), z, y)

    def curved(self, z: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The diagonal times v."""
        return np.asarray(self.curvature(z, y) * v)

    def joins(self, outputs: int) -> bool:
        """No: each row has one score."""
        return False

    def shared(self, z: np.ndarray) -> np.ndarray:
        """Zeros."""
        return np.zeros_like(z)

    def steepest(self, outputs: int) -> float:
        """That of one score."""
        return self.of.steepest(1)

    def most_curved(self, outputs: int) -> float:
        """That of one score."""
        return self.of.most_curved(1)

    def most_value(self, sizes: ScoreSizes) -> float:
        """That of one score for every row."""
        return self.of.most_value(_of_one(sizes))

    def most_slope(self, sizes: ScoreSizes) -> np.ndarray:
        """The same bound for every task."""
        return np.asarray(np.max(self.of.most_slope(_of_one(sizes))))

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Codes of classes (rows,), or values (rows, 1)."""
        return y[:, 0].astype(int) if self.of.is_class else y[:, :1]


def own_scores(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(rows, 1): the score of each row's task."""
    return np.take_along_axis(z, y[:, 1].astype(int)[:, None], axis=1)


def spread_over(values: np.ndarray, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values (rows, 1) in the columns of their tasks, zeros beside them."""
    found = np.zeros_like(z)
    np.put_along_axis(found, y[:, 1].astype(int)[:, None], values, axis=1)
    return found


def _of_one(sizes: ScoreSizes) -> ScoreSizes:
    """Sizes of the first column of targets."""
    absolute, square = (np.ravel(bound)[:1] for bound in (sizes.absolute, sizes.square))
    return sizes._replace(outputs=1, absolute=absolute, square=square)
