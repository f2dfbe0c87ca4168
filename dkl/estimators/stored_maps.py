"""Feature maps as they lie on disk: small things in a record of plain values, frequencies as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_count, check_nonnegative
from dkl.estimators.chi2 import Chi2Features
from dkl.features.additive import as_plain, from_plain
from dkl.features.additive_rows import AdditiveRows
from dkl.features.side_by_side import Channel, SideBySide
from dkl.learn.maps import Arrays, described, map_from


def store_map(features: Any, arrays: Arrays) -> dict[str, Any]:
    """The plain part of a map; its arrays are added to the others."""
    if isinstance(features, SideBySide):
        return {"maps": [_store_channel(one, f"channel{i}_", arrays) for i, one in enumerate(features.channels)]}
    if isinstance(features, AdditiveRows):
        return {"additive": as_plain(features.additive), "inputs": features.inputs, "largest": features.largest}
    about, own = described(features)
    arrays |= own
    return about


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
        if (len(of.sigma) if hasattr(of, "sigma") else of.inputs) != len(inputs):
            raise ValueError(f"channel {i} has {len(inputs)} inputs, its map has others")
        channels.append(Channel(of, inputs))
    if index.ndim != 1 or index.dtype.kind not in "iu" or set(index.tolist()) != set(range(len(channels))):
        raise ValueError(f"channels does not part the inputs into {len(channels)}")
    return SideBySide(tuple(channels))


def restore_map(kind: type, params: dict, record: dict, arrays: dict[str, np.ndarray]) -> Any:
    """The map that `store_map` wrote down, of an estimator of that kind; anything else is refused."""
    return _restore_additive(params, record) if kind is Chi2Features else map_from(params, record, arrays)


def _restore_additive(params: dict, record: dict) -> AdditiveRows:
    to, inputs = from_plain(record["additive"]), check_count("inputs", record["inputs"])
    if to is None or to.n_terms != params["n_terms"]:
        raise ValueError(f"n_terms={params['n_terms']} is not that of its map")
    return AdditiveRows(to, inputs, float(check_nonnegative("largest", record["largest"])))
