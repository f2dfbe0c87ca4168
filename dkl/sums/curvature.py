"""A pass of curvatures: the sums of one Newton step of any loss, at given weights, by output j.

    gram_j = Psi' diag(w l''_j) Psi,   curved_j = Psi' (w l''_j),   slope_j = Psi' (w l'_j),   loss = sum w l

l'' is at least `floor` times the most it can be. With floor = 1 the quadratic of these sums lies above the loss
everywhere, so its least point is never uphill; with floor = 0 it is Newton's.

Scores of a softmax share a loss. If the matrix of all outputs is small (`is_joint`), there is a gram for each pair of
them instead, of -d2l/dz_j dz_k = q_jk, and the second derivative is the sum of these of (e_j - e_k)(e_j - e_k)': it is
positive however sums are rounded. Else it is the diagonal alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.losses import Loss, ScoreSizes
from dkl.sums.gram import SLACK, GramProgram, gram_cost, gram_flops
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.symmetric import add_rank_k, largest_tile, packed_size
from dkl.sums.tiles import most_rows, tile_rows

Workspace = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A tile of features, the same scaled by roots, and one product."""
NAMES = ("loss", "gram", "curved", "slope", "curvature_sum", "slope_sum", "slope_size")
MOST_JOINT, MOST_JOINED = 4096, 64
"""Weights of all outputs, and outputs, of which there are grams by pair: the matrix of them takes at most 128 MiB."""


def is_joint(loss: Loss, d: int, c: int) -> bool:
    """Whether there is a gram for each pair of outputs."""
    return loss.joins(c) and c <= MOST_JOINED and d * c <= MOST_JOINT


def curvature_cost(sizes: Sizes, of: MapCost, folds: int = 1, joint: bool = False) -> Cost:
    """What the pass costs: two tiles of features and one product, beside half a gram for each output, or pair."""
    d, c, item = of.features, sizes.outputs, sizes.item
    grams = c * (c - 1) // 2 if joint else c
    rows = most_rows(tile_rows(sizes.rows, d, sizes.dtype))
    return Cost(
        "curvature",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=(2 * rows * d + largest_tile(d) + 2 * c * d) * item
        + 72 * rows * c
        + 16 * c * d
        + of.scratch_bytes,
        sparse_bytes=rows * of.sparse_row_bytes,
        sums_bytes=8 * (grams * (packed_size(d) + d + 1) + c * (d + 2) + 1),
        parameter_bytes=of.parameter_bytes + c * (d + 1) * (8 + item) + 64 * c,
        flops=of.flops + grams * (gram_flops(d) + 3 * d) + 4 * c * d,
        cosines=of.cosines,
    )


@dataclass
class CurvatureSums:
    """Sums over all rows. Features are unscaled."""

    loss: np.ndarray  # (1,)
    gram: np.ndarray  # (c, packed half of d x d); if outputs are joint, here and below pairs instead of c
    curved: np.ndarray  # (c, d)
    slope: np.ndarray  # (c, d)
    curvature_sum: np.ndarray  # (c,)
    slope_sum: np.ndarray  # (c,)
    slope_size: np.ndarray  # (c,), sum w |l'|
    refusal: tuple[int, str] | None = None

    def merge(self, other: CurvatureSums) -> None:
        """self += other, exactly."""
        for name in NAMES:
            mine = getattr(self, name)
            mine += getattr(other, name)
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> CurvatureSums:
        """A record that can be added to."""
        return replace(self, **{name: getattr(self, name).copy() for name in NAMES})


def score_sizes(gram: GramProgram, coef: np.ndarray, intercept: np.ndarray) -> ScoreSizes:
    """What is known of scores before a pass; coef (d, c) is for unscaled features."""
    t = gram.targets
    size = np.linalg.norm(coef, axis=0) * np.sqrt(len(coef) + 1) + np.abs(intercept)
    return ScoreSizes(float(size.max()), t.weight, t.n_outputs, t.absolute, t.square)


def check_kind(loss: Loss, gram: GramProgram) -> None:
    """Refuse a loss of the other kind of targets."""
    if loss.is_class != gram.targets.is_class:
        kinds = ("values", "classes")
        raise ValueError(f"{loss} is for {kinds[loss.is_class]}, but y are {kinds[gram.targets.is_class]}")


