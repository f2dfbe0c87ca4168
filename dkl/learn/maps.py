"""Feature maps as plain values and named arrays: what a model on disk and a checkpoint keep of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice
from dkl.features.additive import as_plain, from_plain
from dkl.features.fourier import FORMS, FourierMap
from dkl.features.nystroem import NystroemMap
from dkl.kernels import find_kernel

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]


def described(features: FourierMap | NystroemMap) -> tuple[dict[str, Any], Arrays]:
    """The plain part of a map, and its arrays with the names of their dimensions."""
    arrays: Arrays = {"sigma": (("input",), features.sigma)}
    if isinstance(features, NystroemMap):
        arrays["landmarks"] = ("landmark", "input"), features.landmarks
        arrays["whitening"] = ("landmark", "component"), features.whitening
        arrays["landmark_rows"] = ("landmark",), features.numbers
        return {"wide": features.wide}, arrays
    arrays["unit"] = ("input" if features.n_terms == 1 else "column", "frequency"), features.unit
    if features.phase.size:
        arrays["phase"] = ("phase",), features.phase
    return {"additive": as_plain(features.additive)}, arrays


def map_from(params: dict, record: dict, arrays: dict[str, np.ndarray]) -> FourierMap | NystroemMap:
    """The map that was described, of an estimator with those parameters; anything else is refused."""
    if params.get("landmarks") is not None:
        return _nystroem(params, record, arrays)
    unit, sigma = arrays["unit"], arrays["sigma"]
    additive = from_plain(record.get("additive"))
    terms = 1 if additive is None else additive.n_terms
    if unit.ndim != 2 or (terms * len(sigma),) != unit.shape[:1]:
        raise ValueError(f"unit {unit.shape} and sigma {sigma.shape} do not belong together")
    phase = arrays.get("phase", np.empty(0))
    if len(phase) not in ((0, 1) if params["form"] == "paired" else (unit.shape[1],)):
        raise ValueError(f"{len(phase)} phases for {unit.shape[1]} frequencies")
    kernel, form = find_kernel(params["kernel"]), check_choice("form", params["form"], FORMS)
    if (additive is None) != (kernel.additive is None):
        raise ValueError(f"kernel={kernel.name!r} and an additive map of {terms} terms do not belong together")
    return FourierMap(kernel, unit, sigma, phase, float(params["skew"]), form, additive)


def _nystroem(params: dict, record: dict, arrays: dict[str, np.ndarray]) -> NystroemMap:
    landmarks, whitening, sigma = arrays["landmarks"], arrays["whitening"], arrays["sigma"]
    numbers = arrays["landmark_rows"]
    count = len(landmarks)
    if landmarks.shape != (count, *sigma.shape) or whitening.ndim != 2 or len(whitening) != count:
        raise ValueError(f"landmarks {landmarks.shape} and whitening {whitening.shape} do not belong together")
    if numbers.shape != (count,) or numbers.dtype.kind not in "iu":
        raise ValueError(f"landmark_rows has shape {numbers.shape} for {count} landmarks")
    kernel, skew = find_kernel(params["kernel"]), float(params["skew"])
    return NystroemMap(kernel, sigma, landmarks, whitening, numbers, skew, bool(record["wide"]))
