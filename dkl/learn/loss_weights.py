"""Weights of a fixed map by any smooth loss and an l2 penalty: one pass for the gram, then one for each step.

    pass -> value and gradient of every system -> a step of L-BFGS in whitened coordinates      learn/loss_steps.py

alpha is chosen by held-out loss, from large to small: all folds are descended side by side in the same passes, each
alpha from the weights of the one before. The client hears scalars. The certificate is the residual of the optimality
conditions, |dJ/d(B, b)| over its value at zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes, SolveCost
from dkl.engine.protocol import Ref
from dkl.learn.history import Column, History
from dkl.learn.loss_steps import LOOSER, LossProblem, Search, Tried, advance, go_on, start, whiten
from dkl.learn.resumable_pass import sum_resumable
from dkl.learn.run import Method, Row, Run, Step
from dkl.solvers.quasi_newton import quasi_newton_cost
from dkl.solvers.whitening import Whitening, loss_whitening_cost
from dkl.sums.gram import GramSums, gram_cost
from dkl.sums.training import TrainingProgram, training_cost


def loss_weights_costs(sizes: Sizes, of: MapCost, folds: int) -> list[Cost]:
    """The pass of the gram, and that of each step; the pairs of L-BFGS of all folds."""
    d, c = of.features, max(1, sizes.outputs)
    whitening, pairs = loss_whitening_cost(d, c), quasi_newton_cost((d + 1) * c, folds)
    turns = SolveCost(whitening.bytes, 4.0 * folds * d * d * c)  # into its coordinates and back
    step = training_cost(sizes, of, folds, folds).then(turns + pairs).again()
    return [step, gram_cost(sizes, of).then(whitening + pairs)]


class Refs(NamedTuple):
    """What is kept where the solve runs, beside the search."""

    problem: Ref[LossProblem]
    whitening: Ref[Whitening]
    factor: Ref[Whitening]
    program: Ref[TrainingProgram]


class Descending(NamedTuple):
    """Where the weights stand."""

    search: Search | Ref[Search] | None = None
    refs: Refs | None = None  # made anew after a resume


class LossFit(NamedTuple):
    """The weights of all rows, and what is known of them."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    alpha: float
    tried: tuple[Tried, ...]
    certificate: float


@dataclass(frozen=True)
class LossWeights(Method[Descending, LossFit]):
    """Steps of L-BFGS to the weights of one loss."""

    problem: LossProblem
    state: ClassVar[type] = Descending
    history: ClassVar[Mapping[str, Column]] = {
        "objective": Column("mean loss of the training rows, and the penalty"),
        "residual": Column("gradient of the objective, over that at zero weights"),
        "alpha": Column("penalty"),
        "final": Column("whether it is the model of all rows, not of folds", whole=True),
    }

    def begin(self, run: Run) -> Descending:
        """Nothing yet: the first step makes the pass of the gram."""
        return Descending()

    def portable(self, run: Run, state: Descending) -> Descending:
        """The state with the search itself."""
        return Descending(_taken(run, state.search))

    def step(self, run: Run, state: Descending) -> Step[Descending]:
        """One pass, and one evaluation of each system."""
        state = state if state.refs is not None else self._opened(run, state)
        assert state.refs is not None
        problem, whitening, factor, program = state.refs
        blocks = run.rows.blocks(self.problem.gram.rows_wanted)
        sums = run.sum(program, blocks, "weights")
        told, kept = run.engine.solve(
            advance, sums, problem=problem, whitening=whitening, factor=factor, search=state.search
        )  # fmt: skip
        following = Descending(kept["search"], Refs(problem, whitening, kept["factor"], kept["program"]))
        where = f"alpha {told.alpha:g}, iteration {told.iteration}{'' if told.final else ' of the folds'}"
        values: dict[str, float | np.ndarray] = {
            "objective": told.objective, "residual": told.residual, "alpha": told.alpha, "final": float(told.final),
        }  # fmt: skip
        tol = self.problem.tol * (1.0 if told.final else LOOSER)
        return Step(following, Row(where, run.rows.n_rows, values, tol), told.ended)

    def end(self, run: Run, state: Descending, history: History) -> LossFit:
        """The weights; of a search that was stopped while alpha was chosen, the mean of its folds."""
        search = _taken(run, state.search)
        assert search is not None
        c, targets = self.problem.gram.targets.n_outputs, self.problem.gram.targets
        if state.refs is None:
            state = self._opened(run, state)
        assert state.refs is not None
        factor = run.engine.take(state.refs.factor)
        weights = np.mean([factor.weights(one.x, c) for one in search.systems], axis=0)
        intercept = weights[-1] if targets.is_class else weights[-1] + targets.shift
        certificate = float(search.residual.max()) if search.final else float("inf")
        return LossFit(weights[:-1], intercept, search.alpha, search.tried, certificate)

    def _opened(self, run: Run, state: Descending) -> Descending:
        """What is kept where the solve runs: the whitening, from a pass of the gram, and the next pass."""
        all_rows = replace(self.problem.gram, folds=1, held=None, unseen=None)
        sums = sum_resumable(run, all_rows, GramSums, all_rows, "adding up X")
        problem = run.engine.keep("problem", self.problem)
        _, kept = run.engine.solve(whiten, sums, problem=problem)
        whitening = kept["whitening"]
        if state.search is None:
            _, kept = run.engine.solve(start, sums, problem=problem, whitening=whitening)
        else:
            _, kept = run.engine.solve(go_on, sums, problem=problem, whitening=whitening, search=state.search)
        return Descending(kept["search"], Refs(problem, whitening, kept["factor"], kept["program"]))


def _taken(run: Run, search: Search | Ref[Search] | None) -> Search | None:
    """The search itself, wherever it is."""
    return search if search is None or isinstance(search, Search) else run.engine.take(search)
