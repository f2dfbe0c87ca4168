"""What is drawn is what was learned: the data of lines, bars and histograms against sums made here."""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.exceptions import NotFittedError

import dkl
from dkl.exact import KernelRidgeGD
from dkl.features.fourier import FourierMap
from dkl.kernels import KERNELS

mpl.use("Agg")
import matplotlib.pyplot as plt

rng = np.random.default_rng(0)
X = np.abs(rng.standard_normal((300, 6)))
y = np.sin(2 * X[:, 1]) + X[:, 4]
NAMES = ["age", "height", "mass", "_hidden", "$a$ $b", "iq"]
CHANNELS = np.array(["body", "body", "body", "mind", "mind", "mind"])
LABELLED = xr.DataArray(X, dims=("row", "input"), coords={"input": NAMES, "channel": ("input", CHANNELS)})
FUNCTIONS = ["plot_convergence", "plot_sigma", "plot_spectrum", "plot_kernel"]
QUICK = {"n_components": 40, "random_state": 0, "verbose": 0, "tol": 0.05}


def regressor(**params):
    """A small model of the labelled rows."""
    return dkl.SingleKernelRegressor(**{**QUICK, **params}).fit(LABELLED, y)


@pytest.fixture(scope="module")
def sparse():
    """Each input has its sigma, and some are switched off."""
    model = regressor(learn="validation", groups="each", sigma_l1=0.05)
    assert 0 < (model.sigma_ == 0).sum() < 6
    return model


@pytest.fixture(scope="module")
def plain():
    """Nothing was learned."""
    return regressor(sigma=0.7)


@pytest.fixture(scope="module")
def free():
    """The frequencies themselves were learned."""
    return regressor(learn="frequencies", sigma=0.7, tol=0.5)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def first_sigma(model):
    """sigma where the best start began, by going through the history row by row."""
    h = model.history_
    ends = {}
    for i in range(h.sizes["iteration"]):
        if h.stage[i] == 0:
            ends[int(h.start[i])] = float(h.objective[i])
    best = min(ends, key=ends.get)
    mine = np.flatnonzero((h.start == best) & (h.stage == 0))
    np.testing.assert_array_equal(h.sigma.values[-1], model.sigma_)
    return h.sigma.values[mine[0]]


def slices(ax):
    """Curves of a kernel; lines of the legend are empty, that of zero has two points."""
    return [line for line in ax.lines if len(line.get_xdata()) > 2]


def names_at(ax):
    """Names beside the bars, by place."""
    return dict(zip(ax.get_yticks(), (t.get_text() for t in ax.get_yticklabels()), strict=True))


def lengths(ax):
    """Of the bars, from the first."""
    return [bar.get_width() for bar in ax.patches]


@pytest.mark.parametrize("against", ["iteration", "seconds", "passes"])
def test_convergence_draws_the_history(sparse, against):
    """A solid line of the objective and a dashed one of the error for each start; the best is said to be kept."""
    h = sparse.history_
    ax = dkl.plot.plot_convergence(sparse, against=against)
    lines = [line for line in ax.lines if len(line.get_xdata())]
    assert len(lines) == 2 * (3 + 1 + 1)
    begun = h.isel(iteration=np.flatnonzero(h.stage == 0))
    best = int(begun.start.values[begun.objective.values.argmin()])
    legs = [(0, 0), (0, 1), (0, 2), (1, best), (2, best)]  # three starts, the best of them, and that without l1
    for start, (stage, number) in enumerate(legs):
        mine = h.isel(iteration=np.flatnonzero((h.stage == stage) & (h.start == number)))
        for k, (name, style) in enumerate((("objective", "-"), ("validation_error", "--"))):
            line = lines[2 * start + k]
            np.testing.assert_array_equal(line.get_xdata(), mine[against])
            np.testing.assert_array_equal(line.get_ydata(), mine[name])
            assert line.get_linestyle() == style
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [label for label in labels if "kept" in label] == [f"start {best}, kept, 300 rows"]
    assert labels[-2:] == ["objective", "validation error"]
    assert against in ax.get_xlabel()
    assert "y²" in ax.get_ylabel()


