"""Everything that is known before the first pass over the features: rows, targets, the map, folds and precision."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.tables import Table
from dkl.features.map import KernelMap
from dkl.prepare.folds import Split
from dkl.prepare.input_ranges import Extent
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets


@dataclass(frozen=True)
class Prepared:
    """What a method of learning starts from."""

    X: Table
    rows: Rows
    targets: Targets
    features: KernelMap
    groups: np.ndarray  # (m,), the group of each input
    seed: int  # of folds
    dtype: np.dtype
    split: Split
    input_squares: np.ndarray  # weighted sum of T_j^2, if sigma is learned
    extent: Extent | None  # of the inputs, if a pass has seen them

    def gram(self, split: Split, unseen: bool = False) -> GramProgram:
        """The pass of sums, by fold; unseen: rows for early stopping are a fold of their own."""
        aside = split.unseen if unseen else None
        folds = split.folds.count + (aside is not None)
        blocks = self.features.at(self.dtype)
        return GramProgram(blocks, self.targets, self.rows.n_rows, folds, self.seed, split.held, aside, split.taken)

    def in_units_of_y(self) -> Prepared:
        """The same for a loss whose parameters are in the units of y: scores then miss y's shift alone."""
        return replace(self, targets=self.targets.in_units_of_y())

    def with_map(self, features: KernelMap) -> Prepared:
        """The same with other features."""
        return replace(self, features=features)