@dataclass(frozen=True)
class CurvatureProgram:
    """The pass: rows and map of `gram`, weights and a loss in; CurvatureSums out."""

    gram: GramProgram
    coef: np.ndarray  # (d, c), for unscaled features
    intercept: np.ndarray  # (c,)
    loss: Loss
    floor: float = 0.0
    joint: bool = False
    task = "curvature"
    narrow: np.ndarray = field(init=False, repr=False)
    bounds: dict[str, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_kind(self.loss, self.gram)
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor={self.floor!r} must be a share from 0 to 1")
        sizes = score_sizes(self.gram, self.coef, self.intercept)
        most = np.asarray(self.loss.most_slope(sizes))
        bounds = {
            "loss": rounder(SLACK * self.loss.most_value(sizes)),
            "curved": rounder(SLACK * self.most * sizes.weight),
            "slope": rounder(SLACK * most[:, None] if most.ndim else SLACK * most),
            "slope_sum": rounder(SLACK * most),
            "slope_size": rounder(SLACK * most),
        }
        object.__setattr__(self, "narrow", np.ascontiguousarray(self.coef, self.gram.features.dtype))
        object.__setattr__(self, "bounds", bounds)

    @property
    def most(self) -> float:
        """The most that l'' can be."""
        return self.loss.most_curved(self.gram.targets.n_outputs)

    @property
    def rows_wanted(self) -> int:
        """The blocks of the first pass."""
        return self.gram.rows_wanted

    def cost(self) -> Cost:
        """What the pass costs."""
        own = replace(self.gram.sizes, outputs=self.gram.targets.n_outputs)
        return curvature_cost(own, self.gram.map_cost, self.gram.folds, self.joint)

    def start(self) -> CurvatureSums:
        """Zero."""
        d, c = self.coef.shape
        grams = c * (c - 1) // 2 if self.joint else c
        return CurvatureSums(
            np.zeros(1), np.zeros((grams, packed_size(d))), np.zeros((grams, d)), np.zeros((c, d)), np.zeros(grams),
            np.zeros(c), np.zeros(c),
        )  # fmt: skip

    def workspace(self) -> Workspace:
        """Two tiles of features and one product."""
        d, dtype = len(self.coef), self.gram.features.dtype
        shape = most_rows(self.gram.tile), d
        return np.empty(shape, dtype), np.empty(shape, dtype), np.empty(largest_tile(d), dtype)

    def add(self, sums: CurvatureSums, workspace: Workspace, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block, of whatever fold."""
        for _, T, y, weight in self.gram.by_fold(sums, start, data):
            n = T.shape[0]
            parts = max(1, round(n / self.gram.tile))
            for i in range(parts):
                rows = slice(i * n // parts, (i + 1) * n // parts)
                ones = np.ones(rows.stop - rows.start) if weight is None else weight[rows]
                self._add_tile(sums, workspace, T[rows], y[rows], ones)

    def _add_tile(self, sums: CurvatureSums, space: Workspace, T: Any, y: np.ndarray, weight: np.ndarray) -> None:
        Psi, scaled, buffer = space[0][: len(weight)], space[1][: len(weight)], space[2]
        self.gram.features.write(T, Psi)
        z = (Psi @ self.narrow).astype(np.float64) + self.intercept
        add_exactly(sums.loss, np.array([weight @ self.loss.value(z, y)]), self.bounds["loss"])
        slope = self.loss.slope(z, y) * weight[:, None]
        add_exactly(sums.slope, slope.T.astype(Psi.dtype) @ Psi, self.bounds["slope"])
        add_exactly(sums.slope_sum, slope.sum(axis=0), self.bounds["slope_sum"])
        add_exactly(sums.slope_size, np.abs(slope).sum(axis=0), self.bounds["slope_size"])
        C = self.bounds["curved"]
        for j, curved in enumerate(self._curved(z, y)):
            curved *= weight
            add_exactly(sums.curvature_sum[j : j + 1], curved.sum(keepdims=True), C)
            root = np.sqrt(curved).astype(Psi.dtype)
            np.multiply(Psi, root[:, None], out=scaled)
            add_rank_k(sums.gram[j], scaled, C, buffer)
            add_exactly(sums.curved[j], root @ scaled, C)

    def _curved(self, z: np.ndarray, y: np.ndarray) -> Iterator[np.ndarray]:
        """What each gram is weighted by, beside the weights of rows."""
        least = self.floor * self.most
        if self.joint:
            u, c = self.loss.shared(z), z.shape[1]
            for j, k in combinations(range(c), 2):
                yield np.maximum(u[:, j] * u[:, k], least / c)
        else:
            yield from np.maximum(self.loss.curvature(z, y), least).T
