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
from dkl.cost import Cost, Sizes
from dkl.engine.tables import Table
from dkl.estimators.advice import warn_of_learning
from dkl.estimators.classification import KernelClassifier
from dkl.estimators.family import Given, KernelFamily, Linear
from dkl.estimators.fitted import RIDGE, restored_ridge
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
from dkl.learn.plan import single_kernel_costs
from dkl.learn.ridge import RidgeOptions, Weights, fit_ridge
from dkl.learn.run import INTERRUPTED, Run
from dkl.options.docstrings import documented
from dkl.options.fields import parameter, parameters_of
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.sums.targets import Targets

ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""What cv chooses from if alpha is "auto"; the grid grows by tens while its least, or its largest, is the best."""


@dataclass(eq=False, repr=False)
class SingleKernel(KernelFamily):
    """Ridge weights of one kernel, whose sigma is given or learned."""

    family: ClassVar[str] = "single"
    FITTED: ClassVar[dict[str, Stored]] = RIDGE

    _: KW_ONLY
    alpha: Any = parameter("alpha")
    cv: Any = parameter("cv")
    learn: str | None = parameter("learn")
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
        if self.reduce is not None:
            self._check_reduce()

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

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        of, reduced = self._map_cost(sizes), self.reduce is not None
        alphas = self._starting_alpha().size if split.folds.count > 1 and not self._learner.learns else 0
        passes = single_kernel_costs(sizes, of, folds=split.n_folds, alphas=alphas, reduced=reduced)
        return passes + self._learner.costs(sizes, of, split.n_folds)

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        done, split, refine = None, data.split, None
        choose = self.cv is not None and not self._learner.learns
        alpha, own = self._starting_alpha().reshape(-1), choose and isinstance(self.alpha, str)
        options = RidgeOptions(alpha, bool(self.fit_intercept), choose, own=own, reduce=self.reduce)
        if self._learner.learns:
            done, data, alpha = self._learn_sigma(run, data)
            learned = not self._learner.keeps_alpha(parameters_of(self))
            objective, refine = self._learner.refinement(done.result.share) if learned else (None, None)
            options = replace(options, alpha=alpha, refine=objective, own=learned)
            split = split if objective is not None or refine is not None else Split()
            run = replace(run, checkpoint=None) if done.reason == INTERRUPTED else run  # a later fit may move sigma
        with unlabelled_sums(given.unlabelled, given.is_lazy, self.place, data, run.progress) as shaping:
            weights = fit_ridge(run, data.gram(split), options, shaping, refine)
        if weights.warning:
            warn_user(weights.warning)
        self._set_found(weights, done, data)
        return Linear(data, weights.coef, weights.intercept)

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

    def _set_found(self, weights: Weights, done: Iterated[Learned] | None, data: Prepared) -> None:
        """What the solve and learning have found, beside the weights."""
        self.alpha_ = float(weights.alpha[0]) if weights.alpha.size == 1 else weights.alpha
        self.factorisation_ = {"method": weights.method, "jitter": weights.jitter}
        set_or_delete(self, "reduced_", weights.reduced)
        scores = weights.scores
        set_or_delete(self, "cv_results_", None if scores is None else cv_results(weights.tried, scores))
        refit, selected = None, None
        leave_out: tuple[str, ...] = ()
        if done is not None:
            refit, selected = done.result.refit, data.features.sigma > 0
            leave_out = () if hasattr(self, "classes_") else ("error_rate",)
            if np.isnan(done.history.arrays()["unseen_error"]).all():
                leave_out += ("unseen_error",)
        self._set_history(done, data, leave_out)
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
