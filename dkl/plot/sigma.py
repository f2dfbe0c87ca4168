"""Bars of sigma times spread of each input or group."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_count
from dkl.estimators.input_info import bars_of
from dkl.plot.canvas import start_sigma, unit_of
from dkl.plot.style import axes_of, colour, drawn, legend_above

TEXT_HEIGHT = 0.15
"""Inches that a label takes on the axis of the bars."""


@drawn
def plot_sigma(model: Any, ax: Any = None, by: str = "input", top: int | None = None) -> Any:
    """Bars of learned sigma times the spread of each input, largest first.

    A line marks the start of each sigma, a cross an input that was switched off (sigma exactly 0). If no pass over X
    measured the spread, sigma itself is drawn, in 1 / unit of its input.
    by : "input", "group", or a coordinate of the inputs such as "channel"; inputs that share a bar give their mean.
    top : number of bars; None draws all. If names do not fit, only some bars are labelled.
    """
    names, index = bars_of(model, by)
    count, sizes = len(names), np.bincount(index)
    spread = getattr(model, "input_spread_", None)
    unit = np.ones(len(index)) if spread is None else spread
    learned = np.bincount(index, model.sigma_ * unit) / sizes
    off = np.bincount(index, model.sigma_) == 0
    order = np.argsort(-learned, kind="stable")[: count if top is None else check_count("top", top)]
    ax = axes_of(ax, (4.8, float(np.clip(TEXT_HEIGHT * len(order) / 0.75, 2.4, 11))))
    y, width = np.arange(len(order)), 0.8 if len(order) <= 100 else 1.0
    marks = [
        ax.barh(y, learned[order], width, color=colour(0), label="learned" if hasattr(model, "history_") else "sigma")
    ]
    if (start := start_sigma(model)) is not None:
        begun = (np.bincount(index, start * unit) / sizes)[order]
        marks.append(ax.vlines(begun, y - width / 2, y + width / 2, colors=colour(1), label="start"))
    inches = ax.get_window_extent().height / ax.figure.dpi
    if len(gone := y[off[order]]):
        size = float(np.clip(50 * inches / len(order), 1.5, 6))
        marks += ax.plot(
            0 * gone, gone, "x", color=colour(1), ms=size, clip_on=False, label=f"switched off: {len(gone)}"
        )
    step = max(1, int(np.ceil(len(order) * TEXT_HEIGHT / inches)))
    ax.set_yticks(y[::step], [names[i] for i in order[::step]], parse_math=False)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(0, None)
    alike = np.allclose(learned[index], model.sigma_ * unit, rtol=1e-9, atol=0)
    largest = "" if len(order) == count else f", the {len(order)} largest of {count}"
    ax.set(xlabel=("" if alike else "mean ") + _what(model, spread is not None), ylabel=by + largest)
    legend_above(ax, 3, handles=marks)
    ax.yaxis.grid(False)
    return ax


def _what(model: Any, known: bool) -> str:
    """The label of the bars of sigma."""
    if known:
        return f"sigma times the spread (standard deviation) of {unit_of(model)}"
    return f"sigma, in 1 / unit of {unit_of(model)} (no pass has seen the spread)"
