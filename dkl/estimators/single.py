"""One kernel, ridge weights: SingleKernelRegressor and SingleKernelClassifier."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets

from dkl.checks import check_count
from dkl.engine.apply import apply_rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.fitted import CLASSES, restored_classes
from dkl.estimators.inputs import check_labels, flat_labels, refuse_bad_labels
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.scoring import scored
from dkl.estimators.shared import SingleKernel
from dkl.estimators.stored import Stored
from dkl.learn.model import Choice, Column
from dkl.learn.thresholds import learn_thresholds
from dkl.options.docstrings import documented
from dkl.options.fields import parameter
from dkl.prepare.targets import label_targets, number_targets
from dkl.sums.targets import Targets


@documented
class SingleKernelRegressor(RegressorMixin, SingleKernel):
    """Kernel ridge regression with random features, for any number of rows.

    Examples
    --------
    >>> import numpy as np, dkl
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = dkl.SingleKernelRegressor(n_components=50, sigma=1.0, alpha=1e-3, random_state=0)
    >>> bool(model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.999)
    True
    """

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


@documented
@dataclass(eq=False, repr=False)
class SingleKernelClassifier(ClassifierMixin, SingleKernel):
    """One-against-all kernel ridge classification with random features, for any number of rows and classes."""

    FITTED: ClassVar[dict[str, Stored]] = CLASSES

    _: KW_ONLY
    class_weight: Any = parameter("class_weight")
    calibrate: int | None = parameter("calibrate")

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

    def _restored(self) -> None:
        super()._restored()
        restored_classes(self)

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
