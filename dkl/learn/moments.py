"""From the sums of a pass to the moments that solvers take: folds added up, features scaled, classes as -1 and +1."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dkl.solvers.ridge import Moments
from dkl.sums.gram import GramSums
from dkl.sums.symmetric import unpack
from dkl.sums.targets import Targets


def moments_of(sums: GramSums, folds: Iterable[int], scale: float, targets: Targets) -> Moments:
    """Scaled sums over some folds. Classes become targets -1 and +1, one output for two classes."""
    folds = list(folds)
    packed = sums.gram[folds[0]].copy()
    for k in folds[1:]:
        packed += sums.gram[k]
    gram = unpack(packed, sums.feature_sum.shape[1])
    gram *= scale * scale
    return cross_of(sums, folds, scale, targets)._replace(gram=gram)


def cross_of(sums: GramSums, folds: Iterable[int], scale: float, targets: Targets) -> Moments:
    """The same without a gram: an empty one stands in its place."""
    folds = list(folds)
    weight = float(sums.weight[folds].sum())
    feature_sum = sums.feature_sum[folds].sum(0) * scale
    cross = sums.cross[folds].sum(0).T * scale
    target_sum, target_square = sums.target_sum[folds].sum(0), sums.target_square[folds].sum(0)
    if targets.is_class:
        cross = 2 * cross - feature_sum[:, None]
        target_sum = 2 * target_sum - weight
        target_square = np.full(len(target_sum), weight)
        if len(target_sum) == 2:
            cross, target_sum, target_square = cross[:, 1:], target_sum[1:], target_square[1:]
    return Moments(weight, np.empty((0, 0)), cross, feature_sum, target_sum, target_square)
