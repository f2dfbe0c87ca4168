"""Channels: inputs that belong together, each under a name. No input is in two of them; some may be in none.

"channel"                              the name of a coordinate of the inputs; its values are the names
[0, 0, 1] or ["a", "a", "b"]           a label for each input
[slice(0, 3), slice(3, 6)], "0:3"      slices, or lists of columns; their names are 0:3 and 0, 1 ...
{"a": slice(0, 3), "b": [3, 5]}        the same with names
"each", None                           a channel for each input; one of all inputs
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dkl.prepare.scales import group_index

ALL = "all"
"""The name of the only channel."""
SLICE = re.compile(r"(-?\d*):(-?\d*)")


class NamedChannel(NamedTuple):
    """Some inputs, by their numbers."""

    name: str
    inputs: np.ndarray


def named_channels(channels: Any, m: int, coords: Mapping[str, Any], labels: Any = None) -> tuple[NamedChannel, ...]:
    """The channels of m inputs, whose names are `labels` if they have any."""
    if channels is None:
        return (NamedChannel(ALL, np.arange(m)),)
    chosen = _chosen(channels)
    if chosen is None:
        return _labelled(channels, m, coords, labels)
    found = tuple(NamedChannel(name, _inputs(one, name, m)) for name, one in chosen)
    if not found:
        raise ValueError(f"channels={channels!r} names no channel; give slices, e.g. {{'a': slice(0, {m})}}, or None")
    refuse_duplicates("channels", [name for name, _ in found])
    _refuse_shared(found, m)
    return found


def refuse_duplicates(what: str, names: list[str]) -> None:
    """Refuse a name that stands twice: groups go by their names."""
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"{what} has {name!r} twice (numbers {names.index(name)} and {i}); leave one out")


def _chosen(channels: Any) -> list[tuple[str, Any]] | None:
    """(name, slice or columns) of each channel; None of a coordinate or labels."""
    if isinstance(channels, Mapping):
        return [(str(name), _as_slice(one)) for name, one in channels.items()]
    if isinstance(channels, str) or not isinstance(channels, Iterable):
        return None
    ones = [_as_slice(one) for one in channels]
    if ones and not any(isinstance(one, slice) or np.ndim(one) == 1 for one in ones):
        return None
    return [(_name(one, i), one) for i, one in enumerate(ones)]


def _as_slice(one: Any) -> Any:
    """slice(0, 3) of the text 0:3; everything else as it is."""
    found = SLICE.fullmatch(one) if isinstance(one, str) else None
    return one if found is None else slice(*(int(end) if end else None for end in found.groups()))


def _name(one: Any, number: int) -> str:
    """0:3 of a slice; of columns the number of the channel."""
    if not isinstance(one, slice):
        return str(number)
    ends = "" if one.start is None else one.start, "" if one.stop is None else one.stop
    return "{}:{}".format(*ends) + (f":{one.step}" if one.step is not None else "")


def _inputs(one: Any, name: str, m: int) -> np.ndarray:
    """The inputs of a channel in their order; none, and one that there is not, are refused."""
    try:
        inputs = np.arange(m)[one if isinstance(one, slice) else np.asarray(one)]
    except (IndexError, TypeError, ValueError):
        inputs = np.empty(0, int)
    if not inputs.size or inputs.ndim != 1:
        raise ValueError(f"channels has {name!r}: {one!r}, which is empty or names no input; X has inputs 0 to {m - 1}")
    if len(np.unique(inputs)) < len(inputs):
        raise ValueError(f"channels has {name!r}: {one!r}, which names an input twice; name each once")
    return np.asarray(inputs)


def _refuse_shared(channels: tuple[NamedChannel, ...], m: int) -> None:
    """Refuse an input of two channels: which of them it matters in could not be told."""
    owner = np.full(m, -1)
    for i, (name, inputs) in enumerate(channels):
        shared = inputs[owner[inputs] >= 0]
        if len(shared):
            other = channels[int(owner[shared[0]])].name
            raise ValueError(
                f"channels {other!r} and {name!r} share {len(shared)} input{'s' * (len(shared) > 1)}, e.g. "
                f"{int(shared[0])}; let them not overlap, or give X as a list of arrays, which may have columns in "
                "common"
            )
        owner[inputs] = i


def _labelled(channels: Any, m: int, coords: Mapping[str, Any], labels: Any) -> tuple[NamedChannel, ...]:
    """One channel for each value of a coordinate, each label, or each input."""
    if isinstance(channels, str) and channels == "each":
        names = [str(i) for i in range(m)] if labels is None else [str(label) for label in labels]
        refuse_duplicates("the inputs of channels='each'", names)
        return tuple(NamedChannel(name, np.array([i])) for i, name in enumerate(names))
    index = group_index(channels, m, coords, "channels")
    values = np.asarray(coords[channels] if isinstance(channels, str) else channels)
    found = []
    for i in range(int(index.max()) + 1):
        inputs = np.flatnonzero(index == i)
        found.append(NamedChannel(str(values[inputs[0]]), inputs))
    return tuple(found)
