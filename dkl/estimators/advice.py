"""What to say when learning has ended early or found nothing: what happened, and what the data speak for."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.learn.bandwidth import Learned
from dkl.learn.history import legs_of, said_of
from dkl.learn.walk import INTERRUPTED
from dkl.prepare.input_ranges import UNEVEN, Extent, unevenness


def iterations_said(learn: str, columns: Any) -> str:
    """How many iterations there were, of which starts and stages. A step of log_loss has no beginning of its own."""
    return said_of(legs_of(columns, beginning=0 if learn == "log_loss" else 1))


def ended_early(params: dict, learned: Learned, extent: Extent | None, groups: np.ndarray) -> str:
    """The sentence after max_iter, max_time or Ctrl-C."""
    did = iterations_said(params["learn"], learned.history.columns)
    if learned.reason == INTERRUPTED:
        on = "fit again with sigma=model.sigma_ to go on from there"
        if "checkpoint" in params:
            more = f"{on}, or with checkpoint='folder' to be able to resume"
            on = more if params["checkpoint"] is None else "fit(resume=True) goes on, until save removes that"
        return f"learning was interrupted after {did}; the model has the best sigma so far; {on}"
    fell = f": the last one lowered the objective by {learned.decrease:.2%}, tol is {percent(params['tol'])}"
    scale = about_scale(extent, groups)
    return (
        f"learning stopped at {learned.reason}={params[learned.reason]:g} "
        f"{'before it converged' if learned.moved else 'where it began'}, after {did}"
        f"{fell if np.isfinite(learned.decrease) else ''}; raise {learned.reason}, or tol{scale and f', or {scale}'}"
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


def when_far_off(params: dict, extent: Extent | None, groups: np.ndarray) -> str:
    """What else to try if nothing was learned."""
    own = isinstance(params["sigma"], str)
    choices = [about_scale(extent, groups), "" if own else "use sigma='scale'", f"more starts than {params['starts']}"]
    return ", or ".join(choice for choice in choices if choice)
