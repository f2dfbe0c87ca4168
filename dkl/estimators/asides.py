"""Small answers to questions that the estimators of one kernel ask of their parameters and data."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dkl.engine.tables import open_table


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


def plain(value: Any) -> str:
    """A parameter as text that differs when it does; a generator, which no text tells apart, by its kind."""
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.tolist()))
    return type(value).__name__ if isinstance(value, (np.random.Generator, np.random.RandomState)) else repr(value)


def changes_numbers(recipe: dict | None) -> bool:
    """Whether a recipe does more than to copy columns."""
    channels = (recipe or {}).get("channels", [])
    return any(c["scale"] != "none" or c["categories"] or c["fill"] is not None for c in channels)


def own_targets(X: Any, y: Any) -> Any:
    """y, or the y of the data set that X is."""
    if y is not None:
        return y
    if hasattr(X, "data_vars") or isinstance(X, (str, os.PathLike)):
        return X["y"] if hasattr(X, "data_vars") else X
    raise ValueError("score requires y; only a data set (a path, an xarray Dataset) brings its own")


def as_numpy(y: Any) -> Any:
    """A column of any kind, here."""
    if y is None:
        return None
    table = open_table(y, "y")
    values = np.asarray(table.array.compute() if hasattr(table.array, "compute") else table.array[:])
    return values if table.names is None else table.names[values]
