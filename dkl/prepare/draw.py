"""The Fourier map of an estimator's parameters: its scale, then its frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.prepare.input_ranges import Extent, extent_of
from dkl.prepare.scales import check_kernel, find_sigma, group_index, spread_sigma
from dkl.sums.input_moments import InputMoments, MomentProgram
from dkl.sums.tree import TreeProgram


def check_map(params: dict, m: int, coords: Any) -> None:
    """Refuse a kernel, groups and sigma that do not fit each other or the inputs, before any row is read."""
    check_kernel(params)
    index = group_index(params["groups"], m, coords)
    if not isinstance(params["sigma"], str):
        spread_sigma(params["sigma"], index)


def build_map(
    params: dict, m: int, coords: Any, rng: np.random.Generator, moments: Any
) -> tuple[FourierMap, np.ndarray]:  # fmt: skip
    """The Fourier features of an estimator's parameters, and their group index."""
    check_map(params, m, coords)
    kernel, c, additive, sigma, index = find_sigma(params, m, coords, moments)
    terms = 1 if additive is None else additive.n_terms
    d, form = int(params["n_components"]), params["form"]
    frequencies = (d + 1) // 2 if form == "paired" else d
    unit = draw_unit(kernel, terms * m, frequencies, params["frequencies"], rng)
    phase = rng.random(d if form == "phase" else d % 2)
    return FourierMap(kernel, unit, sigma, phase, c, form, additive), index


def draw(
    params: dict, m: int, coords: Any, rng: np.random.Generator, moments: Any, learning: bool
) -> tuple[FourierMap, np.ndarray, int, np.ndarray, Extent | None]:
    """Map, groups, the seed of the folds, for learning the weighted sum of T_j^2, and the extent of X if it was seen.

    One pass over X at most, and one before it for the nodes of an exponentiated kernel.
    """
    found: dict[type, Any] = {}

    def once(program: TreeProgram) -> Any:
        if type(program) not in found:
            found[type(program)] = moments(program)
        return found[type(program)]

    features, index = build_map(params, m, coords, rng, once)
    seed = int(rng.integers(2**62))
    if not learning:
        return features, index, seed, np.empty(0), extent_of(found.get(MomentProgram), m)
    seen: InputMoments = once(MomentProgram(features.kernel, features.skew, features.additive))
    w, mean, m2 = seen.spread
    return features, index, seed, m2 + w * mean * mean, extent_of(seen, m)
