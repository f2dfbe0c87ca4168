"""Groups of features that do not vary tell nothing of a row, so they are refused by name.

A group that varies over the first rows varies over all, so the first block settles most fits; otherwise one pass of
means and squares tells it, before anything dear is begun.
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


def look_for_constant_groups(
    features: SideBySide, X: Table, weight: Table | None, dtype: np.dtype, names: Sequence[str], progress: Progress
) -> None:
    """Refuse a group whose features are the same for every row."""
    program, groups = FeatureSpreadProgram(features.at(dtype)), features.column_group
    for count in (1, None):
        told = [X, weight], ["X", "sample_weight"], progress, "looking at features"
        found: Spread = sum_small(program, *told, count)
        varies = np.bincount(groups, found.m2)
        squares = varies + np.bincount(groups, found.weight * found.mean**2)
        constant = is_constant(varies, squares, dtype == np.float32)
        if not constant.any():
            return
    refuse_constant(constant, names, np.bincount(groups))


def is_constant(varies: np.ndarray, squares: np.ndarray, narrow: bool) -> np.ndarray:
    """Groups whose squares about the mean are but rounding beside their squares."""
    least: np.ndarray = (NARROW if narrow else CONSTANT) * np.maximum(squares, np.finfo(float).tiny)
    return np.asarray(varies <= least)


def refuse_constant(constant: np.ndarray, names: Sequence[str], sizes: np.ndarray) -> None:
    """Refuse the first group that is constant."""
    for g in np.flatnonzero(constant)[:1].tolist():
        name = names[g] if g < len(names) else str(g)
        raise ValueError(
            f"group {name!r} ({int(sizes[g])} features) has no variance, so it tells nothing of a row: its inputs are "
            "constant, or its sigma is far too small; leave it out"
        )
