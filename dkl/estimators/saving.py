"""A fitted estimator to disk: parameters as JSON, what was fitted as its FITTED says, no pickle."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from dkl.estimators.json_values import check_plain, params_to_json
from dkl.estimators.registry import REGISTERED
from dkl.estimators.stored import Record
from dkl.options.fields import attributes_of
from dkl.store.record import save_record


def save(model: Any, path: Any, overwrite: bool = False) -> None:
    """Write a fitted estimator to a Zarr group at a local path or fsspec URL.

    overwrite=True replaces a model of dkl that is there (on a local disk: when the new one is complete).
    Parameters that are objects (a random generator, a splitter) are saved as None; what they led to is saved.
    """
    check_is_fitted(model)
    name = type(model).__name__
    if REGISTERED.get(name) is not type(model):
        raise TypeError(f"{name} is not registered, so dkl.load could not read it; decorate the class with @register")
    record = Record({})
    for attribute, stored in attributes_of(type(model)).items():
        if hasattr(model, attribute):
            stored.write(attribute, getattr(model, attribute), record)
    check_plain("fitted", record.fitted)  # what load would refuse
    about = {"estimator": type(model).__name__, "params": params_to_json(model), "fitted": record.fitted}
    arrays = {name: (record.dims[name], values) for name, values in record.arrays.items()}
    save_record(path, about, arrays, overwrite=overwrite)
