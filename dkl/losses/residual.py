"""Losses of values: functions of r = z - y that are zero at zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dkl.losses.loss import OfOneScore, ScoreSizes


class OfResidual(OfOneScore):
    """A function of r = z - y that is zero at zero."""

    is_class = False

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l of each row."""
        return np.asarray(self.at(z - y).sum(axis=1))

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """dl/dz."""
        return self.slope_at(z - y)

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """d2l/dz2."""
        return self.curvature_at(z - y)

    def most_value(self, sizes: ScoreSizes) -> float:
        """The steepest slope times the sum of |z| + |y|."""
        return self.steepest(sizes.outputs) * float(_absolute(sizes).sum())


@dataclass(frozen=True)
class Square(OfResidual):
    """Half the squared error."""

    def at(self, x: np.ndarray) -> np.ndarray:
        """r^2 / 2."""
        return np.asarray(0.5 * x * x)

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """r."""
        return x

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """One."""
        return np.ones_like(x)

    def steepest(self, outputs: int) -> float:
        """Without bound."""
        return float("inf")

    def most_curved(self, outputs: int) -> float:
        """One."""
        return 1.0

    def most_value(self, sizes: ScoreSizes) -> float:
        """(z - y)^2 / 2 <= z^2 + y^2."""
        return float((sizes.weight * sizes.score * sizes.score + np.broadcast_to(sizes.square, (sizes.outputs,))).sum())

    def most_slope(self, sizes: ScoreSizes) -> np.ndarray:
        """|z| + |y|, by output."""
        return _absolute(sizes)


@dataclass(frozen=True)
class Huber(OfResidual):
    """Half the squared error near zero, linear beyond delta."""

    delta: float = 1.35

    def at(self, x: np.ndarray) -> np.ndarray:
        """r^2 / 2, or delta |r| - delta^2 / 2."""
        size = np.abs(x)
        near = np.minimum(size, self.delta)
        return np.asarray(near * (size - 0.5 * near))

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """r, cut at +-delta."""
        return np.asarray(np.clip(x, -self.delta, self.delta))

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """One near zero."""
        return np.where(np.abs(x) <= self.delta, 1.0, 0.0)

    def steepest(self, outputs: int) -> float:
        """delta."""
        return self.delta

    def most_curved(self, outputs: int) -> float:
        """One."""
        return 1.0


@dataclass(frozen=True)
class EpsilonInsensitive(OfResidual):
    """|r| beyond epsilon, with corners rounded by the logistic function of sharpness gamma."""

    epsilon: float = 0.1
    gamma: float = 10.0

    def at(self, x: np.ndarray) -> np.ndarray:
        """Two soft corners, less their height at zero."""
        e, g = self.epsilon, self.gamma
        both = np.logaddexp(0.0, g * (x - e)) + np.logaddexp(0.0, g * (-x - e))
        return np.asarray((both - 2 * np.logaddexp(0.0, -g * e)) / g)

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """S(g (r - e)) - S(g (-r - e))."""
        e, g = self.epsilon, self.gamma
        return np.asarray(expit(g * (x - e)) - expit(g * (-x - e)))

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """g S S' of both corners."""
        e, g = self.epsilon, self.gamma
        return np.asarray(g * sum(expit(v) * expit(-v) for v in (g * (x - e), g * (-x - e))))

    def steepest(self, outputs: int) -> float:
        """One."""
        return 1.0

    def most_curved(self, outputs: int) -> float:
        """Both corners together."""
        return self.gamma / 2


def _absolute(sizes: ScoreSizes) -> np.ndarray:
    """The sum of w (|z| + |y|), by output."""
    return np.asarray(sizes.weight * sizes.score + np.broadcast_to(sizes.absolute, (sizes.outputs,)))
