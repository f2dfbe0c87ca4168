"""Features along axes: (psi(x) - mean) U, itself a feature map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import MapCost
from dkl.features.map import Blocks, FeatureMap

TILE = 2048
"""Rows whose features exist at the same time."""


def projected_cost(of: MapCost, axes: int, dtype: Any) -> MapCost:
    """What so many axes of a map cost: a tile of its features, and one product."""
    item = np.dtype(dtype).itemsize
    return MapCost(
        features=axes,
        columns=of.columns,
        parameter_bytes=of.parameter_bytes + of.features * (axes + 1) * (8 + item),
        flops=of.flops + 2.0 * of.features * axes,
        cosines=of.cosines,
        scratch_bytes=of.scratch_bytes + TILE * of.features * item,
        sparse_row_bytes=of.sparse_row_bytes,
    )


@dataclass(frozen=True)
class ProjectedMap:
    """The map beneath, its mean (d,) and axes (d, r); `scale` is the unit in which a pass writes."""

    of: FeatureMap
    mean: np.ndarray
    axes: np.ndarray
    scale: float = 1.0

    @property
    def n_features(self) -> int:
        return self.axes.shape[1]

    def cost(self, dtype: Any) -> MapCost:
        """What the axes cost in blocks of that dtype."""
        return projected_cost(self.of.cost(dtype), self.n_features, dtype)

    def at(self, dtype: Any) -> ProjectedBlocks:
        """The map ready to be applied to blocks of that dtype."""
        dtype = np.dtype(dtype)
        axes = np.ascontiguousarray(self.axes * (self.of.scale / self.scale), dtype)
        offset = (self.mean @ self.axes / self.scale).astype(dtype)
        return ProjectedBlocks(self, self.of.at(dtype), axes, offset)


@dataclass(frozen=True)
class ProjectedBlocks:
    """(psi - mean) U / scale; the features themselves are made in tiles and forgotten."""

    map: ProjectedMap
    features: Blocks
    axes: np.ndarray
    offset: np.ndarray

    def __reduce__(self) -> tuple:
        """Only the map travels; the rest is made again where it arrives."""
        return ProjectedMap.at, (self.map, self.dtype)

    @property
    def dtype(self) -> np.dtype:
        return self.axes.dtype

    def prepare(self, X: Any) -> Any:
        """As the map beneath prepares them."""
        return self.features.prepare(X)

    def write(self, T: Any, out: np.ndarray) -> None:
        """Coordinates of prepared rows into out (rows, r)."""
        n = T.shape[0]
        space = np.empty((min(n, TILE), len(self.axes)), self.dtype)
        for i in range(0, n, TILE):
            rows = T[i : i + TILE]
            Psi = space[: rows.shape[0]]
            self.features.write(rows, Psi)
            np.matmul(Psi, self.axes, out=out[i : i + TILE])
            out[i : i + TILE] -= self.offset

    def transform(self, X: Any) -> np.ndarray:
        """The coordinates (rows, r) with their scale."""
        out = np.empty((X.shape[0], self.map.n_features), self.dtype)
        self.write(self.prepare(X), out)
        out *= self.dtype.type(self.map.scale)
        return out
