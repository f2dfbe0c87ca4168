"""A fitted estimator from disk. Anything but a whole model is refused in one sentence; nothing in it is executed."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.engine.memory import available_bytes
from dkl.estimators.continuous import ContinuousKernelClassifier, ContinuousKernelRegressor
from dkl.estimators.infinite import InfiniteFeatureClassifier, InfiniteFeatureRegressor
from dkl.estimators.json_values import check_plain, from_json
from dkl.estimators.learned_features import LearnedFeatures
from dkl.estimators.multiple import MultipleKernelClassifier, MultipleKernelRegressor
from dkl.estimators.pca import FeaturePCA
from dkl.estimators.registry import class_of, estimator_of, family_of
from dkl.estimators.single import SingleKernelClassifier, SingleKernelRegressor
from dkl.estimators.stored import ABSENT, Record
from dkl.estimators.transformers import MAPS
from dkl.options.fields import attributes_of
from dkl.sources.shown import shown
from dkl.store.record import open_record

TRANSFORMERS = {cls.__name__: cls for cls in (*MAPS, LearnedFeatures)}
"""Estimators that a parameter may be."""
OWN = (
    *MAPS,
    LearnedFeatures,
    FeaturePCA,
    ContinuousKernelRegressor,
    ContinuousKernelClassifier,
    InfiniteFeatureRegressor,
    InfiniteFeatureClassifier,
    MultipleKernelRegressor,
    MultipleKernelClassifier,
    SingleKernelRegressor,
    SingleKernelClassifier,
)
"""Estimators of the library, registered by being imported here."""
__all__ = ["OWN", "TRANSFORMERS", "estimator_of", "family_of", "load", "restore"]
REPORTED = ("history_", "cv_")
"""Arrays that tell how a model was found; nothing is predicted from them."""


def load(path: Any) -> Any:
    """Read a model that `save` wrote. Anything else is refused in one sentence, and nothing in it is executed."""
    attributes, arrays = open_record(path, available_bytes())
    _refuse_not_finite(path, arrays)
    try:
        cls: Any = class_of(attributes["estimator"])
        params = {name: from_json(value, TRANSFORMERS) for name, value in attributes["params"].items()}
        model, fitted = cls(**params), attributes["fitted"]
        check_plain("fitted", fitted)
        restore(model, Record(model._map_params(params), fitted, arrays))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"{shown(path)!r} is not a complete dkl model: {error}") from None
    return model


def restore(model: Any, record: Record) -> None:
    """Set every attribute that the model's FITTED declares, then those that follow from them."""
    for attribute, stored in attributes_of(type(model)).items():
        value = stored.read(attribute, record)
        if value is not ABSENT:
            setattr(model, attribute, value)
    model._restored()


def _refuse_not_finite(path: Any, arrays: dict[str, np.ndarray]) -> None:
    """Refuse NaN and infinity in what predictions are made of; the tables of a search may hold them."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not name.startswith(REPORTED) and not np.isfinite(array).all():
            bad = array[~np.isfinite(array)].flat[0]
            raise ValueError(f"array {name!r} of {shown(path)!r} holds {bad}, so it cannot predict; fit and save again")
