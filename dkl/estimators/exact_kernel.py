"""What the exact regressor and classifier share: f(x) = k(x, X) a + b0, sigma and alpha by gradient, rows in memory."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_nonnegative, warn_user
from dkl.engine.apply import apply_rows
from dkl.engine.blocks import Rows as Aligned
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.advice import ended_early
from dkl.estimators.estimator import Parameters
from dkl.estimators.fitted import INPUTS, KERNEL, MAP, RIDGE, WEIGHTS
from dkl.estimators.fourier import draw_generator
from dkl.estimators.input_info import extent_at, input_coords, set_extent, set_or_delete
from dkl.estimators.inputs import read_inputs, read_targets, read_weight
from dkl.estimators.scoring import cv_results
from dkl.estimators.single import ALPHAS
from dkl.estimators.stored import Stored
from dkl.features.kernel_inputs import prepare_inputs
from dkl.kernels import find_kernel
from dkl.learn.exact import ExactBandwidth, fold_scores, solve_exact
from dkl.learn.exact_problem import ExactProblem, in_memory, rows_of
from dkl.learn.history import history_dataset
from dkl.learn.iterate import Iterated, iterate
from dkl.learn.learned import Learned
from dkl.learn.learners import learner_of, starts_of
from dkl.learn.model import Column, DualScores
from dkl.learn.objectives import CV, Objective
from dkl.learn.parameters import Scales
from dkl.learn.phases import phases_of
from dkl.learn.run import Limits, Run
from dkl.options.fields import check_parameters, parameter, parameters_of
from dkl.prepare.draw import build_map
from dkl.prepare.input_ranges import extent_of
from dkl.prepare.targets import sum_small
from dkl.solvers.exact_ridge import Rows
from dkl.sums.input_moments import MomentProgram
from dkl.sums.targets import Targets
from dkl.sums.tree import TreeProgram

LEARN = ("validation", "cv", "joint", "gcv", "none")
NOT_HERE = {"subsample": None, "landmarks": None, "early_stopping": None}
"""Parameters of learning with features that do not apply here."""
UNUSED = {"n_components": 1, "frequencies": "iid", "form": "phase", "n_terms": 5}
"""A map of one unused frequency yields the kernel, the groups and the starting sigma."""

SHARED = (
    "sigma_",
    "groups_",
    "input_spread_",
    "input_range_",
    "alpha_",
    "cv_results_",
    "history_",
    "n_iter_",
    "selected_inputs_",
    "factorisation_",
)
FITTED: dict[str, Stored] = {
    **INPUTS,
    "X_fit_": Stored("Training rows; those of zero weight are left out."),
    "dual_coef_": Stored("Weights of the training rows: f(x) = k(x, X_fit_) dual_coef_ + intercept_."),
    "intercept_": Stored("Intercepts."),
    **{name: (MAP | KERNEL | WEIGHTS | RIDGE)[name] for name in SHARED},
    "fold_": Stored('Fold of each row, if there are folds; with learn="validation", 1 for held-out rows.'),
}


@dataclass(eq=False, repr=False)
class ExactKernel(Parameters):
    """What the regressor and the classifier share."""

    FITTED: ClassVar[dict[str, Stored]] = FITTED

    kernel: str = parameter("kernel")
    _: KW_ONLY
    sigma: Any = parameter("sigma")
    groups: Any = parameter("groups")
    skew: float = parameter("skew")
    alpha: Any = parameter("alpha")
    cv: Any = parameter("cv")
    learn: Any = parameter(
        "learn",
        "validation",
        choices=LEARN,
        doc='As in SingleKernelRegressor; "gcv" needs two more n x n arrays. To compare two models on the same rows, '
        "give `fold_` of one to the other: cv=model.fold_, or validation=model.fold_ == 1.",
    )
    validation: Any = parameter("validation")
    sigma_l1: float = parameter("sigma_l1")
    sigma_l2: float = parameter("sigma_l2")
    starts: int = parameter(
        "starts",
        doc="Learning starts from 1, 1/3, 3, 1/9 ... times sigma on about 2,000 rows and continues from the best.",
    )
    max_iter: int = parameter("max_iter")
    tol: float = parameter("tol")
    max_time: float | None = parameter("max_time")
    fit_intercept: bool = parameter("fit_intercept")
    random_state: Any = parameter("random_state")
    max_rows: int = parameter("max_rows")
    verbose: int = parameter("verbose")

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> bool:
        """Fit everything; returns whether y was one column."""
        params = parameters_of(self)
        self._check(params)
        table = with_known_rows(read_inputs(self, X, reset=True))
        self._refuse_many(table.array.shape[0])
        y_table = with_known_rows(read_targets(X, y, type(self).__name__, table))
        weight = read_weight(sample_weight, table)
        learner = learner_of(self.learn)
        split = learner.split(params | NOT_HERE, table, y_table)
        n = Aligned([table, y_table, weight, split.folds.labels], ["X", "y", "sample_weight", "cv"]).n_rows
        split.check(n)
        rows, y_rows, weight = in_memory(table), in_memory(y_table), None if weight is None else in_memory(weight)
        targets, Y, w = self._targets(y_rows, weight)
        rng = draw_generator(self.random_state)
        seed = int(rng.integers(2**62))

        def moments(program: TreeProgram) -> Any:
            return sum_small(program, [rows, weight], ["X", "sample_weight"], Progress(0))

        base, groups = build_map(params | UNUSED, self.n_features_in_, table.input_coords, rng, moments)
        T = prepare_inputs(rows.array, base.kernel, base.skew, np.dtype(np.float64))
        self.sigma_, self.groups_, alphas = base.sigma, groups, self._starting_alpha()
        seen = MomentProgram(base.kernel, base.skew).value((rows.array, w))
        set_extent(self, extent_of(seen, self.n_features_in_))
        done, self.alpha_ = None, float(alphas[0])
        fold, folds = split.fold_of(n, seed), split.folds.count
        set_or_delete(self, "fold_", fold if folds > 1 else None)
        set_or_delete(self, "cv_results_", None)
        if learner.objective is not None:
            scales = Scales(base, groups, float(self.sigma_l1), float(self.sigma_l2))
            done = self._learn(
                scales, learner.objective, rows_of(learner.objective, T, Y, w, fold, folds), targets, seed
            )
        elif folds > 1:
            self._choose(rows_of(CV, T, Y, w, fold, folds), alphas)
        self._set_history(done, table)
        self._solve(rows.array[w > 0], T[w > 0], Y[w > 0], w[w > 0], targets)
        return y_rows.array.ndim == 1

    def _check(self, params: dict) -> None:
        """Refuse what no rows could make right."""
        check_parameters(self)
        conflict = learner_of(self.learn).conflict(params | NOT_HERE)
        if conflict is not None:
            raise ValueError(conflict)
        if not isinstance(self.alpha, str) and np.size(self.alpha) != 1 and self.cv is None:
            raise ValueError(f"alpha has {np.size(self.alpha)} values; give one, or set cv=5 to choose one of them")

    def _refuse_many(self, n: int) -> None:
        if n > self.max_rows:
            kind = "Classifier" if isinstance(self, ClassifierMixin) else "Regressor"
            raise ValueError(
                f"X has {n:,} rows, {type(self).__name__} takes {self.max_rows:,} (its kernel matrix would take "
                f"{8e-9 * n * n:,.1f} GB); use dkl.SingleKernel{kind}, or max_rows={n} if you have the memory"
            )

    def _starting_alpha(self) -> np.ndarray:
        """alpha as numbers: what was given, or what "auto" stands for before anything is learned."""
        if not isinstance(self.alpha, str):
            return check_nonnegative("alpha", self.alpha).reshape(-1)
        return np.array(ALPHAS if self.cv is not None and not learner_of(self.learn).learns else (1.0,))

    def _learn(
        self, scales: Scales, objective: Objective, rows: Rows, targets: Targets, seed: int
    ) -> Iterated[Learned]:  # fmt: skip
        """Set sigma_ and alpha_ to what is learned."""
        alpha = None if isinstance(self.alpha, str) and objective.learns_alpha else self.alpha_
        problem = ExactProblem(scales, rows, bool(self.fit_intercept), alpha, targets.variance, targets.is_class)
        method = ExactBandwidth(problem, tuple(start.factor for start in starts_of(self.starts)), seed)
        limits = Limits(int(self.max_iter), float(self.tol), None if self.max_time is None else float(self.max_time))
        aligned = Aligned([Table("memory", rows.T)], ["X"])
        done = iterate(Run(Embedded(), aligned, Progress(self.verbose), limits), method)
        if done.reason != "converged":
            warn_user(ended_early(self.get_params(), done, extent_at(self), scales.groups), ConvergenceWarning)
        self.sigma_, self.alpha_ = scales.map(done.result.x).sigma, done.result.alpha
        return done

    def _set_history(self, done: Iterated[Learned] | None, table: Table) -> None:
        """history_, n_iter_ and selected_inputs_."""
        self.n_iter_ = 1
        set_or_delete(self, "selected_inputs_", None if done is None else self.sigma_ > 0)
        set_or_delete(self, "history_", None)
        if done is not None:
            self.n_iter_ = sum(phase.iterations for phase in phases_of(done.history.columns))
            left_out = {"unseen_error"} if hasattr(self, "classes_") else {"unseen_error", "error_rate"}
            columns = {name: values for name, values in done.history.arrays().items() if name not in left_out}
            along = input_coords(table, getattr(self, "feature_names_in_", None), self.groups_, done.history.about)
            self.history_ = history_dataset(done.history.about, columns, {"input": along})

    def _choose(self, rows: Rows, alphas: np.ndarray) -> None:
        """Set alpha_ to the best of several for the folds."""
        scores = fold_scores(find_kernel(self.kernel), self.sigma_, rows, alphas, bool(self.fit_intercept))
        self.cv_results_ = cv_results(alphas, scores)
        self.alpha_ = float(alphas[scores.mean(axis=1).argmax()])

    def _solve(self, X: np.ndarray, T: np.ndarray, Y: np.ndarray, weight: np.ndarray, targets: Targets) -> None:
        """The weights of all rows."""
        kernel, intercept = find_kernel(self.kernel), bool(self.fit_intercept)
        dual = solve_exact(kernel, self.sigma_, T, Y, weight, self.alpha_, intercept)
        if dual.factor.method != "cholesky":
            warn_user(
                f"alpha={self.alpha_:g} leaves the system singular in float64 (solved by {dual.factor.method}, jitter "
                f"{dual.factor.jitter:.1e}); raise alpha"
            )
        self.factorisation_ = {"method": dual.factor.method, "jitter": dual.factor.jitter}
        self.X_fit_, self.dual_coef_ = X, dual.coef
        self.intercept_ = dual.intercept if targets.is_class else dual.intercept + targets.shift

    def _scores(self) -> Any:
        """The block function of the fitted scores."""
        kernel, c = find_kernel(self.kernel), float(self.skew)
        T = prepare_inputs(self.X_fit_, kernel, c, np.dtype(np.float64))
        coef = self.dual_coef_.reshape(len(T), -1)
        return DualScores(kernel, c, self.sigma_, T, coef, np.atleast_1d(self.intercept_))

    def _read_new(self, X: Any) -> Table:
        """Rows to predict."""
        check_is_fitted(self, "dual_coef_")
        return read_inputs(self, X, reset=False)

    def _apply(self, X: Any) -> Any:
        """Scores (n,) if there is one for each row, else (n, outputs): numpy, lazy Dask or labelled, like X."""
        table, scores = self._read_new(X), self._scores()
        if np.ndim(self.intercept_) == 0 or (hasattr(self, "classes_") and len(self.intercept_) == 1):
            return apply_rows("predict", Column(scores), table, None, np.float64)
        return apply_rows("predict", scores, table, len(scores.intercept), np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = "skewed" in str(self.kernel)
        return tags
