"""A toy family: pseudo-Huber loss, accelerated gradient, a regressor and a classifier; test_toy.py counts its lines."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.estimators.classification import KernelClassifier
from dkl.estimators.family import KernelFamily, Linear
from dkl.estimators.registry import register
from dkl.estimators.regression import KernelRegressor
from dkl.learn.history import Column
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.learn.run import Method, Row, Step
from dkl.losses import Softmax
from dkl.losses.residual import OfResidual
from dkl.options import parse, rules
from dkl.options.docstrings import documented
from dkl.options.fields import parameter
from dkl.options.option import Option
from dkl.sums.losses import loss_cost


@dataclass(frozen=True)
class PseudoHuber(OfResidual):
    """Half the squared error near zero, linear far beyond delta: delta^2 (sqrt(1 + (r / delta)^2) - 1)."""

    delta: float = 1.0

    def at(self, x):
        return self.delta**2 * (np.hypot(1, x / self.delta) - 1)

    def slope_at(self, x):
        return x / np.hypot(1, x / self.delta)

    def curvature_at(self, x):
        return np.hypot(1, x / self.delta) ** -3.0

    def steepest(self, outputs):
        return self.delta

    def most_curved(self, outputs):
        return 1.0


class Momentum(NamedTuple):
    """Weights (d + 1, c) after the last step, those tried next, and the best ones tried, with their objective."""

    last: np.ndarray
    trial: np.ndarray
    best: np.ndarray
    objective: float = np.inf
    momentum: float = 1.0
    number: int = 0


@dataclass(frozen=True)
class Accelerated(Method[Momentum, np.ndarray]):
    """Nesterov's steps, of a length that the bound of the curvature allows; momentum that leads uphill is dropped."""

    problem: PenalisedLoss
    state = Momentum
    history = {"objective": Column("J"), "change": Column("largest step"), "momentum": Column("Nesterov's t")}

    def begin(self, run):
        return Momentum(self.problem.zero, self.problem.zero, self.problem.zero)

    def step(self, run, state):
        program, number = self.problem.program(state.trial), state.number + 1
        sums = run.sum(program, run.rows.blocks(program.rows_wanted), f"iteration {number}")
        value, gradient = run.engine.solve(self.problem.slope, sums, weights=state.trial)
        best = (state.trial, value) if value < state.objective else (state.best, state.objective)
        last = state.trial - gradient / self.problem.most_curved
        before = 1.0 if (gradient * (last - state.last)).sum() > 0 else state.momentum
        momentum = (1 + np.sqrt(1 + 4 * before**2)) / 2
        trial, change = last + (before - 1) / momentum * (last - state.last), np.abs(last - state.trial).max()
        ended = "converged" if change <= run.limits.tol else "max_iter" * (number >= run.limits.max_iter)
        row = Row(f"iteration {number}", run.rows.n_rows, {"objective": value, "change": change, "momentum": before})
        return Step(Momentum(last, trial, *best, momentum, number), row, ended)

    def end(self, run, state, history):
        return state.best


@dataclass(eq=False, repr=False, kw_only=True)
class Toy(KernelFamily):
    """Weights of any loss."""

    family = "toy"
    alpha: float = parameter("alpha", 1.0, takes="float", parse=parse.number, rule=rules.positive, doc="")
    max_iter: int = parameter("max_iter", 1000)

    def _costs(self, sizes, split):
        return [loss_cost(sizes, self._map_cost(sizes), 1).again()]

    def _learn(self, run, data, given):
        problem = PenalisedLoss.of(data, self._loss, self.alpha, self.fit_intercept)
        return Linear(data, *problem.linear(self._iterate(run, Accelerated(problem), data)))


@register
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ToyRegressor(Toy, KernelRegressor):
    """Regression with the pseudo-Huber loss."""

    delta: float = parameter(Option("delta", 1.0, "Bend of the loss.", "", "float", parse.number, rule=rules.positive))
    _loss = property(lambda self: PseudoHuber(self.delta))


@register
@documented
@dataclass(eq=False, repr=False, kw_only=True)
class ToyClassifier(Toy, KernelClassifier):
    """Logistic regression."""

    _loss = Softmax()
