"""Pass over X: weight, mean and centred square sum of every feature, whatever the map."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost
from dkl.features.map import Blocks
from dkl.sums.spread import Spread, spread_of
from dkl.sums.targets import check_weights
from dkl.sums.tree import TreeProgram

TILE = 1024
"""Rows whose features exist at the same time."""


class FeatureSpreadProgram(TreeProgram[Spread]):
    """The Spread of unscaled features."""

    task = "spread"

    def __init__(self, features: Blocks) -> None:
        self.features = features

    def cost(self) -> Cost:
        """A tile of features, in float64 and about its mean."""
        dtype = self.features.dtype
        of: MapCost = self.features.map.cost(dtype)
        return Cost(
            self.task,
            self.rows_wanted,
            columns=of.columns,
            features=of.features,
            thread_bytes=TILE * of.features * (dtype.itemsize + 16) + of.scratch_bytes,
            sparse_bytes=TILE * of.sparse_row_bytes,
            sums_bytes=16 * of.features,
            parameter_bytes=of.parameter_bytes,
            flops=of.flops + 6 * of.features,
            cosines=of.cosines,
        )

    def value(self, data: tuple[Any, ...]) -> Spread:
        """The record of one block."""
        X, weight = data
        w, n = check_weights(weight, X.shape[0]), X.shape[0]
        Psi = np.empty((min(n, TILE), self.features.map.n_features), self.features.dtype)
        none = np.zeros(Psi.shape[1])
        total = Spread(0.0, none, none)
        for i in range(0, n, TILE):
            rows = slice(i, min(n, i + TILE))
            tile = Psi[: rows.stop - rows.start]
            self.features.write(self.features.prepare(X[rows]), tile)
            total = total + spread_of(tile.astype(np.float64), w[rows])
        return total
