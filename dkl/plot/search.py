"""The candidates of a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice
from dkl.plot.canvas import set_ticks
from dkl.plot.style import GREY, axes_of, colour, drawn, legend_above

NOT_DRAWN = {"validation_loss", "epochs", "dropped_at", "diverged", "rank"}
"""Columns of search_results_ that are no parameters."""


@drawn
def plot_search(model: Any, ax: Any = None, against: str | None = None) -> Any:
    """Held-out loss of each candidate of search_results_ against one of its parameters; the best has a ring.

    Hollow points were dropped before the end; candidates that diverged stand at the top. against : None takes the
    first parameter that the search drew.
    """
    if not hasattr(model, "search_results_"):
        check_is_fitted(model, "coef_")
        raise ValueError(f"{type(model).__name__} has no search_results_; fit a ContinuousKernel model with search=16")
    found = model.search_results_
    drawn_ones = [str(name) for name in found.data_vars if name not in NOT_DRAWN]
    name = drawn_ones[0] if against is None else check_choice("against", against, drawn_ones)
    x, loss = np.asarray(found[name], float), np.asarray(found["validation_loss"], float)
    good = np.isfinite(loss) & ~np.asarray(found["diverged"], bool)
    if not good.any():
        raise ValueError(f"all {len(loss)} candidates diverged; search lower learning rates")
    kept = good & (np.asarray(found["dropped_at"]) == 0)
    best = int(np.argmin(np.where(np.asarray(found["rank"]) == 1, 0, 1)))
    ax = axes_of(ax)
    ax.plot(x[kept], loss[kept], "o", color=colour(0), label="trained to the end")
    if (dropped := good & ~kept).any():
        ax.plot(x[dropped], loss[dropped], "o", color=colour(0), markerfacecolor="none", label="dropped")
    ax.plot(x[best], loss[best], "o", color=colour(1), markersize=10, markerfacecolor="none", label="best")
    if not good.all():
        top = loss[good].max()
        ax.plot(x[~good], np.full((~good).sum(), top), "x", color=GREY, label="diverged")
    for axis, values, scale in ((ax.xaxis, x, ax.set_xscale), (ax.yaxis, loss[good], ax.set_yscale)):
        if values.min() > 0 and values.max() > 5 * values.min():
            scale("log")
            set_ticks(axis, values)
    words = found[name].attrs.get("long_name", name)
    ax.set(xlabel=words, ylabel="least held-out loss")
    legend_above(ax, 4)
    return ax
