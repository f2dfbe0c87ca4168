"""One pass for principal axes: gram = Psi'Psi, sum = Psi'1 and the number of rows, exact in any order. No targets.

Features are made tile by tile and never leave this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.features.blocks import Blocks
from dkl.features.rows import Refusal
from dkl.sums.exact import add_exactly, rounder
from dkl.sums.gram import SLACK, most_rows, tile_rows
from dkl.sums.symmetric import add_rank_k, largest_tile, packed_size


@dataclass
class ScatterSums:
    """Sums of unscaled features over rows."""

    rows: np.ndarray  # (1,)
    gram: np.ndarray  # packed
    feature_sum: np.ndarray  # (d,)
    refusal: tuple[int, str] | None = None

    def merge(self, other: ScatterSums) -> None:
        """self += other, exactly."""
        self.rows += other.rows
        self.gram += other.gram
        self.feature_sum += other.feature_sum
        self.refusal = min(filter(None, (self.refusal, other.refusal)), default=None)

    def copy(self) -> ScatterSums:
        """A record that can be added to."""
        return ScatterSums(self.rows.copy(), self.gram.copy(), self.feature_sum.copy(), self.refusal)


@dataclass(frozen=True)
class ScatterProgram:
    """The pass; `total` is the number of rows of all passes whose sums are to be merged."""

    features: Blocks
    n_rows: int
    total: int
    name: str = "X"  # what refusals call the rows
    bound: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", rounder(SLACK * self.total))

    @property
    def rows_wanted(self) -> int:
        """Rows that are mapped at once."""
        return tile_rows(self.n_rows, self.features.map.n_features, self.features.dtype)

    def start(self) -> ScatterSums:
        """Zero."""
        d = self.features.map.n_features
        return ScatterSums(np.zeros(1), np.zeros(packed_size(d)), np.zeros(d))

    def workspace(self) -> tuple[np.ndarray, np.ndarray]:
        """A tile of features and one product."""
        d, dtype = self.features.map.n_features, self.features.dtype
        return np.empty((most_rows(self.rows_wanted), d), dtype), np.empty(largest_tile(d), dtype)

    def add(self, sums: ScatterSums, workspace: tuple, block: int, start: int, data: tuple) -> None:
        """sums += the rows of one block; rows that cannot be mapped are noted, the first one wins."""
        X = data[0]
        n = X.shape[0]
        try:
            T = self.features.prepare(X)
        except Refusal as refusal:
            sums.refusal = min(filter(None, (sums.refusal, refusal.at(start, self.name))))
            return
        parts = max(1, round(n / self.rows_wanted)) if n else 0
        for i in range(parts):
            rows = slice(i * n // parts, (i + 1) * n // parts)
            self._add_tile(sums, workspace, T[rows])

    def _add_tile(self, sums: ScatterSums, workspace: tuple, T: Any) -> None:
        space, buffer = workspace
        Psi = space[: T.shape[0]]
        self.features.write(T, Psi)
        add_rank_k(sums.gram, Psi, self.bound, buffer)
        add_exactly(sums.feature_sum, np.ones(len(Psi), Psi.dtype) @ Psi, self.bound)
        sums.rows += len(Psi)
