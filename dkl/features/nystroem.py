"""Nystroem features of a block of rows.

    phi(x) = k(x, L) V,   V = U diag(D)^(-1/2) of K_LL = U diag(D) U'

phi(x)'phi(y) is the kernel itself where x or y is one of the landmarks L, and |phi(x)| <= 1 everywhere. A map is a
frozen record; `at(dtype)` gives the form in which blocks are computed, with the methods of features/map.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.features.kernel_inputs import kernel_inputs
from dkl.features.map import Arrays, Fixed, FixedBlocks
from dkl.features.rows import dense
from dkl.kernels import Kernel
from dkl.kernels.values import TILE, is_radial, kernel_values, tiles

SWEEP = 60
"""Flops of a product that take as long as one input of one pair of rows, if the kernel sweeps over the inputs."""


def nystroem_cost(kernel: Kernel, inputs: int, landmarks: int, features: int, dtype: Any) -> MapCost:
    """What a map of so many landmarks costs before they are drawn: kernel values of a tile, times the whitening."""
    item, sweep = np.dtype(dtype).itemsize, 1 if is_radial(kernel) else SWEEP
    return MapCost(
        features=features,
        columns=inputs,
        parameter_bytes=2 * landmarks * (inputs + features) * (8 + item) + 8 * (inputs + landmarks),
        flops=2.0 * landmarks * (sweep * inputs + features) + 10.0 * landmarks,
        cosines=landmarks,
        scratch_bytes=8 * (6 * TILE * landmarks + 2 * (TILE + landmarks) * inputs),
    )


@dataclass(frozen=True)
class NystroemMap(Fixed):
    """sigma (m,), landmarks (r, m) in the kernel's variables, what whitens them (r, d), and their row numbers (r,)."""

    kernel: Kernel
    sigma: np.ndarray
    landmarks: np.ndarray
    whitening: np.ndarray
    numbers: np.ndarray
    skew: float
    wide: bool  # whether directions are kept that only float64 can tell from rounding

    kind: ClassVar[str] = "nystroem"
    scale: ClassVar[float] = 1.0
    """Features are written as they are."""

    @property
    def n_inputs(self) -> int:
        return len(self.sigma)

    @property
    def n_columns(self) -> int:
        return len(self.sigma)

    @property
    def n_features(self) -> int:
        return int(self.whitening.shape[1])

    @property
    def column_group(self) -> np.ndarray:
        """One kernel."""
        return np.zeros(self.n_features, int)

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and named arrays."""
        arrays: Arrays = {
            "sigma": (("input",), self.sigma),
            "landmarks": (("landmark", "input"), self.landmarks),
            "whitening": (("landmark", "component"), self.whitening),
            "landmark_rows": (("landmark",), self.numbers),
        }
        own = {"kind": self.kind, "kernel": self.kernel.name, "skew": float(self.skew)}
        return {"map": own, "wide": self.wide}, arrays

    def cost(self, dtype: Any) -> MapCost:
        """What the map costs in blocks of that dtype."""
        return nystroem_cost(self.kernel, len(self.sigma), len(self.landmarks), self.n_features, dtype)

    def at(self, dtype: DTypeLike) -> NystroemBlocks:
        """The map ready to give blocks of that dtype; a wide one computes them in float64."""
        inner = np.dtype(np.float64) if self.wide else np.dtype(dtype)
        return NystroemBlocks(self, np.dtype(dtype), self.landmarks.astype(inner), self.whitening.astype(inner))


@dataclass(frozen=True)
class NystroemBlocks(FixedBlocks):
    """phi of blocks."""

    map: NystroemMap
    dtype: np.dtype
    landmarks: np.ndarray
    whitening: np.ndarray

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the map travels; the rest is made again where it arrives."""
        return NystroemMap.at, (self.map, self.dtype)

    def prepare(self, X: Any) -> Any:
        """X in the kernel's variables and the precision of the map."""
        return kernel_inputs(X, self.map.kernel, self.map.skew, self.whitening.dtype)

    def write(self, T: Any, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Features of prepared rows T into out (rows, d)."""
        for rows in tiles(T.shape[0], TILE):
            K = kernel_values(self.map.kernel, self.map.sigma, dense(T[rows]), self.landmarks)
            out[rows] = K @ self.whitening

    def transform(self, X: Any) -> np.ndarray:
        """phi (rows, d)."""
        out = np.empty((X.shape[0], self.map.n_features), self.dtype)
        self.write(self.prepare(X), out)
        return out
