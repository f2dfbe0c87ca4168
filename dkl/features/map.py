"""What a feature map is to a pass: psi(x) = scale write(prepare(x)), and |write| <= sqrt2, so sums have a bound."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from dkl.cost import MapCost


class FeatureMap(Protocol):
    """A frozen record of parameters."""

    @property
    def n_features(self) -> int: ...

    @property
    def scale(self) -> float: ...

    def cost(self, dtype: Any) -> MapCost:
        """What the map costs in blocks of that dtype."""

    def at(self, dtype: Any) -> Blocks:
        """The map ready to be applied to blocks of that dtype."""


class Blocks(Protocol):
    """The form of a map in which blocks are computed."""

    @property
    def map(self) -> FeatureMap: ...

    @property
    def dtype(self) -> np.dtype: ...

    def prepare(self, X: Any) -> Any:
        """Rows in the compute dtype, checked; they can be sliced."""

    def write(self, T: Any, out: np.ndarray) -> None:
        """Features of prepared rows, without their scale."""
