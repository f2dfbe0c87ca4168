"""One look for every picture: colours that a colour-blind reader tells apart, thin axes, sizes of a journal's column.

The colours are those of Okabe and Ito without black and yellow, so each shows on white and on dark paper; a tenth line
differs by its dashes as well. A picture that makes its own axes takes all of STYLE; on axes that are given only colours
and frames are ours, and the sizes of letters stay those of the user.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8F6BB3")
"""Blue, vermilion, green, rose, orange, sky, violet."""
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))
GREY = "0.5"
"""Lines in a legend that stand for a style, and marks that are not data."""
FAINT = (0.5, 0.5, 0.5, 0.35)
"""Lines that stay behind the others."""
GRID = (0.5, 0.5, 0.5, 0.18)
SINGLE, WIDE = 3.5, 7.2
"""Inches of one and of two columns of a journal."""
SIZE = (4.8, 3.3)
"""Inches of axes that a picture makes for itself: read well on a screen, and at SINGLE in print."""
LETTER = 0.52
"""Mean width of a letter over its size."""
STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "figure.dpi": 120,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
}


def colour(i: int) -> str:
    """The i-th colour; they come again after the last."""
    return COLOURS[i % len(COLOURS)]


def line(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th line: 21 that differ."""
    return {"color": colour(i), "linestyle": DASHES[i // len(COLOURS) % len(DASHES)]}


def drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    """A picture in this style: its letters if it makes the axes, its frame in any case."""
    signature = inspect.signature(function)

    @wraps(function)
    def styled(*args: Any, **options: Any) -> Any:
        matplotlib = _matplotlib()
        own = signature.bind(*args, **options).arguments.get("ax") is None
        with matplotlib.rc_context(STYLE if own else {}):
            ax = function(*args, **options)
            frame(ax)
            interactive = matplotlib.is_interactive()
        matplotlib.interactive(interactive)  # a notebook's first picture turns it on; the context would turn it off
        return ax

    return styled


def frame(ax: Any) -> None:
    """Two sides and a grid that stays behind the data."""
    if not ax.axison:
        return
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)


def legend_above(ax: Any, columns: int = 2, **more: Any) -> None:
    """A legend that hides no data: it stands above the axes, in as many columns as they are wide enough for."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    _, labels = ax.get_legend_handles_labels()
    if "handles" in more:
        labels = [handle.get_label() for handle in more["handles"]]
    letter = FontProperties(size=rcParams["legend.fontsize"]).get_size_in_points() * LETTER / 72
    room = ax.get_window_extent().width / ax.figure.dpi
    fitting = int(room / (max(map(len, labels), default=1) * letter + 0.35))
    ax.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1), ncols=min(columns, max(1, fitting)), frameon=False,
        borderaxespad=0.2, handlelength=1.6, columnspacing=1.2, **more,
    )  # fmt: skip


def axes_of(ax: Any, size: tuple[float, float] = SIZE) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise _missing(error) from None
    return plt.subplots(figsize=size, layout="constrained")[1]


def _matplotlib() -> Any:
    """The package, which is an extra."""
    try:
        import matplotlib
    except ImportError as error:
        raise _missing(error) from None
    return matplotlib


def _missing(error: ImportError) -> ImportError:
    return ImportError(f"dkl.plot draws with matplotlib ({error}); pip install 'dkl[plot]'")


def label(name: Any, most: int = 40) -> str:
    """A name as a picture shows it: no mathematics, never hidden, and not longer than the picture."""
    text = " ".join(str(name).split())
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return f"{' ' * text.startswith('_')}{text}".replace("$", r"\$")
