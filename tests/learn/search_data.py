"""Rows for searches over networks, and what a search found out."""

from __future__ import annotations

from typing import Any

import numpy as np

import dkl

RNG = np.random.default_rng(5)
N, INPUTS = 150, 3
X = RNG.uniform(-1, 1, (N, INPUTS))
LABEL = np.array(["in", "out"])[(np.hypot(X[:, 0], X[:, 1]) + 0.1 * RNG.normal(size=N) > 0.7).astype(int)]
NUMBER = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
SEARCH = {
    "candidates": 7, "n_components": (3, 9), "variance": (0.5, 4.0, "log"), "learning_rate": (1e-3, 0.1, "log"),
    "decay": [0.0, 1e-3],
}  # fmt: skip
OPTIONS = {"search": SEARCH, "sigma": 1.0, "max_iter": 24, "batch_size": 25, "random_state": 3, "verbose": 0}


def searched(X: Any = X, y: Any = LABEL, **options: Any) -> Any:
    """A fitted classifier, or a regressor of numbers."""
    numbers = y is not None and np.asarray(y).dtype.kind == "f"
    cls = dkl.ContinuousKernelRegressor if numbers else dkl.ContinuousKernelClassifier
    own = {name: options.pop(name) for name in ("sample_weight", "resume") if name in options}
    return cls(**(OPTIONS | options)).fit(X, y, **own)


def everything(model: Any) -> dict[str, np.ndarray]:
    """All that a search found out, but how long it took."""
    values = {"coef": model.coef_, "intercept": model.intercept_, "unit": model.features_.unit}
    values |= {"phase": model.features_.phase}
    values |= {f"table {name}": column.values for name, column in model.search_results_.data_vars.items()}
    history = model.history_.drop_vars("seconds")
    values |= {f"history {name}": history[name].values for name in history.variables}
    return {name: np.asarray(value) for name, value in values.items()}
