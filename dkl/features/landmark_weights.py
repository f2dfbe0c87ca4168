"""How much a row is worth as the next landmark: its chance to be drawn is proportional to this.

    Far        1 - max_l k(x, l) = min_l |phi(x) - phi(l)|^2 / 2             as k-means++ draws its centres
    Leverage   phi(x)'(G + lam I)^-1 phi(x) + (1 - |phi(x)|^2) / lam         ridge leverage, by a pilot's features

The last term is what the pilot's features miss of the row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.features.nystroem import NystroemBlocks
from dkl.features.rows import dense
from dkl.kernels import Kernel
from dkl.kernels.values import kernel_values, tiles

LANDMARKS = ("uniform", "kmeans++", "leverage")
"""Draws by name: all rows alike, Far, Leverage."""


@dataclass(frozen=True)
class Far:
    """Half the squared distance from the nearest of some rows."""

    kernel: Kernel
    sigma: np.ndarray
    centres: np.ndarray  # (r, m) in the kernel's variables

    @property
    def compared(self) -> int:
        """Rows that others are compared with."""
        return len(self.centres)

    def __call__(self, T: Any) -> np.ndarray:
        """Of prepared rows (rows,)."""
        out, centres = np.empty(T.shape[0]), self.centres.astype(T.dtype)
        for rows in tiles(T.shape[0]):
            out[rows] = 1 - kernel_values(self.kernel, self.sigma, dense(T[rows]), centres).max(axis=1)
        return np.maximum(out, 0.0)


@dataclass(frozen=True)
class Leverage:
    """Ridge leverage by the features of a pilot."""

    features: NystroemBlocks
    root: np.ndarray  # (d, d), root root' = (G + lam I)^-1
    lam: float

    @property
    def compared(self) -> int:
        """Rows that others are compared with."""
        return len(self.features.landmarks)

    def __call__(self, T: Any) -> np.ndarray:
        """Of prepared rows (rows,)."""
        out, root = np.empty(T.shape[0]), self.root.astype(self.features.dtype)
        for rows in tiles(T.shape[0]):
            Phi = np.empty((rows.stop - rows.start, len(root)), self.features.dtype)
            self.features.write(T[rows], Phi)
            missed = np.maximum(1 - np.square(Phi, dtype=np.float64).sum(axis=1), 0.0)
            out[rows] = np.square(Phi @ root, dtype=np.float64).sum(axis=1) + missed / self.lam
        return out
