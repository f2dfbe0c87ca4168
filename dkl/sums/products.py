"""A gram that is never made, times vectors: one pass for the first sums, and one for each product.

    cross = Y'WPsi, feature_sum = 1'WPsi           CrossProgram, by fold, as the gram's pass has them
    product_j = Psi'W (Psi v_j)                    ProductProgram, over the rows that are not in fold held_j

Memory is that of the vectors and of one tile of features, which is bounded in rows and in bytes: no d x d array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.sums.gram import SLACK, GramProgram, GramSums, gram_cost
from dkl.sums.order_free import add_exactly, rounder

TILE_BYTES, TILE_ROWS = 8 * 2**20, 1024
"""Features of one tile take at most this much, and have at most so many rows."""
AT_ONCE = 64
"""Vectors that a tile is multiplied with at once."""
ALL = -1
"""The fold that a vector leaves out if it leaves out none."""


def tile_of(d: int, dtype: np.dtype[Any]) -> int:
    """Rows of a tile."""
    return max(16, min(TILE_ROWS, TILE_BYTES // (d * dtype.itemsize)))


def pieces(n: int, most: int) -> Iterator[slice]:
    """n rows in the fewest parts of about equal size."""
    parts = -(-n // most)
    for i in range(parts):
        yield slice(i * n // parts, (i + 1) * n // parts)


def cross_cost(sizes: Sizes, of: MapCost, folds: int) -> Cost:
    """What the first pass costs."""
    d, c, item = of.features, sizes.outputs, sizes.item
    tile = tile_of(d, sizes.dtype)
    return Cost(
        "cross",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile * d * item + c * d * (item if sizes.is_class else item + 16) + of.scratch_bytes,
        sparse_bytes=tile * of.sparse_row_bytes,
        sums_bytes=8 * folds * (d * (c + 1) + 2 * c + 2),
        parameter_bytes=of.parameter_bytes + 64 * c,
        flops=of.flops + (d if sizes.is_class else 2 * d * c),
        cosines=of.cosines,
    )


def product_cost(sizes: Sizes, of: MapCost, folds: int, vectors: int) -> Cost:
    """What a product with so many vectors costs."""
    d, item, some = of.features, sizes.item, min(vectors, AT_ONCE)
    tile = tile_of(d, sizes.dtype)
    return Cost(
        "product",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile * (d + some) * item + some * d * (item + 8) + of.scratch_bytes,
        sparse_bytes=tile * of.sparse_row_bytes,
        sums_bytes=8 * vectors * d,
        parameter_bytes=of.parameter_bytes + vectors * (d * item + 32) + 64 * sizes.outputs,
        flops=of.flops + 4 * d * vectors,
        cosines=of.cosines,
    )


def write_weighted(program: GramProgram, space: np.ndarray, T: Any, weight: np.ndarray | None) -> tuple[Any, Any]:
    """Features of a tile, times the square roots of the weights, and those roots."""
    n, dtype = T.shape[0], program.features.dtype
    Psi, root = space[:n], np.ones(n, dtype)
    program.features.write(T, Psi)
    if weight is not None:
        root = np.sqrt(weight).astype(dtype)
        Psi *= root[:, None]
    return Psi, root


@dataclass(frozen=True)
class CrossProgram:
    """The sums of a gram's pass without the gram: GramSums whose gram is empty."""

    gram: GramProgram
    task = "cross"

    def cost(self) -> Cost:
        """What the pass costs."""
        return cross_cost(self.gram.sizes, self.gram.map_cost, self.gram.folds)

    @property
    def rows_wanted(self) -> int:
        """The blocks of the gram's pass."""
        return self.gram.rows_wanted

    def start(self) -> GramSums:
        """Zero."""
        K, c, d = self.gram.folds, self.gram.targets.n_targets, self.gram.features.map.n_features
        return GramSums(
            np.zeros(K), np.zeros(K), np.zeros((K, 0)), np.zeros((K, c, d)), np.zeros((K, d)), np.zeros((K, c)),
            np.zeros((K, c)),
        )  # fmt: skip

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return tile_space(self.gram)

    def add(self, sums: GramSums, workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        for k, T, y, weight in self.gram.by_fold(sums, start, data):
            for rows in pieces(T.shape[0], len(workspace)):
                some = None if weight is None else weight[rows]
                Psi, root = write_weighted(self.gram, workspace, T[rows], some)
                self.gram.add_cross(sums, k, Psi, y[rows], root, np.ones(len(Psi)) if some is None else some)


def tile_space(gram: GramProgram) -> np.ndarray:
    """Room for a tile of features."""
    d, dtype = gram.features.map.n_features, gram.features.dtype
    return np.empty((tile_of(d, dtype), d), dtype)


@dataclass
class ProductSums:
    """Products of unscaled features, one row for each vector."""

    product: np.ndarray  # (q, d)
    refusal: tuple[int, str] | None = None

    def merge(self, other: ProductSums) -> None:
        """self += other, exactly."""
        self.product += other.product
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> ProductSums:
        """A record that can be added to."""
        return ProductSums(self.product.copy(), self.refusal)


@dataclass(frozen=True)
class ProductProgram:
    """The pass: vectors (q, d) in, kept in the block's precision; vector j takes all rows but those of fold held_j.

    |sum_i w_i psi_ia psi_i'v| <= 2 sqrt(d) |v| sum_i w_i, as no feature is larger than sqrt2.
    """

    gram: GramProgram
    vectors: np.ndarray
    held: np.ndarray  # (q,), ALL: no fold is left out
    task = "product"
    bounds: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        q, d = self.vectors.shape
        if self.held.shape != (q,) or d != self.gram.features.map.n_features:
            features = self.gram.features.map.n_features
            raise ValueError(f"vectors {self.vectors.shape} and held {self.held.shape} need (q, {features}) and (q,)")
        size = np.linalg.norm(np.asarray(self.vectors, np.float64), axis=1)
        bound = 2 * np.sqrt(d) * size * self.gram.targets.weight
        object.__setattr__(self, "vectors", np.ascontiguousarray(self.vectors, self.gram.features.dtype))
        object.__setattr__(self, "bounds", rounder(SLACK * bound)[:, None])

    def cost(self) -> Cost:
        """What the pass costs."""
        return product_cost(self.gram.sizes, self.gram.map_cost, self.gram.folds, len(self.vectors))

    @property
    def rows_wanted(self) -> int:
        """The blocks of the gram's pass."""
        return self.gram.rows_wanted

    def start(self) -> ProductSums:
        """Zero."""
        return ProductSums(np.zeros(self.vectors.shape))

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return tile_space(self.gram)

    def add(self, sums: ProductSums, workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        for k, T, _, weight in self.gram.by_fold(sums, start, data):
            taken = self._taken_by(k)
            for rows in pieces(T.shape[0], len(workspace)):
                Psi, _ = write_weighted(self.gram, workspace, T[rows], None if weight is None else weight[rows])
                for some in taken:
                    part = (Psi @ self.vectors[some].T).T @ Psi
                    add_exactly(sums.product[some], part, self.bounds[some])

    def _taken_by(self, fold: int) -> list[slice]:
        """Runs of vectors that take the rows of a fold."""
        found = np.flatnonzero(self.held != fold)
        runs = np.split(found, np.flatnonzero(np.diff(found) > 1) + 1)
        return [
            slice(int(run[0]) + part.start, int(run[0]) + part.stop)
            for run in runs
            if len(run)
            for part in pieces(len(run), AT_ONCE)
        ]
