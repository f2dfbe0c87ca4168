"""Groups of features that do not vary: no weight of such a group could matter, so it is refused by name.

Where the sums of the weights have all squares (squared errors) they tell it, and so do those of principal axes.
Otherwise one pass of means and squares tells it, before the first step is paid for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.features.side_by_side import SideBySide
from dkl.prepare.targets import sum_small
from dkl.sums.feature_spread import FeatureSpreadProgram
from dkl.sums.spread import Spread

CONSTANT, NARROW = 1e-12, 1e-6
"""Variance over mean square of a group's features, below which they are constant; of float32."""


def refuse_constant_groups(
    varies: np.ndarray, square: np.ndarray, sizes: np.ndarray, names: Sequence[str], narrow: bool
) -> None:  # fmt: skip
    """Refuse the first group whose squares about the mean are but rounding beside its squares."""
    least = (NARROW if narrow else CONSTANT) * np.maximum(square, np.finfo(float).tiny)
    for g in np.flatnonzero(varies <= least)[:1].tolist():
        name = names[g] if g < len(names) else str(g)
        raise ValueError(
            f"group {name!r} ({int(sizes[g])} features) has no variance, so no weight of it matters: its inputs "
            "are constant, or its sigma is far too small; leave it out"
        )


def look_for_constant_groups(
    features: SideBySide, X: Table, weight: Table | None, dtype: np.dtype, fit_intercept: bool, names: Sequence[str],
    progress: Progress,
) -> None:  # fmt: skip
    """One pass over the rows: refuse a group whose features do not vary over them."""
    found: Spread = sum_small(
        FeatureSpreadProgram(features.at(dtype)), [X, weight], ["X", "sample_weight"], progress, "looking at features"
    )
    groups = features.column_group
    squares = np.bincount(groups, found.m2 + found.weight * found.mean**2)
    varies = np.bincount(groups, found.m2) if fit_intercept else squares
    refuse_constant_groups(varies, squares, np.bincount(groups), names, dtype == np.float32)
