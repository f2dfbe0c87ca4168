"""Gabor filters that are chosen one at a time, each a group of its own.

They have the unit of the rows' norms and no share of one, so that a weight means the same whatever other filters there
are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dkl.features.gabor import GaborMap

TURN = np.pi / 8
"""The length that is natural for an orientation."""


@dataclass(frozen=True)
class GaborGroups(GaborMap):
    """The filters of a GaborMap."""

    kind: ClassVar[str] = "gabor_groups"

    @property
    def scale(self) -> float:
        """What keeps features below one, whatever their number."""
        return float(self.largest / self.unit)

    @property
    def n_groups(self) -> int:
        """How many filters there are."""
        return self.n_features

    @property
    def column_group(self) -> np.ndarray:
        """The filter of each feature."""
        return np.arange(self.n_features)

    @property
    def is_even(self) -> bool:
        """No: a patch may have no response."""
        return False

    @property
    def described(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """The parameters of every filter."""
        return {name: (("feature",), values) for name, values in self.parameters.items()}

    @property
    def lengths(self) -> Mapping[str, np.ndarray]:
        """What is far for each parameter: an eighth of half a turn, the frequency and the widths themselves."""
        turn = np.full(self.n_groups, TURN)
        return {"orientation": turn, "frequency": self.frequency, "along": self.along, "across": self.across}
