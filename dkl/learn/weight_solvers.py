"""How the weights of a fixed map are found, as rows of a table: what each solver is for, what it costs, how it fits.

    task   = loss + alpha penalty                 what is asked for
    solver = find_solver("auto", task, sizes, of, folds).solver      learn/solver_choice.py
    found  = solver.fit(run, data, split, task)   weights, and the certificate that they are the least point

A new solver is a row here and a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.protocol import Ref
from dkl.learn.conjugate import conjugate_costs, fit_conjugate
from dkl.learn.conjugate_steps import ConjugateOptions
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.loss_steps import LossProblem
from dkl.learn.loss_weights import LossWeights, loss_weights_costs
from dkl.learn.newton import Newton, newton_costs
from dkl.learn.objectives import Objective
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.learn.plan import single_kernel_costs
from dkl.learn.ridge import AlphaPass, RidgeOptions, fit_ridge
from dkl.learn.run import Run
from dkl.learn.sparse_ridge import SparseOptions, fit_penalised, sparse_ridge_costs
from dkl.losses import Loss, Square
from dkl.penalties import L2, Penalty
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.sums.scatter import ScatterSums

PASSES, CHOICE_PASSES = 80, 40
"""Products of conjugate gradients that the weights take, about, and the choice of alpha."""
LBFGS_STEPS, LBFGS_CHOICE_STEPS, NEWTON_STEPS = 20, 80, 15
"""Steps of the other solvers, about."""
CHOICE_TOL, ROUGH = 1e-3, 0.02
"""Relative residuals of conjugate gradients at which alphas are compared, and maps: on covtype the accuracy at 0.02 is
within half a point of the solution's, and maps differ by more."""
RELATIVE = np.logspace(-0.25, -4, 16)
"""alphas of a sparse penalty that is chosen: shares of the least one at which all weights are zero."""


@dataclass(frozen=True)
class WeightTask:
    """What is asked for: alpha is one number, one for each output, or (choose=True) a list for the folds."""

    loss: Loss
    penalty: Penalty
    alpha: np.ndarray
    fit_intercept: bool
    choose: bool = False
    own: bool = False  # whether alpha is the library's choice
    tol: float = 1e-4
    max_iter: int = 500
    reduce: float | str | None = None
    tested: int = 0  # folds that are held out in turn by solvers that pay for each; 0: all
    only_choice: bool = False  # whether the scores of alphas are all that is wanted
    refine: Objective | None = None  # how one alpha is made better by the folds of the same sums (ridge alone)
    alpha_pass: AlphaPass | None = None  # or by a pass of its own

    @property
    def is_ridge(self) -> bool:
        """Whether squared errors and an l2 penalty are all."""
        return isinstance(self.loss, Square) and isinstance(self.penalty, L2)


class Certificate(NamedTuple):
    """A number that is zero at the least point alone, and what it had to be."""

    kind: str
    value: float
    tol: float

    def told(self) -> dict[str, Any]:
        """As a model keeps it; None: the weights had not been measured when the fit was stopped."""
        known = bool(np.isfinite(self.value))
        value = self.value if known else None
        return {"kind": self.kind, "value": value, "tol": self.tol, "met": known and self.value <= self.tol}


class FoundWeights(NamedTuple):
    """Weights for y as it was given, and what is known of them."""

    coef: np.ndarray  # (d, c)
    intercept: np.ndarray  # (c,)
    alpha: np.ndarray
    certificate: Certificate
    method: str
    tried: np.ndarray | None = None  # (alphas,)
    scores: np.ndarray | None = None  # (alphas, folds), minus the mean loss of held-out rows
    jitter: float = 0.0
    warning: str | None = None
    reduced: dict[str, Any] | None = None
    way: Iterated[Any] | None = None  # of a solver that takes steps


Fit = Callable[[Run, Prepared, Split, WeightTask, "Ref[ScatterSums] | None"], FoundWeights]
Costs = Callable[[Sizes, MapCost, int, WeightTask], list[Cost]]


@dataclass(frozen=True)
class WeightSolver:
    """One row."""

    name: str
    about: str
    fit: Fit
    costs: Costs
    refuses: Callable[[WeightTask, bool], str]  # why it is not for a task of classes or numbers; "" if it is
    tests_some: bool = False  # whether it can hold out the first folds alone


