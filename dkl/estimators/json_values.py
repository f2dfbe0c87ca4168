"""Parameters of estimators as JSON and back: numbers, texts, arrays, slices and estimators, no pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from dkl.learn.distributions import as_text

FREE = ("history", "factorisation", "reduced")
"""Plain values that may hold NaN or infinity: they tell how a model was found, and nothing is predicted from them."""


def params_to_json(model: BaseEstimator) -> dict[str, Any]:
    """All parameters of an estimator."""
    return {name: to_json(name, value) for name, value in model.get_params(deep=False).items()}


def to_json(name: str, value: Any) -> Any:
    """A parameter as JSON."""
    if name == "checkpoint" or value is None:
        return None
    if name == "search":
        value = as_text(value)
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if name == "validation":
        return float(np.mean(value))  # the share that a mask holds out, not its rows
    if name in ("random_state", "cv"):
        return None  # generators, splitters and folds of rows are not saved; frequencies and scores are
    if name == "dtype":
        return np.dtype(value).name
    if isinstance(value, BaseEstimator):
        return {"features": params_to_json(value), "estimator": type(value).__name__}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "U":  # as wide as its longest text, which is how it is read back
            value = np.array(value.tolist(), np.str_)
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, dict):
        return {"dict": [[to_json(name, k), to_json(name, v)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [to_json(name, v) for v in value]
    raise TypeError(f"{name}={value!r} cannot be saved; use numbers, strings, lists or arrays")


def from_json(value: Any, classes: Mapping[str, type] | None = None) -> Any:
    """The parameter back; `classes` are the estimators that a parameter may be."""
    if isinstance(value, list):
        return [from_json(v, classes) for v in value]
    if not isinstance(value, dict):
        return value
    if "features" in value:
        cls = (classes or {})[value.get("estimator", "FourierFeatures")]
        return cls(**{name: from_json(v, classes) for name, v in value["features"].items()})
    if "slice" in value:
        return slice(*value["slice"])
    if "array" in value:
        dtype = np.dtype(value["dtype"])
        if dtype.kind not in "fiubU":
            raise ValueError(f"a parameter has dtype {dtype}; use numbers or texts")
        array = np.array(value["array"], np.str_ if dtype.kind == "U" else dtype)
        if array.dtype != dtype:
            raise ValueError(f"a parameter of dtype {array.dtype} says it has {dtype}")
        return array
    return {from_json(k, classes): from_json(v, classes) for k, v in value["dict"]}


def check_plain(name: str, value: Any) -> None:
    """Refuse NaN and infinity among plain values: shifts and factors of a recipe, nodes of an additive map."""
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{name} is {value}, which is no finite number")
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in FREE:
                check_plain(str(key), item)
    elif isinstance(value, list):
        for item in value:
            check_plain(name, item)
