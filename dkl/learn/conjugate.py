"""Ridge with any number of features: conjugate gradients, whose every product with the gram is a pass over the rows.

    (Psi'WPsi + lam I) B = Psi'WY,     features made anew in every pass, no d x d array anywhere

alpha may be chosen by K folds: the systems of all folds and alphas share each pass, to a looser residual, and one pass
takes the errors of the rows that they have not seen. The weights then begin at the mean of the best alpha's folds.
Steps: the first sums, products of the choice, held-out errors, products of the weights; the last one multiplies the
weights themselves, so that the certificate |b - A x| / |b| is what they have and not what a recursion believes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.protocol import Pending, Ref, T
from dkl.engine.threads import one_blas_thread
from dkl.learn import conjugate_steps as steps
from dkl.learn.alpha import FLOOR
from dkl.learn.conjugate_steps import ConjugateOptions, Systems, Told, columns_of
from dkl.learn.history import Column, History
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.run import STALLED, Method, Row, Run, Step
from dkl.learn.weights import at_edge
from dkl.prepare.prepared import Prepared
from dkl.solvers.conjugate_gradients import Conjugate, conjugate_cost
from dkl.solvers.preconditioner import Preconditioner, applied_cost, preconditioner_cost
from dkl.sums.drawn_rows import DrawProgram, draw_cost
from dkl.sums.gram import GramSums
from dkl.sums.held_out import HeldOutProgram, held_out_cost
from dkl.sums.products import CrossProgram, ProductProgram, cross_cost, product_cost
from dkl.sums.sample import RowSample
from dkl.sums.tree import TreeTotal

FIRST, CHOICE, SCORES, WEIGHTS = "first sums", "choice", "held-out errors", "weights"
"""Phases; the choice and its errors are left out if alpha is given."""


class Refs(NamedTuple):
    """What is kept where the solve runs and made anew after a resume: what all share, the preconditioner, the pass."""

    problem: Ref[Systems]
    preconditioner: Ref[Preconditioner | None]
    program: Ref[ProductProgram] | Ref[HeldOutProgram]  # whichever the phase takes


class Solving(NamedTuple):
    """Where the systems stand, in which phase, and what has been chosen."""

    phase: str
    number: int  # steps of this phase
    alphas: np.ndarray  # (alphas, outputs), of this phase
    tried: np.ndarray  # (alphas,)
    scores: np.ndarray  # (alphas, folds), once they are known
    largest: float = float("nan")  # about the largest eigenvalue
    choice_tol: float = float("nan")
    moments: GramSums | Ref[GramSums] | None = None
    at: Conjugate | Ref[Conjugate] | None = None
    refs: Refs | None = None


class Solution(NamedTuple):
    """Weights for y as it was given, as learn/ridge.py has them, and their certificate: the largest |b - A x| / |b|."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    alpha: np.ndarray
    tried: np.ndarray  # (alphas,)
    scores: np.ndarray | None  # (alphas, folds), minus the mean squared error
    certificate: float
    residuals: np.ndarray  # (c,), |b - A x| / |b| of each output
    warning: str | None
    objective: float
    method: str = "conjugate gradients"
    jitter: float = 0.0
    reduced: None = None


