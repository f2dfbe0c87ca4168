"""Weights of a fixed map by any loss and penalty: Newton's steps, two passes for each.

    curvature -> step of the quadratic -> trials along it -> the longest that is good          learn/newton_steps.py

The second derivative of the loss is raised to a share (`floor`) of the most it can be. The share falls while whole
steps are good, and rises when none is; at 1 the quadratic lies above the objective, so that only rounding can refuse
its step. Where gains are but rounding, the residual says what is good: the share rises if a step does not lower it.
If several steps do not, learning has stalled, and says so. It has converged if the residual is at most tol of its size
at zero weights: |gradient| for l2, else the KKT residual. Scores of more than one class that share a loss (log loss of
three classes) have the diagonal of their second derivative alone: right in the end, but not as fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.row_readers import Range
from dkl.learn.history import Column, History
from dkl.learn.newton_steps import Aim, aimed, measured
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.learn.run import STALLED, Method, Row, Run, Step
from dkl.penalties import L2, Penalty
from dkl.solvers.factor import factor_cost
from dkl.solvers.fista import fista_cost, norm_and_ridge
from dkl.sums.curvature import curvature_cost
from dkl.sums.line_search import line_search_cost

FIRST, LEAST, LOWER, HIGHER, FAILED = 0.1, 1e-9, 0.1, 10.0, 100.0
"""The floor at first and at least, and its factors after a whole step, after a short one, and after none."""
PATIENCE = 20
"""Steps whose gain is but rounding, and that may leave the residual where it is."""
SHORT = 0.125
"""A length of this or less is short."""


class Descent(NamedTuple):
    """The weights, what is known of them, and the best ones before steps whose gain was but rounding."""

    weights: np.ndarray  # (d + 1, c)
    before: np.ndarray
    size: float = float("nan")
    objective: float = float("nan")  # nan until a pass has seen the weights
    residual: float = float("nan")
    residual_before: float = float("inf")
    objective_before: float = float("inf")
    floor: float = FIRST
    number: int = 0
    waited: int = 0  # steps, whose gain was but rounding, that did not lower the residual


class NewtonWeights(NamedTuple):
    """What was learned, and the proof: the residual over its size at zero weights (nan, if no pass has seen them)."""

    weights: np.ndarray  # (d + 1, c), the intercept last
    objective: float  # (sum w l + alpha penalty) / w
    residual: float  # |gradient| of the objective for l2, else its KKT residual in the dual norm
    certificate: float


@dataclass(frozen=True)
class Newton(Method[Descent, NewtonWeights]):
    """Steps from weights of zero; max_iter limits steps, and a last pass looks at the weights they end at."""

    problem: PenalisedLoss
    penalty: Penalty = field(default_factory=L2)
    blocks: tuple[Range, ...] | None = None  # None: all rows
    state: ClassVar[type] = Descent
    history: ClassVar[Mapping[str, Column]] = {
        "objective": Column("mean loss and penalty, before the step"),
        "gradient_norm": Column("length of the gradient for l2, else the KKT residual"),
        "certificate": Column("the same over its size at weights of zero"),
        "step": Column("length of the step, 1 is whole, 0 is none"),
    }

    def __post_init__(self) -> None:
        if not isinstance(self.penalty, L2):
            norm_and_ridge(self.penalty)
        if not (np.isfinite(self.problem.alpha) and self.problem.alpha > 0):
            raise ValueError(f"alpha={self.problem.alpha!r} must be a finite number above 0")

    def begin(self, run: Run) -> Descent:
        """At zero."""
        return Descent(self.problem.zero, self.problem.zero)

    def step(self, run: Run, state: Descent) -> Step[Descent]:
        """One pass of curvatures; if the weights are not the last ones, one of trials."""
        where, tol, weights = f"iteration {state.number + 1}", run.limits.tol, state.weights
        program = self.problem.curvature(weights, state.floor)
        blocks = run.rows.blocks(program.rows_wanted) if self.blocks is None else self.blocks
        about = {"problem": self.problem, "penalty": self.penalty, "weights": weights}
        sums = run.sum(program, blocks, f"{where}: curvature")
        aim = run.engine.solve(aimed, sums, size=state.size, tol=tol, **about)
        state = state._replace(size=aim.size, objective=aim.value, residual=aim.residual)
        if not aim.residual < state.residual_before:  # the last step gained nothing, not even here
            state = state._replace(waited=state.waited + 1, floor=min(1.0, HIGHER * state.floor))
            if state.waited > PATIENCE or state.number >= run.limits.max_iter:
                back = state._replace(
                    weights=state.before, objective=state.objective_before, residual=state.residual_before
                )  # fmt: skip
                return Step(back, self._row(run, aim, where, 0.0), STALLED)
        if aim.residual <= tol * aim.size:
            return Step(state, self._row(run, aim, where, 0.0), "converged")
        if state.number >= run.limits.max_iter:
            return Step(state, self._row(run, aim, where, 0.0), "max_iter")
        line = run.sum(self.problem.along(weights, aim.step), blocks, f"{where}: step")
        length, flat = run.engine.solve(measured, line, step=aim.step, promised=aim.promised, **about)
        after, row = _moved(state, aim, length, flat), self._row(run, aim, where, length)
        return Step(after, row, STALLED if not length and state.floor >= 1 else "")

    def end(self, run: Run, state: Descent, history: History) -> NewtonWeights:
        """The weights and their certificate."""
        share = state.residual / state.size if state.size > 0 else state.residual
        return NewtonWeights(state.weights, state.objective, state.residual, share)

    def _row(self, run: Run, aim: Aim, where: str, length: float) -> Row:
        """The row of an iteration."""
        values: dict[str, float | np.ndarray] = {
            "objective": aim.value, "gradient_norm": aim.residual, "step": length,
            "certificate": aim.residual / aim.size if aim.size > 0 else aim.residual,
        }  # fmt: skip
        return Row(where, run.rows.n_rows, values)


def newton_costs(sizes: Sizes, of: MapCost) -> list[Cost]:
    """The passes of one step, and its solve: a gram for each output."""
    d, c = of.features, max(1, sizes.outputs)
    solve = fista_cost(d, c, c) + factor_cost(d, c, c)
    return [curvature_cost(sizes, of).then(solve).again(), line_search_cost(sizes, of).again()]


def _moved(state: Descent, aim: Aim, length: float, flat: bool) -> Descent:
    """The state after a step of some length; without one the floor rises."""
    number = state.number + 1
    if not length:
        return state._replace(floor=min(1.0, FAILED * state.floor), number=number, residual_before=np.inf)
    factor = 1.0 if flat else LOWER if length == 1 else HIGHER if length <= SHORT else 1.0
    after = Descent(
        weights=state.weights + length * aim.step,
        before=state.weights,
        size=state.size,
        residual_before=aim.residual if flat else np.inf,
        objective_before=aim.value,
        floor=min(1.0, max(LEAST, factor * state.floor)),
        number=number,
        waited=state.waited if flat else 0,
    )
    if not flat or aim.residual < state.residual_before:
        return after
    return after._replace(
        before=state.before, residual_before=state.residual_before, objective_before=state.objective_before
    )  # fmt: skip
