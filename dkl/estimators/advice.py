"""What to say when learning has ended early or found nothing: what happened, and what the data speak for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import warn_user
from dkl.engine.memory import count
from dkl.learn.iterate import Iterated
from dkl.learn.learned import Learned
from dkl.learn.learners import Learner, learner_of
from dkl.learn.phases import phases_in_words, phases_of
from dkl.learn.run import INTERRUPTED, STALLED, Limits
from dkl.learn.weight_solvers import FoundWeights
from dkl.prepare.input_ranges import UNEVEN, Extent, unevenness
from dkl.prepare.prepared import Prepared

UNEXPLAINED = 0.9
"""The share of the variance of y above which an error has learned nothing."""


def warn_of_early_end(params: Mapping[str, Any], done: Iterated[Any], finish: bool) -> None:
    """Say why iterations ended before they converged, and what to do; finish: the user has asked for the end."""
    did = count(len(done.history), "iteration")
    if done.reason == INTERRUPTED and not finish:
        on = "use checkpoint='folder' to be able to resume"
        if params.get("warm_start") is not None and params.get("search") is None and params.get("cv") is None:
            on = "set_params(warm_start=True) and fit go on from there"
        if params["checkpoint"] is not None:
            on = "fit(resume=True) resumes, until save removes the checkpoint"
        said = f"learning was interrupted after {did}; the model has the best point so far; {on}"
        warn_user(said, ConvergenceWarning)
    if done.reason == STALLED:
        said = (
            f"learning stalled after {did}, before it converged: the rounding of the sums leaves no step that lowers "
            "the objective; raise tol or alpha, or use dtype='float64'"
        )
        warn_user(said, ConvergenceWarning)
    if done.reason in Limits._fields:
        limit = f"{done.reason}={params[done.reason]:g}"
        said = f"learning stopped at {limit} before it converged, after {did}; raise {done.reason}, or tol"
        warn_user(said, ConvergenceWarning)


def warn_of_learning(params: Mapping[str, Any], learner: Learner, done: Iterated[Learned], data: Prepared) -> None:
    """Say that nothing was learned, or why learning ended early, and what to do."""
    said = _said(params, learner, done, data)
    if said:
        warn_user(said, ConvergenceWarning)


def warn_of_weights(weights: FoundWeights, finish: bool) -> None:
    """Say that the weights are not at their best, and what to do; finish: the user has asked for the end."""
    if weights.warning:
        warn_user(weights.warning)
    found, way = weights.certificate, weights.way
    if weights.warning or way is None or found.value <= found.tol or finish:
        return
    more = {
        "max_time": "raise max_time, solver_tol or alpha",
        "max_iter": "raise max_iter, solver_tol or alpha, or use dtype='float64'",
        INTERRUPTED: "fit(resume=True) goes on",
    }
    rounded = "rounding leaves no better step: use dtype='float64', or raise solver_tol or alpha"
    ended = f"at a {found.kind} of {found.value:.2g}, above solver_tol={found.tol:g}"
    if not np.isfinite(found.value):
        ended = f"before a pass had measured their {found.kind}"
    warn_user(
        f"the weights ended {ended} ({way.reason}); {more.get(way.reason, rounded)}",
        ConvergenceWarning,
    )


def _said(params: Mapping[str, Any], learner: Learner, done: Iterated[Learned], data: Prepared) -> str:
    variance = data.targets.variance
    if done.reason == INTERRUPTED:
        return ended_early(params, done, data.extent, data.groups)
    if learner.redraws:
        if done.reason != "max_time":
            return ""
        return (
            f"learning stopped at max_time={params['max_time']:g} after {len(done.history)} of {params['max_iter']} "
            "iterations; raise max_time, or lower max_iter"
        )
    missed = float(done.history.last["validation_error"])
    squared = learner.tests_errors and not learner.of_loss(params)
    if squared and missed > UNEXPLAINED * variance > 0:
        return (
            f"the learned kernel leaves {missed / variance:.0%} of the variance of y unexplained on held-out rows; y "
            f"may be noise, or sigma far off: {when_far_off(params, data.extent, data.groups)}"
        )
    if done.reason in ("converged", "early_stopping"):
        return "" if done.result.moved or not variance > 0 else _stayed(params, learner, done.reason)
    return ended_early(params, done, data.extent, data.groups)


def _stayed(params: Mapping[str, Any], learner: Learner, reason: str) -> str:
    """Why the kernel is still the one it began with."""
    what = "frequencies" if learner.moves_frequencies else "sigma"
    ended = f"learning ended where it began, so {what} did not change"
    if reason == "early_stopping":
        return (
            f"{ended}: every step raised the error on the rows that early_stopping sets aside; use more rows, fewer "
            "sigmas (groups=None), or learn='none'"
        )
    return f"{ended}: no step lowered the objective by tol={params['tol']:g}; lower tol, or use learn='none'"


def iterations_in_words(learn: str | None, columns: Any) -> str:
    """How many iterations there were, of which starts and stages."""
    return phases_in_words(phases_of(columns, learner_of(learn).first_row))


def ended_early(
    params: Mapping[str, Any], done: Iterated[Learned], extent: Extent | None, groups: np.ndarray
) -> str:  # fmt: skip
    """The sentence after max_iter, max_time or Ctrl-C."""
    did, learned = iterations_in_words(params["learn"], done.history.columns), done.result
    if done.reason == INTERRUPTED:
        on = "fit again with sigma=model.sigma_ to go on from there"
        if "checkpoint" in params:
            more = f"{on}, or with checkpoint='folder' to be able to resume"
            on = more if params["checkpoint"] is None else "fit(resume=True) resumes, until save removes the checkpoint"
        return f"learning was interrupted after {did}; the model has the best sigma so far; {on}"
    fell = f": the last one lowered the objective by {learned.decrease:.2%}, tol is {percent(params['tol'])}"
    scale = about_scale(extent, groups)
    return (
        f"learning stopped at {done.reason}={params[done.reason]:g} "
        f"{'before it converged' if learned.moved else 'where it began'}, after {did}"
        f"{fell if np.isfinite(learned.decrease) else ''}; raise {done.reason}, or tol{scale and f', or {scale}'}"
    )


def percent(share: float) -> str:
    """A share with two decimals, or as many digits as a small one needs."""
    return f"{share:.2%}" if share >= 1e-4 else f"{100 * share:.1g}%"


def about_scale(extent: Extent | None, groups: np.ndarray) -> str:
    """To standardise, if inputs that share a sigma spread very differently; else nothing."""
    factor = 1.0 if extent is None else unevenness(extent.spread, groups)
    if factor <= UNEVEN:
        return ""
    return f"standardise the inputs, whose spreads differ by a factor of {factor:,.0f}, or use groups='each'"


def when_far_off(params: Mapping[str, Any], extent: Extent | None, groups: np.ndarray) -> str:
    """What else to try if nothing was learned."""
    own = isinstance(params["sigma"], str)
    choices = [about_scale(extent, groups), "" if own else "use sigma='scale'", f"more starts than {params['starts']}"]
    return ", or ".join(choice for choice in choices if choice)
