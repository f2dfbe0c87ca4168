"""Progress in a notebook's cell: the line, and the objective as it falls, in one output that is replaced.

The picture is a few bytes of SVG, so it needs neither matplotlib nor JavaScript. With ipywidgets it is a widget while
the fit goes on; what stays in the notebook is plain HTML either way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, MOST = 320, 64, 160
"""Pixels of the picture, and points that it draws."""
DECADE = 10.0
"""Values that differ by more than this factor are drawn by their logarithms."""


class Notebook:
    """Updates one output of the current cell."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.surface: Any = None

    def show(self, line: str) -> None:
        """Replace the text, and the picture below it."""
        if self.surface is None:
            self.surface = surface()
        self.surface.show(line, html_of(line, self.values))

    def point(self, value: float) -> None:
        """One more value of the objective; it is drawn with the next line."""
        if math.isfinite(value):
            self.values.append(float(value))

    def close(self) -> None:
        """Keep what is shown; the next line gets a new output."""
        if self.surface is not None:
            self.surface.close()
        self.surface, self.values = None, []


class Output:
    """Plain HTML that is replaced, with the line alone for those who show no HTML."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, line: str, html: str) -> None:
        """Display, or replace what is displayed."""
        from IPython.display import display

        bundle = {"text/plain": line, "text/html": html}
        if self.handle is None:
            self.handle = display(bundle, raw=True, display_id=True)
        else:
            self.handle.update(bundle, raw=True)

    def close(self) -> None:
        """Nothing to close."""


class Widget:
    """A widget while it is open; plain HTML takes its place, so that the saved notebook shows it too."""

    def __init__(self, widgets: Any) -> None:
        self.widget, self.shown, self.last = widgets.HTML(), False, ("", "")

    def show(self, line: str, html: str) -> None:
        """Replace the value of the widget."""
        from IPython.display import display

        self.last, self.widget.value = (line, html), html
        if not self.shown:
            self.shown = True
            display(self.widget)

    def close(self) -> None:
        """Leave plain HTML."""
        self.widget.close()
        Output().show(*self.last)


def surface() -> Output | Widget:
    """A widget if ipywidgets is installed."""
    try:
        import ipywidgets
    except ImportError:
        return Output()
    return Widget(ipywidgets)


def html_of(line: str, values: Sequence[float]) -> str:
    """The line, with the picture below it if there are two values or more."""
    text = f'<div style="font-family:monospace;white-space:pre-wrap">{escape(line)}</div>'
    return f"<div>{text}{sparkline(values)}</div>" if len(values) > 1 else f"<div>{text}</div>"


def sparkline(values: Sequence[float]) -> str:
    """The values as a line from left to right, with the first and the last in figures."""
    step = max(1, -(-len(values) // MOST))
    few = [*values[:-1:step], values[-1]]
    low, high = min(few), max(few)
    if low > 0 and high > DECADE * low:
        few, low, high = [math.log(value) for value in few], math.log(low), math.log(high)
    span = (high - low) or 1.0
    points = " ".join(
        f"{4 + (WIDTH - 8) * i / (len(few) - 1):.1f},{4 + (HEIGHT - 8) * (high - value) / span:.1f}"
        for i, value in enumerate(few)
    )
    said = f"objective from {values[0]:.5g} to {values[-1]:.5g} in {len(values):,} iterations"
    return (
        f'<svg role="img" aria-label="{said}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.6"/></svg>'
        f'<div style="font-size:85%;opacity:.8">{said}</div>'
    )
