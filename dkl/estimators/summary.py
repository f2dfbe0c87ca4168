"""A fitted estimator in a few words: plain values from its FITTED, and lines for the command line and notebooks."""

from __future__ import annotations

from typing import Any

from dkl.engine.memory import count, duration, gib

MOST_CLASSES, MOST_NAMES = 8, 12
ASKED = ("kernel", "frequencies", "form", "landmarks", "learn", "loss", "penalty")
"""Parameters that are told of a model."""
FITTED_ON = ("engine", "workers", "threads", "rows", "seconds", "bytes")
SQUARE = "square"
METHODS = {
    "cholesky": "Cholesky factors",
    "jitter": "Cholesky factors, with a jitter on the diagonal",
    "eigen": "eigenvectors, without those that are rounding",
    "axes": "principal axes",
    "cg": "conjugate gradients",
    "fista": "FISTA",
    "lbfgs": "L-BFGS",
    "newton": "Newton's method",
}
"""Solvers and factors in words."""


def told(model: Any) -> dict[str, Any]:
    """What each fitted attribute has to say, as JSON."""
    from dkl.options.fields import attributes_of

    found = {
        attribute.removesuffix("_"): stored.tell(getattr(model, attribute))
        for attribute, stored in attributes_of(type(model)).items()
        if hasattr(model, attribute)
    }
    return {name: value for name, value in found.items() if value is not None}


def summary(model: Any) -> dict[str, Any]:
    """A model that predicts, as JSON."""
    params = model.get_params(deep=False)
    recipe = getattr(model, "recipe_", None)
    found = {
        "estimator": type(model).__name__,
        **{name: params[name] for name in ASKED if name in params},
        "components": int(model.features_.n_features),
        "inputs": int(model.n_features_in_),
        "input_names": _input_names(model),
        "recipe": recipe is not None,
        "scale": [] if recipe is None else [channel["scale"] for channel in recipe["channels"]],
        **told(model),
    }
    if found.get("landmarks") is not None:
        found["landmark_rows"] = len(model.features_.numbers)
    if "learn" in found:
        found["learn"] = found["learn"] or "none"
    if hasattr(model, "fit_info_"):
        found["fitted_on"] = {name: model.fit_info_[name] for name in FITTED_ON}
    if hasattr(model, "history_"):
        found["learning"] = _learning(model)
    if hasattr(model, "scales_"):
        found["scales"] = _scales(model.scales_)
    if hasattr(model, "cv_results_"):
        table = model.cv_results_
        found["cv"] = [
            {"alpha": float(alpha), held_out_key(found): -float(score)}
            for alpha, score in zip(table["param_alpha"], table["mean_test_score"], strict=True)
        ]
    return found


def _scales(table: dict[str, Any]) -> dict[str, Any]:
    """The factor and the alpha with the least held-out loss, that loss, and all factors."""
    best = int(table["held_out_loss"].argmin())
    found = {name: float(table[name][best]) for name in ("factor", "alpha", "held_out_loss")}
    return {**found, "tried": sorted(map(float, table["factor"]))}


def widened_in_words(scales: dict[str, Any]) -> str:
    """What learn_components chose for the map of all features."""
    tried = ", ".join(f"{factor:.3g}" for factor in scales["tried"])
    loss = f"held-out loss {scales['held_out_loss']:.4g}"
    return f"sigma times {scales['factor']:.3g} of {tried}, with alpha {scales['alpha']:.3g}: {loss}"


def held_out_key(found: dict[str, Any]) -> str:
    """What the folds measure: the squared error, or another loss."""
    return "squared_error" if found.get("loss", SQUARE) == SQUARE else "loss"


def _input_names(model: Any) -> list[str] | None:
    """Names of the inputs as the data set, or the dataframe, of the fit had them; None if they had none."""
    from dkl.store.recipe import Recipe

    if hasattr(model, "recipe_"):
        return Recipe.from_json(model.recipe_).input_labels
    return list(map(str, model.feature_names_in_)) if hasattr(model, "feature_names_in_") else None


