"""Models side by side: scores, and paired differences from one of them."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from dkl.estimators.compare import Comparison, in_words
from dkl.plot.style import GREY, axes_of, colour, drawn, label

WIDTH = 30
"""Letters of a line of a name."""


@drawn
def plot_compare(comparison: Any, ax: Any = None) -> Any:
    """Difference of each model from the reference, paired by row, with its interval; the score stands beside the name.

    comparison : what dkl.compare has found. A filled point's interval leaves zero out: the models are told apart.
    """
    if not isinstance(comparison, Comparison):
        raise ValueError(f"plot_compare draws what dkl.compare has found, not a {type(comparison).__name__}")
    models = comparison.models
    ax = axes_of(ax, (5.8, float(np.clip(0.55 * len(models) + 0.9, 1.9, 11))))
    ax.axvline(0, color=GREY, linewidth=0.9)
    for i, one in enumerate(models):
        if one.difference is None:
            ax.plot(0, i, "D", color=GREY, markersize=5)
            continue
        told = one.verdict != "not told apart"
        tint = colour(0 if one.verdict == "better" else 1) if told else GREY
        span = one.difference
        ax.plot([span.low, span.high], [i, i], color=tint, linewidth=1.8, solid_capstyle="butt")
        ax.plot(span.value, i, "o", color=tint, markersize=6, markerfacecolor=tint if told else "white")
    lines = [f"{fill(label(one.name, 2 * WIDTH), WIDTH)}\n{in_words(one.score)}" for one in models]
    ax.set_yticks(range(len(models)), lines)
    ax.set_ylim(len(models) - 0.5, -0.5)
    about = f"{comparison.rows:,} rows, intervals of {comparison.confidence:.0%}"
    ax.set_xlabel(f"{comparison.metric.replace('R^2', 'R²')} less that of the model with the diamond\n{about}")
    ax.yaxis.grid(False)
    return ax
