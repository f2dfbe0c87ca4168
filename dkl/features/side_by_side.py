"""Several maps of several channels of inputs, side by side: psi = [psi_1(x_1), psi_2(x_2) ...], k = k_1 + k_2 + ..."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.features.channel import Channel
from dkl.features.map import Arrays, Blocks, FeatureMap, check_parameters
from dkl.features.part_names import own_names, own_part, prefix, prefixed
from dkl.features.rows import Refusal


def side_by_side_cost(channels: Sequence[MapCost]) -> MapCost:
    """What maps that are written one after the other cost together."""
    added = {name: sum(getattr(one, name) for one in channels) for name in MapCost.__dataclass_fields__}
    largest = {name: max(getattr(one, name) for one in channels) for name in ("scratch_bytes", "sparse_row_bytes")}
    return MapCost(**{**added, **largest})


@dataclass(frozen=True)
class SideBySide:
    """The maps of all channels, in units of the largest scale; parameters are channel0_sigma, channel1_sigma ..."""

    channels: tuple[FeatureMap, ...]
    kind: ClassVar[str] = "side_by_side"

    @property
    def n_inputs(self) -> int:
        return max(channel.n_inputs for channel in self.channels)

    @property
    def n_columns(self) -> int:
        return sum(channel.n_columns for channel in self.channels)

    @property
    def n_features(self) -> int:
        return sum(channel.n_features for channel in self.channels)

    @property
    def scale(self) -> float:
        return max(channel.scale for channel in self.channels)

    def cost(self, dtype: Any) -> MapCost:
        """What all channels cost in blocks of that dtype."""
        return side_by_side_cost([channel.cost(dtype) for channel in self.channels])

    @property
    def column_group(self) -> np.ndarray:
        """The channel of each feature."""
        return np.repeat(np.arange(len(self.channels)), [channel.n_features for channel in self.channels])

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Those of every channel, each name after that of the channel."""
        return {
            prefix(i) + name: values
            for i, channel in enumerate(self.channels)
            for name, values in channel.parameters.items()
        }

    def with_parameters(self, **new: np.ndarray) -> SideBySide:
        """The maps with other values of the named parameters."""
        check_parameters(self, tuple(new))
        each = enumerate(self.channels)
        return SideBySide(tuple(channel.with_parameters(**own_part(i, new)) for i, channel in each))

    def gradients(self, pulled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Those of every channel."""
        return {
            prefix(i) + name: values
            for i, channel in enumerate(self.channels)
            for name, values in channel.gradients(own_part(i, pulled)).items()
        }

    def pull_bounds(
        self, input_size: np.ndarray, reach: np.ndarray, weight: float, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Those of every channel; input_size has the columns of one channel after those of the other."""
        check_parameters(self, wanted)
        bounds: dict[str, np.ndarray] = {}
        sizes = cuts([channel.n_columns for channel in self.channels])
        for i, (channel, size, own) in enumerate(zip(self.channels, sizes, self.feature_columns(), strict=True)):
            ratio = channel.scale / self.scale
            found = channel.pull_bounds(input_size[size], ratio * reach[own], weight, own_names(i, wanted))
            bounds |= {prefix(i) + name: values for name, values in found.items()}
        return bounds

    def feature_columns(self) -> list[slice]:
        """The columns of each channel's features."""
        return cuts([channel.n_features for channel in self.channels])

    def at(self, dtype: DTypeLike) -> SideBySideBlocks:
        """The map ready to be applied to blocks of that dtype."""
        return SideBySideBlocks(self, tuple(channel.at(dtype) for channel in self.channels))

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """The maps by channel; the channel of each input, if every input has exactly one."""
        index = self._channel_of_input()
        arrays: Arrays = {} if index is None else {"channels": (("input",), index)}
        maps = []
        for i, channel in enumerate(self.channels):
            of = channel.of if index is not None and isinstance(channel, Channel) else channel
            about, own = of.stored()
            maps.append(about)
            arrays |= prefixed(prefix(i), own)
        return {"map": {"kind": self.kind}, "maps": maps}, arrays

    def _channel_of_input(self) -> np.ndarray | None:
        """(m,), if the channels part the inputs and each has them in order; else None."""
        inputs = [channel.inputs for channel in self.channels if isinstance(channel, Channel)]
        together = np.concatenate(inputs) if len(inputs) == len(self.channels) else np.zeros(0, int)
        ordered = all(bool((np.diff(own) > 0).all()) for own in inputs)
        if not ordered or not len(together) or sorted(together.tolist()) != list(range(len(together))):
            return None
        index = np.empty(len(together), int)
        for i, own in enumerate(inputs):
            index[own] = i
        return index


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

    @property
    def slope_columns(self) -> int:
        """Those of all channels."""
        return sum(channel.slope_columns for channel in self.channels)

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

    def write(self, T: Sides, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Features of prepared rows into out (rows, d)."""
        for channel, rows, ratio, own, beside in self._parts(T):
            features = out[:, own]
            channel.write(rows, features, None if slope is None else slope[:, beside])
            if ratio != 1:
                features *= self.dtype.type(ratio)

    def pull(
        self, T: Sides, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """As each channel pulls back, of its own features and in its own unit."""
        pulled: dict[str, np.ndarray] = {}
        for i, (channel, rows, ratio, own, beside) in enumerate(self._parts(T)):
            names = own_names(i, wanted)
            if not names:
                continue
            features, bar = Psi[:, own], Psi_bar[:, own]
            if ratio != 1:
                features /= self.dtype.type(ratio)
                bar *= self.dtype.type(ratio)
            found = channel.pull(rows, features, slope[:, beside], bar, names)
            pulled |= {prefix(i) + name: values for name, values in found.items()}
        return pulled

    def _parts(self, T: Sides) -> Iterator[tuple[Blocks, Any, float, slice, slice]]:
        """(blocks, rows, scale in units of the whole, columns of features, columns of slopes) of each channel."""
        beside = cuts([channel.slope_columns for channel in self.channels])
        ratios = [channel.map.scale / self.map.scale for channel in self.channels]
        return zip(self.channels, T.parts, ratios, self.map.feature_columns(), beside, strict=True)


def cuts(widths: list[int]) -> list[slice]:
    """Slices of so many columns each, one after the other."""
    return [slice(start, stop) for start, stop in pairwise(accumulate(widths, initial=0))]