def _no_axes(task: WeightTask) -> str:
    """Why principal axes are not to be had; "" if none are asked for."""
    return f"finds no principal axes for reduce={task.reduce!r}; use solver='cholesky'" if task.reduce else ""


def _ridge_only(task: WeightTask, is_class: bool) -> str:
    return "" if task.is_ridge else "is for loss='square' with penalty='l2'"


def _iterative_ridge(task: WeightTask, is_class: bool) -> str:
    return _no_axes(task) or _ridge_only(task, is_class)


def _sparse_only(task: WeightTask, is_class: bool) -> str:
    return "" if isinstance(task.loss, Square) and not isinstance(task.penalty, L2) else (
        "is for loss='square' with a penalty that makes zeros, e.g. penalty='l1'"
    )  # fmt: skip


def _any_loss(task: WeightTask, is_class: bool) -> str:
    if isinstance(task.loss, Square) and is_class:
        return "takes a loss of classes, e.g. loss='log_loss'"
    if task.reduce is not None:
        return _no_axes(task)
    if not np.all(task.alpha > 0):
        return f"needs alpha above 0, not {np.min(task.alpha):g}"
    if task.alpha.size > 1 and not task.choose:
        return f"takes one alpha, not {task.alpha.size}; set cv=5 to choose one of them"
    return ""


def _smooth(task: WeightTask, is_class: bool) -> str:
    return _any_loss(task, is_class) if isinstance(task.penalty, L2) else "takes penalty='l2' alone"


def _one_alpha(task: WeightTask, is_class: bool) -> str:
    if task.choose:
        return "cannot choose alpha by folds; give one, e.g. alpha=1.0, and cv=None"
    return _any_loss(task, is_class)


def _weights_run(run: Run, task: WeightTask) -> Run:
    """The run of a loop that finds weights: limits and records of its own."""
    limits = run.limits._replace(tol=task.tol, max_iter=task.max_iter)
    return replace(run, limits=limits, record="weights" if run.record == "step" else run.record)


def _fit_cholesky(
    run: Run, data: Prepared, split: Split, task: WeightTask, unlabelled: Ref[ScatterSums] | None
) -> FoundWeights:  # fmt: skip
    options = RidgeOptions(
        task.alpha, task.fit_intercept, task.choose, task.refine, task.own, task.tested, task.reduce
    )  # fmt: skip
    found = fit_ridge(run, data.gram(split), options, unlabelled, task.alpha_pass)
    certificate = Certificate("relative residual", found.residual, task.tol)
    return FoundWeights(
        found.coef, found.intercept, found.alpha, certificate, found.method, found.tried, found.scores, found.jitter,
        found.warning, found.reduced,
    )  # fmt: skip


def _fit_cg(
    run: Run, data: Prepared, split: Split, task: WeightTask, unlabelled: Ref[ScatterSums] | None
) -> FoundWeights:  # fmt: skip
    options = ConjugateOptions(
        task.alpha, task.fit_intercept, task.choose, task.own, tol=task.tol, max_iter=task.max_iter,
        tested=task.tested, only_choice=task.only_choice, choice_tol=ROUGH if task.only_choice else CHOICE_TOL,
    )  # fmt: skip
    found, way = fit_conjugate(_weights_run(run, task), replace(data, split=split), options)
    certificate = Certificate("relative residual", found.certificate, task.tol)
    return FoundWeights(
        found.coef, found.intercept, found.alpha, certificate, "cg", found.tried, found.scores,
        warning=found.warning, way=way,
    )  # fmt: skip


def _fit_fista(
    run: Run, data: Prepared, split: Split, task: WeightTask, unlabelled: Ref[ScatterSums] | None
) -> FoundWeights:  # fmt: skip
    alpha = RELATIVE if task.own and task.choose else task.alpha
    relative = task.own and task.choose
    options = SparseOptions(task.penalty, alpha, task.fit_intercept, task.choose, relative, tol=task.tol)
    found = fit_penalised(run, data.gram(split), options)
    return FoundWeights(
        found.coef, found.intercept, np.array([found.alpha]), Certificate("duality gap", found.gap, task.tol), "fista",
        found.tried, found.scores, warning=found.warning,
    )  # fmt: skip


