"""Exact kernels, for comparison: f(x) = k(x, X) a + b0, sigma and alpha by gradient, or k a sum with learned weights.

KernelRidgeGD has the interface of SingleKernelRegressor and SingleKernelClassifier, on up to 10,000 rows in memory: an
evaluation of the objective costs n^3 / 3 multiplications and three n x n arrays. GMKL learns the weights of kernels.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets

from dkl.engine.apply import apply_rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.exact_kernel import ExactKernel
from dkl.estimators.exact_sum import ExactSum, loss_of_numbers
from dkl.estimators.fitted import CLASSES
from dkl.estimators.inputs import check_labels, flat_labels, refuse_bad_labels
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.scoring import scored
from dkl.estimators.stored import Stored
from dkl.learn.model import Choice
from dkl.options.docstrings import documented
from dkl.options.fields import parameter
from dkl.options.option import Option
from dkl.prepare.targets import label_targets, number_targets
from dkl.sums.targets import Targets

__all__ = ["GMKL", "ExactKernel", "ExactSum", "GMKLClassifier", "KernelRidgeGD", "KernelRidgeGDClassifier"]


NUMBERS = Option(
    "loss", "square", "Loss of the residuals.", takes='"square" or "epsilon_insensitive"', rule=loss_of_numbers,
    doc='Half of the square, or "epsilon_insensitive" (support vectors), also "epsilon_insensitive:epsilon=0.2" in the '
    "units of y; epsilon is 0.1.",
)  # fmt: skip
LABELS = Option(
    "loss", "square", "Loss of each class against the rest.", choices=("square", "hinge"),
    doc='"square" of targets -1 and +1, or "hinge" (support vectors).',
)  # fmt: skip


class _Numbers(RegressorMixin):
    """What regressors share."""

    dual_coef_: Any
    intercept_: Any

    def _targets(self, y: Table, weight: Table | None) -> tuple[Targets, np.ndarray, np.ndarray]:
        if y.array.dtype.kind not in "fiubO":
            raise ValueError(f"y has dtype {y.array.dtype}; use numbers, or {type(self).__name__}Classifier for labels")
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


class _Labels(ClassifierMixin):
    """What classifiers share."""

    class_weight: Any

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
        table = self._read_new(X)
        return apply_rows("predict", Choice(self._scores(), self.classes_), table, None, self.classes_.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predictions."""
        true, guess, weight = scored(self, X, y, sample_weight)
        return accuracy_score(true, guess, sample_weight=weight)


@documented
class KernelRidgeGD(_Numbers, ExactKernel):
    """Kernel ridge regression with the exact kernel; sigma and alpha are learned by gradient."""

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn sigma and alpha, then solve for the weights of all rows."""
        if self._fit(X, y, sample_weight):
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], float(self.intercept_[0])
        return self


@documented
@dataclass(eq=False, repr=False)
class KernelRidgeGDClassifier(_Labels, ExactKernel):
    """One-against-all kernel ridge classification with the exact kernel; sigma and alpha are learned by gradient."""

    FITTED: ClassVar[dict[str, Stored]] = {"classes_": CLASSES["classes_"]}

    _: KW_ONLY
    class_weight: Any = parameter("class_weight")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn sigma and alpha, then solve for the weights of all rows."""
        self._fit(X, y, sample_weight)
        return self


@documented
@dataclass(eq=False, repr=False)
class GMKL(_Numbers, ExactSum):
    """Regression with a weighted sum of exact kernels, whose weights are learned; many of them are zero.

    Generalised multiple kernel learning, which has the solution of a group lasso of the kernels' features.
    """

    _: KW_ONLY
    loss: str = parameter(NUMBERS)

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the weights of the kernels, then of the rows."""
        if self._fit(X, y, sample_weight):
            self.dual_coef_, self.intercept_ = self.dual_coef_[:, 0], float(self.intercept_[0])
        return self


@documented
@dataclass(eq=False, repr=False)
class GMKLClassifier(_Labels, ExactSum):
    """One-against-all classification with a weighted sum of exact kernels, whose weights are learned.

    All classes share the weights of the kernels; many of them are zero.
    """

    FITTED: ClassVar[dict[str, Stored]] = {"classes_": CLASSES["classes_"]}

    _: KW_ONLY
    loss: str = parameter(LABELS)
    class_weight: Any = parameter("class_weight")

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the weights of the kernels, then of the rows."""
        self._fit(X, y, sample_weight)
        return self
