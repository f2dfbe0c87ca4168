"""Gabor filters as pictures, side by side: the largest weight first, if they have weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.features.gabor import GaborMap
from dkl.plot.style import axes_of, drawn

MOST = 100
"""Filters that are drawn."""


@drawn
def plot_filters(model: Any, ax: Any = None) -> Any:
    """The filters of GaborFeatures, or of an InfiniteFeature model that has chosen some, around the middle of a patch.

    At most 100 of them, row by row, each in its own grey scale.
    """
    check_is_fitted(model, "features_")
    features = model.features_
    if not isinstance(features, GaborMap):
        raise ValueError(
            f"{type(model).__name__} has a {features.kind} map, and no filters to draw; use GaborFeatures, or "
            "InfiniteFeatureClassifier(features=GaborFeatures())"
        )
    order = np.arange(features.n_features)
    if hasattr(model, "coef_"):
        size = np.linalg.norm(np.atleast_2d(model.coef_), axis=0)
        order = np.argsort(-size, kind="stable")[: max(1, np.count_nonzero(size))]
    ax = axes_of(ax, (4.8, 4.8))
    ax.imshow(mosaic(features, order[:MOST]), cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_axis_off()
    ax.set_title(f"{min(len(order), MOST)} of {features.n_features} filters")
    return ax


def mosaic(features: GaborMap, order: np.ndarray) -> np.ndarray:
    """Pictures of some filters in the rows of a square, a pixel apart; each has 1 as its largest size."""
    (height, width), side = features.shape, int(np.ceil(np.sqrt(len(order))))
    rows = -(-len(order) // side)
    whole = np.ones((rows * (height + 1) - 1, side * (width + 1) - 1))
    y, z = np.mgrid[:height, :width] - np.array([(height - 1) / 2, (width - 1) / 2])[:, None, None]
    for place, j in enumerate(order.tolist()):
        top, left = (height + 1) * (place // side), (width + 1) * (place % side)
        cos, sin = np.cos(features.orientation[j]), np.sin(features.orientation[j])
        z0, y0 = z * cos + y * sin, y * cos - z * sin
        bell = np.exp(-((z0 / features.along[j]) ** 2 + (y0 / features.across[j]) ** 2) / 2)
        wave = bell * np.cos(2 * np.pi * features.frequency[j] * z0)
        whole[top : top + height, left : left + width] = wave / np.abs(wave).max()
    return whole
