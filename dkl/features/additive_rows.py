"""An additive map as features of rows: Phi(x) = sqrt(largest) times numbers of at most one.

Phi(x)'Phi(x) ~ sum_j x_j, and no term of an entry is larger than its root; so sums over rows whose largest entry is
known have a bound. Rows that come later may have larger entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.features.additive import TILE, AdditiveMap, as_plain, check_histograms, write_terms
from dkl.features.map import Arrays, Fixed, FixedBlocks
from dkl.features.rows import dense


def additive_cost(inputs: int, n_terms: int, dtype: Any) -> MapCost:
    """What so many terms of so many inputs cost: a cosine for each, and a few tiles of a cache's size."""
    item, features = np.dtype(dtype).itemsize, n_terms * inputs
    return MapCost(
        features=features,
        columns=inputs,
        parameter_bytes=16 * n_terms,
        flops=10.0 * features,
        cosines=features,
        scratch_bytes=8 * max(TILE, inputs) * item,
        sparse_row_bytes=inputs * item,
    )


@dataclass(frozen=True)
class AdditiveRows(Fixed):
    """n_terms numbers for each of so many inputs; `largest` is the largest entry of the rows that are summed."""

    additive: AdditiveMap
    inputs: int
    largest: float
    kind: ClassVar[str] = "additive"

    @property
    def n_inputs(self) -> int:
        return self.inputs

    @property
    def n_columns(self) -> int:
        return self.inputs

    @property
    def n_features(self) -> int:
        return self.additive.n_terms * self.inputs

    @property
    def scale(self) -> float:
        """What keeps features below one."""
        return float(np.sqrt(self.largest)) or 1.0

    def cost(self, dtype: Any) -> MapCost:
        """What the map costs in blocks of that dtype."""
        return additive_cost(self.inputs, self.additive.n_terms, dtype)

    @property
    def column_group(self) -> np.ndarray:
        """One kernel."""
        return np.zeros(self.n_features, int)

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values; no arrays."""
        about = {"additive": as_plain(self.additive), "inputs": self.inputs, "largest": self.largest}
        return {"map": {"kind": self.kind}, **about}, {}

    def at(self, dtype: DTypeLike) -> AdditiveBlocks:
        """The map ready to be applied to blocks of that dtype."""
        return AdditiveBlocks(self, np.dtype(dtype))


@dataclass(frozen=True)
class AdditiveBlocks(FixedBlocks):
    """Phi / scale; csr rows are made dense tile by tile."""

    map: AdditiveRows
    dtype: np.dtype

    def prepare(self, X: Any) -> Any:
        """X in the compute dtype; a negative entry is refused."""
        return check_histograms(X, "Chi2Features", self.dtype)

    def write(self, T: Any, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Terms of checked rows into out (rows, d)."""
        write_terms(dense(T), self.map.additive, out)
        out /= self.dtype.type(self.map.scale)
