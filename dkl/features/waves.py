"""Waves: Fourier features that are chosen one frequency at a time, each a group of its own.

    paired   psi_j = [cos(omega_j' t(x)), sin(omega_j' t(x))],   |psi_j| = 1: the kernel cos(omega_j' (t(x) - t(y)))
    phase    psi_j = cos(omega_j' t(x) + 2 pi b_j)

They have no scale, so that a weight means the same whatever other frequencies there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dkl.features.fourier import FourierMap

QUARTER = 0.25
"""The length that is natural for a phase, in turns."""


@dataclass(frozen=True)
class WaveMap(FourierMap):
    """Parameters of the map: those of FourierMap; the paired form has no phase."""

    kind: ClassVar[str] = "waves"

    @classmethod
    def of(cls, features: FourierMap) -> WaveMap:
        """The same frequencies as groups."""
        own = features.kernel, features.unit, features.sigma, features.phase, features.skew, features.form
        return cls(*own, features.additive)

    @property
    def scale(self) -> float:
        """One."""
        return 1.0

    @property
    def n_groups(self) -> int:
        """How many frequencies there are."""
        return int(self.unit.shape[1])

    @property
    def column_group(self) -> np.ndarray:
        """The frequency of each feature."""
        return np.tile(np.arange(self.n_groups), 1 if self.form == "phase" else 2)

    @property
    def is_even(self) -> bool:
        """Whether the squares of a group add up to one at every x."""
        return self.form == "paired"

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Unit frequencies, and phases if there are any; the last axis is the group."""
        return {"unit": self.unit} if self.form == "paired" else {"unit": self.unit, "phase": self.phase}

    @property
    def lengths(self) -> dict[str, np.ndarray]:
        """What is far for each parameter of a group: the frequency itself, a quarter of a turn."""
        own = {"unit": np.linalg.norm(self.unit, axis=0)}
        return own if self.form == "paired" else {**own, "phase": np.full(self.n_groups, QUARTER)}

    @property
    def described(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """omega and its length; phases in turns if there are any."""
        omega = self.wide_sigma[:, None] * self.unit
        along = "input" if self.n_terms == 1 else "column"
        own: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
            "frequency": ((along, "feature"), omega), "length": (("feature",), np.linalg.norm(omega, axis=0)),
        }  # fmt: skip
        return own if self.form == "paired" else {**own, "phase": (("feature",), self.phase)}
