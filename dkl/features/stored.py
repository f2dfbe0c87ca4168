"""Feature maps as plain values and named arrays: what a model on disk and a checkpoint keep of them.

    store_map(features) -> (about, arrays)        restore_map(about, arrays, params) -> features, bit for bit

`about["map"]` names the kind of the map, its kernel and its form. Models of earlier versions do not have it: there the
kind follows from what else is stored, and the kernel from the parameters of the estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dkl.checks import check_choice, check_count, check_nonnegative, check_positive
from dkl.features.additive import from_plain
from dkl.features.additive_rows import AdditiveRows
from dkl.features.channel import Channel
from dkl.features.fourier import FORMS, FourierMap
from dkl.features.gabor import GaborMap
from dkl.features.gabor_filters import PARAMETERS
from dkl.features.gabor_groups import GaborGroups
from dkl.features.map import Arrays, FeatureMap
from dkl.features.nystroem import NystroemMap
from dkl.features.part_names import own_part, part_after
from dkl.features.projected import ProjectedMap
from dkl.features.side_by_side import SideBySide
from dkl.features.waves import WaveMap
from dkl.kernels import find_kernel

Plain = Mapping[str, Any]
Values = Mapping[str, np.ndarray]


def store_map(features: FeatureMap) -> tuple[dict[str, Any], Arrays]:
    """The plain part of a map, and its arrays with the names of their dimensions."""
    return features.stored()


def restore_map(about: Plain, arrays: Values, params: Plain | None = None) -> FeatureMap:
    """The map that `store_map` described; anything else is refused.

    params are those of the estimator that the map belongs to, which name its kernel. None: the map's own record does.
    """
    return KINDS[_kind(about, params)](about, arrays, params)


def _kind(about: Plain, params: Plain | None) -> str:
    """The kind that is named, or that follows from what is stored."""
    drawn = None if params is None or "landmarks" not in params else params["landmarks"]
    if "map" in about:
        kind = check_choice("kind", about["map"]["kind"], KINDS)
        if kind in ("fourier", "nystroem") and params is not None and (kind == "nystroem") != (drawn is not None):
            raise ValueError(f"landmarks={drawn!r} and a {kind} map do not belong together")
        return kind
    if "maps" in about:
        return "side_by_side"
    if "inputs" in about:
        return "additive"
    return "fourier" if drawn is None else "nystroem"


def _fourier(about: Plain, arrays: Values, params: Plain | None) -> FourierMap:
    said = about["map"] if params is None else params
    unit, sigma = arrays["unit"], arrays["sigma"]
    additive = from_plain(about.get("additive"))
    terms = 1 if additive is None else additive.n_terms
    if unit.ndim != 2 or (terms * len(sigma),) != unit.shape[:1]:
        raise ValueError(f"unit {unit.shape} and sigma {sigma.shape} do not belong together")
    phase = arrays.get("phase", np.empty(0))
    if len(phase) not in ((0, 1) if said["form"] == "paired" else (unit.shape[1],)):
        raise ValueError(f"{len(phase)} phases for {unit.shape[1]} frequencies")
    kernel, form = find_kernel(said["kernel"]), check_choice("form", said["form"], FORMS)
    if (additive is None) != (kernel.additive is None):
        raise ValueError(f"kernel={kernel.name!r} and an additive map of {terms} terms do not belong together")
    return FourierMap(kernel, unit, sigma, phase, float(said["skew"]), form, additive)


def _waves(about: Plain, arrays: Values, params: Plain | None) -> WaveMap:
    of = WaveMap.of(_fourier(about, arrays, None))
    if len(of.phase) != (of.n_groups if of.form == "phase" else 0):
        raise ValueError(f"{len(of.phase)} phases for {of.n_groups} waves of form={of.form!r}")
    return of


def _nystroem(about: Plain, arrays: Values, params: Plain | None) -> NystroemMap:
    said = about["map"] if params is None else params
    landmarks, whitening, sigma = arrays["landmarks"], arrays["whitening"], arrays["sigma"]
    numbers = arrays["landmark_rows"]
    count = len(landmarks)
    if landmarks.shape != (count, *sigma.shape) or whitening.ndim != 2 or len(whitening) != count:
        raise ValueError(f"landmarks {landmarks.shape} and whitening {whitening.shape} do not belong together")
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        raise ValueError(f"landmark_rows has shape {numbers.shape} for {count} landmarks")
    kernel, skew = find_kernel(said["kernel"]), float(said["skew"])
    return NystroemMap(kernel, sigma, landmarks, whitening, numbers, skew, bool(about["wide"]))


def _additive(about: Plain, arrays: Values, params: Plain | None) -> AdditiveRows:
    to, inputs = from_plain(about["additive"]), check_count("inputs", about["inputs"])
    if to is None or (params is not None and to.n_terms != params["n_terms"]):
        terms = None if params is None else params["n_terms"]
        raise ValueError(f"n_terms={terms} is not that of its map")
    return AdditiveRows(to, inputs, float(check_nonnegative("largest", about["largest"])))


def _gabor(about: Plain, arrays: Values, params: Plain | None) -> GaborMap:
    height, width = (check_count("shape", side) for side in about["shape"])
    values = [arrays[name] for name in PARAMETERS]
    if any(one.ndim != 1 or one.shape != values[0].shape or not one.size for one in values):
        shapes = {name: one.shape for name, one in zip(PARAMETERS, values, strict=True)}
        raise ValueError(f"parameters of filters do not belong together: {shapes}")
    orientation, frequency, along, across = values
    unit, largest = (check_positive(name, about[name]) for name in ("unit", "largest"))
    stride = check_count("stride", about["stride"])
    kind = GaborGroups if about["map"]["kind"] == GaborGroups.kind else GaborMap
    return kind((height, width), stride, orientation, frequency, along, across, unit, largest)


def _side_by_side(about: Plain, arrays: Values, params: Plain | None) -> SideBySide:
    if "channels" not in arrays:
        each = enumerate(about["maps"])
        return SideBySide(tuple(restore_map(one, own_part(i, arrays), params) for i, one in each))
    index, channels = arrays["channels"], []
    for i, one in enumerate(about["maps"]):
        of, inputs = restore_map(one, own_part(i, arrays), params), np.flatnonzero(index == i)
        if of.n_inputs != len(inputs):
            raise ValueError(f"channel {i} has {len(inputs)} inputs, its map has {of.n_inputs}")
        channels.append(Channel(of, inputs))
    if index.ndim != 1 or index.dtype.kind not in "iu" or set(index.tolist()) != set(range(len(channels))):
        raise ValueError(f"channels does not part the inputs into {len(channels)}")
    return SideBySide(tuple(channels))


def _channel(about: Plain, arrays: Values, params: Plain | None) -> Channel:
    of, inputs = restore_map(about["of"], part_after("of_", arrays), params), arrays["inputs"]
    if inputs.shape != (of.n_inputs,) or inputs.dtype.kind not in "iu":
        raise ValueError(f"inputs {inputs.dtype} {inputs.shape} do not belong to a map of {of.n_inputs} inputs")
    return Channel(of, inputs)


def _projected(about: Plain, arrays: Values, params: Plain | None) -> ProjectedMap:
    of, mean, axes = restore_map(about["of"], part_after("of_", arrays), params), arrays["centre"], arrays["axes"]
    if mean.shape != (of.n_features,) or axes.ndim != 2 or len(axes) != of.n_features:
        raise ValueError(f"centre {mean.shape} and axes {axes.shape} do not belong to {of.n_features} features")
    return ProjectedMap(of, mean, axes, check_positive("scale", about["map"]["scale"]))


KINDS: dict[str, Callable[[Plain, Values, Plain | None], FeatureMap]] = {
    FourierMap.kind: _fourier,
    WaveMap.kind: _waves,
    NystroemMap.kind: _nystroem,
    AdditiveRows.kind: _additive,
    GaborMap.kind: _gabor,
    GaborGroups.kind: _gabor,
    SideBySide.kind: _side_by_side,
    Channel.kind: _channel,
    ProjectedMap.kind: _projected,
}
"""How each kind of map is made again."""
