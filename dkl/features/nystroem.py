"""Nystroem features of a block of rows.

    phi(x) = k(x, L) V,   V = U diag(D)^(-1/2) of K_LL = U diag(D) U'

phi(x)'phi(y) is the kernel itself where x or y is one of the landmarks L, and |phi(x)| <= 1 everywhere. A map is a
frozen record; `at(dtype)` gives the form in which blocks are computed, with the methods of features/blocks.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.features.inputs import kernel_inputs
from dkl.kernels import Kernel
from dkl.kernels.values import TILE, kernel_values, tiles


@dataclass(frozen=True)
class NystroemMap:
    """sigma (m,), landmarks (r, m) in the kernel's variables, what whitens them (r, d), and their row numbers (r,)."""

    kernel: Kernel
    sigma: np.ndarray
    landmarks: np.ndarray
    whitening: np.ndarray
    numbers: np.ndarray
    skew: float

    scale = 1.0
    """Features are written as they are."""

    @property
    def n_features(self) -> int:
        return self.whitening.shape[1]

    def at(self, dtype: Any) -> NystroemBlocks:
        """The map ready to be applied to blocks of that dtype."""
        return NystroemBlocks(self, self.landmarks.astype(dtype), self.whitening.astype(dtype))


@dataclass(frozen=True)
class NystroemBlocks:
    """phi of blocks."""

    map: NystroemMap
    landmarks: np.ndarray
    whitening: np.ndarray

    def __reduce__(self) -> tuple:
        """Only the map travels; the rest is made again where it arrives."""
        return NystroemMap.at, (self.map, self.dtype)

    @property
    def dtype(self) -> np.dtype:
        return self.whitening.dtype

    def prepare(self, X: Any) -> Any:
        """X in the kernel's variables and the compute dtype."""
        return kernel_inputs(X, self.map.kernel, self.map.skew, self.dtype)

    def write(self, T: Any, out: np.ndarray) -> None:
        """Features of prepared rows T into out (rows, d)."""
        for rows in tiles(T.shape[0], TILE):
            K = kernel_values(self.map.kernel, self.map.sigma, dense(T[rows]), self.landmarks)
            np.matmul(K, self.whitening, out=out[rows])

    def transform(self, X: Any) -> np.ndarray:
        """phi (rows, d)."""
        out = np.empty((X.shape[0], self.map.n_features), self.dtype)
        self.write(self.prepare(X), out)
        return out


def dense(T: Any) -> np.ndarray:
    """A few rows as a dense array."""
    return T.toarray() if hasattr(T, "toarray") else T
