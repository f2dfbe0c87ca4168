"""Learn sigma and alpha of an exact kernel: L-BFGS on (x, log lam), from several starts on few rows, then on all.

An evaluation is one kernel matrix and its factors, so lam is a coordinate beside those of sigma; every start begins
with the lam that is best for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dkl.engine.interrupt import Watch, watching
from dkl.engine.progress import Progress, tell
from dkl.engine.tables import Table
from dkl.engine.threads import one_blas_thread
from dkl.features.kernel_inputs import prepare_inputs
from dkl.kernels import Kernel
from dkl.kernels.values import kernel_values
from dkl.learn.bandwidth import ROUGH, Learned
from dkl.learn.history import History, legs_of
from dkl.learn.model import chosen
from dkl.learn.objective import FLOOR
from dkl.learn.parameters import Scales
from dkl.learn.walk import INTERRUPTED
from dkl.solvers.exact_ridge import Dual, Found, Rows, descend, evaluate, pull_sigma, solve_dual
from dkl.solvers.lbfgs import Descent, begin, moved
from dkl.solvers.scalar import Point, minimise_log
from dkl.sums.folds import hash_rows
from dkl.sums.pullback import PullbackSums

EARLY = ("max_time", INTERRUPTED)
"""Reasons after which nothing more is learned."""
FEW_ROWS = 2_000
"""Rows of the first stage, on which all starts run."""
MANY_ROWS = 3_000
"""From here on more BLAS threads than one are worth their quarrels."""


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
        return Found(value if np.isfinite(value) else np.inf, (sigma, lam, K, found))

    def gradient_at(self, x: np.ndarray, found: Found) -> np.ndarray:
        """dJ/dx."""
        at, _ = self.split(x)
        sigma, lam, K, here = found.what
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


def learn_exact(
    problem: ExactProblem, starts: Iterable[float], tol: float, max_iter: int, max_time: float | None, seed: int,
    progress: Progress,
) -> Learned:  # fmt: skip
    """Descend from every start on few rows, go on from the best on all."""
    with watching() as watch:
        return _learned(problem, starts, tol, seed, _Walk(max_iter, max_time, progress, watch))


def _learned(problem: ExactProblem, starts: Iterable[float], tol: float, seed: int, walk: _Walk) -> Learned:
    progress = walk.progress
    few = replace(problem, rows=some_rows(problem.rows, seed))
    last = few.rows is problem.rows
    ends = []
    with progress.on_one_line(), _threads(len(few.rows.T)):
        for number, factor in enumerate(starts):
            ends.append(walk.descend(few, few.begin(factor), tol if last else ROUGH * tol, 0, number))
            if ends[-1][1] in EARLY:
                break
    winner = int(np.argmin([end.value for end, _ in ends]))
    best, reason = ends[winner]
    reason = ends[-1][1] if ends[-1][1] in EARLY else reason
    if not last and reason not in EARLY:
        with progress.on_one_line():
            best, reason = walk.descend(problem, problem.resume(best), tol, 1, winner)
    walk.history.end_at(best.value)
    if reason not in EARLY:
        with progress.on_one_line(), _threads(len(problem.rows.T)):
            best = walk.without_the_vanished(problem, best, tol, int(not last), winner)
    at, lam = problem.split(best.x)
    share = walk.history.columns["rows"][-1] / len(problem.rows.T)
    return Learned(at, lam, walk.history, reason, best.decrease, share)


def solve_exact(
    kernel: Kernel, sigma: np.ndarray, T: np.ndarray, Y: np.ndarray, weight: np.ndarray, lam: float, intercept: bool
) -> Dual:  # fmt: skip
    """The weights of all rows at one sigma and lam."""
    with _threads(len(T)):
        return solve_dual(kernel_values(kernel, sigma, T, T), Y, weight, lam, intercept)


def fold_scores(
    kernel: Kernel, sigma: np.ndarray, rows: Rows, alphas: np.ndarray, intercept: bool
) -> np.ndarray:  # fmt: skip
    """(alphas, folds): minus the mean squared error on each fold, of one kernel matrix."""
    with _threads(len(rows.T)):
        K = kernel_values(kernel, sigma, rows.T, rows.T)
        scores = []
        for alpha in alphas:
            E = evaluate(K, rows, float(alpha), intercept).scores - rows.Y
            scores.append(-np.bincount(rows.fold, rows.weight * (E * E).mean(axis=1)))
        return np.array(scores) / np.bincount(rows.fold, rows.weight)


def in_memory(table: Table) -> Table:
    """The same rows as one dense array in memory, a stored y by its names."""
    array = table.array.compute() if table.kind == "dask" else table.array[:]
    array = array.toarray() if hasattr(array, "toarray") else np.asarray(array)
    return Table("memory", array if table.names is None else table.names[array])


def _threads(n: int) -> AbstractContextManager:
    return one_blas_thread() if n < MANY_ROWS else nullcontext()


class _Walk:
    """One fit's way: what every iteration found, and when it must end."""

    def __init__(self, max_iter: int, max_time: float | None, progress: Progress, watch: Watch) -> None:
        self.max_iter, self.max_time, self.progress, self.watch = max_iter, max_time, progress, watch
        self.history, self.begun, self.passes = History(), time.monotonic(), 0

    def descend(
        self, problem: ExactProblem, state: Descent, tol: float, stage: int, start: int
    ) -> tuple[Descent, str]:  # fmt: skip
        """One descent, watched."""

        def watch(state: Descent, found: Found) -> str:
            seconds = self._note(problem, state, found, stage, start)
            if self.watch.asked:
                return INTERRUPTED
            if self.max_time is not None and seconds >= self.max_time:
                return "max_time"
            return "max_iter" if state.iteration >= self.max_iter else ""

        return descend(state, self._counted(problem.value_at), problem.gradient_at, tol, watch)

    def without_the_vanished(self, problem: ExactProblem, end: Descent, tol: float, stage: int, start: int) -> Descent:
        """The end with exact zeros for sigmas that l1 has all but brought there, unless the objective minds."""
        at, _ = problem.split(end.x)
        off = problem.parameters.switched_off(at)
        if off is None:
            return end
        x = np.concatenate([off, end.x[len(at) :]])
        found = self._counted(problem.value_at)(x)
        if found.value > end.value + tol * abs(end.value):
            return end
        state = moved(begin(x, end.lower, end.upper), found.value, problem.gradient_at(x, found))
        self._note(problem, state, found, stage, start)
        return state._replace(decrease=end.decrease)

    def _counted(self, value_at: Callable[[np.ndarray], Found]) -> Callable[[np.ndarray], Found]:
        def counted(x: np.ndarray) -> Found:
            self.passes += 1
            return value_at(x)

        return counted

    def _note(self, problem: ExactProblem, state: Descent, found: Found, stage: int, start: int) -> float:
        """A row of the history, an event, and a line for whoever watches."""
        sigma, lam, _, here = found.what
        seconds = time.monotonic() - self.begun
        row = {
            "objective": state.value, "validation_error": here.value,
            "error_rate": _wrong(problem.rows, here.scores) if problem.is_class else float("nan"),
            "gradient_norm": state.gradient_norm, "alpha": lam, "seconds": seconds, "rows": len(problem.rows.T),
            "passes": self.passes, "stage": stage, "start": start,
        }  # fmt: skip
        self.history.append(**row, sigma=sigma)
        self.watch.ready = True
        tell(event="iteration", number=len(self.history) - 1, **row)
        self.progress.say(self.line())
        return seconds

    def line(self) -> str:
        """Where it stands."""
        last, leg = {name: column[-1] for name, column in self.history.columns.items()}, legs_of(self.history.columns)
        where = f"start {last['start'] + 1}, iteration {leg[-1].iterations}"
        return (
            f"learning on {last['rows']:,.0f} rows: {where}, objective {last['objective']:.5g}, "
            f"gradient {last['gradient_norm']:.2g}, {last['seconds']:.0f} s"
        )


def _wrong(rows: Rows, scores: np.ndarray) -> float:
    """Share of the tested rows, by weight, whose class was not chosen."""
    tested = np.isfinite(scores[:, 0])
    missed = chosen(scores[tested]) != chosen(rows.Y[tested])
    return float(rows.weight[tested][missed].sum() / rows.weight[tested].sum())


@dataclass(frozen=True)
class DualScores:
    """Scores k(x, X) a + b0 of a block (rows, c)."""

    kernel: Kernel
    skew: float
    sigma: np.ndarray
    T: np.ndarray  # (n, m), of the rows of the fit
    coef: np.ndarray  # (n, c)
    intercept: np.ndarray  # (c,)

    def __call__(self, X: Any) -> np.ndarray:
        T = prepare_inputs(X, self.kernel, self.skew, np.dtype(np.float64))
        T = T.toarray() if hasattr(T, "toarray") else T
        return kernel_values(self.kernel, self.sigma, T, self.T) @ self.coef + self.intercept
