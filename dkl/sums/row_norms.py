"""The norms of rows less their own means, in one pass: the largest, and their mean square."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.features.rows import finite_inputs
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram


class RowNorms(NamedTuple):
    """Weight of the rows, weighted sum of their square norms, and the largest norm of a row that counts."""

    weight: float
    squares: float
    largest: float

    def __add__(self, other: RowNorms) -> RowNorms:  # type: ignore[override]
        return RowNorms(self.weight + other.weight, self.squares + other.squares, max(self.largest, other.largest))

    @property
    def typical(self) -> float:
        """The root mean square."""
        return float(np.sqrt(self.squares / self.weight)) if self.weight else 0.0


class NormProgram(TreeProgram[RowNorms]):
    """Pass over X: its RowNorms."""

    task = "norms"

    def __init__(self, name: str = "X") -> None:
        self.name = name

    def value(self, data: tuple[Any, ...]) -> RowNorms:
        """Norms of one block."""
        X = finite_inputs(data[0], np.dtype(np.float64))
        w = check_weights(data[1] if len(data) > 1 else None, X.shape[0])
        m, total = X.shape[1], np.asarray(X.sum(axis=1)).ravel()
        if hasattr(X, "tocoo"):
            squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - total * total / m
        else:
            squares = ((X - (total / m)[:, None]) ** 2).sum(axis=1)
        squares = np.maximum(squares, 0)
        return RowNorms(float(w.sum()), float(w @ squares), float(np.sqrt(squares[w > 0].max(initial=0.0))))
