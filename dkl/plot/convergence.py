"""The objective against iterations, seconds or passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice
from dkl.plot.canvas import history_of, set_ticks, winner
from dkl.plot.style import GREY, axes_of, colour, drawn, legend_above

AGAINST = {"iteration": "iteration", "seconds": "time since learning began, in seconds", "passes": "passes over rows"}


@drawn
def plot_convergence(model: Any, ax: Any = None, against: str = "iteration") -> Any:
    """The objective (solid) and the validation error (dashed) of each iteration; one line per start and stage.

    `model` may be its `history_`. If nothing is penalised the two are the same, and one line is drawn.
    """
    check_choice("against", against, AGAINST)
    history = model if hasattr(model, "data_vars") else history_of(model)
    if history is None:
        who = f"learn={model.learn!r}" if hasattr(model, "learn") else type(model).__name__
        raise ValueError(f"{who} has no history_; fit with learn='validation'")
    ax = axes_of(ax)
    name = next((name for name in ("validation_error", "validation_loss") if name in history), "objective")
    error = np.asarray(history[name])
    objective = np.asarray(history["objective"]) if "objective" in history else error  # a search has no objective
    both = not np.array_equal(objective, error)
    x, phases = np.asarray(history[against]), _phases(history)
    for i, (phase, rows) in enumerate(phases):
        ax.plot(x[rows], objective[rows], ".-", color=colour(i), label=phase)
        if both:
            ax.plot(x[rows], error[rows], "o--", color=colour(i), markersize=3, markerfacecolor="white", label="_")
    if both:
        ax.plot([], [], ".-", color=GREY, label="objective")
        ax.plot([], [], "o--", color=GREY, markersize=3, markerfacecolor="white", label="validation error")
    drawn = np.concatenate([objective, error])
    if drawn.min() > 0 and drawn.max() > 10 * drawn.min():
        ax.set_yscale("log")
        set_ticks(ax.yaxis, drawn)
    _certificate(ax, x, history)
    what = "objective, error" if both else "objective" if "objective" in history else "held-out loss"
    square = name == "validation_error" and "error_rate" not in history
    ax.set(xlabel=AGAINST[against], ylabel=f"{what} (in units of y²)" if square else what)
    if len(ax.get_legend_handles_labels()[1]) > 1:
        legend_above(ax)
    return ax


def _certificate(ax: Any, x: np.ndarray, history: Any) -> None:
    """What proves the weights, of a method that measures it: dotted, on a logarithmic axis of its own."""
    name = next((name for name in ("certificate", "residual") if name in history), None)
    if name is None or not (some := np.asarray(history[name], float) > 0).any():
        return
    right = ax.twinx()
    right.plot(x[some], np.asarray(history[name])[some], ":", color=GREY)
    right.set(yscale="log", ylabel=f"{name} (dotted)")
    right.spines["top"].set_visible(False)
    ax.plot([], [], ":", color=GREY, label=name)


def _phases(history: Any) -> list[tuple[str, np.ndarray]]:
    """Name and iterations of every start, then of every later stage."""
    if "stage" not in history:
        return [("epochs" if "epoch" in history else "iterations", np.arange(len(history["rows"])))]
    stage, start, rows = (np.asarray(history[name]) for name in ("stage", "start", "rows"))
    kept, several = winner(history), len(set(start[stage == 0])) > 1
    phases = []
    for s, k in sorted(set(zip(stage.tolist(), start.tolist(), strict=True))):
        here = np.flatnonzero((stage == s) & (start == k))
        name = "then" if s else f"start {k}, kept," if several and k == kept else f"start {k},"
        phases.append((f"{name} {rows[here[0]]:,} rows", here))
    return phases
