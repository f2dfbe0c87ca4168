"""All rows of a pass, each at its own place: features, targets, weights and folds.

    record[start : stop] = psi(X), y, w, fold

No two blocks have a row in common, so merging is copying: exact, in any order. For n rows and d > n features this is
less than the gram, and the solve needs n unknowns alone. Rows that have not come yet are zero, and are not sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.sums.gram import GramProgram
from dkl.sums.tiles import most_rows, tile_rows

ARRAYS = ("fold", "weight", "target", "features")


@dataclass
class FeatureRows:
    """Rows by their number. Features are unscaled; targets are codes of classes, or values (n, c) as encoded."""

    fold: np.ndarray  # (n,), -1 for a row that has not come yet
    weight: np.ndarray  # (n,)
    target: np.ndarray  # (n,) or (n, c)
    features: np.ndarray  # (n, d) in the precision of blocks
    refusal: tuple[int, str] | None = None

    @property
    def here(self) -> np.ndarray:
        """Numbers of the rows that have come."""
        return np.flatnonzero(self.fold >= 0)

    def merge(self, other: FeatureRows) -> None:
        """self += other: every row to its place."""
        rows = other.here
        for name in ARRAYS:
            getattr(self, name)[rows] = getattr(other, name)[rows]
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> FeatureRows:
        """A record that can be added to."""
        return FeatureRows(
            self.fold.copy(), self.weight.copy(), self.target.copy(), self.features.copy(), self.refusal
        )  # fmt: skip

    def __getstate__(self) -> tuple[int, np.ndarray, list[np.ndarray], tuple[int, str] | None]:
        rows, n = self.here, len(self.fold)
        arrays = [getattr(self, name) for name in ARRAYS]
        return n, rows, arrays if len(rows) == n else [array[rows] for array in arrays], self.refusal

    def __setstate__(self, state: tuple[int, np.ndarray, list[np.ndarray], tuple[int, str] | None]) -> None:
        n, rows, arrays, self.refusal = state
        for name, array in zip(ARRAYS, arrays, strict=True):
            whole = np.zeros((n, *array.shape[1:]), array.dtype)
            if name == "fold":
                whole -= 1
            whole[rows] = array
            setattr(self, name, whole)


def feature_rows_cost(sizes: Sizes, of: MapCost, folds: int = 1) -> Cost:
    """What the pass costs: n rows of features, n d numbers in the precision of blocks."""
    d, c = of.features, sizes.outputs
    tile = tile_rows(sizes.rows, d, sizes.dtype)
    return Cost(
        "rows",
        rows_wanted=tile,
        features=d,
        folds=folds,
        columns=of.columns,
        row_bytes=sizes.target_bytes + 32,
        thread_bytes=of.scratch_bytes,
        sparse_bytes=most_rows(tile) * of.sparse_row_bytes,
        sums_bytes=sizes.rows * (d * sizes.item + 8 * (1 if sizes.is_class else c) + 16),
        parameter_bytes=of.parameter_bytes + 64 * c,
        flops=of.flops,
        cosines=of.cosines,
    )


@dataclass(frozen=True)
class FeatureRowsProgram:
    """The pass: the map, targets and folds of a gram in, FeatureRows out."""

    gram: GramProgram
    task = "rows"

    def cost(self) -> Cost:
        """What the pass costs."""
        return feature_rows_cost(self.gram.sizes, self.gram.map_cost, self.gram.folds)

    @property
    def rows_wanted(self) -> int:
        """Rows that should come together."""
        return self.gram.tile

    def start(self) -> FeatureRows:
        """No row yet."""
        n, features, targets = self.gram.n_rows, self.gram.features, self.gram.targets
        target = np.zeros(n, np.int64) if targets.is_class else np.zeros((n, targets.n_targets))
        Psi = np.zeros((n, features.map.n_features), features.dtype)
        return FeatureRows(np.full(n, -1), np.zeros(n), target, Psi)

    def workspace(self) -> None:
        """Nothing: features are written where they stay."""

    def add(self, sums: FeatureRows, workspace: None, block: int, start: int, data: tuple[Any, ...]) -> None:
        """The rows of one block, to their places; rows that cannot be mapped are noted, the first one wins."""
        encoded = self.gram.encoded(sums, start, data)
        if encoded is None:
            return
        T, y, weight = encoded
        n, tile = T.shape[0], self.gram.tile
        parts, here = max(1, round(n / tile)), slice(start, start + n)
        for i in range(parts):
            low, high = i * n // parts, (i + 1) * n // parts
            self.gram.features.write(T[low:high], sums.features[start + low : start + high])
        sums.target[here] = y
        sums.weight[here] = 1.0 if weight is None else weight
        sums.fold[here] = 0 if self.gram.folds == 1 else self.gram.fold_of(start, start + n, data[3])
