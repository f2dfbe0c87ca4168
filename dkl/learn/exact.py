"""Learn sigma and alpha of an exact kernel: L-BFGS on (x, log lam), from several starts on few rows, then on all.

An evaluation is one kernel matrix and its factors, so lam is a coordinate beside those of sigma; every start begins
with the lam that is best for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dkl.engine.interrupt import check
from dkl.engine.threads import one_blas_thread
from dkl.kernels import Kernel
from dkl.kernels.values import kernel_values
from dkl.learn.bandwidth import ROUGH
from dkl.learn.exact_problem import ExactProblem, Found, some_rows
from dkl.learn.history import Column, History
from dkl.learn.learned import HISTORY, Learned
from dkl.learn.model import chosen
from dkl.learn.run import Method, Row, Run, Step
from dkl.solvers.exact_ridge import Dual, Rows, evaluate, solve_dual
from dkl.solvers.lbfgs import WORTH, Descent, begin, judged, moved

MANY_ROWS = 3_000
"""From here on several BLAS threads are faster than one."""


class ExactState(NamedTuple):
    """Where learning stands: the descent under way, and the ends of earlier ones with their reasons."""

    stage: int = 0  # 0: starts on few rows, 1: the best of them on all
    start: int = 0
    descent: Descent | None = None
    small: int = 0  # small decreases in a row
    ended: str = ""  # why that descent has ended; the next step closes it
    ends: tuple[Descent, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExactBandwidth(Method[ExactState, Learned]):
    """Descend from every start on few rows, go on from the best on all."""

    problem: ExactProblem
    starts: tuple[float, ...]
    seed: int
    state: ClassVar[type] = ExactState
    history: ClassVar[Mapping[str, Column]] = HISTORY

    def begin(self, run: Run) -> ExactState:
        """Before the first start."""
        return ExactState()

    def step(self, run: Run, state: ExactState) -> Step[ExactState]:
        """One trial; or the end of a descent, and what follows it."""
        check()
        problem = self._problem(state)
        with _threads(len(problem.rows.T)):
            if state.ended:
                return self._close(run, state)
            if state.descent is None:
                state = state._replace(descent=self._first(state, problem), small=0)
            return self._try(run, state, problem)

    def end(self, run: Run, state: ExactState, history: History) -> Learned:
        """The best point so far."""
        found = [end for end in (*state.ends, state.descent) if end is not None and end.begun]
        best = found[-1] if state.stage else min(found, key=lambda end: end.value)
        history.end_at(best.value)
        at, lam = self.problem.split(best.x)
        return Learned(at, lam, best.decrease, float(history.last["rows"]) / len(self.problem.rows.T))

    def _problem(self, state: ExactState) -> ExactProblem:
        """The problem on the rows of the stage."""
        return self.problem if state.stage else replace(self.problem, rows=some_rows(self.problem.rows, self.seed))

    def _is_last(self, state: ExactState) -> bool:
        return state.stage > 0 or len(self._problem(state).rows.T) == len(self.problem.rows.T)

    def _first(self, state: ExactState, problem: ExactProblem) -> Descent:
        return problem.resume(state.ends[0]) if state.stage else problem.begin(self.starts[state.start])

    def _try(self, run: Run, state: ExactState, problem: ExactProblem) -> Step[ExactState]:
        assert state.descent is not None
        tol = run.limits.tol * (1.0 if self._is_last(state) else ROUGH)
        trial, run.meter.passes = state.descent.trial, run.meter.passes + 1
        found = problem.value_at(trial)
        accepted, descent = judged(state.descent, found.value, WORTH * tol)
        if not accepted:
            return Step(state._replace(descent=descent, ended="converged" if descent.stalled else ""), saved=False)
        descent = moved(descent, found.value, problem.gradient_at(trial, found))
        small = state.small + 1 if descent.decrease <= tol else 0
        limited = "max_iter" if descent.iteration >= run.limits.max_iter else ""
        ended = "converged" if descent.has_converged(small, tol) else limited
        row = _row(problem, descent, found, state)
        return Step(state._replace(descent=descent, small=small, ended=ended), row)

    def _close(self, run: Run, state: ExactState) -> Step[ExactState]:
        """After a descent: the next start, all rows from the best start, or the end."""
        assert state.descent is not None
        ends, reasons = (*state.ends, state.descent), (*state.reasons, state.ended)
        closed = state._replace(descent=None, ended="", ends=ends, reasons=reasons)
        if not state.stage and state.start + 1 < len(self.starts):
            return Step(closed._replace(start=state.start + 1))
        best = len(ends) - 1 if state.stage else int(np.argmin([end.value for end in ends]))
        start = state.start if state.stage else best
        closed = closed._replace(ends=(ends[best],), reasons=(reasons[best],), start=start)
        if not self._is_last(state):
            return Step(closed._replace(stage=1))
        end, row = self._without_the_vanished(run, closed)
        return Step(closed._replace(ends=(end,)), row, reasons[best], ends_at=ends[best].value)

    def _without_the_vanished(self, run: Run, state: ExactState) -> tuple[Descent, Row | None]:
        """The end with exact zeros for sigmas that l1 has all but brought there, unless the objective is worse."""
        problem, (end,) = self.problem, state.ends
        at, _ = problem.split(end.x)
        off = problem.parameters.switched_off(at)
        if off is None:
            return end, None
        x = np.concatenate([off, end.x[len(at) :]])
        run.meter.passes += 1
        found = problem.value_at(x)
        if found.value > end.value + run.limits.tol * abs(end.value):
            return end, None
        descent = moved(begin(x, end.lower, end.upper), found.value, problem.gradient_at(x, found))
        return descent._replace(decrease=end.decrease), _row(problem, descent, found, state)


def _row(problem: ExactProblem, descent: Descent, found: Found, state: ExactState) -> Row:
    """The row of an iteration."""
    values: dict[str, float | np.ndarray] = {
        "objective": descent.value, "validation_error": found.here.value,
        "error_rate": _wrong(problem.rows, found.here.scores) if problem.is_class else float("nan"),
        "gradient_norm": descent.gradient_norm, "alpha": found.lam, "stage": state.stage, "start": state.start,
        "sigma": found.sigma,
    }  # fmt: skip
    return Row(f"start {state.start + 1}, iteration {descent.iteration}", len(problem.rows.T), values)


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


def _threads(n: int) -> AbstractContextManager[None]:
    return one_blas_thread() if n < MANY_ROWS else nullcontext()


def _wrong(rows: Rows, scores: np.ndarray) -> float:
    """Share of the tested rows, by weight, whose class was not chosen."""
    tested = np.isfinite(scores[:, 0])
    missed = chosen(scores[tested]) != chosen(rows.Y[tested])
    return float(rows.weight[tested][missed].sum() / rows.weight[tested].sum())
