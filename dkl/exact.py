"""Kernel ridge with the exact kernel, for comparison: f(x) = k(x, X) a + b0, sigma and alpha by gradient.

The interface of SingleKernelRegressor and SingleKernelClassifier, on up to 10,000 rows in memory: an evaluation of the
objective costs n^3 / 3 multiplications and three n x n arrays.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dkl.engine.apply import apply_rows
from dkl.engine.blocks import Rows as Aligned
from dkl.engine.progress import Progress
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.advice import ended_early
from dkl.estimators.aim import fold_numbers, read_aim
from dkl.estimators.estimator import Parameters
from dkl.estimators.fitted import CLASSES, INPUTS, MAP, RIDGE, WEIGHTS
from dkl.estimators.fourier import draw_generator
from dkl.estimators.input_info import extent_at, set_extent
from dkl.estimators.inputs import check_labels, flat_labels, read_inputs, read_targets, read_weight, refuse_bad_labels
from dkl.estimators.learning import check_learning, input_names, set_history, starting_alpha, starts_of
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.scoring import cv_results, scored
from dkl.estimators.stored import Stored
from dkl.features.kernel_inputs import prepare_inputs
from dkl.kernels import find_kernel
from dkl.learn.bandwidth import Learned
from dkl.learn.exact import DualScores, ExactProblem, fold_scores, in_memory, learn_exact, solve_exact
from dkl.learn.model import Choice, Column
from dkl.learn.parameters import Scales
from dkl.options.docstrings import documented
from dkl.options.fields import check_parameters, parameter
from dkl.prepare.draw import build_map
from dkl.prepare.input_ranges import extent_of
from dkl.prepare.targets import label_targets, number_targets, sum_small
from dkl.solvers.exact_ridge import Rows, rows_of
from dkl.sums.input_moments import MomentProgram
from dkl.sums.targets import Targets

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
    **{name: (MAP | WEIGHTS | RIDGE)[name] for name in SHARED},
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
        params = self.get_params(deep=False)
        self._check(params)
        table = with_known_rows(read_inputs(self, X, reset=True))
        self._refuse_many(table.array.shape[0])
        y_table = with_known_rows(read_targets(X, y, type(self).__name__, table))
        weight = read_weight(sample_weight, table)
        aim = read_aim(params | NOT_HERE, table, y_table)
        n = Aligned([table, y_table, weight, aim.folds.labels], ["X", "y", "sample_weight", "cv"]).n_rows
        if aim.folds.labels is None and aim.held is None and aim.folds.count > n:
            raise ValueError(f"cv={aim.folds.count} folds need at least as many rows, X has {n} sample(s); use fewer")
        rows, y_rows, weight = in_memory(table), in_memory(y_table), None if weight is None else in_memory(weight)
        targets, Y, w = self._targets(y_rows, weight)
        rng = draw_generator(self.random_state)
        seed = int(rng.integers(2**62))

        def moments(program: Any) -> Any:
            return sum_small(program, [rows, weight], ["X", "sample_weight"], Progress(0))

        base, groups = build_map(params | UNUSED, self.n_features_in_, table.input_coords, rng, moments)
        T = prepare_inputs(rows.array, base.kernel, base.skew, np.dtype(np.float64))
        for name in ("fold_", "cv_results_"):
            if hasattr(self, name):
                delattr(self, name)
        self.sigma_, self.groups_, alphas = base.sigma, groups, starting_alpha(params, aim.objective).reshape(-1)
        seen = MomentProgram(base.kernel, base.skew).value((rows.array, w))
        set_extent(self, extent_of(seen, self.n_features_in_))
        learned, self.alpha_ = None, float(alphas[0])
        fold, folds = fold_numbers(aim, n, seed), aim.folds.count
        if folds > 1:
            self.fold_ = fold
        if aim.objective is not None:
            scales = Scales(base, groups, float(self.sigma_l1), float(self.sigma_l2))
            learned = self._learn(scales, rows_of(aim.objective, T, Y, w, fold, folds), targets, seed)
        elif folds > 1:
            self._choose(rows_of("cv", T, Y, w, fold, folds), alphas)
        set_history(self, learned, input_names(table, getattr(self, "feature_names_in_", None), groups))
        self._solve(rows.array[w > 0], T[w > 0], Y[w > 0], w[w > 0], targets)
        return y_rows.array.ndim == 1

    def _check(self, params: dict) -> None:
        """Refuse parameters before any row is read."""
        check_parameters(self)
        check_learning(params | NOT_HERE)
        if not isinstance(self.alpha, str) and np.size(self.alpha) != 1 and self.cv is None:
            raise ValueError(f"alpha has {np.size(self.alpha)} values; give one, or set cv=5 to choose one of them")

    def _refuse_many(self, n: int) -> None:
        if n > self.max_rows:
            kind = "Classifier" if isinstance(self, ClassifierMixin) else "Regressor"
            raise ValueError(
                f"X has {n:,} rows, {type(self).__name__} takes {self.max_rows:,} (its kernel matrix would take "
                f"{8e-9 * n * n:,.1f} GB); use dkl.SingleKernel{kind}, or max_rows={n} if you have the memory"
            )

    def _learn(self, scales: Scales, rows: Rows, targets: Targets, seed: int) -> Learned:
        """Learn sigma_ and alpha_."""
        alpha = None if isinstance(self.alpha, str) and rows.objective != "joint" else self.alpha_
        problem = ExactProblem(scales, rows, bool(self.fit_intercept), alpha, targets.variance, targets.is_class)
        progress, starts = Progress(self.verbose), [start.factor for start in starts_of(self.starts)]
        learned = learn_exact(problem, starts, self.tol, self.max_iter, self.max_time, seed, progress)
        if learned.reason != "converged":
            said = ended_early(self.get_params(), learned, extent_at(self), scales.groups)
            warnings.warn(said, ConvergenceWarning, stacklevel=5)
        self.sigma_, self.alpha_ = scales.map(learned.x).sigma, learned.alpha
        return learned

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
            warnings.warn(
                f"alpha={self.alpha_:g} leaves the system singular in float64 (solved by {dual.factor.method}, jitter "
                f"{dual.factor.jitter:.1e}); raise alpha",
                UserWarning,
                stacklevel=5,
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

    def _apply(self, X: Any) -> Any:
        """Scores (n,) if there is one for each row, else (n, outputs): numpy, lazy Dask or labelled, like X."""
        check_is_fitted(self, "dual_coef_")
        table, scores = read_inputs(self, X, reset=False), self._scores()
        if np.ndim(self.intercept_) == 0 or (hasattr(self, "classes_") and len(self.intercept_) == 1):
            return apply_rows("predict", Column(scores), table, None, np.float64)
        return apply_rows("predict", scores, table, len(scores.intercept), np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = "skewed" in str(self.kernel)
        return tags


@documented
class KernelRidgeGD(RegressorMixin, ExactKernel):
    """Kernel ridge regression with the exact kernel; sigma and alpha are learned by gradient."""

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn sigma and alpha, then solve for the weights of all rows."""
        if self._fit(X, y, sample_weight):
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], float(self.intercept_[0])
        return self

    def _targets(self, y: Table, weight: Table | None) -> tuple[Targets, np.ndarray, np.ndarray]:
        if y.array.dtype.kind not in "fiubO":
            raise ValueError(f"y has dtype {y.array.dtype}; use numbers, or KernelRidgeGDClassifier for labels")
        targets = number_targets(y, weight, bool(self.fit_intercept), Progress(0))
        Y = targets.encode(y.array) * targets.unit
        return targets, Y, np.ones(len(Y)) if weight is None else weight.array.astype(np.float64)

    def predict(self, X: Any) -> Any:
        """Predictions (n,) or (n, outputs): numpy, lazy Dask or labelled, like X."""
        return self._apply(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions."""
        true, guess, weight = scored(self, X, y, sample_weight)
        return r2_score(true, guess, sample_weight=weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


@documented
@dataclass(eq=False, repr=False)
class KernelRidgeGDClassifier(ClassifierMixin, ExactKernel):
    """One-against-all kernel ridge classification with the exact kernel; sigma and alpha are learned by gradient."""

    FITTED: ClassVar[dict[str, Stored]] = {"classes_": CLASSES["classes_"]}

    _: KW_ONLY
    class_weight: Any = parameter("class_weight")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn sigma and alpha, then solve for the weights of all rows."""
        self._fit(X, y, sample_weight)
        return self

    def _targets(self, y: Table, weight: Table | None) -> tuple[Targets, np.ndarray, np.ndarray]:
        y = flat_labels(y)
        refuse_bad_labels(y.array)
        check_classification_targets(y.array)
        targets = label_targets(y, weight, self.class_weight, Progress(0))
        assert targets.classes is not None
        self.classes_ = check_labels(targets.classes)
        codes = targets.encode(y.array)
        Y = 2.0 * np.eye(targets.n_targets)[codes] - 1
        w = targets.row_weight(codes, None if weight is None else weight.array)
        w = np.ones(len(Y)) if w is None else w * targets.weight_unit
        return targets, Y[:, 1:] if targets.n_targets == 2 else Y, w

    def decision_function(self, X: Any) -> Any:
        """Scores (n,) of the second of two classes, or (n, classes)."""
        return self._apply(X)

    def predict(self, X: Any) -> Any:
        """Classes (n,): numpy, lazy Dask or labelled, like X."""
        check_is_fitted(self, "dual_coef_")
        table = read_inputs(self, X, reset=False)
        return apply_rows("predict", Choice(self._scores(), self.classes_), table, None, self.classes_.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predictions."""
        true, guess, weight = scored(self, X, y, sample_weight)
        return accuracy_score(true, guess, sample_weight=weight)
