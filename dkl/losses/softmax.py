"""The log loss of scores, -log softmax(k z)_y, row by row.

c scores     l = log sum_j exp(k z_j) - k z_y,      dl/dz_j = k (p_j - [j = y]),   p = softmax(k z)
one score    l = log(1 + exp(-2 k s z)),            dl/dz = -2 k s / (1 + exp(2 k s z)),   s = +-1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_softmax

from dkl.checks import check_positive
from dkl.losses.loss import ScoreSizes


@dataclass(frozen=True)
class Softmax:
    """-log softmax(k z)_y; one score z of two classes stands for the pair (-z, z). k makes a probability of a score."""

    sharpness: float = 1.0
    is_class: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("sharpness", self.sharpness)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log sum_j exp(k z_j) - k z_y, or log(1 + exp(-2 k s z))."""
        k = self.sharpness
        if z.shape[1] == 1:
            return np.logaddexp(0.0, -2 * k * _signed(z, y))
        top = z.max(axis=1)
        total = np.exp(k * (z - top[:, None])).sum(axis=1)
        return np.asarray(np.log(total) + k * (top - z[np.arange(len(y)), y]))

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """k (p - onehot), or -2 k s / (1 + exp(2 k s z))."""
        k = self.sharpness
        if z.shape[1] == 1:
            sign = 2.0 * y - 1
            return np.asarray((-2 * k * sign * expit(-2 * k * _signed(z, y)))[:, None])
        share = self._share(z)
        share[np.arange(len(y)), y] -= 1
        share *= k
        return share

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """k^2 p (1 - p), or 4 k^2 p (1 - p)."""
        k = self.sharpness
        if z.shape[1] == 1:
            return np.asarray(4 * k * k * expit(2 * k * z) * expit(-2 * k * z))
        share = self._share(z)
        return np.asarray(k * k * share * (1 - share))

    def curved(self, z: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
        """k^2 (p v - p p'v), or the curvature times v."""
        if z.shape[1] == 1:
            return np.asarray(self.curvature(z, y) * v)
        share = self._share(z)
        along = share * v
        return np.asarray(self.sharpness**2 * (along - share * along.sum(axis=1, keepdims=True)))

    def joins(self, outputs: int) -> bool:
        """If there is more than one score."""
        return outputs > 1

    def shared(self, z: np.ndarray) -> np.ndarray:
        """k p."""
        return self.sharpness * self._share(z) if z.shape[1] > 1 else np.zeros_like(z)

    def steepest(self, outputs: int) -> float:
        """k, or 2 k of one score."""
        return 2 * self.sharpness if outputs == 1 else self.sharpness

    def most_curved(self, outputs: int) -> float:
        """k^2 / 2, or k^2 of one score."""
        return self.sharpness**2 if outputs == 1 else self.sharpness**2 / 2

    def most_value(self, sizes: ScoreSizes) -> float:
        """log c of equal scores, and twice the largest score."""
        return sizes.weight * float(np.log(max(2, sizes.outputs)) + 2 * self.sharpness * sizes.score)

    def most_slope(self, sizes: ScoreSizes) -> np.ndarray:
        """The steepest slope of all rows."""
        return np.asarray(self.steepest(sizes.outputs) * sizes.weight)

    def shares(self, z: np.ndarray) -> np.ndarray:
        """p = softmax(k z) of each class; of one score (1 - p, p) with p = 1 / (1 + exp(-2 k z))."""
        if z.shape[1] == 1:
            return np.hstack([expit(-2 * self.sharpness * z), expit(2 * self.sharpness * z)])
        return self._share(z)

    def log_shares(self, z: np.ndarray) -> np.ndarray:
        """log p = k z - log sum_j exp(k z_j); of one score -log(1 + exp(2 k z)) and -log(1 + exp(-2 k z))."""
        if z.shape[1] == 1:
            return np.hstack([-np.logaddexp(0.0, 2 * self.sharpness * z), -np.logaddexp(0.0, -2 * self.sharpness * z)])
        return np.asarray(log_softmax(self.sharpness * z, axis=1))

    def _share(self, z: np.ndarray) -> np.ndarray:
        """p = softmax(k z)."""
        share: np.ndarray = np.exp(self.sharpness * (z - z.max(axis=1, keepdims=True)))
        share /= share.sum(axis=1, keepdims=True)
        return share


def _signed(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.where(codes > 0, scores[:, 0], -scores[:, 0])