def _fit_lbfgs(
    run: Run, data: Prepared, split: Split, task: WeightTask, unlabelled: Ref[ScatterSums] | None
) -> FoundWeights:  # fmt: skip
    gram = data.in_units_of_y().gram(split)
    alphas = tuple(sorted(map(float, task.alpha.ravel()), reverse=True))
    problem = LossProblem(gram, task.loss, alphas, task.own, task.fit_intercept, task.tol, task.max_iter)
    weights_run = _weights_run(run, task)
    limits = weights_run.limits._replace(max_iter=task.max_iter * (len(alphas) + 3))
    way = iterate(replace(weights_run, limits=limits), LossWeights(problem))
    found = way.result
    scores = np.array([-one.losses for one in found.tried]) if found.tried else None
    tried = np.array([one.alpha for one in found.tried]) if found.tried else None
    certificate = Certificate("relative gradient", found.certificate, task.tol)
    return FoundWeights(
        found.coef, found.intercept, np.array([found.alpha]), certificate, "lbfgs", tried, scores, way=way
    )  # fmt: skip


def _fit_newton(
    run: Run, data: Prepared, split: Split, task: WeightTask, unlabelled: Ref[ScatterSums] | None
) -> FoundWeights:  # fmt: skip
    whole = replace(data, split=Split())
    problem = PenalisedLoss.of(whole, task.loss, float(task.alpha.ravel()[0]), task.fit_intercept)
    way = iterate(_weights_run(run, task), Newton(problem, task.penalty))
    weights, targets = way.result.weights, problem.gram.targets
    intercept = weights[-1] if targets.is_class else weights[-1] + targets.shift
    kind = "relative gradient" if isinstance(task.penalty, L2) else "KKT residual"
    certificate = Certificate(kind, way.result.certificate, task.tol)
    return FoundWeights(weights[:-1], intercept, task.alpha.reshape(-1), certificate, "newton", way=way)


def _cholesky_costs(sizes: Sizes, of: MapCost, folds: int, task: WeightTask) -> list[Cost]:
    alphas = task.alpha.size if task.choose else 0
    return single_kernel_costs(sizes, of, folds=folds, alphas=alphas, reduced=task.reduce is not None)


def _cg_costs(sizes: Sizes, of: MapCost, folds: int, task: WeightTask) -> list[Cost]:
    alphas, products = task.alpha.size if task.choose else 0, PASSES * (not task.only_choice)
    return conjugate_costs(
        sizes, of, folds, alphas, tested=task.tested, products=products, choice=CHOICE_PASSES
    )  # fmt: skip


def _lbfgs_costs(sizes: Sizes, of: MapCost, folds: int, task: WeightTask) -> list[Cost]:
    steps = LBFGS_STEPS + LBFGS_CHOICE_STEPS * task.choose
    return _counted(loss_weights_costs(sizes, of, folds if task.choose else 1), steps)


def _newton_costs(sizes: Sizes, of: MapCost, folds: int, task: WeightTask) -> list[Cost]:
    return _counted(newton_costs(sizes, of, task.loss), NEWTON_STEPS)


def _counted(passes: list[Cost], steps: float) -> list[Cost]:
    """The passes of a fit of about so many steps."""
    return [one.made(steps) if one.repeated else one for one in passes]


SOLVERS = {
    each.name: each
    for each in (
        WeightSolver(
            "cholesky", "one pass for the gram", _fit_cholesky, _cholesky_costs, _ridge_only, True
        ),
        WeightSolver(
            "cg", "one pass for each step, without a gram", _fit_cg, _cg_costs, _iterative_ridge, True,
        ),
        WeightSolver(
            "fista", "one pass for the gram, then steps of its sums", _fit_fista,
            lambda sizes, of, folds, task: sparse_ridge_costs(sizes, of, folds), _sparse_only,
        ),
        WeightSolver(
            "lbfgs", "one pass for the gram, which whitens the weights, then one for each step", _fit_lbfgs,
            _lbfgs_costs, _smooth,
        ),
        WeightSolver(
            "newton", "two passes for each step, one of them for the weighted gram", _fit_newton, _newton_costs,
            _one_alpha,
        ),
    )
}  # fmt: skip
"""By the name that `solver` takes; "auto" takes the first that a task allows, or cg if it is cheaper."""