def test_convergence_of_a_history_alone_and_of_stages():
    """Later stages have a line of their own; one line stands for two that are the same; a decade makes a log axis."""
    n = 7
    columns = {
        "objective": np.array([9.0, 3.0, 8.0, 2.0, 2.5, 1.0, 0.8]),
        "stage": np.array([0, 0, 0, 0, 1, 1, 2]),
        "start": np.array([0, 0, 1, 1, 0, 0, 0]),
        "rows": np.array([10, 10, 10, 10, 4000, 4000, 16000]),
        "passes": np.arange(n) * 2,
        "seconds": np.arange(n) / 3,
    }
    columns["validation_error"] = columns["objective"]
    history = xr.Dataset({k: ("iteration", v) for k, v in columns.items()}, {"iteration": np.arange(n)})
    ax = dkl.plot.plot_convergence(history)
    assert [list(line.get_ydata()) for line in ax.lines] == [[9, 3], [8, 2], [2.5, 1], [0.8]]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["start 0, 10 rows", "start 1, kept, 10 rows", "then 4,000 rows", "then 16,000 rows"]
    assert ax.get_yscale() == "log"
    history["objective"] = history["validation_error"] = history["objective"] + 10
    assert dkl.plot.plot_convergence(history).get_yscale() == "linear"


def test_sigma_of_each_input(sparse):
    """Bars are sigma times spread, the largest first, lines the start, crosses the zeros, names those of xarray."""
    ax = dkl.plot.plot_sigma(sparse)
    worth, began = sparse.sigma_ * X.std(axis=0), first_sigma(sparse) * X.std(axis=0)
    order = sorted(range(6), key=lambda j: -worth[j])
    np.testing.assert_allclose(lengths(ax), worth[order], rtol=1e-12)
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, 0, 0], began[order], rtol=1e-12)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), np.flatnonzero(worth[order] == 0))
    assert names_at(ax) == {i: NAMES[j] for i, j in enumerate(order)}
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first is on top"
    assert f"switched off: {(sparse.sigma_ == 0).sum()}" in [t.get_text() for t in ax.get_legend().get_texts()]
    assert "spread" in ax.get_xlabel()


def test_an_input_of_large_units_is_seen():
    """The same rows with one input in other units: the same bars, with either one's names, also from disk."""
    options = {**QUICK, "learn": "validation", "groups": "each", "starts": 1}
    bars = []
    for factor in (1.0, 1e5):
        rows = X * [1, factor, 1, 1, 1, 1]
        model = dkl.SingleKernelRegressor(**options).fit(pd.DataFrame(rows, columns=NAMES), y)
        np.testing.assert_allclose(model.input_spread_, rows.std(axis=0), rtol=1e-12)
        np.testing.assert_array_equal(model.input_range_, [rows.min(axis=0), rows.max(axis=0)])
        bars.append((lengths(dkl.plot.plot_sigma(model)), names_at(dkl.plot.plot_sigma(model))))
    np.testing.assert_allclose(bars[0][0], bars[1][0], rtol=1e-3)
    assert bars[0][1] == bars[1][1]
    assert bars[0][1][0] in ("height", "$a$ $b")


def test_a_given_sigma_is_in_units_of_its_input(plain, tmp_path):
    """No pass has seen the spread: sigma itself, and the picture says so; models that lack it load."""
    ax = dkl.plot.plot_sigma(plain)
    assert lengths(ax) == [0.7] * 6
    assert "1 / unit of the input" in ax.get_xlabel()
    assert not hasattr(plain, "input_range_")
    plain.save(tmp_path / "m.zarr")
    assert not hasattr(dkl.load(tmp_path / "m.zarr"), "input_spread_")


