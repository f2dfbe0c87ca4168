"""One kernel, ridge weights, sigma given or learned: SingleKernelRegressor and SingleKernelClassifier.

learn="none"   one pass of sums, one solve (learn/ridge.py)
else           sigma by a method of learn/learners.py, then the same at the learned sigma
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dkl.checks import check_nonnegative, warn_user
from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.tables import Table
from dkl.estimators.advice import warn_of_learning, warn_of_weights
from dkl.estimators.classification import KernelClassifier
from dkl.estimators.family import Given, KernelFamily, Linear
from dkl.estimators.fitted import RIDGE, restored_ridge
from dkl.estimators.fitted_loss import check_loss
from dkl.estimators.input_info import set_or_delete
from dkl.estimators.registry import register
from dkl.estimators.regression import KernelRegressor
from dkl.estimators.scoring import cv_results
from dkl.estimators.stored import Stored
from dkl.estimators.unlabelled import read_unlabelled, unlabelled_sums
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.learned import Learned
from dkl.learn.learners import Learner, learner_of
from dkl.learn.phases import phases_of
from dkl.learn.plan import fourier_map_cost
from dkl.learn.run import INTERRUPTED, Run
from dkl.learn.solver_choice import Choice, find_solver
from dkl.learn.weight_solvers import FoundWeights, WeightTask
from dkl.learn.widened import widen
from dkl.losses import find_loss, loss_of_scores
from dkl.options.docstrings import documented
from dkl.options.fields import parameter, parameters_of
from dkl.penalties import find_penalty
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.sums.targets import Targets

ALPHAS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""What cv chooses from if alpha is "auto"; the grid grows by tens while its least, or its largest, is the best."""
FIRST_ALPHAS = np.array([0.01, 0.1, 1.0, 10.0])
"""alphas that are tried first with many features, in units of the one learned with few."""
STEPS = 10
"""Steps that weights may take for each of max_iter."""


