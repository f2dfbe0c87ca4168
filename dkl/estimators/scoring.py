"""Scores of predictions, and the table of cross-validation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dkl.engine.labels import refuse_other_rows
from dkl.engine.tables import Table, labelled_rows, open_table


def cv_results(alpha: np.ndarray, scores: np.ndarray) -> dict[str, np.ndarray]:
    """The table of all folds and alphas, with GridSearchCV's names."""
    mean = scores.mean(axis=1)
    return {
        "param_alpha": alpha,
        **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": (-mean).argsort(kind="stable").argsort(kind="stable") + 1,
    }


def changes_numbers(recipe: dict | None) -> bool:
    """Whether a recipe changes the numbers, beyond copying columns."""
    channels = (recipe or {}).get("channels", [])
    return any(c["scale"] != "none" or c["categories"] or c["fill"] is not None for c in channels)


def own_targets(X: Any, y: Any) -> Any:
    """y, or the y of the data set that X is."""
    if y is not None:
        return y
    if hasattr(X, "data_vars") or isinstance(X, (str, os.PathLike)):
        return X["y"] if hasattr(X, "data_vars") else X
    raise ValueError(
        f"score requires y: X is a {type(X).__name__}, not a data set (a path, an xarray Dataset) with its own y"
    )


def scored(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """(y, predictions, weights) of rows that agree, here; a data set brings its own y."""
    return targets_of(X, y), as_numpy(model.predict(X)), values_beside(X, sample_weight, "sample_weight")


def targets_of(X: Any, y: Any) -> Any:
    """y of the rows of X, here; a data set brings its own."""
    return values_beside(X, own_targets(X, y), "y")


def values_beside(X: Any, given: Any, name: str) -> Any:
    """A column of any kind, here; refused if its rows are not those of X."""
    if given is None:
        return None
    table = open_table(given, name)
    refuse_other_rows(labelled_rows(X), table, name)
    return _values(table)


def as_numpy(y: Any) -> Any:
    """A column of any kind, here."""
    return None if y is None else _values(open_table(y, "y"))


def _values(table: Table) -> Any:
    values = np.asarray(table.array.compute() if hasattr(table.array, "compute") else table.array[:])
    return values if table.names is None else table.names[values]
