"""The proximal step of a loss: a = argmin l(a, y) + xi / 2 |a - v|^2, row by row.

F(a) = dl/da + xi (a - v) = 0 by Newton steps, halved until |F| falls. d2l/da2 = diag(h + u^2) - u u' (losses/loss.py),
so each step is a division:

    (D - u u')^-1 F = F / D + (u / D) (u'F/D) / (1 - u'u/D),     D = h + u^2 + xi
"""

from __future__ import annotations

import numpy as np

from dkl.losses.loss import Loss

STEPS, HALVES = 100, 40
ENOUGH = 1e-4
"""The least fall of |F|, as a share of what the step promises."""
ROUNDING = 8 * float(np.finfo(np.float64).eps)


def loss_prox(loss: Loss, v: np.ndarray, y: np.ndarray, xi: float, start: np.ndarray) -> np.ndarray:
    """a (rows, c), as near as rounding allows, from `start`; scores that share no loss are solved for by themselves."""
    joins = loss.joins(v.shape[1])
    a, slope = start.copy(), loss.slope(start, y)
    F, reach = slope + xi * (a - v), np.abs(slope)
    left = np.flatnonzero(F.any(axis=1))
    for _ in range(STEPS):
        if not len(left):
            break
        a[left], F[left], gained = _stepped(loss, a[left], F[left], v[left], y[left], xi, joins)
        rounding = ROUNDING * (xi * (np.abs(a[left]) + np.abs(v[left])) + reach[left])
        left = left[((np.abs(F[left]) > rounding) & gained).any(axis=1)]
    return a


def _stepped(
    loss: Loss, a: np.ndarray, F: np.ndarray, v: np.ndarray, y: np.ndarray, xi: float, joins: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """One Newton step of some rows, each (or each score) as long as lowers |F|; F there, and whether it was lowered."""
    step, length = _newton(loss, a, F, y, xi), np.ones((len(a), 1 if joins else a.shape[1]))
    size = _size(F, joins)
    at, there = a - step, np.empty_like(F)
    for _ in range(HALVES):
        there = loss.slope(at, y) + xi * (at - v)
        worse = _size(there, joins) > (1 - ENOUGH * length) * size
        if not worse.any():
            break
        length = np.where(worse, length / 2, length)
        at = a - length * step
    gained = _size(there, joins) < size
    return np.where(gained, at, a), np.where(gained, there, F), gained


def _newton(loss: Loss, a: np.ndarray, F: np.ndarray, y: np.ndarray, xi: float) -> np.ndarray:
    """(d2l/da2 + xi)^-1 F."""
    u = loss.shared(a)
    D = loss.curvature(a, y) + u * u + xi
    step, shared = F / D, u / D
    return np.asarray(step + shared * ((u * step).sum(axis=1) / (1 - (u * shared).sum(axis=1)))[:, None])


def _size(F: np.ndarray, joins: bool) -> np.ndarray:
    """|F| of each row, or of each score."""
    return np.asarray(np.sqrt((F * F).sum(axis=1, keepdims=True)) if joins else np.abs(F))
