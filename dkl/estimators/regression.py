"""Kernel estimators of numbers: y is one column, or one for each output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from dkl.engine.apply import apply_rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.linear_family import Given, Linear, LinearFamily
from dkl.estimators.restore import all_or_nothing
from dkl.estimators.scoring import scored
from dkl.learn.model import Column
from dkl.prepare.targets import number_targets
from dkl.sums.targets import Targets


@dataclass(eq=False, repr=False)
class KernelRegressor(RegressorMixin, LinearFamily):
    """Numbers as a linear model of the features of a kernel."""

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, X_unlabelled: Any = None,
        resume: bool | str | None = None,
    ) -> Self:  # fmt: skip
        """Fit to the rows of X: numpy, pandas, Dask, xarray, scipy.sparse, or the path of a Zarr data set.

        X_unlabelled: rows without y that help to shape the axes of `reduce`, in one more pass; each weighs one.
        resume=True resumes from the checkpoint, which must exist (max_iter, max_time and tol may be others);
        "finish" takes the best point it has; False begins anew; None resumes if there is a checkpoint.
        Ctrl-C while something is learned takes the best point so far, with a warning; a second one stops.
        """
        self._fit(X, y, sample_weight, X_unlabelled, resume)
        return self

    @property
    def _for_classes(self) -> str:
        """The estimator of the same family that takes labels."""
        return type(self).__name__.replace("Regressor", "Classifier")

    def _targets(self, y: Table, weight: Table | None, progress: Progress) -> Targets:
        if np.dtype(y.array.dtype).kind not in "fiubO":
            raise ValueError(
                f"y has dtype {y.array.dtype}; regression needs numbers ({self._for_classes} takes labels)"
            )
        return number_targets(y, weight, bool(self.fit_intercept), progress)

    def _target_rows(self, y: Table) -> Table:
        if y.names is not None:
            raise ValueError(
                f"y holds names ({', '.join(y.names[:3])} ...), not numbers; {self._for_classes} takes them"
            )
        return y

    def _set_weights(self, linear: Linear, given: Given) -> None:
        flat = given.y.array.ndim == 1
        self.coef_ = linear.coef[:, 0] if flat else np.ascontiguousarray(linear.coef.T)
        self.intercept_ = float(linear.intercept[0]) if flat else linear.intercept

    def predict(self, X: Any) -> Any:
        """Predictions (n,) or (n, outputs): numpy, lazy Dask or labelled, like X."""
        table = self._open(X)
        scores = self._scores()
        if self._is_flat:
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
