"""A network that goes on: warm_start begins where the last fit ended, partial_fit has one epoch over some rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from dkl.features.fourier import FourierMap
from dkl.learn.cosine import continued, units_of
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn
from dkl.sums.input_moments import MomentProgram
from dkl.sums.networks import Parameters


def one_epoch(model: Any, X: Any, y: Any, sample_weight: Any, **known: Any) -> None:
    """One epoch over X, which a first call begins and a later one goes on with; sets what fit sets."""
    if hasattr(model, "features_"):
        model._open(X)  # refuses other inputs
    fresh = copy(model)
    changes = {"warm_start": True, "max_iter": 1, "max_time": None, "validation": None, "checkpoint": None}
    for name, value in (changes | known).items():
        setattr(fresh, name, value)
    fresh.fit(X, y, sample_weight=sample_weight)
    own = model.get_params(deep=False)
    vars(model).update({n: v for n, v in vars(fresh).items() if n not in own and n not in known})


def known_classes(model: Any, classes: Any) -> np.ndarray:
    """The classes of a model that goes on, or those that the first call of partial_fit names."""
    if model.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all rows, and partial_fit sees some; give a dict from class to weight"
        )
    if hasattr(model, "classes_"):
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), model.classes_):
            raise ValueError(f"classes={classes!r} are not those of the first call, {model.classes_.tolist()}")
        return np.asarray(model.classes_)
    if classes is None:
        raise ValueError("classes=None: the first call of partial_fit needs all classes, e.g. classes=np.unique(y)")
    found = np.unique(np.asarray(classes))
    if len(found) < 2:
        raise ValueError(f"classes={classes!r} has one class; a classifier needs at least two")
    return found


def known_map(model: Any, seed: int, moments: Callable[[Any], Any]) -> Drawn:
    """The map that training goes on with; other inputs, or another width, are refused."""
    features: FourierMap = model.features_
    for name, now, then in (
        ("X has n_features", model.n_features_in_, features.n_inputs),
        ("n_components", model.n_components, features.n_features),
    ):
        if now != then:
            raise ValueError(f"{name}={now}, and the model that warm_start=True goes on with has {then}; use False")
    w, mean, m2 = moments(MomentProgram(features.kernel, features.skew, features.additive)).spread
    return features, model.groups_, getattr(model, "_seed", seed), np.asarray(m2 + w * mean * mean), None


def known_start(model: Any, data: Prepared) -> tuple[Parameters, Parameters | None]:
    """Parameters and velocities of a fitted model; one that was loaded is at rest."""
    coef, units = np.atleast_2d(model.coef_).T, units_of(data)
    start = continued(data, data.features, coef, np.atleast_1d(model.intercept_))
    kept = getattr(model, "_velocity", None)
    return start, None if kept is None else {name: v * units[name] for name, v in kept.items()}
