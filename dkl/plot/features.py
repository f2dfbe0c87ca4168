"""The features of a model that has few: how long their frequencies are, and how large their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.plot.canvas import set_ticks
from dkl.plot.style import axes_of, colour, drawn


@drawn
def plot_features(model: Any, ax: Any = None) -> Any:
    """|w_j| against |omega_j| of each feature of an InfiniteFeature model, as stems; both axes logarithmic."""
    if not hasattr(model, "max_features"):
        raise ValueError(
            f"{type(model).__name__} has no features of its own to draw; use InfiniteFeatureClassifier or its regressor"
        )
    check_is_fitted(model, "coef_")
    chosen = model.selected_
    if "length" not in chosen:
        raise ValueError(
            f"the {chosen.sizes['feature']} features of this model are filters, not frequencies; draw them with "
            "dkl.plot.plot_filters"
        )
    if not chosen.sizes["feature"]:
        raise ValueError(f"no feature has a weight at alpha={model.alpha_:g}; fit with a smaller alpha")
    length, weight = np.asarray(chosen["length"]), np.asarray(chosen["weight"])
    ax = axes_of(ax)
    ax.vlines(length, weight.min() / 2, weight, color=colour(0), linewidth=0.8, alpha=0.6)
    ax.plot(length, weight, "o", color=colour(0), markersize=4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    set_ticks(ax.xaxis, length[length > 0])
    ax.set_ylim(bottom=weight.min() / 2)
    ax.set(xlabel="|omega|, in radians / unit of the inputs", ylabel="|w|")
    ax.set_title(f"{len(length)} features at alpha = {model.alpha_:.3g}")
    return ax
