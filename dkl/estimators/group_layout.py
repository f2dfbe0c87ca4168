"""Which maps on which channels: group g is map g % K of channel g // K, of kernels or of transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dkl.cost import MapCost
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.channel_inputs import Listed
from dkl.estimators.group_paths import GroupNames
from dkl.estimators.transformers import check_transformer, cost_of, draw_maps
from dkl.features.side_by_side import SideBySide
from dkl.kernels import find_kernel, is_for_histograms
from dkl.learn.plan import fourier_map_cost
from dkl.prepare.kernel_maps import MapOptions, NamedKernel, draw_kernel_maps, named_kernels
from dkl.prepare.named_channels import NamedChannel, named_channels, refuse_duplicates
from dkl.prepare.scales import spread_sigma


class NamedTransformer(NamedTuple):
    """A transformer whose map is a group on every channel."""

    name: str
    features: Any


def named_transformers(features: Any) -> tuple[NamedTransformer, ...]:
    """The transformers that a list, or a dict with names, asks for."""
    if isinstance(features, str) or not isinstance(features, (Sequence, Mapping)) or not len(features):
        raise ValueError(
            f"features={features!r} must be a list of one transformer or more, e.g. [dkl.FourierFeatures(), "
            "dkl.Chi2Features()]"
        )
    ones = list(features.values() if isinstance(features, Mapping) else features)
    for one in ones:
        check_transformer(one)
    if isinstance(features, Mapping):
        names = [str(name) for name in features]
    else:
        kinds = [type(one).__name__.removesuffix("Features").lower() for one in ones]
        names = [kind if kinds.count(kind) == 1 else f"{kind} {i}" for i, kind in enumerate(kinds)]
    return tuple(map(NamedTransformer, names, ones))


class Layout(NamedTuple):
    """Channels, and what is on each of them: kernels, or else transformers."""

    channels: tuple[NamedChannel, ...]
    kernels: tuple[NamedKernel, ...]
    transformers: tuple[NamedTransformer, ...]
    options: MapOptions

    @property
    def names(self) -> GroupNames:
        """Of channels and maps."""
        maps = self.kernels or self.transformers
        return GroupNames(tuple(one.name for one in self.channels), tuple(one.name for one in maps))

    def with_components(self, count: int | None) -> Layout:
        """The same with so many features of each kernel; None: as many as there are."""
        return self if count is None else self._replace(options=self.options._replace(n_components=count))

    def costs(self, dtype: np.dtype) -> list[MapCost]:
        """What the map of each group costs, before it is drawn."""
        found = []
        for channel in self.channels:
            m = len(channel.inputs)
            for one in self.kernels:
                found.append(fourier_map_cost({**self.options._asdict(), "kernel": one.kernel}, m, dtype))
            found += [cost_of(one.features, m, dtype) for one in self.transformers]
        return found

    def draw(
        self, X: Table, weight: Table | None, rng: np.random.Generator, progress: Progress
    ) -> SideBySide:  # fmt: skip
        """The maps of all groups."""
        if self.kernels:
            return draw_kernel_maps(self.kernels, self.channels, self.options, X, weight, rng, progress)
        maps = [
            draw_maps(one.features, X, weight, channel.inputs, rng, progress)
            for channel in self.channels
            for one in self.transformers
        ]
        return SideBySide(tuple(maps))

    def channel_of_inputs(self, m: int) -> np.ndarray:
        """(m,): the number of each input's channel, -1 if it has none."""
        index = np.full(m, -1)
        for i, channel in enumerate(self.channels):
            index[channel.inputs] = i
        return index


def layout_of(
    kernels: Any, features: Any, channels: Any, options: MapOptions, X: Table, listed: Listed | None
) -> Layout:  # fmt: skip
    """The groups of an estimator's parameters on these inputs; listed: the arrays that X was a list of."""
    if listed is not None:
        ends = np.cumsum(listed.widths)
        own = [slice(int(end) - width, int(end)) for end, width in zip(ends, listed.widths, strict=True)]
        channels = dict(zip(listed.names, own, strict=True))
    found = named_channels(channels, X.n_columns, X.input_coords, X.input_labels)
    refuse_duplicates("channels", [one.name for one in found])
    if features is not None:
        return _named_apart(Layout(found, (), named_transformers(features), options))
    named = named_kernels(kernels)
    for channel in found:
        for one in named:
            _check_sigma(one, channel)
    return _named_apart(Layout(found, named, (), options))


def _named_apart(layout: Layout) -> Layout:
    """The layout, if each group has a name of its own: channel "a b" with kernel "c" is not "a" with "b c"."""
    names, seen = layout.names, dict[str, tuple[str, str]]()
    pairs = product(names.channels, names.kernels)
    for group, pair in zip(names.groups, pairs, strict=True):
        if group in seen or not group.strip():
            other = f" is also that of {seen[group]}" if group in seen else " says nothing"
            raise ValueError(f"channel and kernel {pair} make the group {group!r}, which{other}; give other names")
        seen[group] = pair
    return layout


def _check_sigma(one: NamedKernel, channel: NamedChannel) -> None:
    """Refuse a sigma for each input that has another length than the channel."""
    if isinstance(one.sigma, str):
        return
    try:
        spread_sigma(one.sigma, np.zeros(len(channel.inputs), int))
    except ValueError as error:
        raise ValueError(f"kernel {one.name!r} on channel {channel.name!r}: {error}") from None


def takes_histograms(kernels: Any, features: Any) -> bool:
    """Whether any map is defined on non-negative inputs only; False of what cannot be read."""
    try:
        if features is not None:
            return any(one.features.__sklearn_tags__().input_tags.positive_only for one in named_transformers(features))
        return any(is_for_histograms(find_kernel(one.kernel).name) for one in named_kernels(kernels))
    except (ValueError, TypeError):
        return False