def _learning(model: Any) -> dict[str, Any]:
    """Iterations, those of each start and stage if there are such, and the last row of the history."""
    from dkl.learn.learners import learner_of
    from dkl.learn.phases import phases_of

    last = model.history_.isel(iteration=-1)
    found: dict[str, Any] = {"iterations": int(model.n_iter_)}
    if "stage" in model.history_:
        phases = phases_of(model.history_, learner_of(model.learn).first_row)
        found = {"iterations": sum(p.iterations for p in phases), "legs": [p._asdict() for p in phases]}
    if hasattr(model, "selected_inputs_"):
        found |= {"inputs_off": int((~model.selected_inputs_).sum())}
    found |= {str(name): float(last[name]) for name in last.data_vars if last[name].ndim == 0}
    return found | ({"refit_errors": model.refit_errors_} if hasattr(model, "refit_errors_") else {})


SHOWN = {*ASKED, "estimator", "components", "inputs", "input_names", "recipe", "scale", "sigma", "groups", "dtype"}
SHOWN |= {"landmark_rows", "alpha", "cv", "factorisation", "reduced", "learning", "classes", "thresholds"}
SHOWN |= {"kind", "path", "lacks", "certificate", "scales", "fitted_on", "task_input"}
"""What has a line of its own; all else that is told has a plain one."""


def lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The same for a person."""
    rows = [("estimator", found["estimator"])]
    if "kernel" in found:
        rows.append(("kernel", _kernel(found)))
    rows.append(("features", _features(found)))
    if found["input_names"]:
        rows.append(("inputs", names(found["input_names"])))
    if "sigma" in found:
        groups = found["groups"]
        rows.append(("sigma", f"{spread(list(found['sigma'].values()))} ({groups:,} group{'s' * (groups != 1)})"))
    if "alpha" in found:
        rows.append(("alpha", _alpha(found)))
    if "scales" in found:
        rows.append(("widened", widened_in_words(found["scales"])))
    if "loss" in found and "penalty" in found:
        rows.append(("loss", f"{found['loss']}, penalty {found['penalty']}"))
    if "factorisation" in found:
        method = found["factorisation"]["method"]
        rows.append(("solved by", METHODS.get(method, method)))
    if "certificate" in found:
        rows.append(("certificate", certificate_in_words(found["certificate"])))
    if "learning" in found:
        rows.append(("learned" if _learns(found) else "steps", _learned(found)))
        if (error := found["learning"].get("validation_error")) is not None and _learns(found):
            rows.append(("held out", f"validation error {error:.4g}"))
        if "refit_errors" in found["learning"]:
            rows.append(("refit", refit_in_words(found["learning"]["refit_errors"])))
    if "classes" in found:
        few = ", ".join(map(str, found["classes"][:MOST_CLASSES]))
        rows.append(("classes", f"{len(found['classes']):,}: {few}{' ...' * (len(found['classes']) > MOST_CLASSES)}"))
    if "thresholds" in found:
        rows.append(("calibrated", f"scores less {spread(found['thresholds'])}"))
    if "fitted_on" in found:
        rows.append(("fitted on", fitted_on_in_words(found["fitted_on"])))
    if found.get("task_input", -1) >= 0:
        of = found["input_names"] or range(found["inputs"])
        rows.append(("task of", f"input {of[found['task_input']]}"))
    rest = ((name.removeprefix("n_").replace("_", " "), value) for name, value in found.items() if name not in SHOWN)
    return rows + [(name, plain(value)) for name, value in rest]


def _kernel(found: dict[str, Any]) -> str:
    if found.get("landmarks") is not None:
        return f"{found['kernel']}, {found['landmark_rows']:,} landmarks ({found['landmarks']})"
    return f"{found['kernel']}, {found['frequencies']} frequencies, {found.get('form', 'phase')}"


def _features(found: dict[str, Any]) -> str:
    kept = found.get("reduced")
    axes = "" if kept is None else f"; {kept['axes']:,} axes with {kept['share']:.1%} of the variance"
    return f"{found['components']:,} of {found['inputs']:,} inputs, {found['dtype']}{axes}"


def _alpha(found: dict[str, Any]) -> str:
    """The penalty, and what it was chosen from."""
    alpha = found["alpha"]
    if not isinstance(alpha, float):
        return f"{len(alpha)} values, one for each output"
    if "cv" not in found:
        return f"{alpha:g}"
    key, tried = held_out_key(found), [row["alpha"] for row in found["cv"]]
    least = min(row[key] for row in found["cv"])
    edge = ", the last" if len(tried) > 1 and alpha in (min(tried), max(tried)) else ""
    among = ", ".join(f"{value:g}" for value in tried)
    return f"{alpha:g}{edge} of {among}; cross-validated {key.replace('_', ' ')} {least:.4g}"


def _learns(found: dict[str, Any]) -> bool:
    """Whether sigma is learned; otherwise the steps are those of the weights."""
    from dkl.learn.learners import learner_of

    return learner_of(found.get("learn")).learns


def _learned(found: dict[str, Any]) -> str:
    """What learning did, in a line."""
    from dkl.learn.phases import Phase, phases_in_words

    about = found["learning"]
    wrong = f", error rate {about['error_rate']:.2%}" if "error_rate" in about and "classes" in found else ""
    off = f"; {about['inputs_off']:,} inputs switched off" if about.get("inputs_off") else ""
    count = about["iterations"]
    step, what = ("epoch", "") if "epochs" in found else ("iteration", " to find the weights" * (not _learns(found)))
    took = f"{count:,} {step}{'s' * (count != 1)}{what}"
    if "legs" in about:
        took = f"by {found['learn']}: {phases_in_words([Phase(**one) for one in about['legs']])}"
    end = f", objective {about['objective']:.4g}" if "objective" in about else ""
    return f"{took}{end}{wrong}{off}"


def certificate_in_words(certificate: dict[str, Any]) -> str:
    """What proves the weights, and whether it is as small as was asked for."""
    kind, value, tol = (certificate[name] for name in ("kind", "value", "tol"))
    if value is None:
        return f"{kind} not known: the fit was stopped before the weights were measured"
    end = f"below {tol:g}" if certificate["met"] else f"above {tol:g}: not met"
    return f"{kind} {value:.2g}, {end}"


def fitted_on_in_words(info: dict[str, Any]) -> str:
    """Where the fit ran, and what it took."""
    where = "this process" if info["engine"] == "embedded" else count(info["workers"], "worker") + " of a cluster"
    peak = f"peak {gib(info['bytes'])}{' of a worker' * (info['engine'] != 'embedded')}"
    return f"{info['rows']:,} rows in {where}, {count(info['threads'], 'thread')}; {duration(info['seconds'])}, {peak}"


def refit_in_words(errors: dict[str, float]) -> str:
    """The error that sigma_l1 leaves and that of the refit without it; the smaller one is kept."""
    kept = "" if errors["refit"] < errors["penalised"] else ", which is kept"
    return f"error {errors['refit']:.4g} without sigma_l1, {errors['penalised']:.4g} with it{kept}"


def names(labels: list[str]) -> str:
    """Names of inputs on one line."""
    if labels == [str(i) for i in range(len(labels))] and len(labels) > MOST_NAMES:
        return f"0 to {len(labels) - 1:,}, without names"
    rest = len(labels) - MOST_NAMES
    return ", ".join(labels[:MOST_NAMES]) + (f" ... and {rest:,} more" if rest > 0 else "")


def spread(values: Any) -> str:
    """One value, or the range and middle of several."""
    import numpy as np

    low, middle, high = np.min(values), np.median(values), np.max(values)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}, median {middle:.4g}"


def plain(value: Any) -> str:
    """Any other value; of numbers that are not whole six digits."""
    if isinstance(value, dict) and value.keys() == {"low", "median", "high"}:
        return spread(list(value.values()))
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items() if item is not None)
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 2**53 else f"{value:.6g}"
    return ", ".join(map(plain, value)) if isinstance(value, list) else str(value)