def test_the_largest_sigma_first(sparse):
    """top says how many there were."""
    ax = dkl.plot.plot_sigma(sparse, top=2)
    worth = sparse.sigma_ * X.std(axis=0)
    order = sorted(range(6), key=lambda j: -worth[j])[:2]
    np.testing.assert_allclose(lengths(ax), worth[order], rtol=1e-12)
    assert names_at(ax) == {i: NAMES[j] for i, j in enumerate(order)}
    assert "2 largest of 6" in ax.get_ylabel()


def test_sigma_by_coordinate_and_group(sparse):
    """Means over the inputs of a channel; groups made of channels bear their names."""
    ax = dkl.plot.plot_sigma(sparse, by="channel")
    worth = sparse.sigma_ * X.std(axis=0)
    want = {name: worth[name == CHANNELS].mean() for name in ("body", "mind")}
    assert names_at(ax) == dict(enumerate(sorted(want, key=lambda name: -want[name])))
    np.testing.assert_allclose(lengths(ax), sorted(want.values(), reverse=True))
    assert "mean sigma" in ax.get_xlabel()
    model = regressor(learn="gcv", groups="channel", starts=1)
    ax = dkl.plot.plot_sigma(model, by="group")
    worth = model.sigma_ * X.std(axis=0)
    np.testing.assert_allclose(lengths(ax), sorted((worth[:3].mean(), worth[3:].mean()), reverse=True))
    assert {t.get_text() for t in ax.get_yticklabels()} == {"body", "mind"}


def test_the_range_of_the_data_is_marked(sparse, plain):
    """A thin line as long as the range, a thick one to the distance of two rows; where x lies, of histograms."""
    j = int(np.argmax(sparse.sigma_))
    ax = dkl.plot.plot_kernel(sparse, inputs=[j])
    thin, thick = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2][:2]
    np.testing.assert_allclose(thin, [0, np.ptp(X[:, j])])
    np.testing.assert_allclose(thick, [0, np.sqrt(((X[:, None, j] - X[None, :, j]) ** 2).mean())])
    assert any("range of the data" in t.get_text() for t in ax.get_legend().get_texts())
    model = dkl.SingleKernelRegressor("skewed_chi2", **QUICK).fit(X, y)
    lines = [line.get_xdata() for line in dkl.plot.plot_kernel(model, inputs=[2]).lines]
    np.testing.assert_allclose(next(x for x in lines if len(x) == 2), [X[:, 2].min(), X[:, 2].max()])
    ax = dkl.plot.plot_kernel(plain)
    assert not any("range" in t.get_text() for t in ax.get_legend().get_texts())


def test_names_of_columns_and_of_a_data_set(tmp_path):
    """A dataframe's columns, with nothing learned; the channels and columns of ingested files."""
    model = dkl.SingleKernelRegressor(**QUICK).fit(pd.DataFrame(X, columns=NAMES), y)
    assert {t.get_text() for t in dkl.plot.plot_sigma(model).get_yticklabels()} == set(NAMES)
    left = pd.DataFrame(X[:, :2], columns=["u", "v"]).assign(goal=y)
    left.to_csv(tmp_path / "left.csv", index=False)
    pd.DataFrame(X[:, 2:4], columns=["u", "w"]).assign(goal=y).to_csv(tmp_path / "right.csv", index=False)
    paths = [tmp_path / "left.csv", tmp_path / "right.csv"]
    data = dkl.ingest(paths, tmp_path / "d.zarr", target="goal", verbose=0)
    model = dkl.SingleKernelRegressor(**QUICK, sigma=[0.1, 0.2, 0.3, 0.4]).fit(data)
    ax = dkl.plot.plot_sigma(model)
    assert {t.get_text() for t in ax.get_yticklabels()} == {"left u", "left v", "right u", "right w"}
    ax = dkl.plot.plot_sigma(model, by="channel")
    np.testing.assert_allclose(lengths(ax), [0.35, 0.15])
    assert {t.get_text() for t in ax.get_yticklabels()} == {"left", "right"}


