"""Reliability, scaling, searches, comparisons and the style they share: what is drawn against sums made here."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import dkl
from dkl.estimators.compare import Compared, Comparison
from dkl.estimators.intervals import Interval
from dkl.plot import style

mpl.use("Agg")
import matplotlib.pyplot as plt

BINS = [{"from": i / 10, "to": (i + 1) / 10, "rows": 0, "confidence": None, "accuracy": None} for i in range(10)]
FOUND = {"task": "classification", "rows": 50, "calibration_error": 0.1, "calibration": BINS}
BINS[4] = {"from": 0.4, "to": 0.5, "rows": 20, "confidence": 0.46, "accuracy": 0.5}
BINS[9] = {"from": 0.9, "to": 1.0, "rows": 30, "confidence": 0.97, "accuracy": 0.9}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def wilson(right, n):
    """Bounds p at which (right/n - p)^2 n = z^2 p (1 - p), as roots of that polynomial."""
    share, z = right / n, 1.959963984540054
    return np.sort(np.roots([1 + z * z / n, -2 * share - z * z / n, share**2]).real)


def test_reliability_draws_the_bins_with_their_intervals():
    """Points at (confidence, share right), whiskers of Wilson, bars of the share of the rows; empty bins are not."""
    ax = dkl.plot.plot_reliability(FOUND)
    container = next(c for c in ax.containers if hasattr(c, "has_yerr"))
    points, _, [bars] = container
    np.testing.assert_allclose(points.get_xydata(), [[0.46, 0.5], [0.97, 0.9]])
    for segment, (right, n) in zip(bars.get_segments(), [(10, 20), (27, 30)], strict=True):
        np.testing.assert_allclose(segment[:, 1], wilson(right, n), atol=1e-12)
    assert [patch.get_height() for patch in ax.patches] == [0.4, 0.6]
    assert "0.100 on 50 rows" in ax.get_xlabel()


def test_reliability_of_a_model_and_what_has_none():
    """A model is evaluated on the rows; regressors and losses without confidence are refused."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] > 0).astype(int)
    model = dkl.SingleKernelClassifier(n_components=20, sigma=1.0, random_state=0, verbose=0).fit(X, y)
    drawn = next(c for c in dkl.plot.plot_reliability(model, X, y).containers if hasattr(c, "has_yerr"))[0]
    bins = [one for one in model.evaluate(X, y)["calibration"] if one["rows"]]
    np.testing.assert_array_equal(drawn.get_ydata(), [one["accuracy"] for one in bins])
    with pytest.raises(ValueError, match=r"needs rows with known classes: plot_reliability\(model, X, y\)"):
        dkl.plot.plot_reliability(model)
    with pytest.raises(ValueError, match="a regressor has no classes"):
        dkl.plot.plot_reliability({"task": "regression"})
    with pytest.raises(ValueError, match="its loss gives no confidence"):
        dkl.plot.plot_reliability({**FOUND, "calibration": None})


TABLE = [
    {"workers": w, "seconds": s, "job": job}
    for job, factor in (("pass", 1.0), ("_$x$", 3.0))
    for w, s in ((1, 8.0 * factor), (1, 10.0 * factor), (1, 9.0 * factor), (4, 3.0 * factor))
]


@pytest.mark.parametrize("form", [list, pd.DataFrame, lambda t: {k: [r[k] for r in t] for k in t[0]}])
def test_scaling_draws_medians_and_slopes(form):
    """Median at each size, whiskers from least to greatest, the slope of the line, the slope hoped for."""
    ax = dkl.plot.plot_scaling(form(TABLE), "workers", by="job")
    first, second = (c for c in ax.containers if hasattr(c, "has_yerr"))
    np.testing.assert_allclose(first[0].get_xydata(), [[1, 9], [4, 3]])
    np.testing.assert_allclose(first[2][0].get_segments()[0][:, 1], [8, 10])
    np.testing.assert_allclose(second[0].get_ydata(), [27, 9])
    slope = np.log(3 / 9) / np.log(4)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"pass, slope {slope:.2f}" in texts
    assert any(text.startswith(r" _\$x\$") for text in texts), "shown, not hidden, and no mathematics"
    ideal = [line for line in ax.lines if line.get_linestyle() == "--" and len(line.get_xdata())]
    np.testing.assert_allclose(ideal[0].get_ydata(), [9, 9 / 4])
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_scaling_in_rows_and_refusals():
    """Twice the rows, twice the time; columns and values that cannot be drawn."""
    ax = dkl.plot.plot_scaling({"rows": [10, 20], "seconds": [1.0, 2.5]})
    [ideal] = [line for line in ax.lines if line.get_linestyle() == "--" and len(line.get_xdata())]
    np.testing.assert_allclose(ideal.get_ydata(), [1, 2])
    with pytest.raises(ValueError, match="the table has no column 'cores'; it has rows, seconds"):
        dkl.plot.plot_scaling({"rows": [10], "seconds": [1.0]}, "cores")
    with pytest.raises(ValueError, match="rows and seconds must be above zero"):
        dkl.plot.plot_scaling({"rows": [10, 0], "seconds": [1.0, 2.0]})
    with pytest.raises(ValueError, match="the table is empty"):
        dkl.plot.plot_scaling([])


