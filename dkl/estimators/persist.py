"""Fitted estimators to and from disk: parameters as JSON, arrays as Zarr, no pickle."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice, check_count
from dkl.engine.memory import available_bytes
from dkl.estimators.chi2 import Chi2Features
from dkl.estimators.fourier import FourierFeatures
from dkl.estimators.inputs import DTYPES
from dkl.estimators.json_values import from_json, to_json
from dkl.estimators.nystroem import NystroemFeatures
from dkl.estimators.pca import FeaturePCA
from dkl.estimators.single import SingleKernelClassifier, SingleKernelRegressor
from dkl.estimators.transformers import MAPS
from dkl.features.additive import as_plain, from_plain
from dkl.features.map import Arrays
from dkl.features.stored import restore_map, store_map
from dkl.learn.history import history_dataset
from dkl.sources.shown import shown
from dkl.store.record import open_record, save_record

REPORTED = ("history_", "cv_")
"""Arrays that tell how a model was found; nothing is predicted from them."""
ESTIMATORS = {cls.__name__: cls for cls in (*MAPS, FeaturePCA, SingleKernelRegressor, SingleKernelClassifier)}


PLAIN = ("reduced", "n_iter", "recipe", "request", "refit_errors")
"""Attributes of plain values; `request` is what `dkl fit` was asked for, as a digest."""


def save(model: Any, path: Any, overwrite: bool = False) -> None:
    """Write a fitted estimator to a Zarr group at a local path or fsspec URL.

    overwrite=True replaces a model of dkl that is there (on a local disk: when the new one is complete).
    Parameters that are objects (a random generator, a splitter) are saved as None; what they led to is saved.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    arrays: Arrays = {}
    fitted: dict[str, Any] = {}
    if isinstance(model, Chi2Features):
        fitted |= {"additive": as_plain(model.additive_), "n_features_in": model.n_features_in_}
    else:
        about, own = store_map(model.features_)
        fitted |= about
        arrays |= own
    for name in ("groups", "channels"):
        if hasattr(model, f"{name}_"):
            arrays[name] = ("input",), getattr(model, f"{name}_")
    if hasattr(model, "input_spread_"):
        arrays["input_spread"] = ("input",), model.input_spread_
        arrays["input_range"] = ("end", "input"), model.input_range_
    if isinstance(model, FeaturePCA):
        arrays["components"] = (("axis", "component"), model.components_)
        arrays["mean"] = (("component",), model.mean_)
        arrays["variance"] = (("axis",), model.explained_variance_)
        arrays["variance_ratio"] = (("axis",), model.explained_variance_ratio_)
    if hasattr(model, "feature_names_in_"):
        fitted["feature_names_in"] = list(map(str, model.feature_names_in_))
    if hasattr(model, "input_labels_"):
        fitted["input_labels"] = to_json("input_labels", model.input_labels_)
    if hasattr(model, "coef_"):
        coef = np.asarray(model.coef_)
        arrays["coef"] = (("output", "component")[-coef.ndim :], coef)
        arrays["intercept"] = (("output",), np.atleast_1d(model.intercept_))
        arrays["alpha"] = (("penalty",), np.atleast_1d(model.alpha_))
        fitted["factorisation"], fitted["dtype"] = model.factorisation_, model.dtype_
    if hasattr(model, "cv_results_"):
        for name, column in model.cv_results_.items():
            arrays[f"cv_{name}"] = (("candidate",), column)
    if hasattr(model, "history_"):
        _store_history(model.history_, arrays, fitted)
    fitted |= {name: getattr(model, f"{name}_") for name in PLAIN if hasattr(model, f"{name}_")}
    if hasattr(model, "classes_"):
        _store_classes(model.classes_, arrays, fitted)
    if hasattr(model, "thresholds_"):
        arrays["thresholds"] = (("class",), model.thresholds_)
    params = {name: to_json(name, value) for name, value in model.get_params(deep=False).items()}
    about = {"estimator": type(model).__name__, "params": params, "fitted": fitted}
    save_record(path, about, arrays, overwrite=overwrite)


