"""One pass for every ridge solution: gram = Psi'WPsi, cross = Y'WPsi, and the sums that centre them, by fold.

Features are made tile by tile in the block's precision and never leave this module; what crosses a tile is
float64 and exact (sums/order_free.py). Class labels are not expanded: a class's row of `cross` is the sum of its
feature rows, n d additions for any number of classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from dkl.cost import Cost, MapCost, Sizes
from dkl.features.map import Blocks, FeatureMap
from dkl.features.rows import Refusal
from dkl.sums.folds import fold_of, held_out
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.symmetric import LEAF, add_rank_k, largest_tile, packed_size
from dkl.sums.targets import Targets
from dkl.sums.tiles import most_rows, tile_rows

SLACK = 4.0
"""Products of two features are at most 2 in size; twice that leaves room for the rounding of a tile."""

RUN = 32
"""Feature rows of a class that are added one after the other in the block's precision."""


def gram_cost(sizes: Sizes, of: MapCost, folds: int = 1) -> Cost:
    """What the pass costs: a tile of features and one product beside half a gram for each fold."""
    d, c, item = of.features, sizes.outputs, sizes.item
    tile = tile_rows(sizes.rows, d, sizes.dtype)
    rows, cross = most_rows(tile), c * d * (item if sizes.is_class else item + 16)
    return Cost(
        "gram",
        rows_wanted=tile * folds,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes,
        thread_bytes=(rows * d + largest_tile(d)) * item + of.scratch_bytes + cross,
        sparse_bytes=rows * of.sparse_row_bytes,
        sums_bytes=8 * folds * (packed_size(d) + d * (c + 1) + 2 * c + 2),
        parameter_bytes=of.parameter_bytes + 64 * c,
        flops=of.flops + gram_flops(d) + (d if sizes.is_class else 2 * d * c),
        cosines=of.cosines,
    )


def gram_flops(d: int) -> float:
    """Of half a gram, for each row: the leaves on its diagonal are computed whole."""
    return float(d * (d + min(d, LEAF)))


