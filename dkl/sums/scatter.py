"""One pass for principal axes: gram = Psi'Psi, sum = Psi'1 and the number of rows, exact in any order. No targets.

Several maps have a gram each, one after the other; what they have in common is not summed. Features are made tile by
tile and never leave this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.features.map import Blocks
from dkl.features.rows import Refusal
from dkl.sums.gram import SLACK, Workspace, gram_flops
from dkl.sums.order_free import add_exactly, rounder
from dkl.sums.symmetric import add_rank_k, largest_tile, packed_size
from dkl.sums.tiles import most_rows, tile_rows


def scatter_cost(sizes: Sizes, maps: Sequence[MapCost]) -> Cost:
    """What the pass costs: a tile of the widest map, and half a gram of each."""
    widths, item = [of.features for of in maps], sizes.item
    tile = tile_rows(sizes.rows, max(widths), sizes.dtype)
    rows = most_rows(tile)
    return Cost(
        "scatter",
        rows_wanted=tile,
        features=sum(widths),
        maps=len(maps),
        columns=max(of.columns for of in maps),
        thread_bytes=(rows * max(widths) + max(map(largest_tile, widths))) * item
        + max(of.scratch_bytes for of in maps),
        sparse_bytes=rows * max(of.sparse_row_bytes for of in maps),
        sums_bytes=8 * (1 + sum(packed_size(d) + d for d in widths)),
        parameter_bytes=sum(of.parameter_bytes for of in maps),
        flops=sum(of.flops + gram_flops(of.features) for of in maps),
        cosines=sum(of.cosines for of in maps),
    )


@dataclass
class ScatterSums:
    """Sums of unscaled features over rows."""

    rows: np.ndarray  # (1,)
    gram: np.ndarray  # packed, map by map
    feature_sum: np.ndarray  # (d of all maps,)
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

    maps: tuple[Blocks, ...]
    n_rows: int
    total: int
    name: str = "X"  # what refusals call the rows
    task = "scatter"
    bound: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", rounder(SLACK * self.total))

    def cost(self) -> Cost:
        """What the pass costs."""
        maps = [blocks.map.cost(blocks.dtype) for blocks in self.maps]
        return scatter_cost(Sizes(self.n_rows, sum(of.columns for of in maps), self.maps[0].dtype), maps)

    @property
    def widest(self) -> int:
        """Features that exist at the same time."""
        return max(blocks.map.n_features for blocks in self.maps)

    @property
    def rows_wanted(self) -> int:
        """Rows that are mapped at once."""
        return tile_rows(self.n_rows, self.widest, self.maps[0].dtype)

    def start(self) -> ScatterSums:
        """Zero."""
        widths = [blocks.map.n_features for blocks in self.maps]
        return ScatterSums(np.zeros(1), np.zeros(sum(map(packed_size, widths))), np.zeros(sum(widths)))

    def workspace(self) -> Workspace:
        """A tile of features and one product."""
        dtype, sizes = self.maps[0].dtype, [largest_tile(blocks.map.n_features) for blocks in self.maps]
        return np.empty(most_rows(self.rows_wanted) * self.widest, dtype), np.empty(max(sizes), dtype)

    def add(self, sums: ScatterSums, workspace: Workspace, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block; rows that cannot be mapped are noted, the first one wins.

        If there are weights, a row without weight is no row.
        """
        X, gram, place = data[0], 0, 0
        kept = slice(None) if len(data) == 1 or data[1] is None else np.flatnonzero(data[1])
        for blocks in self.maps:
            d = blocks.map.n_features
            size = packed_size(d)
            own = sums.gram[gram : gram + size], sums.feature_sum[place : place + d]
            gram, place = gram + size, place + d
            try:
                T = blocks.prepare(X)
            except Refusal as refusal:
                sums.refusal = min(filter(None, (sums.refusal, refusal.at(start, self.name))))
                continue
            self._add_map(own, workspace, blocks, T[kept])
        sums.rows += X.shape[0] if isinstance(kept, slice) else len(kept)

    def _add_map(self, sums: tuple[np.ndarray, np.ndarray], workspace: Workspace, blocks: Blocks, T: Any) -> None:
        n, d, (space, buffer) = T.shape[0], blocks.map.n_features, workspace
        parts = max(1, round(n / self.rows_wanted)) if n else 0
        for i in range(parts):
            rows = T[i * n // parts : (i + 1) * n // parts]
            Psi = space[: rows.shape[0] * d].reshape(-1, d)
            blocks.write(rows, Psi)
            add_rank_k(sums[0], Psi, self.bound, buffer)
            add_exactly(sums[1], np.ones(len(Psi), Psi.dtype) @ Psi, self.bound)
