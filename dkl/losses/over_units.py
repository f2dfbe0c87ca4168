"""A loss of numbers whose residuals are seen over the unit u of each output:

    l_u(r) = l(u r) / f,   f = u min(steepest slope of l, u most curvature of l)

Its slopes and curvatures are at most about one in any unit of y, as those of half a squared error are near r = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkl.losses.residual import OfResidual


@dataclass(frozen=True)
class OverUnits(OfResidual):
    """`of` with its parameters in the units of y, for targets and scores over `unit` (one, or one for each output)."""

    of: OfResidual
    unit: tuple[float, ...]

    def __post_init__(self) -> None:
        """Nothing to check: neither is given by a user."""

    def at(self, x: np.ndarray) -> np.ndarray:
        """l(u r) / f."""
        return np.asarray(self.of.at(self._u * x) / self._f)

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """u l'(u r) / f."""
        return np.asarray(self.of.slope_at(self._u * x) * (self._u / self._f))

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """u^2 l''(u r) / f."""
        return np.asarray(self.of.curvature_at(self._u * x) * (self._u * (self._u / self._f)))

    def steepest(self, outputs: int) -> float:
        """That of the steepest output."""
        return float(np.max(self.of.steepest(outputs) * (self._u / self._f)))

    def most_curved(self, outputs: int) -> float:
        """That of the most curved output."""
        return float(np.max(self.of.most_curved(outputs) * (self._u * (self._u / self._f))))

    @property
    def _u(self) -> np.ndarray:
        return np.array(self.unit)

    @property
    def _f(self) -> np.ndarray:
        u = self._u
        return np.asarray(u * np.minimum(self.of.steepest(1), u * self.of.most_curved(1)))
