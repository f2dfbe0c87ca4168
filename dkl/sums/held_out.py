"""Squared errors of rows by systems that have not seen them, one sum for each score:

    error_j = sum over the rows of fold_j of  w (psi'v_j + b_j - y of output_j)^2

Classes are targets -1 and +1; two classes have one output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.sums.gram import SLACK, GramProgram, gram_cost
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.products import pieces, tile_of, tile_space


def held_out_cost(sizes: Sizes, of: MapCost, folds: int, vectors: int) -> Cost:
    """What the pass costs, each fold with its share of so many vectors."""
    d, item, some = of.features, sizes.item, -(-vectors // folds)
    tile = tile_of(d, sizes.dtype)
    return Cost(
        "errors",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile * (d * item + some * (item + 24)) + some * d * item + of.scratch_bytes,
        sparse_bytes=tile * of.sparse_row_bytes,
        sums_bytes=8 * vectors,
        parameter_bytes=of.parameter_bytes + vectors * (d * item + 40) + 64 * sizes.outputs,
        flops=of.flops + 2.0 * d * some,
        cosines=of.cosines,
    )


@dataclass
class ErrorSums:
    """Weighted sums of squared errors."""

    error: np.ndarray  # (q,)
    refusal: tuple[int, str] | None = None

    def merge(self, other: ErrorSums) -> None:
        """self += other, exactly."""
        self.error += other.error
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> ErrorSums:
        """A record that can be added to."""
        return ErrorSums(self.error.copy(), self.refusal)


@dataclass(frozen=True)
class HeldOutProgram:
    """The pass: weights of scores in, for unscaled features, with the fold and the output of each; ErrorSums out."""

    gram: GramProgram
    vectors: np.ndarray  # (q, d), kept in the block's precision
    intercept: np.ndarray  # (q,)
    fold: np.ndarray  # (q,)
    output: np.ndarray  # (q,)
    task = "errors"
    bounds: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        t, d = self.gram.targets, self.vectors.shape[1]
        size = np.linalg.norm(np.asarray(self.vectors, np.float64), axis=1) * np.sqrt(2 * d) + np.abs(self.intercept)
        square = t.weight if t.is_class else np.broadcast_to(t.square, (t.n_outputs,))[self.output]
        object.__setattr__(self, "vectors", np.ascontiguousarray(self.vectors, self.gram.features.dtype))
        object.__setattr__(self, "bounds", rounder(SLACK * 2 * (t.weight * size**2 + square)))

    def cost(self) -> Cost:
        """What the pass costs."""
        return held_out_cost(self.gram.sizes, self.gram.map_cost, self.gram.folds, len(self.vectors))

    @property
    def rows_wanted(self) -> int:
        """The blocks of the gram's pass."""
        return self.gram.rows_wanted

    def start(self) -> ErrorSums:
        """Zero."""
        return ErrorSums(np.zeros(len(self.vectors)))

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return tile_space(self.gram)

    def add(self, sums: ErrorSums, workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        for k, T, y, weight in self.gram.by_fold(sums, start, data):
            own = np.flatnonzero(self.fold == k)
            vectors, error = self.vectors[own].T, sums.error[own]
            for rows in pieces(T.shape[0], len(workspace)):
                Psi = workspace[: rows.stop - rows.start]
                self.gram.features.write(T[rows], Psi)
                away = (Psi @ vectors).astype(np.float64) + self.intercept[own]
                away -= self._targets(y[rows], own)
                away *= away
                part = away.sum(axis=0) if weight is None else weight[rows] @ away
                add_exactly(error, part, self.bounds[own])
            sums.error[own] = error

    def _targets(self, y: np.ndarray, own: np.ndarray) -> np.ndarray:
        """What each score should be."""
        output = self.output[own]
        if not self.gram.targets.is_class:
            return np.asarray(y[:, output])
        output = output + (self.gram.targets.n_targets == 2)
        return np.where(y[:, None] == output, 1.0, -1.0)
