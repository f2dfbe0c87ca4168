"""A pass of curvatures: the sums of one Newton step of any loss, at given weights, by output j.

    gram_j = Psi' diag(w l''_j) Psi,   curved_j = Psi' (w l''_j),   slope_j = Psi' (w l'_j),   loss = sum w l

l'' is at least `floor` times the most it can be. With floor = 1 the quadratic of these sums lies above the loss
everywhere, so its least point is never uphill; with floor = 0 it is Newton's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
NAMES = ("loss", "gram", "curved", "slope", "curvature_sum", "slope_sum")


def curvature_cost(sizes: Sizes, of: MapCost, folds: int = 1) -> Cost:
    """What the pass costs: two tiles of features and one product, beside half a gram for each output (scores)."""
    d, c, item = of.features, sizes.outputs, sizes.item
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
        sums_bytes=8 * (c * (packed_size(d) + 2 * d + 2) + 1),
        parameter_bytes=of.parameter_bytes + c * (d + 1) * (8 + item) + 64 * c,
        flops=of.flops + c * (gram_flops(d) + 7 * d),
        cosines=of.cosines,
    )


@dataclass
class CurvatureSums:
    """Sums over all rows. Features are unscaled."""

    loss: np.ndarray  # (1,)
    gram: np.ndarray  # (c, packed half of d x d)
    curved: np.ndarray  # (c, d)
    slope: np.ndarray  # (c, d)
    curvature_sum: np.ndarray  # (c,)
    slope_sum: np.ndarray  # (c,)
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
        return curvature_cost(own, self.gram.map_cost, self.gram.folds)

    def start(self) -> CurvatureSums:
        """Zero."""
        d, c = self.coef.shape
        wide = np.zeros((c, packed_size(d)))
        return CurvatureSums(np.zeros(1), wide, np.zeros((c, d)), np.zeros((c, d)), np.zeros(c), np.zeros(c))

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
        curved, C = (
            np.maximum(self.loss.curvature(z, y), self.floor * self.most) * weight[:, None],
            self.bounds["curved"],
        )
        add_exactly(sums.curvature_sum, curved.sum(axis=0), C)
        for j in range(curved.shape[1]):
            root = np.sqrt(curved[:, j]).astype(Psi.dtype)
            np.multiply(Psi, root[:, None], out=scaled)
            add_rank_k(sums.gram[j], scaled, C, buffer)
            add_exactly(sums.curved[j], root @ scaled, C)
