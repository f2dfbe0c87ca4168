"""A pass of trials: the loss at several points of a line, all at once.

    loss_t = sum w l(z + t dz),   z = B' psi + b,   dz = dB' psi + db,   t = 0, 1, 1/2, .. 1/64

The scores z and dz are the same for every t, so values of near points can be compared to the last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.losses import Loss
from dkl.sums.curvature import check_kind, score_sizes
from dkl.sums.gram import SLACK, GramProgram, gram_cost
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.pullback import TILE
from dkl.sums.tiles import even_tiles

LENGTHS = np.append(0.0, 0.5 ** np.arange(7))
"""The t that are tried."""


def line_search_cost(sizes: Sizes, of: MapCost, folds: int = 1) -> Cost:
    """What the pass costs: a tile of features, and two scores for each output."""
    d, c, item = of.features, sizes.outputs, sizes.item
    return Cost(
        "lengths",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=TILE * (d * item + c * (2 * item + 72)) + of.scratch_bytes,
        sparse_bytes=TILE * of.sparse_row_bytes,
        sums_bytes=8 * len(LENGTHS),
        parameter_bytes=of.parameter_bytes + 2 * c * (d + 1) * (8 + item),
        flops=of.flops + 4 * d * c,
        cosines=of.cosines,
    )


@dataclass
class LineSums:
    """Losses of all rows."""

    loss: np.ndarray  # (lengths,)
    refusal: tuple[int, str] | None = None

    def merge(self, other: LineSums) -> None:
        """self += other, exactly."""
        self.loss += other.loss
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> LineSums:
        """A record that can be added to."""
        return LineSums(self.loss.copy(), self.refusal)


@dataclass(frozen=True)
class LineProgram:
    """The pass: rows and map of `gram`, weights, a step and a loss in; LineSums out."""

    gram: GramProgram
    coef: np.ndarray  # (d, c), for unscaled features
    intercept: np.ndarray  # (c,)
    step: np.ndarray  # (d, c)
    step_intercept: np.ndarray  # (c,)
    loss: Loss
    task = "lengths"
    narrow: np.ndarray = field(init=False, repr=False)
    bound: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_kind(self.loss, self.gram)
        here = score_sizes(self.gram, self.coef, self.intercept)
        away = score_sizes(self.gram, self.step, self.step_intercept)
        bound = rounder(SLACK * self.loss.most_value(here._replace(score=here.score + away.score)))
        both = np.hstack([self.coef, self.step])
        object.__setattr__(self, "narrow", np.ascontiguousarray(both, self.gram.features.dtype))
        object.__setattr__(self, "bound", bound)

    @property
    def rows_wanted(self) -> int:
        """The blocks of the first pass."""
        return self.gram.rows_wanted

    @property
    def unit(self) -> float:
        """What a sum of losses is rounded to."""
        return float(np.spacing(self.bound).max())

    def cost(self) -> Cost:
        """What the pass costs."""
        own = replace(self.gram.sizes, outputs=self.gram.targets.n_outputs)
        return line_search_cost(own, self.gram.map_cost, self.gram.folds)

    def start(self) -> LineSums:
        """Zero."""
        return LineSums(np.zeros(len(LENGTHS)))

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return np.empty((TILE, len(self.coef)), self.gram.features.dtype)

    def add(self, sums: LineSums, workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block, of whatever fold."""
        for _, T, y, weight in self.gram.by_fold(sums, start, data):
            for rows, ones in even_tiles(T.shape[0], weight, TILE):
                self._add_tile(sums, workspace, T[rows], y[rows], ones)

    def _add_tile(self, sums: LineSums, space: np.ndarray, T: Any, y: np.ndarray, weight: np.ndarray) -> None:
        Psi, c = space[: len(weight)], self.coef.shape[1]
        self.gram.features.write(T, Psi)
        both = (Psi @ self.narrow).astype(np.float64)
        z, dz = both[:, :c] + self.intercept, both[:, c:] + self.step_intercept
        add_exactly(sums.loss, np.array([weight @ self.loss.value(z + t * dz, y) for t in LENGTHS]), self.bound)
