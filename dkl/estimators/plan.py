"""dkl.plan: what a fit will need, before anything runs."""

from __future__ import annotations

from typing import Any

from dkl.engine.memory import Plan


def plan(X: Any, model: Any, y: Any = None) -> Plan:
    """What fitting the model to X will need, before anything runs; print it."""
    if hasattr(X, "fit"):
        raise TypeError(f"plan(X, model) takes the data first; X is a {type(X).__name__}")
    if not hasattr(model, "plan"):
        raise TypeError(
            "plan takes a SingleKernelRegressor, MultipleKernelRegressor, their classifiers, FeaturePCA or "
            "NystroemFeatures, got "
            f"{type(model).__name__}"
        )
    return model.plan(X, y)
