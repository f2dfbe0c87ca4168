"""How often a confidence comes true."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.estimators.intervals import share_interval
from dkl.plot.style import GREY, axes_of, colour, drawn, legend_above


@drawn
def plot_reliability(model: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Share of rows that were right against the confidence in the chosen class, by tenths of confidence.

    model : a fitted classifier, with rows X and y to try it on, or what its `evaluate` has found. Points on the
    diagonal say that confidence is honest, those below that it is too high; whiskers are 95% intervals of the share,
    bars at the foot the share of the rows in each tenth.
    """
    found = model if isinstance(model, dict) else _evaluated(model, X, y)
    if found.get("calibration") is None:
        what = "a regressor has no classes" if found["task"] == "regression" else "its loss gives no confidence"
        raise ValueError(f"there is no confidence to draw: {what}; fit a classifier with loss='logistic'")
    bins = [one for one in found["calibration"] if one["rows"]]
    x, rows = (np.array([one[name] for one in bins]) for name in ("confidence", "rows"))
    spans = [share_interval(one["accuracy"] * one["rows"], one["rows"]) for one in bins]
    right = np.array([span.value for span in spans])
    ax = axes_of(ax, (3.5, 3.6))
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.9, linestyle="--", label="honest")
    width = np.array([one["to"] - one["from"] for one in bins])
    ax.bar([one["from"] for one in bins], rows / rows.sum(), width, align="edge", color=colour(5), alpha=0.45,
           linewidth=0, label="share of the rows")  # fmt: skip
    below, above = (np.array([[s.value - s.low, s.high - s.value] for s in spans]).clip(0)).T
    ax.errorbar(x, right, [below, above], color=colour(0), marker="o", elinewidth=1, capsize=2, label="came true (95%)")
    ax.set(ylabel="share that was right", xlim=(0, 1), ylim=(0, 1.02))
    said = f"calibration error {found['calibration_error']:.3f}"
    ax.set(xlabel=f"confidence in the chosen class\n{said} on {found['rows']:,} rows")
    legend_above(ax)
    return ax


def _evaluated(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """What evaluate finds."""
    if X is None:
        raise ValueError("X=None: plot_reliability needs rows with known classes: plot_reliability(model, X, y)")
    if not hasattr(model, "evaluate"):
        raise ValueError(f"{type(model).__name__} has no evaluate; give a classifier of dkl")
    return model.evaluate(X, y)
