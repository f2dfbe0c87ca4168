"""Numbered checks of a fitted model: what is as it should be, what needs a look, and what to do about it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.learn.parameters import REACH
from dkl.plot.canvas import start_sigma
from dkl.report.splits import Scored

FINE, LOOK, UNKNOWN = "fine", "look", "not known"
GAP = 0.05
"""Score that is lost between train and test before it is worth a look."""
NEAR = 1.001
"""A factor of sigma so near to that of a bound stands at it."""
HONEST = 0.1
"""Calibration error that is worth a look."""


class Check(NamedTuple):
    """One question, its answer, and what to do if that is not fine."""

    name: str
    status: str
    words: str
    advice: str = ""


def checks_of(model: Any, splits: list[Scored]) -> list[Check]:
    """All of them, in the order of the report."""
    last = splits[-1] if splits else None
    return [
        alpha_check(model), sigma_check(model), certificate_check(model), end_check(model), classes_check(last),
        gap_check(splits), guess_check(last), confidence_check(last), memory_check(model),
    ]  # fmt: skip


def alpha_check(model: Any) -> Check:
    """Whether alpha stands at the edge of the values that were tried."""
    name = "alpha inside its list"
    chosen = np.atleast_1d(getattr(model, "alpha_", np.nan)).astype(float)
    if hasattr(model, "cv_results_"):
        tried = np.asarray(model.cv_results_["param_alpha"], float)
    elif hasattr(model, "path_") and "error" in model.path_:
        tried = np.asarray(model.path_["alpha"], float).reshape(-1)
    else:
        return Check(name, UNKNOWN, f"alpha {_few(chosen)} was not chosen from a list" if np.isfinite(chosen).all()
                     else "the family has no alpha")  # fmt: skip
    low, high = float(tried.min()), float(tried.max())
    if low == high:
        return Check(name, UNKNOWN, f"only alpha {low:.4g} was tried")
    ends = [end for end in (low, high) if np.isclose(chosen, end).any()]
    said = f"alpha {_few(chosen)} of {len(np.unique(tried))} from {low:.4g} to {high:.4g}"
    if not ends:
        return Check(name, FINE, said)
    wider = "smaller" if ends[0] == low else "larger"
    return Check(name, LOOK, f"{said}: the edge", f"give {wider} values too, e.g. alpha=[..., {ends[0]:.3g}, ...]")


def sigma_check(model: Any) -> Check:
    """Whether learning has run into the ends of sigma."""
    name = "sigma inside its bounds"
    if not hasattr(model, "sigma_"):
        return Check(name, UNKNOWN, "the family has no sigma of its own")
    sigma = np.asarray(model.sigma_, float)
    if not sigma.any():
        return Check(name, LOOK, "every sigma is 0, so all rows look alike", "fit with a smaller sigma_l1")
    learned = "sigma" in getattr(model, "history_", {})
    if not learned:
        return Check(name, UNKNOWN, f"sigma {_few(np.unique(sigma))} was not learned")
    start = start_sigma(model)
    assert start is not None
    moved = (sigma > 0) & (start > 0)
    factor = sigma[moved] / start[moved]
    at = int(((factor >= REACH / NEAR) | (factor <= NEAR / REACH)).sum())
    said = f"sigma {_few(sigma[moved])}, {factor.min():.3g} to {factor.max():.3g} times its start"
    off = int((sigma == 0).sum())
    said += f"; {off:,} of {len(sigma):,} inputs are switched off" if off else ""
    if not at:
        return Check(name, FINE, said)
    advice = "scale the inputs alike (scale='standard'), or give another sigma"
    return Check(name, LOOK, f"{said}: {at:,} stand at a bound, {REACH:g} times off the start", advice)


def certificate_check(model: Any) -> Check:
    """Whether the weights are proven to be the best."""
    name = "weights proven"
    found = getattr(model, "certificate_", None)
    if not isinstance(found, dict) or "kind" not in found:
        return Check(name, UNKNOWN, "the family keeps no certificate of its weights")
    if found["value"] is None:
        return Check(name, LOOK, f"{found['kind']} was not measured before the fit was stopped", "fit again, or resume")
    said = f"{found['kind']} {found['value']:.2g}, tolerance {found['tol']:.2g}"
    if found["met"]:
        return Check(name, FINE, said)
    return Check(name, LOOK, f"{said}: not met", "raise max_iter, alpha or solver_tol, or use dtype='float64'")


def end_check(model: Any) -> Check:
    """Whether learning ended by itself."""
    name = "learning ended by itself"
    if not hasattr(model, "history_"):
        return Check(name, UNKNOWN, "nothing was learned step by step")
    limit = model.get_params(deep=False).get("max_iter")
    counts = _longest(model.history_)
    said = f"{int(model.n_iter_):,} iterations, the longest run {counts:,}"
    if limit is not None and counts >= limit > 0:
        return Check(name, LOOK, f"{said}, as many as max_iter={limit:,} allows", "raise max_iter")
    return Check(name, FINE, said)


def _longest(history: Any) -> int:
    """Steps of the start or stage that took most."""
    if "stage" not in history:
        return int(history.sizes["iteration"])
    pairs = np.stack([np.asarray(history["stage"]), np.asarray(history["start"])])
    return int(np.unique(pairs, axis=1, return_counts=True)[1].max()) - 1


def classes_check(last: Scored | None) -> Check:
    """Whether some class is never predicted."""
    name = "every class is predicted"
    if last is None:
        return Check(name, UNKNOWN, "no rows were given")
    if last.evaluation is None:
        return Check(name, UNKNOWN, "a regression has no classes")
    said = np.asarray(last.evaluation["confusion"]).sum(axis=0)
    pairs = zip(last.evaluation["classes"], said, strict=True)
    never = [one["class"] for one, times in pairs if one["rows"] and not times]
    if not never:
        return Check(name, FINE, f"{len(said):,} classes on {last.rows:,} rows of {last.name}")
    few = ", ".join(map(str, never[:5])) + (" ..." if len(never) > 5 else "")
    words = f"{len(never):,} of {len(said):,} classes are never predicted on {last.name}: {few}"
    return Check(name, LOOK, words, "use class_weight='balanced', a smaller alpha, or more components")


def gap_check(splits: list[Scored]) -> Check:
    """Whether the score falls from the training rows to new ones."""
    name = "train and test agree"
    train = next((one for one in splits if one.name.lower() in ("train", "training", "learn")), None)
    others = [one for one in splits if one is not train]
    if train is None or not others:
        return Check(name, UNKNOWN, "it takes a training split and another one", "give both: train=(X, y)")
    test = others[-1]
    lost = train.score.value - test.score.value
    words = f"{train.score.value:.4f} on {train.name}, {test.score.value:.4f} on {test.name}: {lost:+.4f} lost"
    apart = train.score.low > test.score.high
    if apart and lost > GAP:
        return Check(name, LOOK, words, "use a stronger penalty (alpha, decay), fewer components, or more rows")
    return Check(name, FINE, words)


def guess_check(last: Scored | None) -> Check:
    """Whether the model is better than no model."""
    name = "better than a guess"
    if last is None:
        return Check(name, UNKNOWN, "no rows were given")
    guess, what = 0.0, "the mean of y"
    if last.evaluation is not None:
        largest = max(last.evaluation["classes"], key=lambda one: one["rows"])
        guess, what = largest["rows"] / last.rows, f"always saying {largest['class']}"
    words = f"{last.score.low:.4f} to {last.score.high:.4f} on {last.name}; {what} has {guess:.4f}"
    if last.score.low > guess:
        return Check(name, FINE, words)
    return Check(name, LOOK, words, "scale the inputs, learn sigma (learn='validation'), or use more components")


def confidence_check(last: Scored | None) -> Check:
    """Whether a confidence comes true."""
    name = "confidence is honest"
    error = None if last is None or last.evaluation is None else last.evaluation["calibration_error"]
    if error is None or last is None:
        return Check(name, UNKNOWN, "no rows were given" if last is None else "there is no confidence")
    words = f"calibration error {error:.3f} on {last.name}"
    if error <= HONEST:
        return Check(name, FINE, words)
    evaluation = last.evaluation or {}
    bins = [one for one in evaluation.get("calibration") or [] if one["rows"]]
    sure = sum(one["rows"] * (one["confidence"] - one["accuracy"]) for one in bins) > 0
    words += ": confidence is too " + ("high" if sure else "low")
    if evaluation.get("log_loss") is None:
        return Check(name, LOOK, words, "fit with loss='logistic' for probabilities")
    return Check(name, LOOK, words, "more rows, or a stronger penalty" if sure else "train longer, or a weaker penalty")


def memory_check(model: Any) -> Check:
    """Whether the fit kept what the plan promised."""
    name = "memory as planned"
    info = getattr(model, "fit_info_", None)
    if info is None:
        return Check(name, UNKNOWN, "what the fit took is known right after it, and not of a loaded model")
    from dkl.engine.memory import gib

    words = f"peak {gib(info['bytes'])}, planned {gib(info['planned_bytes'])}, limit {gib(info['limit_bytes'])}"
    most = max(info["planned_bytes"], info["planned_solve_bytes"])
    return Check(name, FINE if info["bytes"] <= most else LOOK, words, "tell us: the plan should be an upper bound")


def _few(values: np.ndarray) -> str:
    """One number, or the ends of several."""
    return f"{values[0]:.4g}" if len(values) == 1 else f"{values.min():.4g} to {values.max():.4g}"