@dataclass(eq=False, repr=False)
class SingleKernel(KernelFamily):
    """Ridge weights of one kernel, whose sigma is given or learned."""

    family: ClassVar[str] = "single"
    FITTED: ClassVar[dict[str, Stored]] = RIDGE

    _: KW_ONLY
    loss: str = parameter("loss")
    penalty: str = parameter("penalty")
    solver: str = parameter("solver")
    solver_tol: float = parameter("solver_tol")
    alpha: Any = parameter("alpha")
    cv: Any = parameter("cv")
    learn: str | None = parameter("learn")
    learn_components: int | None = parameter("learn_components")
    validation: Any = parameter("validation")
    sigma_l1: float = parameter("sigma_l1")
    sigma_l2: float = parameter("sigma_l2")
    starts: int = parameter("starts")
    subsample: float | None = parameter("subsample")
    early_stopping: Any = parameter("early_stopping")
    reduce: float | str | None = parameter("reduce")

    def _restored(self) -> None:
        super()._restored()
        restored_ridge(self)

    @property
    def _learner(self) -> Learner:
        return learner_of(self.learn)

    def _check(self) -> None:
        super()._check()
        conflict = self._learner.conflict(parameters_of(self))
        if conflict is not None:
            raise ValueError(conflict)
        self._check_loss()
        if self.reduce is not None:
            self._check_reduce()

    def _check_loss(self) -> None:
        """Refuse a loss of something else, and what only squared errors have."""
        check_loss(self)
        if self.reduce is not None and not self._task(np.ones(1)).is_ridge:
            raise ValueError(
                f"reduce={self.reduce!r} takes loss='square' and penalty='l2', not loss={self.loss!r} and "
                f"penalty={self.penalty!r}"
            )

    def _check_reduce(self) -> None:
        """Refuse axes that cannot be kept."""
        kept, drawn = self.reduce, self.n_components
        if not isinstance(kept, str) and kept is not None and kept > drawn:
            raise ValueError(f"reduce={kept} is more than n_components={drawn}; keep fewer axes, or draw more features")
        if kept == drawn:
            warn_user(
                f"reduce={kept} keeps all of n_components={drawn} features, so it changes nothing; draw more of them: "
                f"n_components={3 * drawn}"
            )
        if not self.fit_intercept:
            raise ValueError(f"reduce={kept} takes axes about the mean, so it needs fit_intercept=True")

    def _check_targets(self, targets: Targets) -> None:
        alpha, outputs = self._starting_alpha(), targets.n_outputs
        if alpha.ndim > 1 or (self.cv is None and alpha.ndim and alpha.shape != (outputs,)):
            raise ValueError(
                f"alpha has shape {alpha.shape} and y has {outputs} outputs; give one number or one for each output, "
                "or set cv=5 to choose one of a list"
            )

    def _starting_alpha(self) -> np.ndarray:
        """alpha as numbers: what was given, or what "auto" stands for before anything is learned."""
        if not isinstance(self.alpha, str):
            return check_nonnegative("alpha", self.alpha)
        return np.array(ALPHAS) if self.cv is not None and not self._learner.learns else np.array(1.0)

    def _split(self, X: Table, y: Table | None) -> Split:
        return self._learner.split(parameters_of(self), X, y)

    @property
    def _needs_squares(self) -> bool:
        return self._learner.learns

    def _read_unlabelled(self, X_unlabelled: Any) -> Table | None:
        return read_unlabelled(self, X_unlabelled)

    def _task(self, alpha: np.ndarray, choose: bool = False, outputs: int = 2) -> WeightTask:
        """What is asked of the weights."""
        own = choose and isinstance(self.alpha, str)
        loss, penalty = loss_of_scores(find_loss(self.loss), outputs), find_penalty(self.penalty)
        most = STEPS * int(self.max_iter)
        return WeightTask(
            loss, penalty, alpha, bool(self.fit_intercept), choose, own, float(self.solver_tol), most, self.reduce
        )  # fmt: skip

    @property
    def _chooses(self) -> bool:
        """Whether folds choose alpha: without learning, or if sigma was learned for squared errors and the loss is
        another one, whose alpha means something else."""
        if not self._learner.learns:
            return self.cv is not None
        other = isinstance(self.alpha, str) and not self._task(np.ones(1)).is_ridge
        return other and not self._learner.of_loss(parameters_of(self))

    def _first_task(self, outputs: int) -> WeightTask:
        """The task before anything is learned."""
        widens = self.learn_components is not None
        alpha = (
            np.array(ALPHAS) if (self._chooses or widens) and isinstance(self.alpha, str) else self._starting_alpha()
        )
        task = self._task(alpha.reshape(-1), self._chooses or widens, outputs)
        return replace(task, tested=int(widens))

    def _choice(self, sizes: Sizes, of: MapCost, split: Split, task: WeightTask) -> Choice:
        return find_solver(self.solver, task, sizes, of, split.n_folds)

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        of, task = self._map_cost(sizes), self._first_task(sizes.outputs)
        passes = self._choice(sizes, of, split, task).solver.costs(sizes, of, split.n_folds, task)
        few = of if self.learn_components is None else fourier_map_cost(self._drawn_params(), sizes.inputs, sizes.dtype)
        return passes + self._learner.costs(sizes, few, split.n_folds, self.loss)

    def _solver_in_words(self, sizes: Sizes, split: Split) -> str:
        solver, why = self._choice(sizes, self._map_cost(sizes), split, self._first_task(sizes.outputs))
        return f"{solver.name} ({why})"

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        done, split, task = None, data.split, self._first_task(data.targets.n_outputs)
        set_or_delete(self, "scales_", None)
        if self._learner.learns:
            done, data, alpha = self._learn_sigma(run, data)
            run = replace(run, finish=False)
            run = replace(run, checkpoint=None) if done.reason == INTERRUPTED else run  # a later fit may move sigma
            if self.learn_components is not None:
                data, task, split = self._widened(run, data, given, task, alpha)
            elif not self._chooses:
                task, split = self._learned_task(task, done.result, alpha, split)
        sums = data.gram(split)
        solver = self._choice(sums.sizes, sums.map_cost, split, task).solver
        with unlabelled_sums(given.unlabelled, given.is_lazy, self.place, data, run.progress) as shaping:
            weights = solver.fit(run, data, split, task, shaping)
        warn_of_weights(weights, run.finish)
        self._set_found(weights, done, data)
        return Linear(data, weights.coef, weights.intercept)

    def _learned_task(
        self, task: WeightTask, learned: Learned, alpha: np.ndarray, split: Split
    ) -> tuple[WeightTask, Split]:
        """The task at the learned alpha, which may be refined by the folds."""
        own = not self._learner.keeps_alpha(parameters_of(self))
        objective, refine = self._learner.refinement(learned.share) if own and task.is_ridge else (None, None)
        task = replace(task, alpha=alpha, own=own, refine=objective, alpha_pass=refine)
        return task, split if objective is not None or refine is not None else Split()

    def _drawn_params(self) -> dict[str, Any]:
        few = self.learn_components
        return parameters_of(self) | ({} if few is None else {"n_components": few, "landmarks": None})

    def _widened(
        self, run: Run, data: Prepared, given: Given, task: WeightTask, alpha: np.ndarray
    ) -> tuple[Prepared, WeightTask, Split]:
        """The wide map with the learned sigma times the best factor, and the task at the alpha of that."""
        keep = not isinstance(self.alpha, str)
        first = np.array(ALPHAS) if self._chooses else alpha * FIRST_ALPHAS
        task = replace(task, alpha=alpha if keep else first)
        wide = widen(run, data, parameters_of(self), given.weight, task, keep)
        columns = zip(*wide.tried, strict=True)
        self.scales_ = dict(zip(("factor", "alpha", "held_out_loss"), map(np.array, columns), strict=True))
        return wide.data, replace(task, alpha=np.array([wide.alpha]), choose=False, own=False), Split()

    def _learn_sigma(self, run: Run, data: Prepared) -> tuple[Iterated[Learned], Prepared, np.ndarray]:
        """The way to the learned map, the data with it, and alpha."""
        params, learner = parameters_of(self), self._learner
        fixed = float(self._starting_alpha()) if learner.keeps_alpha(params) else None
        method = learner.method(params, data, fixed)
        done = iterate(run, method)
        if not (run.finish and done.reason == INTERRUPTED):  # which was asked for
            warn_of_learning(params, learner, done, data)
        features = learner.parameters(params, data).map(done.result.x)
        return done, data.with_map(features), np.array([done.result.alpha if fixed is None else fixed])

    def _set_found(self, weights: FoundWeights, done: Iterated[Learned] | None, data: Prepared) -> None:
        """What the solve and learning have found, beside the weights."""
        self.alpha_ = float(weights.alpha[0]) if weights.alpha.size == 1 else weights.alpha
        self.factorisation_ = {"method": weights.method, "jitter": weights.jitter}
        self.certificate_ = weights.certificate.told()
        set_or_delete(self, "reduced_", weights.reduced)
        scores, tried = weights.scores, weights.tried
        set_or_delete(self, "cv_results_", None if scores is None or tried is None else cv_results(tried, scores))
        refit, selected = None, None
        leave_out: tuple[str, ...] = ()
        if done is not None:
            refit, selected = done.result.refit, data.features.sigma > 0
            leave_out = () if hasattr(self, "classes_") else ("error_rate",)
            if np.isnan(done.history.arrays()["unseen_error"]).all():
                leave_out += ("unseen_error",)
        self._set_history(weights.way if done is None else done, data, leave_out)
        if done is not None:
            phases = phases_of(done.history.columns, self._learner.first_row)
            self.n_iter_ = sum(phase.iterations for phase in phases)
        set_or_delete(self, "selected_inputs_", selected)
        errors = None if refit is None else dict(zip(("penalised", "refit"), refit, strict=True))
        set_or_delete(self, "refit_errors_", errors)


@register
@documented
@dataclass(eq=False, repr=False)
class SingleKernelRegressor(KernelRegressor, SingleKernel):
    """Kernel ridge regression with random features, for any number of rows.

    Examples
    --------
    >>> import numpy as np, dkl
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = dkl.SingleKernelRegressor(n_components=50, sigma=1.0, alpha=1e-3, random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.999)
    True
    """

    def _check(self) -> None:
        super()._check()
        if self._learner.for_classes:
            raise ValueError(
                f"learn={self.learn!r} is the loss of classes (SingleKernelClassifier); use learn='cv' for numbers"
            )


@register
@documented
@dataclass(eq=False, repr=False)
class SingleKernelClassifier(KernelClassifier, SingleKernel):
    """One-against-all kernel ridge classification with random features, for any number of rows and classes."""
