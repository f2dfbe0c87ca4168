"""Kernel ridge regression with the exact kernel: objectives of sigma and lam, and their gradients.

    (W^1/2 K W^1/2 + lam I) z = W^1/2 (Y - 1 b0'),   a = W^1/2 z,   1'a = 0,   f(x) = k(x, X) a + b0

    validation, cv   J = mean over systems of <E_v, W_v E_v> / (c w_v),   E_v = K_v a + b0 - Y_v,   g = dJ/dE_v
                     dJ = <g a', dK_v> - <p a', dK>,   dJ/dlam = -<p, W^-1 a>,   p of the same system with K_v'g, 1'g
    joint            J = lam <Y, a> / (c w),   dJ = -lam / (c w) <a a', dK>,   dJ/dlam = <a, K a> / (c w)
    gcv              J = n^2 |z|^2 / (c w (tr P)^2),   z = P W^1/2 Y,   dP = -P d(W^1/2 K W^1/2 + lam I) P

P is the inverse of the first system for residuals, whose degrees of freedom are lam tr P. dJ/dK = left right' has low
rank (but for P P' of gcv), so it is pulled back to sigma by tiles of rows: no second n x n array. A kernel of the
norm r = |sigma delta| needs products alone, with S = left right' * -k1'(r) / r:

    dJ/dsigma_j = -sigma_j [S1 . A_j^2 + S'1 . B_j^2 - 2 A_j' S B_j]

and a product kernel one sweep for each input, with d log k1 / dsigma_j.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dkl.checks import check_choice
from dkl.kernels import Kernel
from dkl.kernels.additive import ADDITIVE
from dkl.kernels.shift_invariant import bell
from dkl.kernels.values import distances, tiles
from dkl.solvers.factor import Factor, factorise

ROOT3, ROOT5 = float(np.sqrt(3.0)), float(np.sqrt(5.0))


def _inverse(r: np.ndarray) -> np.ndarray:
    """exp(-r) / r, and 0 for the same row twice, whose kernel does not move."""
    found: np.ndarray = np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > 0)
    return found


RADIAL: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gaussian": bell,
    "isotropic_matern12": _inverse,
    "isotropic_matern32": lambda r: 3 * np.exp(-ROOT3 * r),
    "isotropic_matern52": lambda r: (5 / 3) * (1 + ROOT5 * r) * np.exp(-ROOT5 * r),
}
"""-k1'(r) / r of the kernels of the norm; the gaussian is one of them."""


def _absolute(s: float, D: np.ndarray) -> np.ndarray:
    """exp(-s D)"""
    return -D


PRODUCT: dict[str, Callable[[float, np.ndarray], np.ndarray]] = {
    "laplacian": _absolute,
    "matern12": _absolute,
    "matern32": lambda s, D: -3 * s * D * D / (1 + ROOT3 * s * D),
    "matern52": lambda s, D: -(5 / 3) * s * D * D * (1 + ROOT5 * s * D) / (1 + ROOT5 * s * D + 5 / 3 * (s * D) ** 2),
    "skewed_chi2": lambda s, D: -D * np.tanh(s * D),
    "skewed_intersection": _absolute,
}
"""d log k1(s D) / ds of the kernels that are products over the inputs, D = |delta|."""


class Rows(NamedTuple):
    """Rows of positive weight, and the folds that test, each a system of its own; or an objective of all rows."""

    T: np.ndarray  # (n, m), in the kernel's variables
    Y: np.ndarray  # (n, c)
    weight: np.ndarray  # (n,)
    fold: np.ndarray  # (n,)
    tests: tuple[int, ...]
    whole: Callable[[np.ndarray, Rows, float, bool], Evaluation] | None = None  # joint or gcv, if no fold tests


class Dual(NamedTuple):
    """One system, solved: a = root * z."""

    z: np.ndarray  # (n, c)
    intercept: np.ndarray  # (c,)
    root: np.ndarray  # (n,), of the weights
    factor: Factor
    ones: np.ndarray | None  # solution for the right-hand side `root`, if there is an intercept

    @property
    def coef(self) -> np.ndarray:
        """a (n, c)."""
        return np.asarray(self.root[:, None] * self.z)


class Evaluation(NamedTuple):
    """J and dJ/dlam at one sigma and lam, dJ/dK = left right', and each row's score by the system that tests it."""

    value: float
    slope: float
    left: np.ndarray  # (n, systems c)
    right: np.ndarray  # (n, systems c)
    scores: np.ndarray  # (n, c), NaN where no system tests


def solve_dual(K: np.ndarray, Y: np.ndarray, weight: np.ndarray, lam: float, fit_intercept: bool) -> Dual:
    """a and b0 of least square loss / 2 + lam / 2 <a, K a>. K is used up."""
    root = np.sqrt(weight)
    K *= root[:, None]
    K *= root
    factor = factorise(K, lam)
    ones = factor.solve(root[:, None])[:, 0] if fit_intercept else None
    z, intercept = _bordered(factor, root, ones, Y, np.zeros(Y.shape[1]))
    return Dual(z, intercept, root, factor, ones)