def sum_by_class(Psi: np.ndarray, codes: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes present, and the sum of root_i Psi_i over the rows of each: short runs in Psi's dtype, then float64."""
    order = np.argsort(codes, kind="stable")
    present, first, counts = np.unique(codes[order], return_index=True, return_counts=True)
    place = np.arange(len(codes)) - np.repeat(first, counts)
    runs = np.flatnonzero(place % RUN == 0)
    adder = csr_array((root[order], order, np.append(runs, len(codes))), shape=(len(runs), len(codes)))
    part = adder @ Psi
    if len(runs) > len(present):
        starts = np.append(np.searchsorted(runs, first), len(runs))
        joiner = csr_array((np.ones(len(runs)), np.arange(len(runs)), starts), shape=(len(present), len(runs)))
        part = joiner @ part.astype(np.float64)
    return present, part


Workspace = tuple[np.ndarray, np.ndarray]
"""A tile of features and one product."""


class Refusing(Protocol):
    """Sums that note the first row that a pass could not take."""

    refusal: tuple[int, str] | None


CLASSES_AT_ONCE = 64
"""Classes whose sums are added to at once: few enough for a cache, many enough for threads to run side by side."""


@dataclass
class GramSums:
    """Row sums from which every ridge solution follows; the first axis is the fold. Features are unscaled."""

    rows: np.ndarray  # (K,), rows of positive weight
    weight: np.ndarray  # (K,)
    gram: np.ndarray  # (K, packed half of d x d)
    cross: np.ndarray  # (K, c, d)
    feature_sum: np.ndarray  # (K, d)
    target_sum: np.ndarray  # (K, c), of y - shift; of a class: its weight
    target_square: np.ndarray  # (K, c)
    refusal: tuple[int, str] | None = None

    def merge(self, other: GramSums) -> None:
        """self += other, exactly."""
        for name in ("rows", "weight", "gram", "cross", "feature_sum", "target_sum", "target_square"):
            mine = getattr(self, name)
            mine += getattr(other, name)
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> GramSums:
        """A record that can be added to."""
        return GramSums(
            self.rows.copy(),
            self.weight.copy(),
            self.gram.copy(),
            self.cross.copy(),
            self.feature_sum.copy(),
            self.target_sum.copy(),
            self.target_square.copy(),
            self.refusal,
        )


@dataclass(frozen=True)
class GramProgram:
    """The pass: map, targets and folds in, GramSums out. With `held`, fold 1 is that share of the rows.

    With `unseen`, the last fold is that share of the rows, whatever fold they would have had: no system sees it. With
    `taken`, that share of the rows takes part at all.
    """

    features: Blocks
    targets: Targets
    n_rows: int
    folds: int = 1
    seed: int = 0
    held: tuple[int, int] | None = None
    unseen: tuple[int, int] | None = None
    taken: tuple[int, int] | None = None
    task = "gram"
    bounds: dict[str, np.ndarray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        t = self.targets
        bounds = {"count": rounder(SLACK * t.weight)}
        if not t.is_class:
            bounds["cross"] = rounder(SLACK * t.absolute)[:, None]
            bounds["sum"] = rounder(SLACK * t.absolute)
            bounds["square"] = rounder(SLACK * t.square)
        object.__setattr__(self, "bounds", bounds)

    def with_map(self, features: FeatureMap) -> GramProgram:
        """The same pass with other features."""
        return replace(self, features=features.at(self.features.dtype))

    @property
    def sizes(self) -> Sizes:
        """Rows, inputs and targets of the pass."""
        targets, m = self.targets, self.map_cost.columns
        return Sizes(self.n_rows, m, self.features.dtype, targets.n_targets, targets.is_class)

    @property
    def map_cost(self) -> MapCost:
        """What the features cost."""
        cost: MapCost = self.features.map.cost(self.features.dtype)
        return cost

    def cost(self) -> Cost:
        """What the pass costs."""
        return gram_cost(self.sizes, self.map_cost, self.folds)

    @property
    def tile(self) -> int:
        return tile_rows(self.n_rows, self.features.map.n_features, self.features.dtype)

    @property
    def rows_wanted(self) -> int:
        """Rows that should come together, so that each fold fills a tile."""
        return self.tile * self.folds

    def start(self) -> GramSums:
        """Zero."""
        K, c, d = self.folds, self.targets.n_targets, self.features.map.n_features
        return GramSums(
            rows=np.zeros(K),
            weight=np.zeros(K),
            gram=np.zeros((K, packed_size(d))),
            cross=np.zeros((K, c, d)),
            feature_sum=np.zeros((K, d)),
            target_sum=np.zeros((K, c)),
            target_square=np.zeros((K, c)),
        )

    def workspace(self) -> Workspace:
        """A tile of features and one product."""
        d, dtype = self.features.map.n_features, self.features.dtype
        return np.empty((most_rows(self.tile), d), dtype), np.empty(largest_tile(d), dtype)

    def add(self, sums: GramSums, workspace: Workspace, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block; rows that cannot be mapped are noted, the first one wins."""
        for k, T, y, weight in self.by_fold(sums, start, data):
            self._add_fold(sums, workspace, k, T, y, weight)

    def by_fold(
        self, sums: Refusing, start: int, data: tuple[Any, ...]
    ) -> Iterator[tuple[int, Any, np.ndarray, np.ndarray | None]]:
        """(fold, prepared rows, targets, weights) of one block, fold by fold."""
        if (encoded := self.encoded(sums, start, data)) is None:
            return
        T, y, weight = encoded
        if self.folds == 1 and self.taken is None:
            yield 0, T, y, weight
            return
        fold = self.fold_of(start, start + T.shape[0], data[3])
        for k in range(self.folds):
            rows = np.flatnonzero(fold == k)
            if len(rows):
                yield k, T[rows], y[rows], None if weight is None else weight[rows]

    def encoded(
        self, sums: Refusing, start: int, data: tuple[Any, ...]
    ) -> tuple[Any, np.ndarray, np.ndarray | None] | None:
        """(prepared rows, targets, weights) of one block; None if it is empty, or refused, which is noted."""
        X, y, weight, _ = data
        try:
            T = self.features.prepare(X)
        except Refusal as refusal:
            sums.refusal = min(filter(None, (sums.refusal, refusal.at(start))))
            return None
        if sums.refusal is not None or not X.shape[0]:
            return None
        y = self.targets.encode(y)
        return T, y, self.targets.row_weight(y, weight)

    def fold_of(self, start: int, stop: int, given: np.ndarray | None = None) -> np.ndarray:
        """Fold number of rows start .. stop-1, -1 if a row takes no part; `given` are those that the user says."""
        if given is not None:
            fold = np.asarray(given)
        elif self.held is not None:
            fold = held_out(start, stop, self.held, self.seed)
        else:
            fold = fold_of(start, stop, self.folds - (self.unseen is not None), self.seed)
        if self.unseen is not None:
            fold = np.where(held_out(start, stop, self.unseen, self.seed + 1), self.folds - 1, fold)
        return fold if self.taken is None else np.where(held_out(start, stop, self.taken, self.seed + 2), fold, -1)

    def _add_fold(self, sums: GramSums, workspace: Workspace, k: int, T: Any, y: np.ndarray, weight: Any) -> None:
        n = T.shape[0]
        parts = max(1, round(n / self.tile))
        for i in range(parts):
            rows = slice(i * n // parts, (i + 1) * n // parts)
            self._add_tile(sums, workspace, k, T[rows], y[rows], None if weight is None else weight[rows])

    def _add_tile(self, sums: GramSums, workspace: Workspace, k: int, T: Any, y: np.ndarray, weight: Any) -> None:
        space, buffer = workspace
        n, dtype = T.shape[0], self.features.dtype
        Psi, root = space[:n], np.ones(n, dtype)
        self.features.write(T, Psi)
        if weight is not None:
            root = np.sqrt(weight).astype(dtype)
            Psi *= root[:, None]
        add_rank_k(sums.gram[k], Psi, self.bounds["count"], buffer)
        self.add_cross(sums, k, Psi, y, root, np.ones(n) if weight is None else weight)

    def add_cross(
        self, sums: GramSums, k: int, Psi: np.ndarray, y: np.ndarray, root: np.ndarray, ones: np.ndarray
    ) -> None:
        """All sums but the gram: Psi has rows times root, the square root of their weights `ones`."""
        count = self.bounds["count"]
        add_exactly(sums.feature_sum[k], root @ Psi, count)
        add_exactly(sums.weight[k : k + 1], ones.sum(keepdims=True), count)
        sums.rows[k] += np.count_nonzero(ones)
        if self.targets.is_class:
            self._add_classes(sums, k, Psi, y, root, ones)
        else:
            self._add_values(sums, k, Psi, y, root, ones)

    def _add_classes(
        self, sums: GramSums, k: int, Psi: np.ndarray, y: np.ndarray, root: np.ndarray, ones: np.ndarray
    ) -> None:
        present, part = sum_by_class(Psi, y, root)
        cross, count = sums.cross[k], self.bounds["count"]
        for i in range(0, len(present), CLASSES_AT_ONCE):
            labels = present[i : i + CLASSES_AT_ONCE]
            rows = cross[labels]
            add_exactly(rows, part[i : i + CLASSES_AT_ONCE], count)
            cross[labels] = rows
        share = np.bincount(y, ones, minlength=self.targets.n_targets)
        add_exactly(sums.target_sum[k], share, count)

    def _add_values(
        self, sums: GramSums, k: int, Psi: np.ndarray, y: np.ndarray, root: np.ndarray, ones: np.ndarray
    ) -> None:
        scaled = (y * root[:, None]).astype(Psi.dtype)
        add_exactly(sums.cross[k], scaled.T @ Psi, self.bounds["cross"])
        add_exactly(sums.target_sum[k], ones @ y, self.bounds["sum"])
        add_exactly(sums.target_square[k], ones @ (y * y), self.bounds["square"])
