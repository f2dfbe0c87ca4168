"""Objectives of an exact kernel on rows in memory, as functions of x = (coordinates of sigma, log lam)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.engine.tables import Table
from dkl.kernels import Kernel
from dkl.kernels.values import kernel_values
from dkl.learn.alpha import FLOOR
from dkl.learn.objectives import GCV, JOINT, Objective
from dkl.learn.parameters import Scales
from dkl.solvers.exact_ridge import Evaluation, Rows, evaluate, gcv, joint, pull_sigma
from dkl.solvers.lbfgs import Descent, begin
from dkl.solvers.scalar import Point, minimise_log
from dkl.sums.folds import hash_rows
from dkl.sums.pullback import PullbackSums

FEW_ROWS = 2_000
"""Rows of the first stage, on which all starts run."""
WHOLE = {JOINT.name: joint, GCV.name: gcv}
"""Objectives of all rows."""


def rows_of(
    objective: Objective, T: np.ndarray, Y: np.ndarray, weight: np.ndarray, fold: np.ndarray, folds: int
) -> Rows:  # fmt: skip
    """The rows of an objective, without those of zero weight."""
    kept = weight > 0
    fold = fold[kept]
    tests = tuple(test for test in objective.tests(folds) if test is not None)
    for test in tests:
        if (fold == test).all() or not (fold == test).any():
            part = objective.named(test, folds)
            raise ValueError(f"{part}, or the others, have no weight; use more rows, or other folds")
    return Rows(T[kept], Y[kept], weight[kept], fold, tests, WHOLE.get(objective.name))


class Found(NamedTuple):
    """J at a point, and what its gradient and its row of the history need."""

    value: float
    sigma: np.ndarray
    lam: float
    K: np.ndarray
    here: Evaluation


@dataclass(frozen=True)
class ExactProblem:
    """J as a function of x = (coordinates of sigma, log lam); without the last if alpha is given."""

    parameters: Scales
    rows: Rows
    fit_intercept: bool
    alpha: float | None
    variance: float  # of y, the unit of the penalties
    is_class: bool

    @property
    def kernel(self) -> Kernel:
        return self.parameters.base.kernel

    def split(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coordinates of sigma, and lam."""
        return (x, self.alpha) if self.alpha is not None else (x[:-1], float(np.exp(x[-1])))

    def value_at(self, x: np.ndarray) -> Found:
        """J with its penalties, and what its gradient needs."""
        at, lam = self.split(x)
        sigma = self.parameters.map(at).sigma
        K = kernel_values(self.kernel, sigma, self.rows.T, self.rows.T)
        found = evaluate(K, self.rows, lam, self.fit_intercept)
        value = found.value + self.variance * self.parameters.penalty(at)[0]
        return Found(value if np.isfinite(value) else np.inf, sigma, lam, K, found)

    def gradient_at(self, x: np.ndarray, found: Found) -> np.ndarray:
        """dJ/dx."""
        at, _ = self.split(x)
        _, sigma, lam, K, here = found
        slope = pull_sigma(self.kernel, sigma, self.rows.T, K, here.left, here.right)
        gradient = self.parameters.gradient(at, PullbackSums({"sigma": slope}, np.empty(0)))
        gradient = gradient + self.variance * self.parameters.penalty(at)[1]
        return gradient if self.alpha is not None else np.append(gradient, lam * here.slope)

    def begin(self, factor: float) -> Descent:
        """A descent from `factor` times the start of sigma and the alpha that is best there."""
        at = self.parameters.begin(factor)
        if self.alpha is not None:
            return begin(at, *self.parameters.box())
        K = kernel_values(self.kernel, self.parameters.map(at).sigma, self.rows.T, self.rows.T)

        def along(log_lam: float) -> Point:
            lam = float(np.exp(log_lam))
            found = evaluate(K, self.rows, lam, self.fit_intercept)
            return Point(log_lam, found.value, lam * found.slope, None)

        best = minimise_log(along, None, *self._ends()).at
        return begin(np.append(at, best), *self._box())

    def resume(self, before: Descent) -> Descent:
        """A descent from where one on fewer rows ended, with its curvature."""
        lower, upper = self.parameters.box() if self.alpha is not None else self._box()
        return begin(np.clip(before.x, lower, upper), lower, upper, like=before)

    def _ends(self) -> tuple[float, float]:
        """log lam is kept between the floor and the trace of W^1/2 K W^1/2, where f is all but constant."""
        total = float(self.rows.weight.sum())
        return float(np.log(FLOOR * total)), float(np.log(total))

    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        ends = zip(self.parameters.box(), self._ends(), strict=True)
        lower, upper = (np.append(edge, end) for edge, end in ends)
        return lower, upper


def some_rows(rows: Rows, seed: int) -> Rows:
    """About FEW_ROWS of them, the same share of every fold, drawn by a hash; all, if that is not half of them."""
    n = len(rows.T)
    if n < 2 * FEW_ROWS:
        return rows
    order = hash_rows(np.arange(n), seed + 1).argsort(kind="stable")
    parts = [order[rows.fold[order] == fold] for fold in np.unique(rows.fold)]
    kept = np.sort(np.concatenate([part[: -(-FEW_ROWS * len(part) // n)] for part in parts]))
    return rows._replace(T=rows.T[kept], Y=rows.Y[kept], weight=rows.weight[kept], fold=rows.fold[kept])


def in_memory(table: Table) -> Table:
    """The same rows as one dense array in memory, a stored y by its names."""
    array = table.array.compute() if table.kind == "dask" else table.array[:]
    array = array.toarray() if hasattr(array, "toarray") else np.asarray(array)
    return Table("memory", array if table.names is None else table.names[array])
