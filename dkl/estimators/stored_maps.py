"""Feature maps as they lie on disk: small things in a record of plain values, frequencies as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice, check_count, check_nonnegative
from dkl.estimators.chi2 import Chi2Features
from dkl.features.additive import as_plain, from_plain
from dkl.features.additive_rows import AdditiveRows
from dkl.features.channels import Channel, SideBySide
from dkl.features.fourier import FORMS, FourierMap
from dkl.kernels import find_kernel

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]


def store_map(features: Any, arrays: Arrays) -> dict[str, Any]:
    """The plain part of a map; its arrays are added to the others."""
    if isinstance(features, SideBySide):
        return {"maps": [_store_channel(one, f"channel{i}_", arrays) for i, one in enumerate(features.channels)]}
    if isinstance(features, AdditiveRows):
        return {"additive": as_plain(features.additive), "inputs": features.inputs, "largest": features.largest}
    arrays["unit"] = ("input" if features.n_terms == 1 else "column", "frequency"), features.unit
    arrays["sigma"] = ("input",), features.sigma
    if features.phase.size:
        arrays["phase"] = ("phase",), features.phase
    return {"additive": as_plain(features.additive)}


def _store_channel(channel: Any, prefix: str, arrays: Arrays) -> dict[str, Any]:
    own: Arrays = {}
    record = store_map(channel.of, own)
    for name, (dims, values) in own.items():
        arrays[prefix + name] = tuple(prefix + dim for dim in dims), values
    return record


def restore_channels(
    kind: type, params: dict, record: dict, arrays: dict[str, np.ndarray], index: np.ndarray
) -> SideBySide:
    """The maps of all channels; index is the channel of each input."""
    channels = []
    for i, one in enumerate(record["maps"]):
        prefix, inputs = f"channel{i}_", np.flatnonzero(index == i)
        own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        of = restore_map(kind, params, one, own)
        if len(of.sigma if isinstance(of, FourierMap) else range(of.inputs)) != len(inputs):
            raise ValueError(f"channel {i} has {len(inputs)} inputs, its map has others")
        channels.append(Channel(of, inputs))
    if index.ndim != 1 or index.dtype.kind not in "iu" or set(index.tolist()) != set(range(len(channels))):
        raise ValueError(f"channels does not part the inputs into {len(channels)}")
    return SideBySide(tuple(channels))


def restore_map(kind: type, params: dict, record: dict, arrays: dict[str, np.ndarray]) -> FourierMap | AdditiveRows:
    """The map that `store_map` wrote down, of an estimator of that kind; anything else is refused."""
    if kind is Chi2Features:
        return _restore_additive(params, record)
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


def _restore_additive(params: dict, record: dict) -> AdditiveRows:
    to, inputs = from_plain(record["additive"]), check_count("inputs", record["inputs"])
    if to is None or to.n_terms != params["n_terms"]:
        raise ValueError(f"n_terms={params['n_terms']} is not that of its map")
    return AdditiveRows(to, inputs, float(check_nonnegative("largest", record["largest"])))
