"""Pictures of a report as SVG that reads on white and on dark paper, and stays small.

Letters and axes are drawn in one colour that stands for the colour of the text around (`currentColor`), white fills
become the colour of the page. Letters stay letters, so a browser finds them. Too many strokes become a PNG.
"""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import NotFittedError

import dkl.plot
from dkl.plot.style import COLOURS, STYLE

INK, PAPER = "#1a1b1c", "#ffffff"
"""Colours that stand for those of the page."""
MOST_LETTERS = 150_000
"""Of an SVG; a picture that takes more is a PNG."""
MOST_POINTS = 600
"""Iterations that are drawn."""
MOST_BARS = 30
LOOK = {
    **STYLE, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "legend.labelcolor": INK, "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
    "svg.fonttype": "none", "svg.hashsalt": "dkl", "figure.max_open_warning": 0,
}  # fmt: skip


class Figure(NamedTuple):
    """A picture, or why there is none."""

    name: str
    svg: str
    why: str = ""


def figures_of(model: Any, evaluation: dict[str, Any] | None) -> dict[str, Figure]:
    """Every picture of a report by name."""
    sigma, kernel = hasattr(model, "sigma_"), hasattr(model, "kernel")
    history, path = hasattr(model, "history_"), hasattr(model, "path_")
    gabor = hasattr(getattr(model, "features_", None), "orientation")
    found = [
        ("convergence", history, "nothing was learned step by step", _convergence),
        ("sigma", sigma and hasattr(model, "groups_"), "the family has no sigma of its own", _sigma),
        ("spectrum", sigma, "the family has no frequencies of one kernel", dkl.plot.plot_spectrum),
        ("kernel", sigma and kernel, "the family has no single kernel", dkl.plot.plot_kernel),
        ("path", path, "alpha was not followed along a path", dkl.plot.plot_path),
        ("weights", hasattr(model, "kernel_weights_"), "the model has one kernel", _weights),
        ("features", hasattr(model, "selected_"), "features were drawn, not found one by one",
         dkl.plot.plot_filters if gabor else dkl.plot.plot_features),
        ("search", hasattr(model, "search_results_"), "no candidates were searched", dkl.plot.plot_search),
        ("reliability", evaluation is not None and evaluation["calibration"] is not None,
         "there is no confidence: " + ("no rows of classes" if evaluation is None else "the loss gives none"),
         lambda _: dkl.plot.plot_reliability(evaluation)),
    ]  # fmt: skip
    return {
        name: _draw(name, picture, model) if there else Figure(name, "", why) for name, there, why, picture in found
    }


def _draw(name: str, picture: Callable[[Any], Any], model: Any) -> Figure:
    """The picture as SVG; what it refuses to draw is said in its place."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(LOOK), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that a font lacks
        ax = None
        try:
            ax = picture(model)
            return Figure(name, _svg(ax.figure))
        except NotFittedError:
            return Figure(name, "", "the family does not have what this picture shows")
        except ValueError as error:
            return Figure(name, "", str(error))
        finally:
            if ax is not None and isinstance(ax.figure, Canvas):
                import matplotlib.pyplot as plt

                plt.close(ax.figure)


def _svg(figure: Any) -> str:
    """The figure as SVG in the colours of the page, or as a PNG on white if that is smaller by far."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    text = written.getvalue()
    if len(text) > MOST_LETTERS:
        return _png(figure)
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r'(<svg [^>]*?)width="([\d.]+)pt" height="([\d.]+)pt"', r'\1 style="width:\2pt"', text, count=1)
    return text.replace(INK, "currentColor").replace(PAPER, "var(--paper)").replace(COLOURS[0].lower(), "var(--first)")


def _png(figure: Any) -> str:
    """On white, as its letters are dark."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110, facecolor="white", bbox_inches="tight")
    data = base64.b64encode(written.getvalue()).decode()
    return f'<img class="raster" alt="" src="data:image/png;base64,{data}">'


def _convergence(model: Any) -> Any:
    """Of a long history some iterations, with the ends of each run."""
    history = model.history_
    count = history.sizes["iteration"]
    if count > MOST_POINTS:
        keep = set(np.linspace(0, count - 1, MOST_POINTS).astype(int).tolist())
        if "stage" in history:
            runs = np.asarray(history["stage"]) * 1000 + np.asarray(history["start"])
            ends = np.flatnonzero(np.diff(runs))
            keep |= set(ends.tolist()) | set((ends + 1).tolist())
        history = history.isel(iteration=sorted(keep))
    return dkl.plot.plot_convergence(history)


def _sigma(model: Any) -> Any:
    count = len(np.asarray(model.sigma_))
    groups = len(np.unique(model.groups_))
    by = "input" if groups in (1, count) or count <= MOST_BARS else "group"
    return dkl.plot.plot_sigma(model, by=by, top=MOST_BARS)


def _weights(model: Any) -> Any:
    return dkl.plot.plot_kernel_weights(model, top=MOST_BARS)
