"""A pass of scores: losses of every row by the system that has not seen it, and their slope in the weights.

    loss = sum w l(z),   slope = Psi' (w dl/dz),   slope_sum = sum w dl/dz,    z = B_f' psi + b_f of a row of fold f

Squared errors follow from the sums of the first pass; other losses (losses/) do not, so rows are scored. Several sets
of weights (alphas) are tried side by side, with several losses at once; slopes are summed if there is one of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.losses import Loss, ScoreSizes, is_wrong
from dkl.sums.gram import SLACK, GramProgram, gram_cost
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.pullback import TILE
from dkl.sums.tiles import even_tiles


def loss_cost(sizes: Sizes, of: MapCost, folds: int, alphas: int = 1, ks: int = 1) -> Cost:
    """What the pass costs with the weights of so many alphas side by side: a tile of features, and its scores."""
    d, c, item = of.features, sizes.outputs, sizes.item
    slopes = c * (d + 1) if alphas * ks == 1 else 0
    return Cost(
        "scores",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=TILE * (d * item + alphas * c * (item + 16) + 48 * c) + 16 * slopes + of.scratch_bytes,
        sparse_bytes=TILE * of.sparse_row_bytes,
        sums_bytes=8 * folds * (alphas * (ks + 1) + slopes),
        parameter_bytes=of.parameter_bytes + folds * alphas * c * (d + 1) * (8 + item),
        flops=of.flops + 2 * d * c * alphas + 2 * slopes,
        cosines=of.cosines,
    )


@dataclass
class LossSums:
    """Sums over the rows of each fold. Features are unscaled."""

    loss: np.ndarray  # (K, alphas, losses)
    wrong: np.ndarray  # (K, alphas), weight of rows whose class was not chosen
    slope: np.ndarray  # (K, c, d), or (0, c, d)
    slope_sum: np.ndarray  # (K, c), or (0, c)
    refusal: tuple[int, str] | None = None

    def merge(self, other: LossSums) -> None:
        """self += other, exactly."""
        for name in ("loss", "wrong", "slope", "slope_sum"):
            mine = getattr(self, name)
            mine += getattr(other, name)
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> LossSums:
        """A record that can be added to."""
        return LossSums(
            self.loss.copy(), self.wrong.copy(), self.slope.copy(), self.slope_sum.copy(), self.refusal
        )  # fmt: skip


@dataclass(frozen=True)
class LossProgram:
    """The pass: that of the sums, the weights that rows of each fold are scored with, and losses in; LossSums out."""

    gram: GramProgram
    coef: np.ndarray  # (K, d, alphas * c), for unscaled features
    intercept: np.ndarray  # (K, alphas * c)
    losses: tuple[Loss, ...]
    task = "scores"
    narrow: np.ndarray = field(init=False, repr=False)
    bounds: dict[str, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        targets = self.gram.targets
        for loss in self.losses:
            if loss.is_class != targets.is_class:
                kinds = ("values", "classes")
                raise ValueError(f"{loss} is for {kinds[loss.is_class]}, but y are {kinds[targets.is_class]}")
        size = np.linalg.norm(self.coef, axis=1) * np.sqrt(self.coef.shape[1] + 1) + np.abs(self.intercept)
        sizes = ScoreSizes(float(size.max()), targets.weight, self.outputs, targets.absolute, targets.square)
        most = np.asarray(reduce(np.maximum, (loss.most_slope(sizes) for loss in self.losses)))
        bounds = {
            "loss": rounder(SLACK * max(loss.most_value(sizes) for loss in self.losses)),
            "wrong": rounder(SLACK * targets.weight),
            "slope": rounder(SLACK * most[:, None] if most.ndim else SLACK * most),
            "slope_sum": rounder(SLACK * most),
        }
        object.__setattr__(self, "narrow", np.ascontiguousarray(self.coef, self.gram.features.dtype))
        object.__setattr__(self, "bounds", bounds)

    def cost(self) -> Cost:
        """What the pass costs."""
        own = replace(self.gram.sizes, outputs=self.outputs)
        return loss_cost(own, self.gram.map_cost, self.gram.folds, self.alphas, len(self.losses))

    @property
    def outputs(self) -> int:
        return self.gram.targets.n_outputs

    @property
    def alphas(self) -> int:
        return int(self.coef.shape[2]) // self.outputs

    @property
    def pulls(self) -> bool:
        """Whether slopes are summed."""
        return self.alphas * len(self.losses) == 1

    @property
    def rows_wanted(self) -> int:
        """The blocks of the first pass."""
        return self.gram.rows_wanted

    def start(self) -> LossSums:
        """Zero."""
        (K, d, _), c = self.coef.shape, self.outputs
        some = K * self.pulls
        return LossSums(
            np.zeros((K, self.alphas, len(self.losses))), np.zeros((K, self.alphas)),
            np.zeros((some, c, d)), np.zeros((some, c)),
        )  # fmt: skip

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return np.empty((TILE, self.coef.shape[1]), self.gram.features.dtype)

    def add(self, sums: LossSums, workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        for k, T, y, weight in self.gram.by_fold(sums, start, data):
            for rows, ones in even_tiles(T.shape[0], weight, TILE):
                self._add_tile(sums, workspace, k, T[rows], y[rows], ones)

    def _add_tile(self, sums: LossSums, space: np.ndarray, k: int, T: Any, y: np.ndarray, weight: np.ndarray) -> None:
        Psi, c = space[: T.shape[0]], self.outputs
        self.gram.features.write(T, Psi)
        scores = (Psi @ self.narrow[k]).astype(np.float64) + self.intercept[k]
        value, wrong = np.empty(sums.loss.shape[1:]), np.zeros(self.alphas)
        for a in range(self.alphas):
            own = scores[:, a * c : (a + 1) * c]
            value[a] = [weight @ loss.value(own, y) for loss in self.losses]
            if self.gram.targets.is_class:
                wrong[a] = weight[is_wrong(own, y)].sum()
        add_exactly(sums.loss[k], value, self.bounds["loss"])
        add_exactly(sums.wrong[k], wrong, self.bounds["wrong"])
        if self.pulls:
            slope = self.losses[0].slope(scores, y) * weight[:, None]
            add_exactly(sums.slope[k], slope.T.astype(Psi.dtype) @ Psi, self.bounds["slope"])
            add_exactly(sums.slope_sum[k], slope.sum(axis=0), self.bounds["slope_sum"])
