"""Seconds (or bytes) against a size, on logarithmic axes, with the slope that was hoped for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dkl.plot.canvas import set_ticks
from dkl.plot.style import FAINT, axes_of, drawn, label, legend_above, line

FEWER = {"workers", "threads", "cores", "processes"}
"""What makes a job shorter: twice as many, half the time."""
MOST_TICKS = 6
"""Sizes that are written below the axis; of more the usual numbers of a logarithmic axis are."""


@drawn
def plot_scaling(
    table: Any, x: str = "rows", y: str = "seconds", by: str | None = None, ax: Any = None, slope: float | None = None
) -> Any:  # fmt: skip
    """y against x, both logarithmic, one line for each value of the column `by`; medians, with a bar from least to
    greatest where a size was measured several times.

    table : a dataframe, a dictionary of columns, or records such as the lines of a benchmark.
    slope : of the dashed line that starts where each line starts, y ~ x ** slope; None takes -1 for workers and
    threads, else 1. The last point bears the slope of its own line, by least squares.
    """
    columns = _columns(table)
    for name in (x, y, *([by] if by else [])):
        if name not in columns:
            raise ValueError(f"the table has no column {name!r}; it has {', '.join(map(str, columns))}")
    size, taken = (np.asarray(columns[name], float) for name in (x, y))
    if not (size > 0).all() or not (taken > 0).all():
        raise ValueError(f"{x} and {y} must be above zero for logarithmic axes; leave the other lines out")
    which = np.asarray(columns[by]).astype(str) if by else np.full(len(size), y)
    ideal = slope if slope is not None else -1.0 if x in FEWER else 1.0
    ax = axes_of(ax)
    for i, name in enumerate(dict.fromkeys(which.tolist())):
        mine = which == name
        at = np.unique(size[mine])
        runs = [taken[mine & (size == one)] for one in at]
        middle = np.array([np.median(run) for run in runs])
        ends = np.array([[m - run.min(), run.max() - m] for m, run in zip(middle, runs, strict=True)]).T
        grows = f", slope {np.polyfit(np.log(at), np.log(middle), 1)[0]:.2f}" if len(at) > 1 else ""
        ax.errorbar(at, middle, ends, marker="o", elinewidth=1, capsize=2, label=label(name) + grows, **line(i))
        ax.plot(at, middle[0] * (at / at[0]) ** ideal, color=FAINT, linestyle="--", zorder=1)
    ax.plot([], [], color=FAINT, linestyle="--", label=f"slope {ideal:g}")
    ax.set(xscale="log", yscale="log", xlabel=label(x), ylabel=label(y))
    if len(at := np.unique(size)) <= MOST_TICKS:
        ax.set_xticks(at, [f"{one:,.6g}" for one in at])
        ax.set_xticks([], minor=True)
    else:
        set_ticks(ax.xaxis, size)
    set_ticks(ax.yaxis, taken)
    legend_above(ax)
    return ax


def _columns(table: Any) -> dict[str, Any]:
    """Columns of a table in any of its forms."""
    if isinstance(table, Mapping):
        return dict(table)
    if hasattr(table, "columns"):
        return {name: np.asarray(table[name]) for name in table.columns}
    if not isinstance(table, Iterable) or not (records := list(table)):
        raise ValueError(f"the table is empty: {table!r}; give a dataframe, a dictionary of columns, or records")
    return {name: [record[name] for record in records] for name in records[0]}
