"""A pass that prices candidates: how much each would lower the loss of a model that does not have it yet.

    slope_j  = sum w dl/dz psi_j,     z = B' psi(x) + b of the features that the model has
    square_j = sum w psi_j^2          of each feature of each candidate, unless groups have length one by themselves

With `uphill`, the derivatives of both in the parameters p of a candidate are summed too, one after the other:

    p_bar = sum (dpsi/dp)' Psi_bar,   Psi_bar = w dl/dz_t in the q-th feature of each group, for each q and output t
                                      Psi_bar = w psi, if squares depend on p

The model's features and the candidates' come from one kind of map, so rows are prepared once for both. Rows of the
fold `tests` do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.features.groups import GroupMap, places_of
from dkl.features.map import Blocks
from dkl.losses import Loss, ScoreSizes
from dkl.sums.curvature import check_kind
from dkl.sums.gram import SLACK, GramProgram, gram_cost
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.pullback import TILE
from dkl.sums.tiles import even_tiles


def pricing_cost(sizes: Sizes, model: MapCost, candidates: MapCost, pulls: int = 0) -> Cost:
    """What the pass costs: a tile of the model's features, one of the candidates', and two more to pull back."""
    d, k, c, item = model.features, candidates.features, max(1, sizes.outputs), sizes.item
    on = pulls > 0
    tile = TILE * ((d + k * (1 + 2 * on) + 4 * c) * item + 56 * c + on * candidates.pull_row_bytes)
    return Cost(
        "prices",
        rows_wanted=gram_cost(sizes, candidates).rows_wanted,
        features=k,
        columns=candidates.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=tile + 16 * k * (c + 1) + max(model.scratch_bytes, candidates.scratch_bytes)
        + on * candidates.pull_bytes,
        sparse_bytes=TILE * max(model.sparse_row_bytes, candidates.sparse_row_bytes),
        sums_bytes=8 * (k * (c + 1) + 1 + pulls * candidates.movable),
        parameter_bytes=model.parameter_bytes + candidates.parameter_bytes + c * (8 + item) * (d + 1),
        flops=model.flops + candidates.flops + 2.0 * d * c + 2.0 * k * c + 2.0 * k
        + pulls * (candidates.pull_flops + 2.0 * k),
        cosines=model.cosines + (1 + on) * candidates.cosines,
    )  # fmt: skip


@dataclass(frozen=True)
class Uphill:
    """Parameters whose derivatives are wanted, the root of sum w T_j^2, and a bound of sum w |dl/dz|^2."""

    wanted: tuple[str, ...]
    input_size: np.ndarray
    energy: float


@dataclass
class PricingSums:
    """Sums over the rows that train. Features are unscaled."""

    slope: np.ndarray  # (c, k)
    square: np.ndarray  # (k,), zero of an even map
    weight: np.ndarray  # (1,), sum w
    pulled: dict[str, np.ndarray]  # (pulls, ...) by parameter; empty without `uphill`
    refusal: tuple[int, str] | None = None

    def merge(self, other: PricingSums) -> None:
        """self += other, exactly."""
        self.slope += other.slope
        self.square += other.square
        self.weight += other.weight
        for name, mine in self.pulled.items():
            mine += other.pulled[name]
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> PricingSums:
        """A record that can be added to."""
        pulled = {name: values.copy() for name, values in self.pulled.items()}
        return PricingSums(self.slope.copy(), self.square.copy(), self.weight.copy(), pulled, self.refusal)


Workspace = tuple[np.ndarray, ...]
"""Tiles of the model's features, of the candidates', of a copy of these, of their cotangents, and of slopes."""


@dataclass(frozen=True)
class PricingProgram:
    """The pass: rows and candidates of `gram`, the model's features and weights, and a loss in; PricingSums out."""

    gram: GramProgram  # with the map of the candidates
    model: Blocks | None  # None: the model has an intercept alone
    coef: np.ndarray  # (d, c), for unscaled features
    intercept: np.ndarray  # (c,)
    loss: Loss
    tests: int = -1  # the fold that does not count; -1: every row does
    uphill: Uphill | None = None
    task = "prices"
    narrow: np.ndarray = field(init=False, repr=False)
    bounds: dict[str, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_kind(self.loss, self.gram)
        t, d = self.gram.targets, len(self.coef)
        size = np.linalg.norm(self.coef, axis=0) * np.sqrt(d + 1) + np.abs(self.intercept)
        sizes = ScoreSizes(float(size.max()), t.weight, t.n_outputs, t.absolute, t.square)
        most = np.asarray(self.loss.most_slope(sizes))
        bounds = {
            "slope": rounder(SLACK * most[:, None] if most.ndim else SLACK * most),
            "square": rounder(SLACK * t.weight),
        }
        if self.uphill is not None:
            up, features = self.uphill, self.group_map
            reach = np.full(features.n_features, np.sqrt(up.energy + 2 * t.weight))
            pulled = features.pull_bounds(up.input_size, reach, t.weight, up.wanted)
            bounds |= {name: rounder(SLACK * bound) for name, bound in pulled.items()}
        object.__setattr__(self, "narrow", np.ascontiguousarray(self.coef, self.gram.features.dtype))
        object.__setattr__(self, "bounds", bounds)

    @property
    def group_map(self) -> GroupMap:
        """That of the candidates."""
        return self.gram.features.map  # type: ignore[return-value]

    @property
    def pulls(self) -> int:
        """Derivatives that are summed, of each parameter."""
        features = self.group_map
        return features.n_features // features.n_groups * self.gram.targets.n_outputs + (not features.is_even)

    @property
    def rows_wanted(self) -> int:
        """The blocks of the gram's pass."""
        return self.gram.rows_wanted

    def cost(self) -> Cost:
        """What the pass costs."""
        own = replace(self.gram.sizes, outputs=self.gram.targets.n_outputs)
        model = MapCost(0, 0, 0, 0.0, 0.0) if self.model is None else self.model.map.cost(self.model.dtype)
        return pricing_cost(own, model, self.gram.map_cost, 0 if self.uphill is None else self.pulls)

    def start(self) -> PricingSums:
        """Zero."""
        features, c = self.gram.features.map, self.gram.targets.n_outputs
        wanted = () if self.uphill is None else self.uphill.wanted
        pulled = {name: np.zeros((self.pulls, *features.parameters[name].shape)) for name in wanted}
        k = features.n_features
        return PricingSums(np.zeros((c, k)), np.zeros(k), np.zeros(1), pulled)

    def workspace(self) -> Workspace:
        """Tiles; those that only a gradient needs are empty without one."""
        features, pulls = self.gram.features, self.uphill is not None
        k, dtype = features.map.n_features, features.dtype
        widths = len(self.coef), k, k * pulls, k * pulls, features.slope_columns * pulls
        return tuple(np.empty((TILE, width), dtype) for width in widths)

    def add(self, sums: PricingSums, workspace: Workspace, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block."""
        for fold, T, y, weight in self.gram.by_fold(sums, start, data):
            if fold == self.tests:
                continue
            for rows, ones in even_tiles(T.shape[0], weight, TILE):
                self._add_tile(sums, workspace, T[rows], y[rows], ones)

    def _add_tile(self, sums: PricingSums, space: Workspace, T: Any, y: np.ndarray, weight: np.ndarray) -> None:
        features = self.gram.features
        Phi, lean = space[1][: len(weight)], space[4][: len(weight)]
        slope = (self.loss.slope(self._scores(space[0], T, len(weight)), y) * weight[:, None]).astype(features.dtype)
        features.write(T, Phi, None if self.uphill is None else lean)
        add_exactly(sums.slope, slope.T @ Phi, self.bounds["slope"])
        add_exactly(sums.weight, weight.sum(keepdims=True), self.bounds["square"])
        share = weight.astype(features.dtype)
        if not self.group_map.is_even:
            add_exactly(sums.square, share @ np.square(Phi), self.bounds["square"])
        if self.uphill is not None:
            self._pull(sums, space, T, Phi, lean, slope, share)

    def _pull(
        self, sums: PricingSums, space: Workspace, T: Any, Phi: np.ndarray, lean: np.ndarray, slope: np.ndarray,
        share: np.ndarray,
    ) -> None:  # fmt: skip
        """Derivatives of slopes, by feature of a group and output, and of half the squares."""
        assert self.uphill is not None
        used, Phi_bar = (tile[: len(Phi)] for tile in space[2:4])
        place, outputs = places_of(self.group_map), slope.shape[1]
        for i in range(self.pulls):
            q, t = divmod(i, outputs)
            used[...] = Phi
            if q <= place.max():
                Phi_bar[...] = slope[:, [t]] * (place == q)
            else:
                np.multiply(Phi, share[:, None], out=Phi_bar)
            for name, part in self.gram.features.pull(T, used, lean, Phi_bar, self.uphill.wanted).items():
                add_exactly(sums.pulled[name][i], part, self.bounds[name])

    def _scores(self, space: np.ndarray, T: Any, rows: int) -> np.ndarray:
        """z of the model (rows, c), in float64."""
        z = np.tile(self.intercept, (rows, 1))
        if self.model is not None:
            Psi = space[:rows]
            self.model.write(T, Psi)
            z += Psi @ self.narrow
        return z
