"""Names within a map that is made of maps: channel0_sigma, channel1_sigma, of_unit ..."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dkl.features.map import Arrays


def prefix(i: int) -> str:
    """What the names of a channel's parameters and arrays begin with."""
    return f"channel{i}_"


def own_part(i: int, named: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What belongs to one channel, by its own names."""
    return part_after(prefix(i), named)


def part_after(start: str, named: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What begins so, by the rest of its name."""
    return {name.removeprefix(start): values for name, values in named.items() if name.startswith(start)}


def own_names(i: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of one channel's parameters."""
    return tuple(name.removeprefix(prefix(i)) for name in names if name.startswith(prefix(i)))


def prefixed(start: str, arrays: Arrays) -> Arrays:
    """The arrays with another beginning of their names and dimensions."""
    return {start + name: (tuple(start + dim for dim in dims), values) for name, (dims, values) in arrays.items()}