def test_search_draws_the_candidates():
    """Those trained to the end, those dropped, the best in a ring, those that diverged."""
    columns = {
        "n_components": [4, 8, 16, 32], "validation_loss": [0.5, 0.2, 0.9, np.inf], "epochs": [3, 3, 1, 0],
        "dropped_at": [0, 0, 1, 0], "diverged": [False, False, False, True], "rank": [2, 1, 3, 4],
    }  # fmt: skip
    found = xr.Dataset({name: ("candidate", np.array(v)) for name, v in columns.items()})
    ax = dkl.plot.plot_search(SimpleNamespace(search_results_=found))
    drawn = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert drawn["trained to the end"] == [[4, 0.5], [8, 0.2]]
    assert drawn["dropped"] == [[16, 0.9]]
    assert drawn["best"] == [[8, 0.2]]
    assert drawn["diverged"] == [[32, 0.9]]
    with pytest.raises(ValueError, match="against='rank' is not known"):
        dkl.plot.plot_search(SimpleNamespace(search_results_=found), against="rank")


def test_compare_draws_differences():
    """The reference at zero, the others at their difference, filled if told apart; scores beside the names."""
    models = (
        Compared("a <b>", Interval(0.9, 0.85, 0.93), None),
        Compared("c", Interval(0.8, 0.7, 0.88), Interval(-0.1, -0.2, -0.01)),
        Compared("d", Interval(0.89, 0.8, 0.92), Interval(-0.01, -0.04, 0.02)),
    )
    ax = dkl.plot.plot_compare(Comparison("accuracy", 70, 0.95, models))
    points = {line.get_ydata()[0]: line for line in ax.lines if line.get_marker() == "o"}
    assert {place: line.get_xdata()[0] for place, line in points.items()} == {1: -0.1, 2: -0.01}
    assert points[1].get_markerfacecolor() != "white"
    assert points[2].get_markerfacecolor() == "white"
    assert next(t.get_text() for t in ax.get_yticklabels()) == "a <b>\n0.9000 (0.8500 to 0.9300)"
    assert "70 rows" in ax.get_xlabel()
    with pytest.raises(ValueError, match=r"draws what dkl.compare has found, not a int"):
        dkl.plot.plot_compare(3)


def luminance(colour):
    """Relative luminance of WCAG."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    return np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def dichromat(colour, kind):
    """A colour as people without long or middle cones see it (Machado and others 2009, severity 1), linear light."""
    red = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    green = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    rgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.clip(np.array(red if kind == "protan" else green) @ linear, 0, 1)


@pytest.mark.parametrize("kind", ["protan", "deutan"])
def test_colours_are_told_apart(kind):
    """By colour-blind readers, for the first four; each on white and on dark paper; 21 lines differ."""
    seen = [dichromat(one, kind) ** (1 / 2.4) for one in style.COLOURS[:4]]
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i]]
    assert min(gaps) > 0.18
    for one in style.COLOURS:
        light = luminance(one)
        assert 1.05 / (light + 0.05) > 1.9
        assert (light + 0.05) / (luminance("#14171c") + 0.05) > 3
    lines = [tuple(map(str, style.line(i).values())) for i in range(21)]
    assert len(set(lines)) == 21


def test_style_is_for_own_axes_alone():
    """Letters of axes that are given stay those of the user; matplotlib's settings are as before."""
    before = dict(mpl.rcParams)
    table = {"rows": [10, 20], "seconds": [1.0, 2.5]}
    assert dkl.plot.plot_scaling(table).xaxis.label.get_size() == style.STYLE["axes.labelsize"]
    with mpl.rc_context({"font.size": 20}):
        _, ax = plt.subplots()
        assert dkl.plot.plot_scaling(table, ax=ax) is ax
        assert ax.xaxis.label.get_size() == 20
    assert dict(mpl.rcParams) == before


def test_nothing_is_cut_at_the_width_of_a_column():
    """Legends and labels lie inside a figure of 3.5 inches."""
    for draw in (lambda ax: dkl.plot.plot_scaling(TABLE, "workers", by="job", ax=ax),
                 lambda ax: dkl.plot.plot_reliability(FOUND, ax=ax)):  # fmt: skip
        with mpl.rc_context(style.STYLE):
            figure, ax = plt.subplots(figsize=(style.SINGLE, 2.8), layout="constrained")
            draw(ax)
            figure.canvas.draw()
            whole, box = figure.bbox, figure.get_tightbbox()
        assert box.x0 * figure.dpi >= whole.x0 - 1
        assert box.x1 * figure.dpi <= whole.x1 + 1
        assert box.y1 * figure.dpi <= whole.y1 + 1


def test_without_matplotlib(monkeypatch):
    """One line that says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'dkl\[plot\]'"):
        dkl.plot.plot_scaling(TABLE, "workers")
