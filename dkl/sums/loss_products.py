"""A pass of products with the second derivative of a loss, for several systems side by side; no d x d array.

    product_s = Psi' (w d2l/dz2(z_s) a_s),   z_s = B_s' psi + b_s,   a_s = V_s' psi + v_s     over rows that train s
    product_sum_s = sum w d2l/dz2(z_s) a_s

A system is as in sums/training.py: the model of all rows, or of all folds but the one that tests it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.sums.gram import SLACK, gram_cost
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.training import TrainingProgram, tile_of


def loss_product_cost(sizes: Sizes, of: MapCost, folds: int = 1, systems: int = 1) -> Cost:
    """What the pass costs: a tile of features, the scores of weights and vectors, and the products."""
    d, item, q = of.features, sizes.item, systems * max(1, sizes.outputs)
    tile = tile_of(d, item)
    return Cost(
        "curved",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile * (d * item + q * 3 * item + 72 * max(1, sizes.outputs))
        + (item + 8) * q * (d + 1)
        + of.scratch_bytes,
        sparse_bytes=tile * of.sparse_row_bytes,
        sums_bytes=8 * q * (d + 1),
        parameter_bytes=of.parameter_bytes + q * (d + 1) * (16 + 3 * item) + 64 * systems,
        flops=of.flops + 6.0 * d * q,
        cosines=of.cosines,
    )


@dataclass
class LossProductSums:
    """Products by system. Features are unscaled."""

    product: np.ndarray  # (S, c, d)
    product_sum: np.ndarray  # (S, c)
    refusal: tuple[int, str] | None = None

    def merge(self, other: LossProductSums) -> None:
        """self += other, exactly."""
        self.product += other.product
        self.product_sum += other.product_sum
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> LossProductSums:
        """A record that can be added to."""
        return LossProductSums(self.product.copy(), self.product_sum.copy(), self.refusal)


@dataclass(frozen=True)
class LossProductProgram:
    """The pass: weights as a pass of training has them, and vectors in; LossProductSums out.

    |sum_i w_i psi_ia (l'' a_i)_j| <= sqrt2 L (sqrt(2 d) |V| + |v|) sum_i w_i, as no feature is larger than sqrt2.
    """

    training: TrainingProgram
    vectors: np.ndarray  # (S, d, c), V, for unscaled features
    constants: np.ndarray  # (S, c), v
    task = "curved"
    narrow: np.ndarray = field(init=False, repr=False)
    bounds: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        (S, d, c), gram = self.vectors.shape, self.training.gram
        if self.vectors.shape != self.training.coef.shape or self.constants.shape != (S, c):
            shape = self.training.coef.shape
            raise ValueError(f"vectors {self.vectors.shape} and constants {self.constants.shape} need those of {shape}")
        size = np.linalg.norm(self.vectors.reshape(S, -1), axis=1) * np.sqrt(2 * d)
        size = (size + np.linalg.norm(self.constants, axis=1)) * self.training.loss.most_curved(c)
        flat = np.ascontiguousarray(self.vectors.transpose(1, 0, 2).reshape(d, S * c), gram.features.dtype)
        both = np.hstack([self.training.narrow, flat])
        object.__setattr__(self, "narrow", both)
        object.__setattr__(self, "bounds", rounder(SLACK * np.sqrt(2) * gram.targets.weight * size))

    def cost(self) -> Cost:
        """What the pass costs."""
        gram = self.training.gram
        own = replace(gram.sizes, outputs=self.vectors.shape[2])
        return loss_product_cost(own, gram.map_cost, gram.folds, len(self.vectors))

    @property
    def rows_wanted(self) -> int:
        """The blocks of the first pass."""
        return self.training.rows_wanted

    def start(self) -> LossProductSums:
        """Zero."""
        S, d, c = self.vectors.shape
        return LossProductSums(np.zeros((S, c, d)), np.zeros((S, c)))

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return self.training.workspace()

    def add(self, sums: LossProductSums, workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        tile = self.training.tile
        for k, T, y, weight in self.training.gram.by_fold(sums, start, data):
            n = T.shape[0]
            parts = -(-n // tile)
            for i in range(parts):
                rows = slice(i * n // parts, (i + 1) * n // parts)
                ones = np.ones(rows.stop - rows.start) if weight is None else weight[rows]
                self._add_tile(sums, workspace, k, T[rows], y[rows], ones)

    def _add_tile(
        self, sums: LossProductSums, space: np.ndarray, k: int, T: Any, y: np.ndarray, weight: np.ndarray
    ) -> None:
        Psi, (S, _, c) = space[: T.shape[0]], self.vectors.shape
        self.training.gram.features.write(T, Psi)
        scores = (Psi @ self.narrow).reshape(len(Psi), 2, S, c)
        trained = np.flatnonzero(self.training.tests != k)
        bent = np.empty((len(Psi), len(trained) * c), Psi.dtype)
        for place, s in enumerate(trained):
            own = scores[:, 0, s].astype(np.float64) + self.training.intercept[s]
            along = scores[:, 1, s].astype(np.float64) + self.constants[s]
            part = self.training.loss.curved(own, y, along) * weight[:, None]
            add_exactly(sums.product_sum[s], part.sum(axis=0), self.bounds[s])
            bent[:, place * c : (place + 1) * c] = part
        pulled = (bent.T @ Psi).reshape(len(trained), c, Psi.shape[1])
        for part, s in zip(pulled, trained, strict=True):
            add_exactly(sums.product[s], part, self.bounds[s])
