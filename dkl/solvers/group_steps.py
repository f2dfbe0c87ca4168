"""Weights of few groups at one lam: steps of one group after the other, then of all of them by second derivatives.

    P(V) = 1/2 <V, (G + mu) V> - <R, V> + lam sum_g eta_g |V_g|,   C = R - (G + mu) V,   l = lam eta_g
    one group      u = C_g + (values + mu) V_g;   V_g = 0 if |u| <= l, else u / (values + mu + l / t),
                   sum_i |u_i|^2 / ((values_i + mu) t + l)^2 = 1
    all nonzero    V + t X of the least P, in the direction X of second derivatives (group_directions.py); where
                   groups that X takes through zero keep t small, the same with these at zero, if P is less

All is in the axes of each group (group_blocks.py). Groups become zero, or cease to be, by the first kind of step; the
second is fast once it is known which are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.solvers.group_directions import Directions

SECULAR, LINE = 50, 60
"""Most steps of an equation of one unknown."""
SHORT = 0.5
"""A step that is shorter may be held up by groups that pass through zero."""
ROUNDED = 1 + 1e-12
"""A slope at its limit times this is at its limit: what is above is the rounding of the turn into a group's axes."""


class _Moved(NamedTuple):
    """Weights after a step, C, the change of P, and the length of the step."""

    V: np.ndarray
    C: np.ndarray
    change: float
    t: float


class State:
    """Weights of the groups that have entered, and C, at one lam."""

    def __init__(self, directions: Directions, V: np.ndarray, C: np.ndarray, lam: float, ridge: float) -> None:
        blocks = directions.blocks
        self.directions, self.blocks, self.V, self.C, self.lam, self.ridge = directions, blocks, V, C, lam, ridge
        self.limits = lam * blocks.eta
        self.products = 0

    def sweep(self) -> None:
        """One step of each group that is not zero, or should not be."""
        blocks = self.blocks
        lengths, slopes = blocks.lengths(self.V), blocks.lengths(self.C)
        for k in np.flatnonzero((lengths > 0) | (slopes > ROUNDED * self.limits)):
            at = slice(int(blocks.bounds[k]), int(blocks.bounds[k + 1]))
            after = group_step(
                self.C[at], self.V[at], blocks.values[at] + self.ridge, float(self.limits[k]), float(lengths[k])
            )
            change = after - self.V[at]
            if change.any():
                self.V[at] = after
                self.C -= blocks.packed[:, at] @ change
                self.C[at] -= self.ridge * change
        self.products += 1

    def newton(self) -> None:
        """One step of all groups that are not zero; some that hold it up become zero, if that is better."""
        found = self.directions.find(self.C, self.V, self.limits, self.ridge)
        self.products += found.products
        moved = self._along(self.V, self.C, found.X, found.GX)
        if moved.t < SHORT:
            blocks = self.blocks
            through = blocks.sums(self.V * (self.V + found.X)) < 0
            moved = min(moved, self._without(through), key=lambda one: one.change) if through.any() else moved
        self.V, self.C = moved.V, moved.C

    def move(self, X: np.ndarray, GX: np.ndarray) -> None:
        """V + t X of the least P; GX is (G + mu) X."""
        self.V, self.C, *_ = self._along(self.V, self.C, X, GX)

    def _along(self, V: np.ndarray, C: np.ndarray, X: np.ndarray, GX: np.ndarray) -> _Moved:
        """V + t X of the least P."""
        blocks = self.blocks
        slope, curve = -float((C * X).sum()), float((X * GX).sum())
        squares = blocks.sums(V * V), blocks.sums(V * X), blocks.sums(X * X)
        t = line_step(slope, curve, self.limits, *squares)
        after = V + t * X
        longer = float(self.limits @ (blocks.lengths(after) - np.sqrt(squares[0])))
        return _Moved(after, C - t * GX, slope * t + curve * t * t / 2 + longer, t)

    def _without(self, some: np.ndarray) -> _Moved:
        """A step of the other groups, these being zero."""
        rows = np.flatnonzero(some[self.blocks.row_group])
        V, lost = self.V.copy(), self.V[rows]
        V[rows] = 0.0
        back = self.blocks.packed[:, rows] @ lost
        back[rows] += self.ridge * lost
        C = self.C + back
        change = float((lost * (self.C[rows] + back[rows] / 2)).sum())
        change -= float(self.limits[some] @ self.blocks.lengths(self.V)[some])
        found = self.directions.find(C, V, self.limits, self.ridge)
        self.products += found.products + 1
        moved = self._along(V, C, found.X, found.GX)
        return moved._replace(change=moved.change + change)


def group_step(C: np.ndarray, V: np.ndarray, values: np.ndarray, limit: float, length: float) -> np.ndarray:
    """The best V of one group, all others as they are."""
    u = C + values[:, None] * V
    u[values <= 0] = 0.0
    squares = np.square(u).sum(axis=1)
    if not float(squares.sum()) > (ROUNDED * limit) ** 2:
        return np.zeros_like(V)
    t = secular_root(squares, values, limit, length)
    if not t > 0:  # |u| is limit, but for rounding
        return np.zeros_like(V)
    return np.asarray(u / (values + limit / t)[:, None])


def secular_root(squares: np.ndarray, values: np.ndarray, limit: float, start: float = 0.0) -> float:
    """t with sum_i squares_i / (values_i t + limit)^2 = 1, by Newton's steps on the root of its inverse."""
    t = float(start)
    for _ in range(SECULAR):
        below = values * t + limit
        terms = squares / (below * below)
        total = float(terms.sum())
        rate = float((terms / total * values / below).sum())
        # s = total^(-1/2), ds/dt = s rate, and s is concave: after one step t comes from the left
        after = max(t + float((total**0.5 - 1) / rate), 0.0)
        if abs(after - t) <= 1e-14 * after:
            return after
        t = after
    return t


def line_step(
    slope: float, curve: float, limits: np.ndarray, still: np.ndarray, across: np.ndarray, along: np.ndarray
) -> float:  # fmt: skip
    """argmin over t >= 0 of slope t + curve t^2 / 2 + sum_g limits_g sqrt(still_g + 2 across_g t + along_g t^2)."""

    def derivatives(t: float) -> tuple[float, float]:
        lengths = np.sqrt(np.maximum(still + 2 * across * t + along * t * t, 0.0))
        safe = np.where(lengths > 0, lengths, 1.0)
        first = np.where(lengths > 0, (across + along * t) / safe, np.sqrt(along))
        second = np.where(lengths > 0, np.maximum(along - first * first, 0.0) / safe, 0.0)
        return slope + curve * t + float(limits @ first), curve + float(limits @ second)

    low, high, t = 0.0, np.inf, 1.0
    size = abs(derivatives(0.0)[0])
    for _ in range(LINE):
        first, second = derivatives(t)
        if abs(first) <= 1e-10 * size:
            return t
        low, high = (t, high) if first < 0 else (low, t)
        after = t - first / second if second > 0 else np.inf
        if not low < after < high:
            after = 2 * t if high == np.inf else (low + high) / 2
        if abs(after - t) <= 1e-14 * t or t > 1e12:
            break
        t = after
    return low
