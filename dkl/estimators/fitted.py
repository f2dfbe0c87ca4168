"""Fitted attributes that several estimators have, and what must hold between those that were read from disk."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice
from dkl.estimators.json_values import from_json, to_json
from dkl.estimators.stored import (
    Array,
    Classes,
    Columns,
    History,
    Map,
    Matrices,
    Stored,
    Value,
    as_list,
    check_finite,
    count_labels,
    range_of,
)
from dkl.learn.learners import learner_of
from dkl.options.rules import DTYPES
from dkl.sources.recipe_matrices import RECIPE

INPUTS: dict[str, Stored] = {
    "n_features_in_": Stored("Number of inputs."),
    "feature_names_in_": Value(
        "Names of the inputs, if X had names.", lambda names: np.array(names, dtype=object),
        plain=lambda names: list(map(str, names)), optional=True, told=False,
    ),
    "input_labels_": Value(
        "Labels of the inputs that are no names, e.g. wavelengths.", from_json,
        plain=lambda labels: to_json("input_labels", labels), optional=True, told=False,
    ),
}  # fmt: skip

MAP: dict[str, Stored] = {"features_": Map("The feature map.")}

KERNEL: dict[str, Stored] = {
    "sigma_": Stored("Sigma of each input.", tells=range_of),
    "groups_": Array("Group of each input.", ("input",), tells=count_labels),
    "input_spread_": Array(
        "Standard deviation of each input as the kernel sees it, if a pass over X was made.",
        ("input",),
        optional=True,
        told=False,
    ),
    "input_range_": Array(
        "Least and greatest value of each input, likewise.", ("end", "input"), optional=True, told=False
    ),
}

WEIGHTS: dict[str, Stored] = {
    "coef_": Array("Weights of the features, as in sklearn.linear_model.", ("output", "component"), told=False),
    "intercept_": Array("Intercepts, as in sklearn.linear_model.", ("output",), told=False),
    "dtype_": Value("Precision of the features.", lambda value: check_choice("dtype", value, DTYPES)),
    "recipe_": Value(
        "How ingest prepared the rows of the data set.", dict, optional=True, only=dict, told=False
    ),
    "recipe_matrices_": Matrices(
        "Matrices of that recipe, as that of zca, by name.", RECIPE, optional=True, told=False
    ),
    "request_": Value("Digest of the rows that `dkl fit` was given.", str, optional=True, only=str, told=False),
    "fit_info_": Stored(
        "What the fit took: engine, workers, threads, rows, seconds and peak bytes, beside what was planned. It is not "
        "saved, as two fits of the same bits take different times.", optional=True, told=False,
    ),
    "n_iter_": Value(
        "Iterations of all starts and stages together; one more if sigma_l1 switched inputs off.", int, told=False
    ),
    "history_": History(
        "What each iteration found, as an xarray Dataset; rows of a start or stage begin where it began.", optional=True
    ),
}  # fmt: skip

RIDGE: dict[str, Stored] = {
    "alpha_": Array("The penalty used.", ("penalty",), single=True, tells=as_list),
    "cv_results_": Columns("Scores of every fold and alpha, if alpha was chosen.", "cv_", "candidate", optional=True),
    "factorisation_": Value("How the system was solved, and the jitter it needed.", dict),
    "certificate_": Value(
        "Proof that the weights minimise the objective: what was measured, its value, and whether it met solver_tol.",
        dict, optional=True, only=dict,
    ),
    "scales_": Columns(
        "Factors of sigma that were tried after learn_components, their alpha and held-out loss.", "scale_", "factor",
        optional=True,
    ),
    "selected_inputs_": Stored("Inputs whose sigma is not zero, if sigma was learned."),
    "refit_errors_": Value(
        "Errors of sigma_l1's solution and of the refit without it, on unseen rows if there are any.",
        lambda errors: {str(name): float(error) for name, error in errors.items()}, optional=True, told=False,
    ),
    "reduced_": Value(
        "Axes that `reduce` kept, and their share of the variance.",
        lambda kept: {"axes": int(kept["axes"]), "share": float(kept["share"])}, optional=True,
    ),
}  # fmt: skip

CLASSES: dict[str, Stored] = {
    "classes_": Classes("The labels."),
    "thresholds_": Array(
        "What calibration subtracts from the score of each class.", ("class",), optional=True, tells=as_list
    ),
}


def restored_map(model: Any) -> None:
    """sigma_ and n_features_in_ of the map; groups and what is known of the inputs must suit it."""
    model.sigma_ = model.features_.sigma
    if model.groups_.shape != model.sigma_.shape:
        raise ValueError(f"sigma {model.sigma_.shape} and groups {model.groups_.shape} do not belong together")
    m = model.n_features_in_ = len(model.sigma_)
    if hasattr(model, "input_spread_"):  # not of a model of given sigma, nor of earlier versions
        check_finite("input_spread", model.input_spread_, (m,))
        check_finite("input_range", model.input_range_, (2, m))


def restored_weights(model: Any) -> None:
    """Weights must suit the map; one output without a dimension has a number as intercept."""
    coef, d = model.coef_, model.features_.n_features
    if coef.ndim > 2 or coef.shape[-1] != d or model.intercept_.shape != np.atleast_2d(coef).shape[:1]:
        raise ValueError(f"coef has shape {coef.shape} and intercept {model.intercept_.shape} for {d} features")
    if coef.ndim == 1:
        model.intercept_ = float(model.intercept_[0])


def restored_ridge(model: Any) -> None:
    """There is a penalty; inputs are selected if sigma was learned."""
    if not np.size(model.alpha_):
        raise ValueError(f"alpha is empty: {model.alpha_}")
    if hasattr(model, "history_") and learner_of(model.learn).learns:
        model.selected_inputs_ = model.sigma_ > 0


def restored_classes(model: Any) -> None:
    """One row of weights for each class, one for two; a threshold for each."""
    count = len(model.classes_)
    if len(model.coef_) != (len(model.tasks_) if hasattr(model, "tasks_") else 1 if count == 2 else count):
        raise ValueError(f"{len(model.coef_)} rows of coef for {count} classes")
    if hasattr(model, "thresholds_"):
        check_finite("thresholds", model.thresholds_, model.classes_.shape)
