"""What an estimator of infinitely many features asks of a transformer, whose features are the candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dkl.cost import MapCost
from dkl.engine.progress import Progress
from dkl.estimators.gabor import GaborFeatures
from dkl.estimators.linear_family import Given
from dkl.features.gabor import gabor_cost
from dkl.features.gabor_groups import GaborGroups
from dkl.kernels import find_kernel
from dkl.options.fields import options_of
from dkl.prepare.gabor import draw_filters, gabor_map, shape_of
from dkl.prepare.saved_map import Drawn
from dkl.prepare.targets import sum_small
from dkl.sums.input_moments import MomentProgram
from dkl.sums.row_norms import NormProgram

OF_WAVES = ("kernel", "bandwidths", "sigma", "groups", "frequencies", "form", "skew", "n_terms")
"""Parameters of frequencies, which filters do not have."""


def check_features(model: Any) -> None:
    """Refuse a transformer without candidates, and parameters of frequencies beside it."""
    features = model.features
    if not isinstance(features, GaborFeatures):
        raise ValueError(
            f"features={features!r} must be a dkl.GaborFeatures, whose filters are the candidates, or None for the "
            "frequencies of kernel"
        )
    if features.n_components is not None:
        raise ValueError(
            f"features has n_components={features.n_components!r}, but candidates are drawn in every round; leave it "
            "out, and set candidates and max_features"
        )
    defaults = {option.name: option.default for option in options_of(model)}
    for name in OF_WAVES:
        if getattr(model, name) != defaults[name]:
            raise ValueError(f"{name}={getattr(model, name)!r} is for frequencies; leave it out with features=...")


def filter_cost(features: GaborFeatures, inputs: int, groups: int, dtype: np.dtype) -> MapCost:
    """What a map of so many filters costs."""
    return gabor_cost(shape_of(features.image_shape, inputs), int(features.stride), groups, dtype)


def draw_first(
    features: GaborFeatures, inputs: int, given: Given, rng: np.random.Generator, progress: Progress, squares: bool
) -> Callable[[], Drawn]:  # fmt: skip
    """A filter that says what all share, the seed of the draws, and the squares of the inputs that gradients need."""

    def make() -> Drawn:
        tables, names = [given.X, given.weight], ["X", "sample_weight"]
        shape = shape_of(features.image_shape, inputs)
        norms = sum_small(NormProgram(), tables, names, progress)
        one = gabor_map(shape, int(features.stride), draw_filters(shape, 1, rng), norms, GaborGroups)
        own = np.empty(0)
        if squares:
            w, mean, m2 = sum_small(MomentProgram(find_kernel("gaussian"), 1.0), tables, names, progress).spread
            own = m2 + w * mean * mean
        return one, np.zeros(inputs, int), int(rng.integers(2**62)), own, None

    return make