def evaluate(K: np.ndarray, rows: Rows, lam: float, fit_intercept: bool) -> Evaluation:
    """The objective of these rows: the mean over the systems that test, or what is said of the rows trained with."""
    if rows.whole is not None:
        return rows.whole(K, rows, lam, fit_intercept)
    n, c = rows.Y.shape
    left, right = np.zeros((2, n, len(rows.tests) * c))
    scores = np.full((n, c), np.nan)
    value = slope = 0.0
    for k, fold in enumerate(rows.tests):
        train, test = np.flatnonzero(rows.fold != fold), np.flatnonzero(rows.fold == fold)
        dual = solve_dual(K[np.ix_(train, train)], rows.Y[train], rows.weight[train], lam, fit_intercept)
        across, w = K[np.ix_(test, train)], rows.weight[test]
        scores[test] = across @ dual.coef + dual.intercept
        E = scores[test] - rows.Y[test]
        g = (2 / (len(rows.tests) * c * w.sum())) * w[:, None] * E
        p = _bordered(dual.factor, dual.root, dual.ones, across.T @ g, g.sum(axis=0))[0]
        value += float((g * E).sum()) / 2
        slope -= float((p * dual.z).sum())
        columns = slice(k * c, (k + 1) * c)
        left[test, columns], left[train, columns] = g, -dual.root[:, None] * p
        right[train, columns] = dual.coef
    return Evaluation(value, slope, left, right, scores)


def pull_sigma(
    kernel: Kernel, sigma: np.ndarray, T: np.ndarray, K: np.ndarray, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """dJ/dsigma (m,) of dJ = <left right', dK>, K = k(T, T)."""
    if kernel.additive is None:
        check_choice("kernel", kernel.name, (*RADIAL, *PRODUCT))
    T = T - T.mean(axis=0) if kernel.additive is None else T
    scaled, out = T * sigma, np.zeros(T.shape[1])
    for rows in tiles(len(T)):
        S, A = left[rows] @ right.T, T[rows]
        if kernel.name in RADIAL:
            S *= RADIAL[kernel.name](distances(scaled[rows], scaled))
            square = S.sum(axis=1) @ (A * A) + S.sum(axis=0) @ (T * T)
            out -= sigma * (square - 2 * (A * (S @ T)).sum(axis=0))
            continue
        S *= K[rows]
        for j in range(len(out)):
            out[j] += np.vdot(S, _log_slope(kernel, float(sigma[j]), A[:, j, None], T[:, j]))
    return out


def _log_slope(kernel: Kernel, s: float, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """d log k / ds between one input of some rows and of others."""
    if kernel.additive is not None:
        return -2 * s * ADDITIVE[kernel.additive].distance(x, y)
    return PRODUCT[kernel.name](s, np.abs(x - y))


def joint(K: np.ndarray, rows: Rows, lam: float, fit_intercept: bool) -> Evaluation:
    """The training objective; a is its minimiser, so only the direct slopes are left."""
    dual = solve_dual(K.copy(), rows.Y, rows.weight, lam, fit_intercept)
    a, share = dual.coef, 1 / (rows.Y.shape[1] * float(rows.weight.sum()))
    fit, residual = float((a * rows.Y).sum()), float((dual.z * dual.z).sum())
    scores = rows.Y - lam * dual.z / dual.root[:, None]
    return Evaluation(share * lam * fit, share * (fit - lam * residual), -lam * share * a, a, scores)


def gcv(K: np.ndarray, rows: Rows, lam: float, fit_intercept: bool) -> Evaluation:
    """Generalised cross-validation; P moves the residuals and their degrees of freedom."""
    n, c = rows.Y.shape
    dual = solve_dual(K.copy(), rows.Y, rows.weight, lam, fit_intercept)
    z, root, P = dual.z, dual.root[:, None], dual.factor.solve(np.eye(n))
    if dual.ones is not None:
        P -= np.outer(dual.ones, dual.ones / float(dual.root @ dual.ones))
    trace, energy, Pz = max(float(np.trace(P)), 1e-12 * n / lam), float((z * z).sum()), P @ z
    share = n * n / (c * float(rows.weight.sum()))
    value, slope = share * energy / trace**2, -2 * share * float((z * Pz).sum()) / trace**2
    slope += 2 * value / trace * float((P * P).sum())
    scores = rows.Y - lam * z / root
    P *= np.sqrt(2 * value / trace) * root
    left = np.hstack([-2 * share / trace**2 * root * Pz, P])
    return Evaluation(value, slope, left, np.hstack([root * z, P]), scores)


def _bordered(
    factor: Factor, root: np.ndarray, ones: np.ndarray | None, B: np.ndarray, total: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """z and b0 of (K + lam W^-1) root z + 1 b0' = B with 1'(root z) = total; without an intercept, b0 = 0."""
    z = factor.solve(root[:, None] * B)
    if ones is None:
        return z, np.zeros(B.shape[1])
    intercept = (root @ z - total) / (root @ ones)
    return z - np.outer(ones, intercept), intercept
