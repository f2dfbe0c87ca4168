"""A pass of training losses: the loss and its slope in the weights, for several systems side by side.

    loss_s = sum w l(z_s),   slope_s = Psi' (w dl/dz_s),   z_s = B_s' psi + b_s     over rows that train system s
    tested_s, wrong_s                                                               over rows that test it

A system is one set of weights: the model of all rows, or of all folds but one, which the rows of that fold test.
Features are made once for all systems.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.losses import Loss, ScoreSizes, is_wrong
from dkl.sums.gram import SLACK, GramProgram, gram_cost
from dkl.sums.order_free import add_exactly, rounder

TILE_BYTES, MOST_ROWS = 16 * 2**20, 1024
"""Features that exist at the same time take at most this much, and are of at most so many rows."""
ARRAYS = ("loss", "tested", "wrong", "weight", "slope", "slope_sum")
"""What is added up."""


def tile_of(features: int, item: int) -> int:
    """Rows of a tile."""
    return int(max(64, min(MOST_ROWS, TILE_BYTES // (features * item))))


def training_cost(sizes: Sizes, of: MapCost, folds: int = 1, systems: int = 1) -> Cost:
    """What the pass costs: a tile of features, its scores and slopes, and the slopes of all systems."""
    d, item, q = of.features, sizes.item, systems * max(1, sizes.outputs)
    tile = tile_of(d, item)
    return Cost(
        "training",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile * (d * item + q * (2 * item + 8) + 64 * max(1, sizes.outputs))
        + (item + 8) * q * (d + 1)
        + of.scratch_bytes,
        sparse_bytes=tile * of.sparse_row_bytes,
        sums_bytes=8 * (q * (d + 1) + 4 * systems),
        parameter_bytes=of.parameter_bytes + q * (d + 1) * (8 + item),
        flops=of.flops + 4.0 * d * q,
        cosines=of.cosines,
    )


@dataclass
class TrainingSums:
    """Sums by system. Features are unscaled."""

    loss: np.ndarray  # (S,), of rows that train
    tested: np.ndarray  # (S,), of rows that test
    wrong: np.ndarray  # (S,), weight of rows that test and whose class was not chosen
    weight: np.ndarray  # (S,), of rows that test
    slope: np.ndarray  # (S, c, d)
    slope_sum: np.ndarray  # (S, c)
    refusal: tuple[int, str] | None = None

    def merge(self, other: TrainingSums) -> None:
        """self += other, exactly."""
        for name in ARRAYS:
            mine = getattr(self, name)
            mine += getattr(other, name)
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> TrainingSums:
        """A record that can be added to."""
        own = {name: getattr(self, name).copy() for name in ARRAYS}
        return TrainingSums(**own, refusal=self.refusal)


@dataclass(frozen=True)
class TrainingProgram:
    """The pass: that of the sums, a loss and the weights of all systems in; TrainingSums out."""

    gram: GramProgram
    loss: Loss
    coef: np.ndarray  # (S, d, c), for unscaled features
    intercept: np.ndarray  # (S, c)
    tests: np.ndarray  # (S,): the fold that tests a system, all others train it; -1: all train it
    task = "training"
    narrow: np.ndarray = field(init=False, repr=False)
    bounds: dict[str, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        targets, (S, d, c) = self.gram.targets, self.coef.shape
        if self.loss.is_class != targets.is_class:
            kinds = ("values", "classes")
            raise ValueError(f"{self.loss} is for {kinds[self.loss.is_class]}, but y are {kinds[targets.is_class]}")
        size = np.linalg.norm(self.coef, axis=1) * np.sqrt(d + 1) + np.abs(self.intercept)
        sizes = ScoreSizes(float(size.max()), targets.weight, c, targets.absolute, targets.square)
        most = np.asarray(self.loss.most_slope(sizes))
        bounds = {
            "loss": rounder(SLACK * self.loss.most_value(sizes)),
            "weight": rounder(SLACK * targets.weight),
            "slope": rounder(SLACK * most[:, None] if most.ndim else SLACK * most),
            "slope_sum": rounder(SLACK * most),
        }
        flat = np.ascontiguousarray(self.coef.transpose(1, 0, 2).reshape(d, S * c), self.gram.features.dtype)
        object.__setattr__(self, "narrow", flat)
        object.__setattr__(self, "bounds", bounds)

    def cost(self) -> Cost:
        """What the pass costs."""
        own = replace(self.gram.sizes, outputs=self.coef.shape[2])
        return training_cost(own, self.gram.map_cost, self.gram.folds, len(self.coef))

    @property
    def rows_wanted(self) -> int:
        """The blocks of the first pass."""
        return self.gram.rows_wanted

    @property
    def tile(self) -> int:
        return tile_of(self.coef.shape[1], self.gram.features.dtype.itemsize)

    def start(self) -> TrainingSums:
        """Zero."""
        S, d, c = self.coef.shape
        loss, tested, wrong, weight = np.zeros((4, S))
        return TrainingSums(loss, tested, wrong, weight, np.zeros((S, c, d)), np.zeros((S, c)))

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return np.empty((self.tile, self.coef.shape[1]), self.gram.features.dtype)

    def add(self, sums: TrainingSums, workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        for k, T, y, weight in self.gram.by_fold(sums, start, data):
            n = T.shape[0]
            parts = -(-n // self.tile)
            for i in range(parts):
                rows = slice(i * n // parts, (i + 1) * n // parts)
                ones = np.ones(rows.stop - rows.start) if weight is None else weight[rows]
                self._add_tile(sums, workspace, k, T[rows], y[rows], ones)

    def _add_tile(
        self, sums: TrainingSums, space: np.ndarray, k: int, T: Any, y: np.ndarray, weight: np.ndarray
    ) -> None:
        Psi, (S, _, c) = space[: T.shape[0]], self.coef.shape
        self.gram.features.write(T, Psi)
        scores = (Psi @ self.narrow).reshape(len(Psi), S, c)
        trained = np.flatnonzero(self.tests != k)
        slopes = np.empty((len(Psi), len(trained) * c), Psi.dtype)
        place = 0
        for s in range(S):
            own = scores[:, s].astype(np.float64) + self.intercept[s]
            value = np.array([weight @ self.loss.value(own, y)])
            if self.tests[s] == k:
                self._add_test(sums, s, value, own, y, weight)
                continue
            slope = self.loss.slope(own, y) * weight[:, None]
            add_exactly(sums.loss[s : s + 1], value, self.bounds["loss"])
            add_exactly(sums.slope_sum[s], slope.sum(axis=0), self.bounds["slope_sum"])
            slopes[:, place : place + c] = slope
            place += c
        pulled = (slopes.T @ Psi).reshape(len(trained), c, Psi.shape[1])
        for part, system in zip(pulled, trained, strict=True):
            add_exactly(sums.slope[system], part, self.bounds["slope"])

    def _add_test(
        self, sums: TrainingSums, s: int, value: np.ndarray, scores: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> None:
        one = slice(s, s + 1)
        add_exactly(sums.tested[one], value, self.bounds["loss"])
        add_exactly(sums.weight[one], weight.sum(keepdims=True), self.bounds["weight"])
        if self.gram.targets.is_class:
            wrong = weight[is_wrong(scores, y)].sum(keepdims=True)
            add_exactly(sums.wrong[one], wrong, self.bounds["weight"])
