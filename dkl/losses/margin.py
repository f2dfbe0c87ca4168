"""Losses of classes by the margin t = s z: s is +1 for the class of the row, -1 for others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_softmax

from dkl.losses.loss import OfOneScore, ScoreSizes


class OfMargin(OfOneScore):
    """A function of t = s z that falls."""

    is_class = True

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """l of each row."""
        return np.asarray(self.at(signs(y, z.shape[1]) * z).sum(axis=1))

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """dl/dz."""
        s = signs(y, z.shape[1])
        return np.asarray(s * self.slope_at(s * z))

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """d2l/dz2."""
        return self.curvature_at(signs(y, z.shape[1]) * z)

    def most_value(self, sizes: ScoreSizes) -> float:
        """Every score as far on the wrong side as it can be."""
        return sizes.weight * sizes.outputs * float(self.at(np.array(-sizes.score)))


@dataclass(frozen=True)
class Logistic(OfMargin):
    """The log loss of each class against the rest."""

    def at(self, x: np.ndarray) -> np.ndarray:
        """log(1 + exp(-t))."""
        return np.asarray(np.logaddexp(0.0, -x))

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """-1 / (1 + exp(t))."""
        return np.asarray(-expit(-x))

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """p (1 - p)."""
        return np.asarray(expit(x) * expit(-x))

    def steepest(self, outputs: int) -> float:
        """One."""
        return 1.0

    def most_curved(self, outputs: int) -> float:
        """1/4."""
        return 0.25

    def shares(self, z: np.ndarray) -> np.ndarray:
        """p_j = S(z_j) over their sum; of one score (1 - S(z), S(z))."""
        if z.shape[1] == 1:
            return np.hstack([expit(-z), expit(z)])
        log_share = -np.logaddexp(0.0, -z)
        share: np.ndarray = np.exp(log_share - log_share.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        return share

    def log_shares(self, z: np.ndarray) -> np.ndarray:
        """log p_j = log S(z_j) - log sum_i S(z_i); of one score (log(1 - S(z)), log S(z))."""
        if z.shape[1] == 1:
            return np.hstack([-np.logaddexp(0.0, z), -np.logaddexp(0.0, -z)])
        return np.asarray(log_softmax(-np.logaddexp(0.0, -z), axis=1))


@dataclass(frozen=True)
class SquaredMargin(OfMargin):
    """Half the squared error of targets -1 and +1."""

    def at(self, x: np.ndarray) -> np.ndarray:
        """(1 - t)^2 / 2."""
        return np.asarray(0.5 * (1 - x) ** 2)

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """t - 1."""
        return np.asarray(x - 1)

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """One."""
        return np.ones_like(x)

    def steepest(self, outputs: int) -> float:
        """Without bound."""
        return float("inf")

    def most_curved(self, outputs: int) -> float:
        """One."""
        return 1.0

    def most_slope(self, sizes: ScoreSizes) -> np.ndarray:
        """1 + |z|."""
        return np.asarray(sizes.weight * (1 + sizes.score))


@dataclass(frozen=True)
class SquaredHinge(SquaredMargin):
    """Half the squared distance to the right side of the margin."""

    def at(self, x: np.ndarray) -> np.ndarray:
        """max(0, 1 - t)^2 / 2."""
        return np.asarray(0.5 * np.maximum(0.0, 1 - x) ** 2)

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """-max(0, 1 - t)."""
        return np.asarray(np.minimum(0.0, x - 1))

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """One inside the margin."""
        return np.where(x < 1, 1.0, 0.0)


@dataclass(frozen=True)
class SmoothedHinge(OfMargin):
    """The hinge with its corner rounded over a width mu."""

    mu: float = 0.5

    def at(self, x: np.ndarray) -> np.ndarray:
        """0, q^2 / 2 mu or q - mu / 2."""
        q = np.maximum(0.0, 1 - x)
        near = np.minimum(q, self.mu)
        return np.asarray(near / self.mu * (q - 0.5 * near))

    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """-q / mu, cut at -1 and 0."""
        return -np.clip((1 - x) / self.mu, 0.0, 1.0)

    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """1 / mu on the corner."""
        return np.where((x < 1) & (1 - x < self.mu), 1 / self.mu, 0.0)

    def steepest(self, outputs: int) -> float:
        """One."""
        return 1.0

    def most_curved(self, outputs: int) -> float:
        """1 / mu."""
        return 1 / self.mu


def signs(codes: np.ndarray, outputs: int) -> np.ndarray:
    """(rows, outputs): +1 for the class of the row, -1 for others; of one score +1 is the second class."""
    if outputs == 1:
        return np.asarray((2.0 * codes - 1)[:, None])
    return np.asarray(2.0 * (codes[:, None] == np.arange(outputs)) - 1)
