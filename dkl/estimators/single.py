"""One kernel, ridge weights: SingleKernelRegressor and SingleKernelClassifier."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets

from dkl.checks import check_count
from dkl.engine.apply import apply_rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.inputs import check_labels, flat_labels, refuse_bad_labels
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.scoring import scored
from dkl.estimators.shared import SingleKernel
from dkl.estimators.words import PARAMETERS
from dkl.learn.model import Choice, Column
from dkl.learn.thresholds import learn_thresholds
from dkl.prepare.targets import label_targets, number_targets
from dkl.sums.targets import Targets


class SingleKernelRegressor(RegressorMixin, SingleKernel):
    __doc__ = "Kernel ridge regression with random Fourier features, on any number of rows.\n" + PARAMETERS

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, X_unlabelled: Any = None,
        resume: bool | str | None = None,
    ) -> Self:  # fmt: skip
        """Fit in one pass over X (and one before it, of moments, if sigma="scale"); to learn takes two for a step.

        X_unlabelled: rows without y that help to shape the axes of `reduce`, for one pass more; each weighs one.
        resume=True goes on from the checkpoint, which must exist (max_iter, max_time and tol may be others);
        "finish" solves with the best sigma it has; False begins anew; None takes what there is.
        Ctrl-C while sigma is learned solves with the best so far, and says so; a second one stops.
        """
        weights, flat, _ = self._fit(X, y, sample_weight, X_unlabelled, resume)
        self.coef_ = weights.coef[:, 0] if flat else np.ascontiguousarray(weights.coef.T)
        self.intercept_ = float(weights.intercept[0]) if flat else weights.intercept
        self.alpha_ = float(weights.alpha[0]) if weights.alpha.size == 1 else weights.alpha
        return self

    def _check(self) -> None:
        super()._check()
        if self.learn == "log_loss":
            raise ValueError(
                "learn='log_loss' is the loss of classes (SingleKernelClassifier); use learn='cv' for numbers"
            )

    def _targets(self, y: Table, weight: Table | None, progress: Progress) -> Targets:
        if np.dtype(y.array.dtype).kind not in "fiubO":
            raise ValueError(
                f"y has dtype {y.array.dtype}; regression needs numbers (SingleKernelClassifier takes labels)"
            )
        return number_targets(y, weight, bool(self.fit_intercept), progress)

    def _target_rows(self, y: Table) -> Table:
        if y.names is not None:
            raise ValueError(
                f"y holds names ({', '.join(y.names[:3])} ...), not numbers; SingleKernelClassifier takes them"
            )
        return y

    def _count_outputs(self, y: Table) -> int:
        return y.n_columns

    def predict(self, X: Any) -> Any:
        """Predictions (n,) or (n, outputs): numpy, lazy Dask or labelled, like X."""
        table = self._open(X)
        scores = self._scores()
        if np.ndim(self.coef_) == 1:
            return apply_rows("predict", Column(scores), table, None, np.float64)
        return apply_rows("predict", scores, table, len(self.coef_), np.float64)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions; 0 for a constant target that is not met. A data set brings its own y."""
        true, guess, weight = scored(self, X, y, sample_weight)
        return r2_score(true, guess, sample_weight=weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags


class SingleKernelClassifier(ClassifierMixin, SingleKernel):
    __doc__ = (
        "One-against-all kernel ridge classification with random Fourier features; any number of rows and classes.\n\n"
        "    classes_ are the labels found; class_weight is None, 'balanced' (by weight, given sample_weight) or\n"
        "    a dict from class to weight. calibrate=k (500, say) subtracts from the scores of each class the k-th\n"
        "    highest it has over the training rows, in one more pass over X, so that of many classes each stands as\n"
        "    often above zero; None leaves scores as they are. Rows of sample_weight 0 do not count, others count\n"
        "    once, whatever they weigh. thresholds_ has what is subtracted of each class (of two, which share one\n"
        "    score, half the difference); coef_ and intercept_ stay. calibrate_scores does it over other rows.\n"
        + PARAMETERS
    )

    def __init__(
        self,
        kernel: str = "gaussian",
        n_components: int = 1000,
        *,
        sigma: Any = "scale",
        groups: Any = None,
        frequencies: str = "orthogonal",
        form: str = "paired",
        skew: float = 1.0,
        n_terms: int = 5,
        landmarks: str | None = None,
        alpha: Any = "auto",
        cv: Any = None,
        learn: str | None = "none",
        validation: Any = 0.2,
        sigma_l1: float = 0.0,
        sigma_l2: float = 0.0,
        starts: int = 3,
        subsample: float | None = None,
        max_iter: int = 50,
        tol: float = 1e-3,
        max_time: float | None = None,
        early_stopping: Any = "auto",
        reduce: float | str | None = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        calibrate: int | None = None,
        random_state: Any = None,
        dtype: Any = None,
        place: str = "scheduler",
        checkpoint: Any = None,
        verbose: int = 1,
    ) -> None:
        super().__init__(
            kernel,
            n_components,
            sigma=sigma,
            groups=groups,
            frequencies=frequencies,
            form=form,
            skew=skew,
            n_terms=n_terms,
            landmarks=landmarks,
            alpha=alpha,
            cv=cv,
            learn=learn,
            validation=validation,
            sigma_l1=sigma_l1,
            sigma_l2=sigma_l2,
            starts=starts,
            subsample=subsample,
            max_iter=max_iter,
            tol=tol,
            max_time=max_time,
            early_stopping=early_stopping,
            reduce=reduce,
            fit_intercept=fit_intercept,
            random_state=random_state,
            dtype=dtype,
            place=place,
            checkpoint=checkpoint,
            verbose=verbose,
        )
        self.class_weight = class_weight
        self.calibrate = calibrate

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, X_unlabelled: Any = None,
        resume: bool | str | None = None,
    ) -> Self:  # fmt: skip
        """Fit in one pass over X (and one before it, of moments, if sigma="scale"); to learn takes two for a step.

        X_unlabelled: rows without y that help to shape the axes of `reduce`, for one pass more; each weighs one.
        resume=True goes on from the checkpoint, which must exist (max_iter, max_time and tol may be others);
        "finish" solves with the best sigma it has; False begins anew; None takes what there is.
        Ctrl-C while sigma is learned solves with the best so far, and says so; a second one stops.
        """
        weights, _, (table, weight) = self._fit(X, y, sample_weight, X_unlabelled, resume)
        self.coef_ = np.ascontiguousarray(weights.coef.T)
        self.intercept_ = weights.intercept
        self.alpha_ = float(weights.alpha[0]) if weights.alpha.size == 1 else weights.alpha
        if hasattr(self, "thresholds_"):
            del self.thresholds_
        if self.calibrate is not None:
            self._set_thresholds("calibrate", self.calibrate, table, weight)
        return self

    @all_or_nothing
    def calibrate_scores(self, X: Any, k: int = 500) -> Self:
        """thresholds_ = the k-th highest score of each class over the rows of X, in place of earlier ones."""
        self._set_thresholds("k", check_count("k", k), with_known_rows(self._open(X)), None)
        return self

    def _set_thresholds(self, name: str, k: int, X: Table, weight: Table | None) -> None:
        """Calibrate; `name` is what the caller calls k."""
        found = learn_thresholds(self._scores(), k, X, weight, Progress(self.verbose))
        if found.rows < k:
            warnings.warn(
                f"{name}={k} is more than the {found.rows} rows there are, so the lowest score of each class is "
                f"subtracted; use {name}={found.rows} or less",
                UserWarning,
                stacklevel=4,
            )
        self.thresholds_ = found.thresholds

    def _check(self) -> None:
        super()._check()
        if self.calibrate is not None:
            check_count("calibrate", self.calibrate)

    def _targets(self, y: Table, weight: Table | None, progress: Progress) -> Targets:
        if not y.is_lazy:
            refuse_bad_labels(y.array)
            check_classification_targets(y.array)
        targets = label_targets(y, weight, self._weight_of_codes(y), progress)
        assert targets.classes is not None
        labels = check_labels(targets.classes)
        self.classes_ = labels if y.names is None else y.names[labels.astype(int)]
        return targets

    def _weight_of_codes(self, y: Table) -> Any:
        """class_weight for the numbers that a stored y has for its names."""
        if y.names is None or not isinstance(self.class_weight, dict):
            return self.class_weight
        codes = {name: code for code, name in enumerate(y.names.tolist())}
        for name in self.class_weight:
            if name not in codes:
                raise ValueError(f"class_weight names {name!r}, which is not a class; classes are {list(codes)[:10]}")
        return {codes[name]: weight for name, weight in self.class_weight.items()}

    def _target_rows(self, y: Table) -> Table:
        return flat_labels(y)

    def _count_outputs(self, y: Table) -> int:
        return label_targets(self._target_rows(y), None, None, Progress(0)).n_targets

    def decision_function(self, X: Any) -> Any:
        """Scores (n,) of the second of two classes, or (n, classes), less thresholds_ if the model is calibrated."""
        table = self._open(X)
        scores = self._scores()
        if len(self.coef_) == 1:
            return apply_rows("scores", Column(scores), table, None, np.float64)
        return apply_rows("scores", scores, table, len(self.coef_), np.float64)

    def predict(self, X: Any) -> Any:
        """Classes (n,): numpy, lazy Dask or labelled, like X."""
        table = self._open(X)
        return apply_rows("predict", Choice(self._scores(), self.classes_), table, None, self.classes_.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predictions. A data set brings its own y."""
        true, guess, weight = scored(self, X, y, sample_weight)
        return accuracy_score(true, guess, sample_weight=weight)
