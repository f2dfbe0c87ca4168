"""Transformers that FeaturePCA takes: the width of their features, and the map of a fitted one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from dkl.checks import check_count
from dkl.cost import MapCost
from dkl.engine.apply import take_inputs
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.chi2 import WHO, Chi2Features
from dkl.estimators.fourier import FourierFeatures, draw_generator
from dkl.estimators.gabor import GaborFeatures
from dkl.estimators.nystroem import NystroemFeatures
from dkl.features.additive_rows import AdditiveRows, additive_cost
from dkl.features.channel import Channel
from dkl.features.map import FeatureMap
from dkl.features.side_by_side import SideBySide
from dkl.learn.plan import fourier_map_cost, nystroem_map_cost
from dkl.prepare.gabor import filter_count
from dkl.prepare.targets import sum_small
from dkl.sums.histogram import HistogramProgram

MAPS = (FourierFeatures, NystroemFeatures, GaborFeatures, Chi2Features)
NAMES = ("X", "X_unlabelled")


def check_transformer(features: Any) -> None:
    """Refuse a transformer without a feature map."""
    if not isinstance(features, MAPS):
        names = " or ".join(f"dkl.{cls.__name__}" for cls in MAPS)
        raise ValueError(f"features={features!r} must be a {names}, e.g. features=dkl.FourierFeatures()")


def width_of(features: Any, inputs: int) -> int:
    """Number of features for that many inputs."""
    if isinstance(features, Chi2Features):
        return check_count("n_terms", features.n_terms) * inputs
    if isinstance(features, GaborFeatures):
        return filter_count(features.n_components)
    return check_count("n_components", features.n_components)


def cost_of(features: Any, inputs: int, dtype: np.dtype) -> MapCost:
    """What the memory plan must know of the map."""
    if isinstance(features, Chi2Features):
        return additive_cost(inputs, features.n_terms, dtype)
    if isinstance(features, GaborFeatures):
        return features.cost(inputs, dtype)
    cost = nystroem_map_cost if isinstance(features, NystroemFeatures) else fourier_map_cost
    return cost(features.get_params(deep=False), inputs, dtype)


def map_of(fitted: Any, tables: list[Table], progress: Progress) -> FeatureMap:
    """The map of a transformer that was fitted to the first table, for sums over all of them."""
    if isinstance(fitted, GaborFeatures):
        return fitted.map_for(tables, NAMES, progress)
    if not isinstance(fitted, Chi2Features):
        return fitted.features_
    seen = [] if fitted._largest is None else [fitted._largest]
    for name, table in list(zip(NAMES, tables, strict=False))[len(seen) :]:
        seen.append(sum_small(HistogramProgram(WHO, name), [table], [name], progress).largest)
    return AdditiveRows(fitted.additive_, fitted.n_features_in_, max(seen))


def channels_of(index: np.ndarray) -> list[np.ndarray]:
    """The inputs of each channel."""
    return [np.flatnonzero(index == i) for i in range(int(index.max()) + 1)]


def draw_channels(features: Any, tables: list[Table], index: np.ndarray, progress: Progress) -> SideBySide:
    """One map per channel of inputs, drawn in turn from one generator."""
    rng = draw_generator(features.random_state) if hasattr(features, "random_state") else None
    channels = []
    for inputs in channels_of(index):
        own = [take_inputs(table, inputs) for table in tables]
        fresh = clone(features) if rng is None else clone(features).set_params(random_state=rng)
        channels.append(Channel(map_of(fresh.fit(own[0].array), own, progress), inputs))
    return SideBySide(tuple(channels))


def draw_maps(
    features: Any, X: Table, weight: Table | None, inputs: np.ndarray, rng: np.random.Generator, progress: Progress
) -> Channel:  # fmt: skip
    """The map of one transformer on one channel; a transformer that has a seed keeps it."""
    own, fresh = take_inputs(X, inputs), clone(features).set_params(verbose=0)
    if getattr(features, "random_state", 0) is None:
        fresh.set_params(random_state=rng)
    weighed = {} if weight is None or isinstance(features, Chi2Features) else {"sample_weight": weight.array}
    return Channel(map_of(fresh.fit(own.array, **weighed), [own], progress), inputs)
