"""The inner problem of a sum of kernels: the best f(x) = k(x, X) a + b0 for one kernel matrix K.

    max_a  <Y, a> - R(a) - 1/2 <a, K a>,   1'a = 0 if there is an intercept

    square                R(a) = sum a^2 / (2 C w)             kernel ridge: one factorisation, exact
    epsilon_insensitive   R(a) = epsilon sum |a|, |a| <= C w   support vector regression, by libsvm
    hinge                 R(a) = 0, 0 <= y a <= C w            support vector machine, by libsvm

It is the dual of  min 1/2 |f|^2 + C sum_i w_i l(y_i, f(x_i)).  libsvm keeps K in float32; its free support vectors are
solved for once more in float64, which leaves rounding errors only. Outputs are problems of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from dkl.solvers.exact_ridge import solve_dual

LIBSVM_TOL = 1e-6
"""libsvm's tolerance over the size of y."""
FREE = 1e-9
"""A support vector is free if it is so far from the ends of its box, over their distance."""


class Machine(NamedTuple):
    """An inner problem, solved; sums over all rows and outputs."""

    coef: np.ndarray  # a (n, c)
    intercept: np.ndarray  # (c,)
    linear: float  # part of the dual that grows with a: <Y, a> - epsilon sum |a|
    quadratic: float  # part that grows with its square: sum a^2 / (C w)
    loss: float  # C sum w l, of the primal


class KernelLoss(Protocol):
    """What a sum of kernels needs of a loss."""

    @property
    def noise(self) -> float:
        """Relative error of the dual's value."""

    def solve(self, K: np.ndarray, Y: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool) -> Machine:
        """The machine of one kernel matrix, which may be overwritten."""

    def pull(self, Y: np.ndarray, weight: np.ndarray, fit_intercept: bool) -> np.ndarray:
        """a / C (n, c) of the best constant, about."""


@dataclass(frozen=True)
class SquareMachine:
    """1/2 (f - y)^2"""

    noise: float = 8 * float(np.finfo(np.float64).eps)

    def solve(self, K: np.ndarray, Y: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool) -> Machine:
        """Kernel ridge."""
        dual = solve_dual(K, Y, weight, 1 / C, fit_intercept)
        quadratic = float((dual.z * dual.z).sum()) / C
        return Machine(dual.coef, dual.intercept, float((Y * dual.coef).sum()), quadratic, quadratic / 2)

    def pull(self, Y: np.ndarray, weight: np.ndarray, fit_intercept: bool) -> np.ndarray:
        """w (y - mean), exactly."""
        centre = np.average(Y, axis=0, weights=weight) if fit_intercept else 0.0
        return np.asarray(weight[:, None] * (Y - centre))


@dataclass(frozen=True)
class SupportMachine:
    """max(0, |f - y| - epsilon), or max(0, 1 - y f) if epsilon is None"""

    epsilon: float | None = None
    noise: float = 1e-9

    def solve(self, K: np.ndarray, Y: np.ndarray, weight: np.ndarray, C: float, fit_intercept: bool) -> Machine:
        """One support vector machine for each output."""
        coef, intercept = np.zeros(Y.shape), np.zeros(Y.shape[1])
        for j in range(Y.shape[1]):
            coef[:, j], intercept[j] = self._column(K, Y[:, j], C * weight)
        linear = float((Y * coef).sum()) - (self.epsilon or 0.0) * float(np.abs(coef).sum())
        scores = K @ coef + intercept
        over = 1 - Y * scores if self.epsilon is None else np.abs(scores - Y) - self.epsilon
        return Machine(coef, intercept, linear, 0.0, C * float(weight @ np.maximum(over, 0.0).sum(axis=1)))

    def pull(self, Y: np.ndarray, weight: np.ndarray, fit_intercept: bool) -> np.ndarray:
        """w times the sign of what the median leaves; of classes, those of the greater one weigh less."""
        sign = Y if self.epsilon is None else np.sign(Y - np.median(Y, axis=0))
        slope = sign * weight[:, None]
        up, down = np.maximum(slope, 0.0), np.maximum(-slope, 0.0)
        a, b = up.sum(axis=0), down.sum(axis=0)
        least = np.minimum(a, b)
        return np.asarray(up * (least / np.where(a > 0, a, 1.0)) - down * (least / np.where(b > 0, b, 1.0)))

    def _column(self, K: np.ndarray, y: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, float]:
        """a and b0 of one output, in the units in which the kernel is about one."""
        if self.epsilon is None and (y == y[0]).all():
            return np.zeros(len(y)), float(y[0])  # no row of the class has a weight
        unit = float(np.trace(K)) / len(K) or 1.0
        scaled, most = K / unit, most * unit
        a, b = _libsvm(scaled, y, most, self.epsilon)
        low, high = (-most, most) if self.epsilon is not None else (np.minimum(0, most * y), np.maximum(0, most * y))
        a, b = _polished(scaled, y, a, b, low, high, self.epsilon or 0.0)
        return a / unit, b


def _libsvm(K: np.ndarray, y: np.ndarray, most: np.ndarray, epsilon: float | None) -> tuple[np.ndarray, float]:
    """a and b0 by libsvm: regression, or classification if epsilon is None."""
    from sklearn.svm import SVC, SVR

    size = float(np.abs(y - np.median(y)).mean()) or 1.0
    how = {"kernel": "precomputed", "C": float(most.mean()), "tol": LIBSVM_TOL * size, "cache_size": 500}
    model = SVC(**how) if epsilon is None else SVR(**how, epsilon=epsilon)
    model.fit(K, y, sample_weight=most / most.mean())
    a = np.zeros(len(y))
    a[model.support_] = np.ravel(model.dual_coef_)
    return a, float(model.intercept_[0])


def _polished(
    K: np.ndarray, y: np.ndarray, a: np.ndarray, b: float, low: np.ndarray, high: np.ndarray, epsilon: float
) -> tuple[np.ndarray, float]:  # fmt: skip
    """K a + b0 = y - epsilon sign(a) solved for the free support vectors, 1'a = 0; as it was, if one leaves its box."""
    a = np.clip(a, low, high)
    near = FREE * (high - low)
    free = (a - low > near) & (high - a > near) & (np.abs(a) > near)
    a = np.where(free, a, np.where(np.abs(a) <= near, 0.0, np.where(a - low <= near, low, high)))
    count = int(free.sum())
    if not count:
        return a, b
    fixed = np.where(free, 0.0, a)
    system = np.ones((count + 1, count + 1))
    system[:count, :count], system[-1, -1] = K[np.ix_(free, free)], 0.0
    right = np.append((y - epsilon * np.sign(a) - K @ fixed)[free], -fixed.sum())
    try:
        found = np.linalg.solve(system, right)
    except np.linalg.LinAlgError:
        return a, b
    better = fixed.copy()
    better[free] = found[:-1]
    inside = (better >= low) & (better <= high) & (np.sign(better) == np.sign(a))
    return (better, float(found[-1])) if inside.all() else (a, b)
