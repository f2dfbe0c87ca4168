"""Several maps of several channels of inputs, side by side: psi = [psi_1(x_1), psi_2(x_2) ...], k = k_1 + k_2 + ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import MapCost
from dkl.features.map import Blocks, FeatureMap
from dkl.features.rows import Refusal


def side_by_side_cost(channels: Sequence[MapCost]) -> MapCost:
    """What maps that are written one after the other cost together."""
    added = {name: sum(getattr(one, name) for one in channels) for name in MapCost.__dataclass_fields__}
    largest = {name: max(getattr(one, name) for one in channels) for name in ("scratch_bytes", "sparse_row_bytes")}
    return MapCost(**{**added, **largest})


@dataclass(frozen=True)
class Channel:
    """A map of some of the inputs, for rows that have all of them."""

    of: FeatureMap
    inputs: np.ndarray

    @property
    def n_features(self) -> int:
        return self.of.n_features

    @property
    def scale(self) -> float:
        return self.of.scale

    def cost(self, dtype: Any) -> MapCost:
        """What the map of the channel costs in blocks of that dtype."""
        return self.of.cost(dtype)

    def at(self, dtype: Any) -> ChannelBlocks:
        """The map ready to be applied to blocks of that dtype."""
        return ChannelBlocks(self, self.of.at(dtype))


@dataclass(frozen=True)
class ChannelBlocks:
    """The features of one channel."""

    map: Channel
    features: Blocks

    @property
    def dtype(self) -> np.dtype:
        return self.features.dtype

    def prepare(self, X: Any) -> Any:
        """The channel's inputs, as its own map prepares them; a refusal counts the columns of X."""
        try:
            return self.features.prepare(X[:, self.map.inputs])
        except Refusal as refusal:
            raise Refusal(refusal.row, refusal.template, int(self.map.inputs[refusal.column])) from None

    def write(self, T: Any, out: np.ndarray) -> None:
        """Features of prepared rows, without their scale."""
        self.features.write(T, out)


@dataclass(frozen=True)
class SideBySide:
    """The maps of all channels, in units of the largest scale."""

    channels: tuple[FeatureMap, ...]

    @property
    def n_features(self) -> int:
        return sum(channel.n_features for channel in self.channels)

    @property
    def scale(self) -> float:
        return max(channel.scale for channel in self.channels)

    def cost(self, dtype: Any) -> MapCost:
        """What all channels cost in blocks of that dtype."""
        return side_by_side_cost([channel.cost(dtype) for channel in self.channels])

    def at(self, dtype: Any) -> SideBySideBlocks:
        """The map ready to be applied to blocks of that dtype."""
        return SideBySideBlocks(self, tuple(channel.at(dtype) for channel in self.channels))


@dataclass(frozen=True)
class Sides:
    """Prepared rows of every channel, cut together."""

    parts: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int]:
        return (self.parts[0].shape[0],)

    def __getitem__(self, rows: slice) -> Sides:
        return Sides(tuple(part[rows] for part in self.parts))


@dataclass(frozen=True)
class SideBySideBlocks:
    """Each channel's features in columns of their own."""

    map: SideBySide
    channels: tuple[Blocks, ...]

    @property
    def dtype(self) -> np.dtype:
        return self.channels[0].dtype

    def prepare(self, X: Any) -> Sides:
        """Every channel's rows; of several refusals the first row's is raised."""
        parts, refusals = [], []
        for channel in self.channels:
            try:
                parts.append(channel.prepare(X))
            except Refusal as refusal:
                refusals.append(refusal)
        if refusals:
            raise min(refusals, key=lambda refusal: (refusal.row, refusal.column))
        return Sides(tuple(parts))

    def write(self, T: Sides, out: np.ndarray) -> None:
        """Features of prepared rows into out (rows, d)."""
        start = 0
        for channel, rows in zip(self.channels, T.parts, strict=True):
            own = out[:, start : start + channel.map.n_features]
            channel.write(rows, own)
            if channel.map.scale != self.map.scale:
                own *= self.dtype.type(channel.map.scale / self.map.scale)
            start += channel.map.n_features