def test_many_inputs_have_names_that_do_not_overlap():
    """Of 784 names those of the largest sigma are written, with room between them."""
    unit, sigma = rng.standard_normal((784, 5)), rng.random(784)
    model = dkl.FourierFeatures()
    model.features_ = FourierMap(KERNELS["gaussian"], unit, sigma, np.empty(0), 1.0, "paired")
    model.sigma_, model.groups_ = sigma, np.arange(784)
    ax = dkl.plot.plot_sigma(model)
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.get_yticklabels()]
    boxes.sort(key=lambda box: box.y0)
    assert len(boxes) > 20
    assert all(a.y1 <= b.y0 for a, b in pairwise(boxes))
    assert str(int(sigma.argmax())) in {t.get_text() for t in ax.get_yticklabels()}


def test_spectrum_is_a_histogram_of_norms(sparse, plain, free):
    """Density and edges of log2 |sigma * h| at the start and learned, one of them if nothing was learned."""
    ax = dkl.plot.plot_spectrum(sparse)
    assert ax.get_xscale() == "log"
    unit = sparse.features_.unit
    for patch, sigma in zip(ax.patches[::2], (first_sigma(sparse), sparse.sigma_), strict=True):
        counts, edges = np.histogram(np.log2(np.linalg.norm(sigma[:, None] * unit, axis=0)), bins="fd")
        got = patch.get_data()
        np.testing.assert_allclose(got.values * np.diff(edges), counts / unit.shape[1])
        np.testing.assert_allclose(got.edges, 2**edges)
    (patch,) = dkl.plot.plot_spectrum(plain).patches[::2]
    counts, edges = np.histogram(np.log2(np.linalg.norm(0.7 * plain.features_.unit, axis=0)), bins="fd")
    np.testing.assert_allclose(patch.get_data().values * np.diff(edges), counts / counts.sum())
    labels = [t.get_text() for t in dkl.plot.plot_spectrum(free).get_legend().get_texts()]
    assert labels == ["start, drawn anew", "learned"]


def test_kernel_slices(sparse):
    """exp(-sigma^2 delta^2 / 2) and the mean of cos(omega_j delta), at the learned sigma and at the start's."""
    ax = dkl.plot.plot_kernel(sparse)
    order = sorted(range(6), key=lambda j: -sparse.sigma_[j] * X[:, j].std())[:3]
    lines = slices(ax)
    assert len(lines) == 4 * 3
    for i, j in enumerate(order):
        four = [lines[4 * i + k] for k in range(4)]
        for (exact, approximate), sigma in zip((four[:2], four[2:]), (sparse.sigma_, first_sigma(sparse)), strict=True):
            d = exact.get_xdata()
            np.testing.assert_allclose(exact.get_ydata(), np.exp(-(sigma[j] ** 2) * d**2 / 2), atol=1e-12)
            want = np.cos(d[:, None] * sigma[j] * sparse.features_.unit[j]).mean(1)
            np.testing.assert_allclose(approximate.get_ydata(), want, atol=1e-12)
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert len(labels) == 7


def test_kernel_of_named_inputs_and_of_groups(sparse, plain, free):
    """Names or numbers choose; one input stands for a group; learned frequencies have no exact kernel."""
    ax = dkl.plot.plot_kernel(sparse, inputs=["_hidden", 4])
    ax.figure.canvas.draw()
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert labels[0].startswith("input _hidden: sigma")
    assert labels[1].startswith(r"input \$a\$ \$b: sigma")
    assert len(slices(dkl.plot.plot_kernel(plain))) == 2
    learned, exact_start = slices(dkl.plot.plot_kernel(free))
    d = learned.get_xdata()
    want = np.cos(d[:, None] * 0.7 * free.features_.unit[X.std(axis=0).argmax()]).mean(1)
    np.testing.assert_allclose(learned.get_ydata(), want, atol=1e-12)
    np.testing.assert_allclose(exact_start.get_ydata(), np.exp(-(0.49) * d**2 / 2), atol=1e-12)


