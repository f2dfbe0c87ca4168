"""The rows that a report is about, by name, and what the model makes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dkl.estimators.intervals import Interval, mean_interval, share_interval
from dkl.estimators.rows_right import RowErrors, row_errors
from dkl.store.dataset import open_node

MOST_CONFUSED = 3
"""Classes that are named as those a class is taken for."""


class Scored(NamedTuple):
    """What the model makes of one split: rows, figures with their intervals, and for classes the whole evaluation."""

    name: str
    rows: int
    figures: dict[str, Interval]
    evaluation: dict[str, Any] | None

    @property
    def score(self) -> Interval:
        """Accuracy, or R^2."""
        return self.figures["accuracy" if self.evaluation else "R^2"]


def splits_of(X: Any, y: Any, train: Any) -> dict[str, tuple[Any, Any]]:
    """Rows by name: `train` first if it is given, then X, of which a data set may have splits of its own."""
    found: dict[str, tuple[Any, Any]] = {}
    if train is not None:
        found["train"] = train if isinstance(train, tuple) else (train, None)
    if X is None:
        return found
    if isinstance(X, Mapping):
        return {**found, **{str(name): rows if isinstance(rows, tuple) else (rows, None) for name, rows in X.items()}}
    names = None
    if y is None and isinstance(X, (str, os.PathLike)):
        names = open_node(os.fspath(X)).attrs.get("splits")
    if names:
        return {**found, **{str(name): (f"{os.fspath(X).rstrip('/')}/{name}", None) for name in names}}
    return {**found, "test" if found else "rows": (X, y)}


def scored(model: Any, name: str, X: Any, y: Any) -> Scored:
    """Every figure of a split."""
    if hasattr(model, "classes_"):
        found = model.evaluate(X, y)
        return Scored(name, found["rows"], _of_classes(found), found)
    errors = row_errors(model, X, y)
    return Scored(name, errors.rows, _of_numbers(errors), None)


def _of_classes(found: dict[str, Any]) -> dict[str, Interval]:
    """Accuracy with Wilson's interval, and what has none."""
    rows = found["rows"]
    figures = {"accuracy": share_interval(round(found["accuracy"] * rows), rows)}
    if found["top5_error"] is not None:
        figures["top-5 accuracy"] = share_interval(round((1 - found["top5_error"]) * rows), rows)
    named = {"mean recall": "mean_recall", "log loss": "log_loss", "Brier score": "brier_score",
             "calibration error": "calibration_error"}  # fmt: skip
    nan = float("nan")
    return figures | {name: Interval(found[key], nan, nan) for name, key in named.items() if found[key] is not None}


def _of_numbers(errors: RowErrors) -> dict[str, Interval]:
    """R^2, the root of the mean square, the mean absolute and the largest error."""
    assert errors.error is not None
    square = (errors.error**2).mean(axis=1)
    mean = mean_interval(float(square.mean()), square)
    rmse = Interval(*(float(np.sqrt(max(0.0, value))) for value in mean))
    size = np.abs(errors.error)
    absolute = mean_interval(float(size.mean()), size.mean(axis=1))
    nan = float("nan")
    largest = Interval(float(size.max()), nan, nan)
    figures = {"R^2": errors.interval(), "root mean square error": rmse, "mean absolute error": absolute}
    return {**figures, "largest error": largest}


def worst_classes(evaluation: dict[str, Any], most: int) -> list[dict[str, Any]]:
    """Classes of the lowest recall, with its interval, precision, and what they are taken for."""
    confusion, classes = np.asarray(evaluation["confusion"]), evaluation["classes"]
    known = [i for i, one in enumerate(classes) if one["rows"]]
    order = sorted(known, key=lambda i: (classes[i]["recall"], -classes[i]["rows"]))[:most]
    worst = []
    for i in order:
        others = np.where(np.arange(len(classes)) == i, 0, confusion[i])
        taken = [j for j in np.argsort(-others, kind="stable")[:MOST_CONFUSED].tolist() if others[j]]
        worst.append({
            **classes[i], "number": i, "interval": share_interval(int(confusion[i, i]), classes[i]["rows"]),
            "taken_for": [(classes[j]["class"], int(others[j])) for j in taken],
        })  # fmt: skip
    return worst