def load(path: Any) -> Any:
    """Read a model that `save` wrote. Anything else is refused in one sentence, and nothing in it is executed."""
    attributes, arrays = open_record(path, available_bytes())
    _refuse_not_finite(path, arrays)
    try:
        cls = ESTIMATORS[check_choice("estimator", attributes["estimator"], ESTIMATORS)]
        params = {name: from_json(value) for name, value in attributes["params"].items()}
        model, fitted = cls(**params), attributes["fitted"]
        _check_plain("fitted", fitted)
        _restore(model, params, fitted, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(f"{shown(path)!r} is not a complete dkl model: {error}") from None
    return model


def _refuse_not_finite(path: Any, arrays: dict[str, np.ndarray]) -> None:
    """Refuse NaN and infinity in what predictions are made of; the tables of a search may hold them."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not name.startswith(REPORTED) and not np.isfinite(array).all():
            bad = array[~np.isfinite(array)].flat[0]
            raise ValueError(
                f"array {name!r} of {shown(path)!r} holds {bad}, so that it cannot predict; fit and save again"
            )


def _check_plain(name: str, value: Any) -> None:
    """Refuse NaN and infinity among plain values: shifts and factors of a recipe, nodes of an additive map."""
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"{name} is {value}, which is no finite number")
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in ("history", "factorisation", "reduced"):
                _check_plain(str(key), item)
    elif isinstance(value, list):
        for item in value:
            _check_plain(name, item)


def _restore(model: Any, params: dict, fitted: dict, arrays: dict[str, np.ndarray]) -> None:
    if "feature_names_in" in fitted:
        model.feature_names_in_ = np.array(fitted["feature_names_in"], dtype=object)
    if "input_labels" in fitted:
        model.input_labels_ = from_json(fitted["input_labels"])
    if isinstance(model, Chi2Features):
        to = from_plain(fitted["additive"])
        if to is None or to.n_terms != model.n_terms:
            raise ValueError(f"n_terms={model.n_terms} is not that of its map")
        model.additive_ = to
        model.n_features_in_ = check_count("n_features_in", fitted["n_features_in"])
        model._n_features_out = to.n_terms * model.n_features_in_
        return
    if isinstance(model, FeaturePCA):
        _restore_axes(model, fitted, arrays)
        return
    model.features_ = restore_map(fitted, arrays, params)
    _restore_sigma(model, arrays)
    if isinstance(model, NystroemFeatures):
        model.set_map(model.features_)
        return
    if isinstance(model, FourierFeatures):
        model._n_features_out = model.features_.n_features
        return
    coef, intercept, alpha = arrays["coef"], arrays["intercept"], arrays["alpha"]
    outputs = np.atleast_2d(coef).shape[:1]
    if coef.ndim > 2 or coef.shape[-1] != model.features_.n_features or intercept.shape != outputs or not alpha.size:
        raise ValueError(f"coef has shape {coef.shape} for {model.features_.n_features} features")
    model.coef_ = coef
    model.intercept_ = float(intercept[0]) if coef.ndim == 1 else intercept
    model.alpha_ = float(alpha[0]) if alpha.size == 1 else alpha
    model.factorisation_ = dict(fitted["factorisation"])
    model.dtype_ = check_choice("dtype", fitted["dtype"], DTYPES)
    if "reduced" in fitted:
        model.reduced_ = {"axes": int(fitted["reduced"]["axes"]), "share": float(fitted["reduced"]["share"])}
    if isinstance(fitted.get("recipe"), dict):
        model.recipe_ = fitted["recipe"]
    if "refit_errors" in fitted:
        model.refit_errors_ = {str(name): float(error) for name, error in fitted["refit_errors"].items()}
    if isinstance(fitted.get("request"), str):
        model.request_ = fitted["request"]
    model.n_iter_ = int(fitted["n_iter"])
    if "history" in fitted:
        columns = {name.removeprefix("history_"): a for name, a in arrays.items() if name.startswith("history_")}
        model.history_ = history_dataset(columns, {name: from_json(c) for name, c in fitted["history"].items()})
        model.selected_inputs_ = model.sigma_ > 0
    table = {name.removeprefix("cv_"): column for name, column in arrays.items() if name.startswith("cv_")}
    if table:
        model.cv_results_ = table
    if isinstance(model, SingleKernelClassifier):
        stored = "classes" in arrays
        model.classes_ = arrays["classes"] if stored else _strings(fitted["classes"], fitted["classes_are_objects"])
        if len(coef) != (1 if len(model.classes_) == 2 else len(model.classes_)):
            raise ValueError(f"{len(coef)} rows of coef for {len(model.classes_)} classes")
        if "thresholds" in arrays:
            model.thresholds_ = _finite("thresholds", arrays["thresholds"], model.classes_.shape)


def _finite(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array, if it has that shape and only finite numbers."""
    if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite float64 of shape {shape}, got {array.dtype} {array.shape}: {array}")
    return array


def _restore_sigma(model: Any, arrays: dict[str, np.ndarray]) -> None:
    """sigma and group of each input."""
    model.sigma_, model.groups_ = model.features_.sigma, arrays["groups"]
    if model.groups_.shape != model.sigma_.shape:
        raise ValueError(f"sigma {model.sigma_.shape} and groups {model.groups_.shape} do not belong together")
    m = model.n_features_in_ = len(model.sigma_)
    if "input_spread" in arrays:  # not of a model of given sigma, nor of earlier versions
        model.input_spread_ = _finite("input_spread", arrays["input_spread"], (m,))
        model.input_range_ = _finite("input_range", arrays["input_range"], (2, m))


def _restore_maps(model: FeaturePCA, fitted: dict, arrays: dict[str, np.ndarray]) -> None:
    """The map, or those of the channels."""
    inner = FourierFeatures() if model.features is None else model.features
    model.features_ = restore_map(fitted, arrays, inner.get_params(deep=False))
    if "channels" in arrays:
        model.channels_ = arrays["channels"]
        model.n_features_in_ = len(model.channels_)
        return
    if "groups" in arrays:
        _restore_sigma(model, arrays)
    else:
        model.n_features_in_ = model.features_.inputs


def _restore_axes(model: FeaturePCA, fitted: dict, arrays: dict[str, np.ndarray]) -> None:
    """What PCA found."""
    _restore_maps(model, fitted, arrays)
    axes, mean, variance, ratio = (arrays[name] for name in ("components", "mean", "variance", "variance_ratio"))
    d = model.features_.n_features
    if axes.shape != (len(variance), d) or mean.shape != (d,) or ratio.shape != variance.shape:
        raise ValueError(f"components has shape {axes.shape} for {d} features")
    model.components_, model.mean_ = axes, mean
    model.explained_variance_, model.explained_variance_ratio_ = variance, ratio
    model.n_components_ = model._n_features_out = len(axes)


def _store_history(history: Any, arrays: dict, fitted: dict) -> None:
    """Columns as arrays, the names of inputs as JSON."""
    for name, column in history.data_vars.items():
        arrays[f"history_{name}"] = (column.dims, column.values)
    inputs = {str(name): c.values for name, c in history.coords.items() if c.dims == ("input",)}
    fitted["history"] = {
        name: to_json(name, values if values.dtype.kind in "fiub" else np.array(values.astype(str).tolist()))
        for name, values in inputs.items()
    }


def _store_classes(classes: np.ndarray, arrays: dict, fitted: dict) -> None:
    """Numbers as an array, strings as JSON."""
    if classes.dtype.kind in "fiub":
        arrays["classes"] = (("class",), classes)
        return
    values = classes.tolist()
    if not all(isinstance(v, str) for v in values):
        raise TypeError(f"classes of type {type(values[0]).__name__} cannot be saved; use strings or numbers as labels")
    fitted["classes"], fitted["classes_are_objects"] = values, classes.dtype == object


def _strings(values: list, as_objects: bool) -> np.ndarray:
    """Classes from JSON; their width is that of the longest one, whatever a file says."""
    if not all(isinstance(v, str) for v in values):
        raise ValueError("classes are not strings")
    return np.array(values, object if as_objects else np.str_)