def test_models_without_frequencies():
    """Landmarks and exact kernels draw sigma, convergence and the exact kernel, and refuse a spectrum."""
    exact = KernelRidgeGD("laplacian", groups="each", starts=1, verbose=0, random_state=0, tol=0.1).fit(X, y)
    near = dkl.SingleKernelRegressor("gaussian", 20, sigma=0.7, landmarks="uniform", verbose=0).fit(X, y)
    assert "spread" in dkl.plot.plot_sigma(exact).get_xlabel()
    assert "1 / unit of the input" in dkl.plot.plot_sigma(near).get_xlabel()
    assert dkl.plot.plot_convergence(exact).get_lines()
    learned, start = slices(dkl.plot.plot_kernel(exact, inputs=[0]))
    for line, sigma in ((learned, exact.sigma_[0]), (start, first_sigma(exact)[0])):
        np.testing.assert_allclose(line.get_ydata(), np.exp(-sigma * line.get_xdata()), atol=1e-12)
    (line,) = slices(dkl.plot.plot_kernel(near, inputs=[0]))
    np.testing.assert_allclose(line.get_ydata(), np.exp(-(0.49) * line.get_xdata() ** 2 / 2), atol=1e-12)
    with pytest.raises(ValueError, match="KernelRidgeGD has the kernel itself and no frequencies to draw"):
        dkl.plot.plot_spectrum(exact)


def test_a_skewed_kernel_is_drawn_against_zero():
    """sech(sigma log(1 + delta / c))."""
    model = dkl.SingleKernelRegressor("skewed_chi2", sigma=0.9, skew=0.5, **QUICK).fit(X, y)
    line = dkl.plot.plot_kernel(model).lines[0]
    d = line.get_xdata()
    np.testing.assert_allclose(line.get_ydata(), 1 / np.cosh(0.9 * np.log1p(d / 0.5)), atol=1e-12)
    assert d[-1] == pytest.approx(0.5 * np.expm1(4 / 0.9))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_given_axes_come_back_and_a_loaded_model_draws_the_same(sparse, free, name, tmp_path):
    """The axes given are the axes returned, pictures can be written, and those of a model from disk are the same."""
    sparse.save(tmp_path / "m.zarr")
    pixels = []
    for model in (sparse, dkl.load(tmp_path / "m.zarr"), free):
        fig, ax = plt.subplots(layout="constrained")
        assert getattr(dkl.plot, name)(model, ax) is ax
        fig.savefig(tmp_path / "p.png")
        pixels.append(plt.imread(tmp_path / "p.png"))
    np.testing.assert_array_equal(pixels[0], pixels[1])


def test_refusals(sparse, plain, monkeypatch):
    """One line each, with what to do."""
    with pytest.raises(ValueError, match=r"learn='none' has no history_; fit with learn='validation'"):
        dkl.plot.plot_convergence(plain)
    with pytest.raises(ValueError, match="FourierFeatures has no history_"):
        dkl.plot.plot_convergence(dkl.FourierFeatures(verbose=0).fit(X))
    with pytest.raises(ValueError, match="against='second' is not known; did you mean 'seconds'"):
        dkl.plot.plot_convergence(sparse, against="second")
    with pytest.raises(ValueError, match=r"by='chanel' is not known; did you mean 'channel'"):
        dkl.plot.plot_sigma(sparse, by="chanel")
    with pytest.raises(ValueError, match="top=0"):
        dkl.plot.plot_sigma(sparse, top=0)
    with pytest.raises(ValueError, match="inputs='hight' is not known; did you mean 'height'"):
        dkl.plot.plot_kernel(sparse, inputs="hight")
    with pytest.raises(ValueError, match=r"inputs=\[6\] must name some of the inputs, numbered 0 to 5"):
        dkl.plot.plot_kernel(sparse, inputs=[6])
    with pytest.raises(ValueError, match="sigma is 0 for all 6 inputs"):
        dkl.plot.plot_spectrum(dkl.FourierFeatures(sigma=0.0, verbose=0).fit(X))
    for name in FUNCTIONS:
        with pytest.raises(NotFittedError):
            getattr(dkl.plot, name)(dkl.SingleKernelRegressor())
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'dkl\[plot\]'"):
        dkl.plot.plot_sigma(sparse)


