"""A map of some of the inputs, for rows that have all of them: psi(x) = psi_1(x_1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.features.map import Arrays, Blocks, FeatureMap
from dkl.features.part_names import prefixed
from dkl.features.rows import Refusal


@dataclass(frozen=True)
class Channel:
    """A map of some of the inputs, for rows that have all of them."""

    of: FeatureMap
    inputs: np.ndarray
    kind: ClassVar[str] = "channel"

    @property
    def n_inputs(self) -> int:
        return int(self.inputs.max()) + 1

    @property
    def n_columns(self) -> int:
        return self.of.n_columns

    @property
    def n_features(self) -> int:
        return self.of.n_features

    @property
    def scale(self) -> float:
        return self.of.scale

    def cost(self, dtype: Any) -> MapCost:
        """What the map of the channel costs in blocks of that dtype."""
        return self.of.cost(dtype)

    @property
    def column_group(self) -> np.ndarray:
        """That of the map beneath."""
        return self.of.column_group

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Those of the map beneath."""
        return self.of.parameters

    def with_parameters(self, **new: np.ndarray) -> Channel:
        """The channel with other values of the named parameters."""
        return replace(self, of=self.of.with_parameters(**new))

    def gradients(self, pulled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Those of the map beneath."""
        return self.of.gradients(pulled)

    def pull_bounds(
        self, input_size: np.ndarray, reach: np.ndarray, weight: float, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Those of the map beneath; input_size is that of the channel's own columns."""
        return self.of.pull_bounds(input_size, reach, weight, wanted)

    def at(self, dtype: DTypeLike) -> ChannelBlocks:
        """The map ready to be applied to blocks of that dtype."""
        return ChannelBlocks(self, self.of.at(dtype))

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """The map beneath, its arrays after `of_`, and the inputs."""
        about, own = self.of.stored()
        return {"map": {"kind": self.kind}, "of": about}, {"inputs": (("input",), self.inputs), **prefixed("of_", own)}


@dataclass(frozen=True)
class ChannelBlocks:
    """The features of one channel."""

    map: Channel
    features: Blocks

    @property
    def dtype(self) -> np.dtype:
        return self.features.dtype

    @property
    def slope_columns(self) -> int:
        """Those of the map beneath."""
        return self.features.slope_columns

    def prepare(self, X: Any) -> Any:
        """The channel's inputs, as its own map prepares them; a refusal counts the columns of X."""
        try:
            return self.features.prepare(X[:, self.map.inputs])
        except Refusal as refusal:
            raise Refusal(refusal.row, refusal.template, int(self.map.inputs[refusal.column])) from None

    def write(self, T: Any, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Features of prepared rows, without their scale."""
        self.features.write(T, out, slope)

    def pull(
        self, T: Any, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """As the map beneath pulls back."""
        return self.features.pull(T, Psi, slope, Psi_bar, wanted)
