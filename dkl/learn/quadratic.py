"""The quadratic of one Newton step, from the sums of a pass: the intercepts b eliminated, and what gives them back.

    q(D, db) = <g, D> + g_b' db + 1/2 <(D, db), H (D, db)>,   H = [[G, A], [A', S]],   db = -S^-1 (g_b + A'D)

which leaves G - A S^-1 A' and g - A S^-1 g_b. Outputs have a quadratic each, or one together (sums/curvature.py): with
a matrix Q_jk = Psi' diag(w q_jk) Psi for each pair, G is sum_k Q_jk on its diagonal and -Q_jk beside it. Constants that
are added to all intercepts change nothing then, so S^-1 is the inverse on steps that add up to zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from dkl.learn.penalised_loss import PenalisedLoss
from dkl.sums.curvature import CurvatureSums
from dkl.sums.symmetric import unpack


class Quadratic(NamedTuple):
    """Everything over the sum of weights."""

    value: float
    slope: np.ndarray  # (d, c), g
    intercept_slope: np.ndarray  # (c,), g_b
    intercept_size: np.ndarray  # (c,), sum w |l'|
    grams: np.ndarray  # (c, d, d), or (c, d, c, d) of joint outputs: G - A S^-1 A'
    reduced: np.ndarray  # (d, c), g - A S^-1 g_b
    across: np.ndarray  # (c, d), or (c, d, c) of joint outputs: A
    inverse: np.ndarray  # (c,), or (c, c) of joint outputs: S^-1, zero without intercepts

    @property
    def is_joint(self) -> bool:
        """Whether outputs share one quadratic."""
        return self.grams.ndim == 4

    def intercept(self, D: np.ndarray) -> np.ndarray:
        """db of a step D (d, c)."""
        if self.is_joint:
            return np.asarray(-self.inverse @ (self.intercept_slope + np.einsum("jdk,dj->k", self.across, D)))
        return np.asarray(-self.inverse * (self.intercept_slope + (self.across.T * D).sum(axis=0)))


def quadratic_of(sums: CurvatureSums, problem: PenalisedLoss) -> Quadratic:
    """From sums of unscaled features."""
    total, scale, d = problem.gram.targets.weight, problem.gram.features.map.scale, sums.slope.shape[1]
    slope, on = scale * sums.slope.T / total, problem.fit_intercept
    intercept_slope, size = sums.slope_sum / total * on, sums.slope_size / total * on
    across, inner = scale * sums.curved / total, sums.curvature_sum / total
    if problem.is_joint:
        c = slope.shape[1]
        grams = np.zeros((c, d, c, d))
        for j, k, packed in _pairs(c, sums.gram):
            _join(grams.swapaxes(1, 2), j, k, unpack(packed, d) * (scale * scale / total))
        links, S = np.zeros((c, c, d)), np.zeros((c, c))
        for j, k, row in _pairs(c, across):
            _join(links, j, k, row)
        for j, k, number in _pairs(c, inner):
            _join(S, j, k, number)
        across, inverse = links.swapaxes(1, 2), on * np.linalg.inv(S + np.trace(S) / c**2)
        flat = across.reshape(c * d, c)
        if on:
            grams -= (flat @ inverse @ flat.T).reshape(grams.shape)
        shift = (flat @ (inverse @ intercept_slope)).reshape(c, d).T
    else:
        grams = np.stack([unpack(packed, d) * (scale * scale / total) for packed in sums.gram])
        inverse = on / np.where(inner > 0, inner, 1.0)
        if on:
            for gram, h, s in zip(grams, across, inverse, strict=True):
                gram -= np.outer(h, h * s)
        shift = across.T * (inverse * intercept_slope)
    value = float(sums.loss[0]) / total
    return Quadratic(value, slope, intercept_slope, size, grams, slope - shift, across, inverse)


def _pairs(c: int, of: np.ndarray) -> Iterator[tuple[int, int, np.ndarray]]:
    """The outputs of every pair, and what is known of it."""
    return ((j, k, one) for (j, k), one in zip(combinations(range(c), 2), of, strict=True))


def _join(whole: np.ndarray, j: int, k: int, own: np.ndarray) -> None:
    """whole += (e_j - e_k)(e_j - e_k)' times what a pair has of its own."""
    whole[j, j] += own
    whole[k, k] += own
    whole[j, k] -= own
    whole[k, j] -= own
