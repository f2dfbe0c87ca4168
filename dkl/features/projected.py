"""Features along axes: (psi(x) - mean) U, itself a feature map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.features.map import Arrays, Blocks, FeatureMap, check_parameters
from dkl.features.part_names import prefixed

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
    kind: ClassVar[str] = "projected"

    @property
    def n_inputs(self) -> int:
        return self.of.n_inputs

    @property
    def n_columns(self) -> int:
        return self.of.n_columns

    @property
    def n_features(self) -> int:
        return int(self.axes.shape[1])

    @property
    def column_group(self) -> np.ndarray:
        """An axis mixes all channels, so there is one group."""
        return np.zeros(self.n_features, int)

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Those of the map beneath; mean and axes stay."""
        return self.of.parameters

    def with_parameters(self, **new: np.ndarray) -> ProjectedMap:
        """The same axes of the map beneath with other values of the named parameters."""
        return replace(self, of=self.of.with_parameters(**new))

    def gradients(self, pulled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Those of the map beneath."""
        return self.of.gradients(pulled)

    def pull_bounds(
        self, input_size: np.ndarray, reach: np.ndarray, weight: float, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Those of the map beneath, of cotangents that are sums along the axes."""
        check_parameters(self, wanted)
        return self.of.pull_bounds(input_size, np.abs(self.unscaled_axes) @ reach, weight, wanted)

    @property
    def unscaled_axes(self) -> np.ndarray:
        """What multiplies features that are written without their scale."""
        return np.asarray(self.axes * (self.of.scale / self.scale))

    def cost(self, dtype: Any) -> MapCost:
        """What the axes cost in blocks of that dtype."""
        return projected_cost(self.of.cost(dtype), self.n_features, dtype)

    def at(self, dtype: DTypeLike) -> ProjectedBlocks:
        """The map ready to be applied to blocks of that dtype."""
        dtype = np.dtype(dtype)
        axes = np.ascontiguousarray(self.unscaled_axes, dtype)
        offset = (self.mean @ self.axes / self.scale).astype(dtype)
        return ProjectedBlocks(self, self.of.at(dtype), axes, offset)

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """The map beneath, its arrays after `of_`, its mean as `centre`, and the axes."""
        about, own = self.of.stored()
        arrays: Arrays = {"centre": (("of_component",), self.mean), "axes": (("of_component", "axis"), self.axes)}
        return {"map": {"kind": self.kind, "scale": float(self.scale)}, "of": about}, arrays | prefixed("of_", own)


@dataclass(frozen=True)
class ProjectedBlocks:
    """(psi - mean) U / scale; the features themselves are made in tiles, and kept only for `pull`."""

    map: ProjectedMap
    features: Blocks
    axes: np.ndarray
    offset: np.ndarray

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the map travels; the rest is made again where it arrives."""
        return ProjectedMap.at, (self.map, self.dtype)

    @property
    def dtype(self) -> np.dtype:
        return self.axes.dtype

    @property
    def slope_columns(self) -> int:
        """The features beneath, and their slopes."""
        return len(self.axes) + self.features.slope_columns

    def prepare(self, X: Any) -> Any:
        """As the map beneath prepares them."""
        return self.features.prepare(X)

    def write(self, T: Any, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Coordinates of prepared rows into out (rows, r)."""
        n, d = T.shape[0], len(self.axes)
        space = np.empty((min(n, TILE), d), self.dtype) if slope is None else slope[:, :d]
        for i in range(0, n, TILE):
            rows = T[i : i + TILE]
            Psi = space[: rows.shape[0]] if slope is None else space[i : i + TILE]
            self.features.write(rows, Psi, None if slope is None else slope[i : i + TILE, d:])
            np.matmul(Psi, self.axes, out=out[i : i + TILE])
            out[i : i + TILE] -= self.offset

    def pull(
        self, T: Any, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """The cotangents go back along the axes, then through the map beneath."""
        d = len(self.axes)
        return self.features.pull(T, slope[:, :d], slope[:, d:], Psi_bar @ self.axes.T, wanted)

    def transform(self, X: Any) -> np.ndarray:
        """The coordinates (rows, r) with their scale."""
        out = np.empty((X.shape[0], self.map.n_features), self.dtype)
        self.write(self.prepare(X), out)
        out *= self.dtype.type(self.map.scale)
        return out
