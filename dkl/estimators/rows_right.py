"""What a model makes of each row: right or wrong, or its squared error; of any estimator that predicts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from dkl.estimators.intervals import Interval, mean_interval, r2_influence, share_interval
from dkl.estimators.scoring import as_numpy, targets_of


@dataclass(frozen=True)
class RowErrors:
    """Rows that were right (classes), or errors of each output (numbers) with distances of y from its mean."""

    right: np.ndarray | None  # (n,) bool
    error: np.ndarray | None = None  # (n, c)
    distance: np.ndarray | None = None  # (n, c) squared

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.right if self.right is not None else self.error)  # type: ignore[arg-type]

    @cached_property
    def influence(self) -> np.ndarray:
        """What each row adds to R^2, mean over outputs."""
        assert self.error is not None
        assert self.distance is not None
        each = [r2_influence(e * e, d) for e, d in zip(self.error.T, self.distance.T, strict=True)]
        return np.asarray(np.mean(each, axis=0))

    @property
    def score(self) -> float:
        """Accuracy, or R^2 averaged over outputs, as `score` of scikit-learn."""
        if self.right is not None:
            return float(self.right.mean())
        assert self.error is not None
        assert self.distance is not None
        return float((1 - (self.error**2).sum(0) / self.distance.sum(0)).mean())

    def interval(self, confidence: float = 0.95) -> Interval:
        """The score with its interval."""
        if self.right is not None:
            return share_interval(int(self.right.sum()), self.rows, confidence)
        return mean_interval(self.score, self.influence, confidence)


def row_errors(model: Any, X: Any, y: Any = None) -> RowErrors:
    """Of every row; X may be what the model reads, a data set among it, which brings its own y."""
    wanted = np.asarray(targets_of(X, y))
    found = _predictions(model, X)
    if len(found) != len(wanted):
        raise ValueError(f"y has {len(wanted):,} rows and X {len(found):,}; give one y for each row")
    if is_classifier(model):
        if _are_numbers(found) != _are_numbers(wanted):
            shown = [some.reshape(-1)[:1].tolist()[0] for some in (found, wanted)]
            raise ValueError(f"{type(model).__name__} predicts classes such as {shown[0]!r}, and y has {shown[1]!r}")
        return RowErrors(found.reshape(-1) == wanted.reshape(-1))
    if wanted.dtype.kind not in "biuf":
        raise ValueError(f"y is of {wanted.dtype}, and {type(model).__name__} predicts numbers; give y as numbers")
    wanted = wanted.reshape(len(wanted), -1).astype(float)
    if not np.isfinite(wanted).all():
        row = int(np.argmin(np.isfinite(wanted).all(axis=1)))
        raise ValueError(f"y is {wanted[row].tolist()} at row {row}, so R^2 is not known; leave such rows out")
    distance = (wanted - wanted.mean(axis=0)) ** 2
    same = ~(wanted != wanted[0]).any(axis=0)
    if same.any():
        value = wanted[0, same.argmax()]
        raise ValueError(f"an output of y is {value:g} on all rows, so R^2 is not known; give rows where y varies")
    return RowErrors(None, found.reshape(wanted.shape) - wanted, distance)


def _are_numbers(labels: np.ndarray) -> bool:
    """Whether labels are numbers; those of an object array are told by the first."""
    if labels.dtype == object and labels.size:
        return isinstance(labels.reshape(-1)[0], (bool, int, float, np.number, np.bool_))
    return labels.dtype.kind in "biuf"


def _predictions(model: Any, X: Any) -> np.ndarray:
    """Block by block where the model can, so that lazy rows stay lazy."""
    if hasattr(model, "predict_blocks"):
        return np.concatenate([predicted for _, predicted, _ in model.predict_blocks(X)])
    return np.asarray(as_numpy(model.predict(X)))
