"""The objective against iterations, seconds or passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice
from dkl.plot.canvas import GREY, axes_of, history_of, set_ticks, winner

AGAINST = {"iteration": "iteration", "seconds": "time since learning began, in seconds", "passes": "passes over rows"}


def plot_convergence(model: Any, ax: Any = None, against: str = "iteration") -> Any:
    """The objective (solid) and the validation error (dashed) of each iteration; one line per start and stage.

    `model` may be its `history_`. If nothing is penalised the two are the same, and one line is drawn.
    """
    check_choice("against", against, AGAINST)
    history = model if hasattr(model, "data_vars") else history_of(model)
    if history is None:
        who = f"learn={model.learn!r}" if hasattr(model, "learn") else type(model).__name__
        raise ValueError(f"{who} has no history_; fit with learn='validation'")
    ax = axes_of(ax, (6.4, 4.2))
    name = next((name for name in ("validation_error", "validation_loss") if name in history), "objective")
    objective, error = np.asarray(history["objective"]), np.asarray(history[name])
    both = not np.array_equal(objective, error)
    x, phases = np.asarray(history[against]), _phases(history)
    for i, (name, rows) in enumerate(phases):
        ax.plot(x[rows], objective[rows], ".-", color=f"C{i % 10}", label=name)
        if both:
            ax.plot(x[rows], error[rows], "o--", color=f"C{i % 10}", markersize=3, markerfacecolor="white", label="_")
    if both:
        ax.plot([], [], ".-", color=GREY, label="objective")
        ax.plot([], [], "o--", color=GREY, markersize=3, markerfacecolor="white", label="validation error")
    drawn = np.concatenate([objective, error])
    if drawn.min() > 0 and drawn.max() > 10 * drawn.min():
        ax.set_yscale("log")
        set_ticks(ax.yaxis, drawn)
    what = "objective and validation error" if both else "objective"
    ax.set(xlabel=AGAINST[against], ylabel=what if "error_rate" in history else f"{what}, in units of y²")
    if both or len(phases) > 1:
        ax.legend(fontsize="small")
    return ax


def _phases(history: Any) -> list[tuple[str, np.ndarray]]:
    """Name and iterations of every start, then of every later stage."""
    if "stage" not in history:
        return [("epochs", np.arange(len(history["rows"])))]
    stage, start, rows = (np.asarray(history[name]) for name in ("stage", "start", "rows"))
    kept, several = winner(history), len(set(start[stage == 0])) > 1
    phases = []
    for s, k in sorted(set(zip(stage.tolist(), start.tolist(), strict=True))):
        here = np.flatnonzero((stage == s) & (start == k))
        name = "then" if s else f"start {k}, kept," if several and k == kept else f"start {k},"
        phases.append((f"{name} {rows[here[0]]:,} rows", here))
    return phases
