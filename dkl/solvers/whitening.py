"""Coordinates in which the second derivative of a penalised loss is at most one.

    J(B, b) = 1/w [sum_i w_i l(B' psi_i + b, y_i) + w lam / 2 |B|^2],   l'' <= L
    C C' = L Gc / w + lam I,   V = C' B,   v = sqrt(L) (b + B' mean)      =>   d2J / d(V, v)^2 <= I

Gc is the centred gram, mean that of the features. The bound is sharp for the square loss: one step solves it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.factor import backward, forward
from dkl.solvers.ridge import Moments, centred

JITTER = 1e-10
"""The least lam of the factor, in units of the mean eigenvalue: less only makes it inaccurate."""


def loss_whitening_cost(d: int, c: int) -> SolveCost:
    """The gram, its centred form and its factor, and triangular solves of c outputs."""
    return SolveCost(8 * (4 * d * d + 6 * d * c), d**3 / 3 + 4.0 * d * d * c)


@dataclass(frozen=True)
class Whitening:
    """The bound of the curvature without its penalty, and with a penalty its factor."""

    curved: np.ndarray  # (d, d), L Gc / w
    mean: np.ndarray  # (d,); zero if there is no intercept
    root: float  # sqrt(L), of the intercept's coordinate; 0 if there is no intercept
    lower: np.ndarray  # (d, d), C; (0, 0) before `at`

    def at(self, lam: float) -> Whitening:
        """The same with the factor for a penalty."""
        d = len(self.curved)
        own = self.curved.copy()
        own.flat[:: d + 1] += max(lam, JITTER * float(np.trace(own)) / d)
        return replace(self, lower=np.linalg.cholesky(own))

    def weights(self, x: np.ndarray, outputs: int) -> np.ndarray:
        """(d + 1, c): B, and b last."""
        V = x.reshape(-1, outputs)
        B = backward(self.lower, V[:-1].copy())
        b = V[-1] / self.root - self.mean @ B if self.root else np.zeros(outputs)
        return np.vstack([B, b])

    def coordinates(self, weights: np.ndarray) -> np.ndarray:
        """x of the weights."""
        B, b = weights[:-1], weights[-1]
        return np.vstack([self.lower.T @ B, self.root * (b + self.mean @ B)]).ravel()

    def gradient(self, slope: np.ndarray) -> np.ndarray:
        """dJ/dx from dJ/d(B, b), (d + 1, c)."""
        V = forward(self.lower, slope[:-1] - np.outer(self.mean, slope[-1]))
        v = slope[-1] / self.root if self.root else np.zeros(slope.shape[1])
        return np.vstack([V, v]).ravel()


def whitening_of(S: Moments, most_curved: float, fit_intercept: bool) -> Whitening:
    """From the sums of one pass."""
    mean = S.feature_sum / S.weight if fit_intercept else np.zeros_like(S.feature_sum)
    curved = centred(S, fit_intercept).gram * (most_curved / S.weight)
    return Whitening(curved, mean, float(np.sqrt(most_curved)) if fit_intercept else 0.0, np.empty((0, 0)))