def several(**options):
    """A fitted model of two kernels on three channels."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5))
    y = np.column_stack([np.sin(2 * rows[:, 0]), rows[:, 3]])
    channels = {"a": slice(0, 2), "b": slice(2, 4), "c": [4]}
    model = dkl.MultipleKernelRegressor(
        ["gaussian", "laplacian"], 20, channels=channels, n_alphas=12, eps=0.1, random_state=0, verbose=0, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, y)


@pytest.mark.parametrize("by_output", [False, True])
def test_path_and_kernel_weights(by_output):
    """Lines are the norms, the dashed one the errors; bars are the weights, crosses those that are zero."""
    model = several(by_output=by_output, rule="one_se")
    path = model.path_.isel(output=1) if by_output else model.path_
    ax = dkl.plot.plot_path(model, output=1) if by_output else dkl.plot.plot_path(model)
    drawn = {line.get_label(): line for line in ax.lines}
    for g, name in enumerate(model.groups_):
        if name in drawn:
            np.testing.assert_array_equal(drawn[name].get_ydata(), path["norm"][:, g])
            np.testing.assert_array_equal(drawn[name].get_xdata(), path["alpha"])
    assert {"a gaussian", "b gaussian"} & set(drawn)
    alpha = model.alpha_[1] if by_output else model.alpha_
    assert drawn[f"alpha = {alpha:.3g}"].get_xdata()[0] == alpha
    assert ax.get_xlim()[0] > ax.get_xlim()[1], "from few to many"
    [right] = [other for other in ax.figure.axes if other is not ax]
    np.testing.assert_allclose(right.lines[0].get_ydata(), path["error"].mean("fold"))
    bars = dkl.plot.plot_kernel_weights(model)
    weights = model.kernel_weights_.values.reshape(-1, 3, 2).max(axis=0)
    np.testing.assert_allclose([[bar.get_width() for bar in own] for own in bars.containers], weights.T)
    assert sum(len(line.get_xdata()) for line in bars.lines) == (weights == 0).sum()
    assert [tick.get_text() for tick in bars.get_yticklabels()] == ["a", "b", "c"]


def test_axes_of_a_path_say_what_they_show():
    """Which output, and which loss."""
    left, right = dkl.plot.plot_path(several(by_output=True)).figure.axes
    assert left.get_ylabel() == "|w| of each kernel for output 0"
    assert right.get_ylabel() == "squared error of the folds (dashed)"
    left, right = dkl.plot.plot_path(several(loss="huber", cv=2)).figure.axes
    assert left.get_ylabel() == "|w| of each kernel"
    assert right.get_ylabel() == "huber of the folds (dashed)"


def test_paths_that_cannot_be_drawn():
    """Another output, an output of a shared path, a model that is not fitted; one alpha and no folds can be."""
    with pytest.raises(ValueError, match=r"output=7 has no path; there are \[0, 1\]"):
        dkl.plot.plot_path(several(by_output=True), output=7)
    with pytest.raises(ValueError, match="output=0: all outputs share one path; fit with by_output=True"):
        dkl.plot.plot_path(several(), output=0)
    with pytest.raises(NotFittedError):
        dkl.plot.plot_path(dkl.MultipleKernelRegressor())
    with pytest.raises(NotFittedError):
        dkl.plot.plot_path(dkl.SingleKernelRegressor())
    one = dkl.SingleKernelRegressor(n_components=4, random_state=0).fit(np.eye(4), np.arange(4.0))
    with pytest.raises(ValueError, match="SingleKernelRegressor was not fitted along a path of alpha; use Multiple"):
        dkl.plot.plot_path(one)
    with pytest.raises(ValueError, match="SingleKernelRegressor has no weights of kernels; use MultipleKernel"):
        dkl.plot.plot_kernel_weights(one)
    ax = dkl.plot.plot_path(several(alpha=1e6))
    assert len(ax.figure.axes) == 1
    assert dkl.plot.plot_kernel_weights(several(alpha=1e6)).get_xlim() == (0, 1)
