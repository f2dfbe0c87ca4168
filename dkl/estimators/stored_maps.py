"""Feature maps as plain values and named arrays, and back: several maps side by side, additive ones, or one map."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_count, check_nonnegative
from dkl.features.additive import as_plain, from_plain
from dkl.features.additive_rows import AdditiveRows
from dkl.features.side_by_side import Channel, SideBySide
from dkl.learn.maps import Arrays, described, map_from


def store_map(features: Any) -> tuple[dict[str, Any], Arrays]:
    """The plain part of a map, and its arrays with the names of their dimensions."""
    if isinstance(features, SideBySide):
        return _store_channels(features)
    if isinstance(features, AdditiveRows):
        return {"additive": as_plain(features.additive), "inputs": features.inputs, "largest": features.largest}, {}
    return described(features)


def _store_channels(features: SideBySide) -> tuple[dict[str, Any], Arrays]:
    records, arrays = [], {}
    for i, channel in enumerate(features.channels):
        record, own = store_map(channel.of)  # type: ignore[attr-defined]
        records.append(record)
        for name, (dims, values) in own.items():
            arrays[f"channel{i}_{name}"] = tuple(f"channel{i}_{dim}" for dim in dims), values
    return {"maps": records}, arrays


def restore_map(record: dict, arrays: dict[str, np.ndarray], params: dict) -> Any:
    """The map that `store_map` wrote down, of a transformer with those parameters; anything else is refused."""
    if "maps" in record:
        return _restore_channels(record, arrays, params)
    if "inputs" in record:
        return _restore_additive(record, params)
    return map_from(params, record, arrays)


def _restore_channels(record: dict, arrays: dict[str, np.ndarray], params: dict) -> SideBySide:
    """The maps of all channels; `channels` is the channel of each input."""
    index, channels = arrays["channels"], []
    for i, one in enumerate(record["maps"]):
        prefix, inputs = f"channel{i}_", np.flatnonzero(index == i)
        own = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        of = restore_map(one, own, params)
        width = len(of.sigma) if hasattr(of, "sigma") else of.inputs
        if width != len(inputs):
            raise ValueError(f"channel {i} has {len(inputs)} inputs, its map has {width}")
        channels.append(Channel(of, inputs))
    if index.ndim != 1 or index.dtype.kind not in "iu" or set(index.tolist()) != set(range(len(channels))):
        raise ValueError(f"channels {index} does not part the inputs into {len(channels)}")
    return SideBySide(tuple(channels))


def _restore_additive(record: dict, params: dict) -> AdditiveRows:
    to, inputs = from_plain(record["additive"]), check_count("inputs", record["inputs"])
    if to is None or to.n_terms != params["n_terms"]:
        raise ValueError(f"n_terms={params['n_terms']} is not that of its map")
    return AdditiveRows(to, inputs, float(check_nonnegative("largest", record["largest"])))
