"""Kernel estimators of classes: one score for each class, one score for two; the highest is chosen."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from dkl.checks import check_count, warn_user
from dkl.cost import Cost, Sizes
from dkl.engine.apply import apply_rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.fitted import CLASSES, restored_classes
from dkl.estimators.input_info import set_or_delete
from dkl.estimators.inputs import check_labels, flat_labels, refuse_bad_labels
from dkl.estimators.linear_family import Given, Linear, LinearFamily
from dkl.estimators.probabilities import IfProbabilistic, probabilistic
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.scoring import scored
from dkl.estimators.stored import Stored
from dkl.learn.model import Choice, Column, Probabilities
from dkl.learn.thresholds import learn_thresholds
from dkl.losses import Loss, find_loss, loss_of_scores
from dkl.options.fields import parameter
from dkl.prepare.targets import label_targets
from dkl.sums.targets import Targets
from dkl.sums.top import top_cost


@dataclass(eq=False, repr=False)
class KernelClassifier(ClassifierMixin, LinearFamily):
    """Classes by a linear model of the features of a kernel; any number of classes, never one-hot."""

    FITTED: ClassVar[dict[str, Stored]] = CLASSES

    _: KW_ONLY
    class_weight: Any = parameter("class_weight")
    calibrate: int | None = parameter("calibrate")

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, X_unlabelled: Any = None,
        resume: bool | str | None = None,
    ) -> Self:  # fmt: skip
        """Fit to the rows of X and their labels; arguments are those of KernelRegressor.fit."""
        self._fit(X, y, sample_weight, X_unlabelled, resume)
        return self

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

    def _other_costs(self, sizes: Sizes) -> list[Cost]:
        """Those of the map, and the pass that keeps the highest scores of each class."""
        kept = min(sizes.rows, self.calibrate or 0)
        return [*super()._other_costs(sizes)] + ([top_cost(sizes, self._map_cost(sizes), kept)] if kept else [])

    def _set_weights(self, linear: Linear, given: Given) -> None:
        self.coef_, self.intercept_ = np.ascontiguousarray(linear.coef.T), linear.intercept
        set_or_delete(self, "thresholds_", None)
        if self.calibrate is not None:
            self._set_thresholds("calibrate", self.calibrate, given.X, given.weight)

    @all_or_nothing
    def calibrate_scores(self, X: Any, k: int = 500) -> Self:
        """thresholds_ = the k-th highest score of each class over the rows of X, in place of earlier ones."""
        self._set_thresholds("k", check_count("k", k), with_known_rows(self._open(X)), None)
        return self

    def _set_thresholds(self, name: str, k: int, X: Table, weight: Table | None) -> None:
        """Subtract each class's k-th highest score; `name` is what the caller calls k."""
        found = learn_thresholds(self._scores(), k, X, weight, Progress(self.verbose))
        if found.rows < k:
            warn_user(
                f"{name}={k} is more than the {found.rows} rows there are, so the lowest score of each class is "
                f"subtracted; use {name}={found.rows} or less"
            )
        self.thresholds_ = found.thresholds

    def decision_function(self, X: Any) -> Any:
        """Scores (n,) of the second of two classes, or (n, classes), less thresholds_ if the model is calibrated."""
        table = self._open(X)
        scores = self._scores()
        if len(scores.intercept) == 1:
            return apply_rows("scores", Column(scores), table, None, np.float64)
        return apply_rows("scores", scores, table, len(self.coef_), np.float64)

    def _loss_of_scores(self) -> Loss | None:
        """The loss that the scores were fitted with; None, if they mean nothing beside their order."""
        if not hasattr(self, "loss"):
            return getattr(self, "_loss", None)
        outputs = len(self.coef_) if hasattr(self, "coef_") else 2
        return loss_of_scores(find_loss(self.loss), outputs)

    @IfProbabilistic
    def predict_proba(self, X: Any) -> Any:
        """Probability of each class (n, classes), in the order of classes_: numpy, lazy Dask or labelled, like X.

        They come from the scores before calibration, so thresholds_ move predict and leave them as they are. Only with
        loss="log_loss" or "logistic".
        """
        return self._probabilities(X, log=False)

    @IfProbabilistic
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba (n, classes); finite where a probability is too small for a number."""
        return self._probabilities(X, log=True)

    def _probabilities(self, X: Any, log: bool) -> Any:
        table, loss = self._open(X), probabilistic(self)
        assert loss is not None
        function = Probabilities(self._scores(), loss, log)
        return apply_rows("probabilities", function, table, len(self.classes_), np.float64)

    def predict(self, X: Any) -> Any:
        """Classes (n,): numpy, lazy Dask or labelled, like X."""
        table = self._open(X)
        return apply_rows("predict", Choice(self._scores(), self.classes_), table, None, self.classes_.dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predictions. A data set brings its own y."""
        true, guess, weight = scored(self, X, y, sample_weight)
        return accuracy_score(true, guess, sample_weight=weight)