@dataclass(frozen=True)
class ConjugateRidge(Method[Solving, Solution]):
    """One pass and one solve for each step."""

    problem: Systems
    state: ClassVar[type] = Solving
    history: ClassVar[Mapping[str, Column]] = {
        "objective": Column("square loss and penalty over the weight of the rows, mean over folds and alphas"),
        "residual": Column("largest relative residual |r| / |b|"),
        "active": Column("systems that are not solved yet", whole=True),
    }

    def begin(self, run: Run) -> Solving:
        """Nothing is known."""
        none = np.zeros((0, 0))
        return Solving(FIRST, 0, none, np.zeros(0), none)

    def portable(self, run: Run, state: Solving) -> Solving:
        """The state with its arrays."""
        if state.moments is None:
            return state
        moments, at = _taken(run, state.moments, GramSums), _taken(run, state.at, Conjugate)
        return state._replace(moments=moments, at=at, refs=None)

    def step(self, run: Run, state: Solving) -> Step[Solving]:
        """The next pass."""
        if state.phase == FIRST:
            return self._first(run)
        state = self._with_refs(run, state)
        if state.phase == SCORES:
            return self._scores(run, state)
        return self._product(run, state)

    def end(self, run: Run, state: Solving, history: History) -> Solution:
        """The weights so far; before they are begun, the mean of the folds of the middle alpha."""
        moments, at = _taken(run, state.moments, GramSums), _taken(run, state.at, Conjugate)
        problem, options, targets = self.problem, self.problem.options, self.problem.gram.targets
        x, residuals, alphas = at.x, at.relative, state.alphas
        if state.phase != WEIGHTS:
            middle, shape = len(alphas) // 2, (problem.tested, *alphas.shape)
            x = x.reshape(*shape, -1)[:, middle].mean(axis=0)
            residuals, alphas = residuals.reshape(shape)[:, middle].max(axis=0), alphas[[middle]]
        intercept = steps.intercepts(problem, moments, columns_of(problem, alphas, False), x) * targets.unit
        alpha = np.unique(alphas) if options.choose or np.size(options.alpha) == 1 else alphas[0]
        scores, known = (state.scores, True) if state.scores.size else (None, not options.choose)
        certificate = float(residuals.max()) if state.phase == WEIGHTS else float("inf")
        doubt = self._doubt(state, alpha, known)
        return Solution(
            x.T * targets.unit, intercept if targets.is_class else intercept + targets.shift, alpha, state.tried,
            scores, certificate, residuals, doubt or at_edge(alpha, state.tried, scores, options.own),
            float(history.last["objective"]) if len(history) else float("nan"),
        )  # fmt: skip

    def _doubt(self, state: Solving, alpha: np.ndarray, chosen: bool) -> str | None:
        """A warning if alpha was not chosen, or is lost in rounding."""
        narrow, least = self.problem.gram.features.dtype == np.float32, float(alpha.min())
        floor = FLOOR * state.largest * self.problem.gram.targets.weight_unit
        if not chosen:
            return (
                f"the choice of alpha has not ended, so alpha={least:g} is the middle of those given; allow more time"
            )
        if narrow and least < floor:
            return (
                f"alpha={least:g} is below {FLOOR:g} of the largest eigenvalue {floor / FLOOR:.3g}, the rounding of "
                "float32 blocks; raise alpha or use dtype='float64'"
            )
        return None

    @staticmethod
    def _tol(state: Solving, run: Run) -> float:
        return run.limits.tol if state.phase == WEIGHTS else state.choice_tol

    def _draw(self, run: Run) -> Pending[TreeTotal[RowSample]]:
        """Rows for the preconditioner. Their features are not made, so history does not count it as a pass."""
        program = DrawProgram(self.problem.gram, self.problem.drawn, self.problem.gram.seed)
        with run.progress.waiting("drawing rows"):
            return run.engine.sum(program, run.rows, run.progress, run.rows.blocks(program.rows_wanted))

    def _first(self, run: Run) -> Step[Solving]:
        """The first sums, the preconditioner, and systems at zero."""
        problem = run.engine.keep("problem", self.problem)
        _, drawn = run.engine.solve(steps.sampled, self._draw(run))
        program = CrossProgram(self.problem.gram)
        sums = run.sum(program, run.rows.blocks(program.rows_wanted), FIRST)
        with run.progress.waiting(f"axes of {self.problem.drawn:,} rows"):
            told, kept = run.engine.solve(steps.opened, sums, problem=problem, sample=drawn["sample"])
        choose = self.problem.options.choose
        refs = Refs(problem, kept["preconditioner"], kept["program"])
        tried = told.alphas[:, 0] if choose else np.asarray(self.problem.options.alpha, np.float64).reshape(-1)
        return Step(
            Solving(
                CHOICE if choose else WEIGHTS, 0, told.alphas, tried, np.zeros((0, 0)), told.largest,
                self.problem.options.choice_tol, kept["moments"], kept["at"], refs,
            )
        )  # fmt: skip

    def _with_refs(self, run: Run, state: Solving) -> Solving:
        """After a resume, what is kept where the solve runs; made with one BLAS thread, as there."""
        if state.refs is not None:
            return state
        moments, at = _taken(run, state.moments, GramSums), _taken(run, state.at, Conjugate)
        problem, there = run.engine.keep("problem", self.problem), run.engine.keep("moments", moments)
        columns = columns_of(self.problem, state.alphas, state.phase != WEIGHTS)
        with one_blas_thread():
            program: ProductProgram | HeldOutProgram
            if state.phase == SCORES:
                program = steps.scores_of(self.problem, moments, columns, at)
            else:
                program = steps.product_of(self.problem, columns, at, self._tol(state, run))
        made: Ref[Preconditioner | None] = run.engine.keep("preconditioner", None)
        if self.problem.options.sample:
            _, kept = run.engine.solve(steps.reopened, self._draw(run), problem=problem, moments=there)
            made = kept["preconditioner"]
        refs = Refs(problem, made, cast(Ref[ProductProgram], run.engine.keep("program", program)))
        return state._replace(moments=there, at=run.engine.keep("at", at), refs=refs)

    def _product(self, run: Run, state: Solving) -> Step[Solving]:
        """One product and one step of all systems."""
        assert state.refs is not None
        choosing, number, limit = state.phase == CHOICE, state.number + 1, run.limits.max_iter
        wanted = (self.problem.gram if choosing else self.problem.whole).rows_wanted
        where, tol = f"{state.phase}, iteration {number}", self._tol(state, run)
        sums = run.sum(cast(Ref[ProductProgram], state.refs.program), run.rows.blocks(wanted), where)
        told, kept = run.engine.solve(
            steps.advance, sums, problem=state.refs.problem, moments=state.moments, at=state.at, alphas=state.alphas,
            preconditioner=state.refs.preconditioner, choosing=choosing, last=number >= limit, tol=tol,
        )  # fmt: skip
        refs = state.refs._replace(program=kept["program"])
        state = state._replace(number=number, at=kept["at"], refs=refs)
        if choosing and (not told.active or number >= limit):
            state = state._replace(phase=SCORES, number=0)
        return Step(state, self._row(told, where, run, tol), "" if choosing else self._ended(told, number, limit))

    @staticmethod
    def _ended(told: Told, number: int, limit: int) -> str:
        """Why the weights are done: their own residual is small, or rounding is all that is left of it."""
        if told.stalled:
            return STALLED
        if not told.active and not told.check:
            return "converged"
        return "max_iter" if number >= limit else ""

    @staticmethod
    def _row(told: Told, where: str, run: Run, tol: float) -> Row:
        values = {"objective": told.objective, "residual": told.residual, "active": float(told.active)}
        return Row(where, run.rows.n_rows, values, tol)

    def _scores(self, run: Run, state: Solving) -> Step[Solving]:
        """The errors of held-out rows, and the systems of all rows with the best alpha; or more of the choice."""
        assert state.refs is not None
        wanted = self.problem.gram.rows_wanted
        sums = run.sum(cast(Ref[HeldOutProgram], state.refs.program), run.rows.blocks(wanted), SCORES)
        told, kept = run.engine.solve(
            steps.scored, sums, problem=state.refs.problem, moments=state.moments, at=state.at, alphas=state.alphas,
            preconditioner=state.refs.preconditioner, tol=state.choice_tol,
        )  # fmt: skip
        refs = state.refs._replace(program=kept["program"])
        if told.tol is not None:
            return Step(state._replace(phase=CHOICE, choice_tol=told.tol, at=kept["at"], refs=refs))
        best = state.alphas[[told.best]]
        state = state._replace(phase=WEIGHTS, alphas=best, scores=told.scores, at=kept["at"], refs=refs)
        return Step(state, ended="converged" if self.problem.options.only_choice else "")


