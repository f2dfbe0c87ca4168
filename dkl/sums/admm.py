"""A pass of the alternating direction method: the rows' own step, and what the weights' next step needs of it.

    z = Psi W + b,   a = prox of l / xi at z + mu / xi,   mu = dl/da       for each step so far that a row has not seen
    sums of w: Psi' a,  Psi' mu,  |z - a|^2,  and the loss and its slope at the sparse weights U

a stays with its block (sums/row_memory.py); it follows from the steps so far, so a process that does not remember a
block takes them all again, to the same bits. The first step sets a = z. Rows of the fold `tests` only tell their loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.losses import Loss
from dkl.losses.prox import loss_prox
from dkl.sums.curvature import check_kind
from dkl.sums.gram import GramProgram, gram_cost
from dkl.sums.pullback import TILE
from dkl.sums.row_memory import RowMemory
from dkl.sums.tiles import even_tiles
from dkl.sums.tree import TreeTotal


def admm_cost(sizes: Sizes, of: MapCost, folds: int = 1) -> Cost:
    """What the pass costs: a tile of features; scores of all rows that a worker remembers, at most of all there are."""
    d, c, item = of.features, max(1, sizes.outputs), sizes.item
    record = 8 * (3 * c * (d + 1) + 6)
    return Cost(
        "admm",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes + 8 * c,
        thread_bytes=TILE * (d * item + c * (2 * item + 240)) + 3 * record + of.scratch_bytes,
        sparse_bytes=TILE * of.sparse_row_bytes,
        sums_bytes=8 * record,
        parameter_bytes=of.parameter_bytes + 8 * sizes.rows * c,
        flops=of.flops + 10.0 * d * c,
        cosines=of.cosines + 20.0 * c,
    )


class Step(NamedTuple):
    """One step of the weights; coef (d, c) is for unscaled features."""

    coef: np.ndarray
    intercept: np.ndarray  # (c,)
    xi: float


class Ahead(NamedTuple):
    """All steps so far, and the sparse weights to be judged."""

    steps: tuple[Step, ...]
    coef: np.ndarray  # (d, c)
    intercept: np.ndarray


class AdmmSums(NamedTuple):
    """Sums over rows, features unscaled; those of rows that test are `tested` and `test_weight` alone."""

    scores: np.ndarray  # (c, d), Psi' w a
    score_sum: np.ndarray  # (c,)
    slopes: np.ndarray  # (c, d), Psi' w mu
    slope_sum: np.ndarray  # (c,)
    sparse_slopes: np.ndarray  # (c, d), Psi' w dl/dz at U
    sparse_slope_sum: np.ndarray  # (c,)
    gap: float  # sum w |z - a|^2
    score_size: float  # sum w |z|^2
    copy_size: float  # sum w |a|^2
    loss: float
    tested: float
    test_weight: float

    def __add__(self, other: AdmmSums) -> AdmmSums:  # type: ignore[override]
        mine, theirs = self._asdict(), other._asdict()
        return AdmmSums(**{name: own + theirs[name] for name, own in mine.items()})


@dataclass(frozen=True)
class AdmmProgram:
    """Rows, map and folds of `gram`, and a loss; `after` gives the pass of some steps, which shares the memory."""

    gram: GramProgram
    loss: Loss
    tests: int = -1
    ahead: Ahead | None = None
    memory: RowMemory = field(default_factory=RowMemory, compare=False, repr=False)
    task = "admm"

    def __post_init__(self) -> None:
        check_kind(self.loss, self.gram)

    def after(self, ahead: Ahead) -> AdmmProgram:
        """The pass after these steps."""
        return replace(self, ahead=ahead)

    def cost(self) -> Cost:
        """What the pass costs."""
        own = replace(self.gram.sizes, outputs=self.gram.targets.n_outputs)
        return admm_cost(own, self.gram.map_cost, self.gram.folds)

    @property
    def rows_wanted(self) -> int:
        """The blocks of the gram."""
        return self.gram.rows_wanted

    def start(self) -> TreeTotal[AdmmSums]:
        """Zero."""
        return TreeTotal()

    def workspace(self) -> np.ndarray:
        """A tile of features."""
        return np.empty((TILE, self.gram.features.map.n_features), self.gram.features.dtype)

    def add(
        self, sums: TreeTotal[AdmmSums], workspace: np.ndarray, block: int, start: int, data: tuple[Any, ...]
    ) -> None:  # fmt: skip
        """sums += the rows of one block; their scores are remembered."""
        assert self.ahead is not None
        known, before = self.memory.get(block, len(self.ahead.steps))
        found, values = list[AdmmSums](), list[np.ndarray | None]()
        for i, (k, T, y, weight) in enumerate(self.gram.by_fold(sums, start, data)):
            own = before[i] if known else None
            scores = np.empty((T.shape[0], len(self.ahead.intercept))) if own is None else own.copy()
            for rows, ones in even_tiles(T.shape[0], weight, TILE):
                found.append(self._add_tile(workspace, k, T[rows], y[rows], ones, scores[rows], known))
            values.append(None if k == self.tests else scores)
        if found:
            sums.tree.add(block, reduce(AdmmSums.__add__, found))
            self.memory.put(block, len(self.ahead.steps), values)

    def _add_tile(
        self, space: np.ndarray, k: int, T: Any, y: np.ndarray, weight: np.ndarray, a: np.ndarray, known: int
    ) -> AdmmSums:  # fmt: skip
        """What a tile adds; a are its scores after `known` steps, and then after all of them."""
        assert self.ahead is not None
        Psi = space[: T.shape[0]]
        self.gram.features.write(T, Psi)
        sparse = scores_of(Psi, self.ahead.coef, self.ahead.intercept)
        loss = float(weight @ self.loss.value(sparse, y))
        c, none = sparse.shape[1], np.zeros((sparse.shape[1], Psi.shape[1]))
        if k == self.tests:
            zero, w = np.zeros(c), float(weight.sum())
            return AdmmSums(none, zero, none, zero, none, zero, 0.0, 0.0, 0.0, 0.0, loss, w)
        z = self._walk(Psi, y, a, known)
        scores, score_sum = sums_of(Psi, weight, a)
        slopes, slope_sum = sums_of(Psi, weight, self.loss.slope(a, y))
        bar, bar_sum = sums_of(Psi, weight, self.loss.slope(sparse, y))
        gap, size, copy = (float(weight @ (one * one).sum(axis=1)) for one in (z - a, z, a))
        return AdmmSums(scores, score_sum, slopes, slope_sum, bar, bar_sum, gap, size, copy, loss, 0.0, 0.0)

    def _walk(self, Psi: np.ndarray, y: np.ndarray, a: np.ndarray, known: int) -> np.ndarray:
        """a after the steps that it has not seen; z of the last one."""
        assert self.ahead is not None
        steps = self.ahead.steps
        for i in range(min(known, len(steps) - 1), len(steps)):
            z = scores_of(Psi, steps[i].coef, steps[i].intercept)
            if i >= known:
                xi = steps[i].xi
                a[...] = z if i == 0 else loss_prox(self.loss, z + self.loss.slope(a, y) / xi, y, xi, a)
        return z


def sums_of(Psi: np.ndarray, weight: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Psi' w values, by output, and 1' w values."""
    own = values * weight[:, None]
    return (own.T.astype(Psi.dtype) @ Psi).astype(np.float64), own.sum(axis=0)


def scores_of(Psi: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Psi coef + intercept, in float64."""
    return np.asarray((Psi @ coef.astype(Psi.dtype)).astype(np.float64) + intercept)
