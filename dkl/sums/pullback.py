"""The second pass of a hypergradient: every row pulls the objective back to the parameters of the feature map.

    Psi_bar = L_B B' + L_A A',   L_B = w (gain E - train F),   L_A = -w train E,   E = Psi B - Y,   F = Psi A
    p_bar = (dPsi/dp)' Psi_bar   for every parameter p that is wanted (features/map.py)

B are weights and A adjoints, side by side for all systems (one, or one for each fold); `gain` and `train` say what a
row of a fold is to a system. With a `loss` (losses/), its dl/dz stands for E in the term of `gain`. Psi_bar has low
rank and lives for a tile: no n x d array, no matrix for each parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.features.rows import Refusal
from dkl.losses import Loss, is_wrong
from dkl.sums.gram import SLACK, GramProgram, gram_cost
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.tiles import even_tiles

TILE = 1024
"""Rows whose features exist at the same time: few enough for the cache, as there is no d x d sum to hide."""


def gradient_cost(
    sizes: Sizes, of: MapCost, q: int, pulled: int, folds: int = 1, adjoints: bool = True, curvature: bool = False
) -> Cost:
    """What the pass costs with q = systems x outputs columns of weights, and so many numbers that are pulled back to.

    A thread has two tiles of features, those that the map wants, six factors of low rank, and two more tiles for a
    curvature.
    """
    d, item, both = of.features, sizes.item, (2 if adjoints else 1) * q
    square = d * d if curvature else 0
    tile = TILE * ((2 * d + 6 * q + (2 * d if curvature else 0)) * item + of.pull_row_bytes)
    return Cost(
        "gradient",
        rows_wanted=gram_cost(sizes, of, folds).rows_wanted,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile + of.scratch_bytes + of.pull_bytes,
        sparse_bytes=TILE * of.sparse_row_bytes,
        sums_bytes=8 * (pulled + 1),
        parameter_bytes=of.parameter_bytes + (8 + item) * (d * both + square) + 8 * (pulled + d + (2 * folds + 2) * q),
        flops=of.flops + of.pull_flops + 4 * d * both + 2 * square,
        cosines=2 * of.cosines,
    )


Workspace = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Adjoint:
    """Weights B and adjoints A of q = systems x outputs columns, for unscaled features, and what rows are to them."""

    coef: np.ndarray  # (d, q)
    intercept: np.ndarray  # (q,)
    adjoint: np.ndarray  # (d, q), or (d, 0) if no row trains (the joint objective)
    adjoint_intercept: np.ndarray
    gain: np.ndarray  # (folds, q): slope of the objective in w e^2 / 2
    train: np.ndarray  # (folds, q): 1 where the fold trains the system
    curvature: np.ndarray | None = None  # (d, d) M, adds w (psi - centre) M
    centre: np.ndarray | None = None  # (d,)
    bound: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (d,): sum over rows of |psi_bar_k|^2 / w, rooted
    loss: Loss | None = None  # of rows that are tested; None: the squared error


@dataclass
class PullbackSums:
    """Sums of what the map pulls back, by parameter; `FeatureMap.gradients` makes derivatives of them."""

    gradients: dict[str, np.ndarray]
    wrong: np.ndarray  # (1,), weight of held-out rows whose class was not chosen
    refusal: tuple[int, str] | None = None

    def merge(self, other: PullbackSums) -> None:
        """self += other, exactly."""
        for name, mine in self.gradients.items():
            mine += other.gradients[name]
        self.wrong += other.wrong
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> PullbackSums:
        """A record that can be added to."""
        gradients = {name: values.copy() for name, values in self.gradients.items()}
        return PullbackSums(gradients, self.wrong.copy(), self.refusal)


@dataclass(frozen=True)
class PullbackProgram:
    """The pass: that of the sums, adjoints and the size of the inputs in; PullbackSums out."""

    gram: GramProgram
    adjoint: Adjoint
    input_size: np.ndarray  # (columns of T,), root of the weighted sum of T_j^2
    wanted: tuple[str, ...] = ("sigma",)
    task = "gradient"
    both: np.ndarray = field(init=False, repr=False)
    curvature: np.ndarray | None = field(init=False, repr=False)
    bounds: dict[str, np.ndarray] = field(init=False, repr=False)
    wrong_bound: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        a, features = self.adjoint, self.gram.features
        both = np.ascontiguousarray(np.hstack([a.coef, a.adjoint]), features.dtype)
        weight = self.gram.targets.weight
        pulled = features.map.pull_bounds(self.input_size, a.bound, weight, self.wanted)
        bounds = {name: rounder(SLACK * bound) for name, bound in pulled.items()}
        object.__setattr__(self, "both", both)
        object.__setattr__(self, "curvature", None if a.curvature is None else a.curvature.astype(features.dtype))
        object.__setattr__(self, "bounds", bounds)
        object.__setattr__(self, "wrong_bound", rounder(SLACK * weight))

    def cost(self) -> Cost:
        """What the pass costs."""
        parameters, a = self.gram.features.map.parameters, self.adjoint
        pulled = sum(parameters[name].size for name in self.wanted)
        return gradient_cost(
            self.gram.sizes, self.gram.map_cost, a.coef.shape[1], pulled, self.gram.folds, a.adjoint.size > 0,
            a.curvature is not None,
        )  # fmt: skip

    @property
    def rows_wanted(self) -> int:
        """The blocks of the first pass."""
        return self.gram.rows_wanted

    def start(self) -> PullbackSums:
        """Zero."""
        parameters = self.gram.features.map.parameters
        return PullbackSums({name: np.zeros(parameters[name].shape) for name in self.wanted}, np.zeros(1))

    def workspace(self) -> Workspace:
        """A tile of features, of their cotangents, and of slopes."""
        features = self.gram.features
        d, dtype = features.map.n_features, features.dtype
        return np.empty((TILE, d), dtype), np.empty((TILE, d), dtype), np.empty((TILE, features.slope_columns), dtype)

    def add(self, sums: PullbackSums, workspace: Workspace, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        X, y, weight, fold = data
        if not X.shape[0]:
            return
        try:
            T = self.gram.features.prepare(X)
        except Refusal as refusal:
            sums.refusal = min(filter(None, (sums.refusal, refusal.at(start))))
            return
        targets, n = self.gram.targets, X.shape[0]
        y = targets.encode(y)
        weight = targets.row_weight(y, weight)
        fold = np.zeros(n, int) if len(self.adjoint.gain) == 1 else self.gram.fold_of(start, start + n, fold)
        for rows, ones in even_tiles(n, weight, TILE):
            self._add_tile(sums, workspace, T[rows], y[rows], ones, np.asarray(fold[rows]))

    def _add_tile(
        self, sums: PullbackSums, workspace: Workspace, T: Any, y: np.ndarray, weight: np.ndarray, fold: np.ndarray
    ) -> None:
        features, a = self.gram.features, self.adjoint
        Psi, Psi_bar, slope = (space[: T.shape[0]] for space in workspace)
        features.write(T, Psi, slope)
        left, wrong = self._left(Psi @ self.both, y, weight, fold)
        np.matmul(left, self.both.T, out=Psi_bar)
        if self.curvature is not None:
            assert a.centre is not None
            share = weight * a.train[fold, 0]
            centred = (Psi - a.centre.astype(Psi.dtype)) * share[:, None].astype(Psi.dtype)
            Psi_bar += centred @ self.curvature
        for name, part in features.pull(T, Psi, slope, Psi_bar, self.wanted).items():
            add_exactly(sums.gradients[name], part, self.bounds[name])
        add_exactly(sums.wrong, np.array([wrong]), self.wrong_bound)

    def _left(
        self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray, fold: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """[L_B, L_A] in place of [Psi B, Psi A], and the weight of held-out rows that are put in the wrong class."""
        a, q = self.adjoint, self.adjoint.coef.shape[1]
        residual, adjoint = scores[:, :q], scores[:, q:]
        residual += a.intercept.astype(scores.dtype)
        wrong = self._wrong(residual, y, weight, fold)
        slope = residual if a.loss is None else self._loss_slope(residual, y, fold, a.loss)
        self._subtract_targets(residual, y)
        share = weight[:, None].astype(scores.dtype)
        gain = a.gain.astype(scores.dtype)[fold]
        if not adjoint.shape[1]:
            residual *= gain
            residual *= share
            return scores, wrong
        adjoint += a.adjoint_intercept.astype(scores.dtype)
        train = a.train.astype(scores.dtype)[fold] * share
        gain *= share
        gain *= slope
        adjoint *= train
        gain -= adjoint
        np.multiply(residual, train, out=adjoint)
        np.negative(adjoint, out=adjoint)
        residual[...] = gain
        return scores, wrong

    def _subtract_targets(self, scores: np.ndarray, y: np.ndarray) -> None:
        """Scores less targets, of every system; a class is -1 or +1."""
        if not self.gram.targets.is_class:
            scores.reshape(len(y), -1, y.shape[1])[...] -= y[:, None, :].astype(scores.dtype)
            return
        if self.gram.targets.n_targets == 2:
            scores -= (2 * y - 1)[:, None].astype(scores.dtype)
            return
        c = self.gram.targets.n_targets
        scores += 1
        systems = scores.shape[1] // c
        scores[np.arange(len(y))[:, None], y[:, None] + c * np.arange(systems)] -= 2

    def _wrong(self, scores: np.ndarray, y: np.ndarray, weight: np.ndarray, fold: np.ndarray) -> float:
        """Weight of rows whose class is not the one with the highest score of the system that they test."""
        targets, a = self.gram.targets, self.adjoint
        if not targets.is_class:
            return 0.0
        tests = np.greater(a.gain[:, :: targets.n_outputs], 0)
        tested = np.flatnonzero(np.any(tests, axis=1, keepdims=True)[fold, 0])
        system = tests.argmax(axis=1)[fold[tested]]
        found = scores.reshape(len(y), -1, targets.n_outputs)[tested, system]
        return float(weight[tested][is_wrong(found, y[tested])].sum())

    def _loss_slope(self, scores: np.ndarray, y: np.ndarray, fold: np.ndarray, loss: Loss) -> np.ndarray:
        """dl/dz of the scores of the system that a row tests; every row tests one."""
        c, rows = self.gram.targets.n_outputs, np.arange(len(y))
        system = np.greater(self.adjoint.gain[:, ::c], 0).argmax(axis=1)[fold]
        slope = np.zeros_like(scores)
        by_system, own = slope.reshape(len(y), -1, c), scores.reshape(len(y), -1, c)[rows, system]
        by_system[rows, system] = loss.slope(own.astype(np.float64), y)
        return slope
