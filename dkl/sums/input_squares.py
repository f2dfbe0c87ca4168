"""The size of the inputs of several kernels in one pass: sum_i w_i T_ij^2 of every column of every kernel's t(X)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.features.side_by_side import SideBySide
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram


class SquaresProgram(TreeProgram[np.ndarray]):
    """Pass over the rows of a fit: (columns,), those of one kernel after those of the other."""

    task = "scale"

    def __init__(self, features: SideBySide) -> None:
        self.features = features

    def value(self, data: tuple[Any, ...]) -> np.ndarray:
        """Of one block."""
        X, _, weight, _ = data
        w = check_weights(weight, X.shape[0])
        return np.concatenate([_squares(channel.at(np.float64).prepare(X), w) for channel in self.features.channels])


def _squares(T: Any, w: np.ndarray) -> np.ndarray:
    """Of one kernel's columns, dense or sparse."""
    return np.asarray((T.multiply(T) if hasattr(T, "multiply") else T * T).T @ w).ravel()