def _taken(run: Run, value: T | Ref[T] | None, kind: type[T]) -> T:
    """The value itself, wherever it is."""
    if isinstance(value, kind):
        return value
    return run.engine.take(cast(Ref[T], value))


class Fitted(NamedTuple):
    """The weights, and the way to them."""

    weights: Solution
    iterated: Iterated[Solution]


def fit_conjugate(run: Run, data: Prepared, options: ConjugateOptions) -> Fitted:
    """Weights of prepared data; the folds of a choice are those of its split."""
    if options.choose and data.split.folds.count < 2:
        raise ValueError(f"alpha={options.alpha.tolist()} is a list to choose from, which needs folds; set cv=5")
    gram = data.gram(data.split)
    gram = gram if options.choose else replace(gram, folds=1, held=None, unseen=None)
    run = replace(run, limits=run.limits._replace(tol=options.tol, max_iter=options.max_iter))
    done = iterate(run, ConjugateRidge(Systems(gram, options)))
    return Fitted(done.result, done)


def conjugate_costs(
    sizes: Sizes, of: MapCost, folds: int = 1, alphas: int = 0, sample: int = 3000, tested: int = 0,
    products: float = 1, choice: float = 1,
) -> list[Cost]:  # fmt: skip
    """What the passes of a fit cost, for the plan: so many products of the weights, and (alphas > 0) of the choice."""
    outputs = 1 if sizes.is_class and sizes.outputs == 2 else sizes.outputs
    rows = max(1, min(sample, -(-of.features // 2)))
    most = outputs * max(1, min(tested or folds, folds) * alphas)
    axes = preconditioner_cost(rows, of.features, sizes.item, most)

    def product(vectors: int) -> Cost:
        step = applied_cost(rows, of.features, sizes.item, vectors) + conjugate_cost(of.features, vectors)
        return product_cost(sizes, of, folds, vectors).then(step)

    found = [product(most).made(choice)] if alphas else []
    found += [product(outputs).made(products)] if products else []
    found += [draw_cost(sizes, of, folds, rows), cross_cost(sizes, of, folds).then(axes)]
    return [*found, held_out_cost(sizes, of, folds, most)] if alphas else found
