"""Estimators in a notebook: the summary under the diagram, the live objective, and Ctrl-C in a real kernel."""

from __future__ import annotations

import re
import time
from html import unescape

import numpy as np
import pandas as pd
import pytest
import sklearn

import dkl
from dkl.engine.notebook import Notebook, html_of, sparkline
from dkl.exact import KernelRidgeGD

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
y = np.sin(X[:, 0])
EVIL = "<script>alert('x')</script>&\"$"
QUICK = {"n_components": 20, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def model():
    """Its columns have hostile names."""
    rows = pd.DataFrame(X, columns=[EVIL, "plain"])
    return dkl.SingleKernelRegressor(learn="validation", max_iter=3, tol=0.1, **QUICK).fit(rows, y)


def text_of(html):
    """What a reader sees of it."""
    return unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", html, flags=re.S)))


def test_summary_is_text(model):
    """Kernel, features, sigma, alpha, certificate and where it ran, a line each; it prints as it is."""
    said = model.summary()
    assert repr(said) == str(said)
    found = {line.split("  ")[0].strip() or line: line for line in (one.strip() for one in said.splitlines())}
    assert {"kernel", "features", "inputs", "sigma", "alpha", "certificate", "learned", "held out", "fitted on"} <= {
        *found
    }
    assert "gaussian" in found["kernel"]
    assert "20 of 2 inputs" in found["features"]
    assert f"{model.alpha_:g}" in found["alpha"]
    assert f"{float(model.history_.validation_error[-1]):.4g}" in found["held out"]
    assert "60 rows in this process" in found["fitted on"]
    with pytest.raises(sklearn.exceptions.NotFittedError):
        dkl.SingleKernelRegressor().summary()


def test_html_stands_under_the_diagram(model):
    """In both of the ways in which a notebook asks; names are shown, and not run."""
    for html in (model._repr_mimebundle_()["text/html"], model._repr_html_()):
        assert html.index("sk-container") < html.index("dkl-summary")
        mine = html[html.index('<table class="dkl-summary">') :]
        assert EVIL in text_of(mine)
        assert "<script" not in mine
        assert "this process" in mine
    assert "dkl-summary" not in dkl.SingleKernelRegressor()._repr_html_()
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


@pytest.mark.parametrize("other", [
    dkl.FourierFeatures(n_components=6, verbose=0), dkl.FeaturePCA(n_components=2, verbose=0),
    KernelRidgeGD("laplacian", tol=0.9, starts=1, verbose=0),
])  # fmt: skip
def test_every_estimator_has_one(other):
    """Transformers and exact kernels too."""
    said = other.fit(X, y).summary()
    assert type(other).__name__ in said
    assert re.search("inputs +2", said)
    assert not re.search(r"\d\.\d{7}", said)  # numbers have digits that are read
    assert "dkl-summary" in other._repr_html_()


def test_what_the_fit_took(model, tmp_path):
    """Seconds and peak beside the plan's bytes; they are not saved, so that the same fit is the same file."""
    info = model.fit_info_
    assert info["engine"] == "embedded"
    assert info["rows"] == 60
    assert 0 < info["seconds"] < 60
    assert 2**24 < info["bytes"] < info["limit_bytes"]
    assert info["planned_bytes"] > info["planned_solve_bytes"] / 2 > 0
    model.save(tmp_path / "m.zarr")
    loaded = dkl.load(tmp_path / "m.zarr")
    assert not hasattr(loaded, "fit_info_")
    assert "fitted on" not in loaded.summary()


def test_the_picture_of_progress():
    """A line from the first value on the left to the last on the right, the largest on top; a few points of many."""
    svg = sparkline([4.0, 3.0, 2.0])
    points = [tuple(map(float, pair.split(","))) for pair in re.search('points="([^"]*)"', svg)[1].split()]
    assert points == [(4, 4), (160, 32), (316, 60)]
    assert "objective from 4 to 2 in 3 iterations" in svg
    many = re.search('points="([^"]*)"', sparkline(np.geomspace(1e6, 1, 10_000).tolist()))[1].split()
    assert len(many) < 200
    heights = [float(pair.split(",")[1]) for pair in many]
    np.testing.assert_allclose(np.diff(heights), np.diff(heights).mean(), atol=0.2)  # of logarithms
    assert "<svg" not in html_of("a <b>", [1.0])
    assert "a &lt;b&gt;" in html_of("a <b>", [1.0])
    assert "nan" not in sparkline([1.0, 1.0])


def test_a_widget_if_there_is_one(monkeypatch, tmp_path):
    """Its value is replaced while it is open; HTML stays when it closes. Values that are not numbers are left out."""
    ipywidgets = pytest.importorskip("ipywidgets")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    InteractiveShell.instance()
    try:
        with capture_output() as caught:
            cell = Notebook()
            for value in (3.0, float("nan"), 2.0):
                cell.point(value)
            cell.show("first")
            widget = cell.surface.widget
            assert isinstance(widget, ipywidgets.HTML)
            cell.show("second")
            assert "second" in widget.value
            assert "in 2 iterations" in widget.value
            cell.close()
            assert cell.values == []
    finally:
        InteractiveShell.clear_instance()
    last = caught.outputs[-1].data
    assert last["text/plain"] == "second"
    assert "<svg" in last["text/html"]


class Kernel:
    """A real kernel, and what its cells show."""

    def __init__(self, client, manager):
        self.client, self.manager = client, manager

    def run(self, code, until=None, then=None, seconds=60):
        """Everything that the cell shows; `then` is called once when the text of it holds `until`."""
        asked, found, end = self.client.execute(code), [], time.monotonic() + seconds
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=seconds)
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            found.append(content.get("text") or str(content.get("data") or content.get("traceback") or ""))
            if until and until in "".join(found):
                until = None
                then()
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return "".join(found)
        raise AssertionError(f"not over in {seconds} s: {''.join(found)[-500:]}")


@pytest.fixture(scope="module")
def kernel():
    """One kernel for all tests of this file."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=120)
    yield Kernel(client, manager)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


BEGIN = """
import warnings, numpy as np, dkl

def fit(model):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(X, y)
    said.extend(str(one.message) for one in found)
    return model

said = []
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 4))
y = np.sin(3 * X[:, 0])
"""


def test_interrupting_the_kernel_keeps_the_best_so_far(kernel):
    """The model predicts, the warning says how to go on, the objective was drawn, and warm_start goes on."""
    kernel.run(BEGIN)
    shown = kernel.run(
        "model = dkl.ContinuousKernelRegressor(n_components=200, max_iter=10**6, patience=10**6, random_state=0)\n"
        "fit(model)", until="learning on 3", then=kernel.manager.interrupt_kernel,
    )  # fmt: skip
    warned = kernel.run("print(said)")
    assert "learning was interrupted after" in warned
    assert "set_params(warm_start=True) and fit go on from there" in warned
    assert "<svg" in shown
    assert "objective from" in shown
    assert "KeyboardInterrupt" not in shown
    said = kernel.run(
        "first = model.epochs_\n"
        "before = np.mean((model.predict(X) - y) ** 2)\n"
        "model.set_params(warm_start=True, max_iter=5, verbose=0).fit(X, y)\n"
        "after = np.mean((model.predict(X) - y) ** 2)\n"
        "print('went on', first >= 0 and model.n_iter_ <= 6 and after < 1.5 * before + 1e-3, before < 2 * y.var())"
    )
    assert "went on True True" in said


def test_interrupting_a_kernel_that_learns_sigma(kernel):
    """A model of one kernel: the advice is there, and may be followed."""
    kernel.run(BEGIN)
    shown = kernel.run(
        "model = dkl.SingleKernelRegressor(n_components=300, learn='validation', groups='each', tol=1e-12, "
        "max_iter=10**5, starts=1, random_state=0)\nfit(model)",
        until="objective", then=kernel.manager.interrupt_kernel,
    )  # fmt: skip
    assert "dkl-summary" in shown
    warned = kernel.run("print(said)")
    assert "learning was interrupted after" in warned
    assert "fit again with sigma=model.sigma_ to go on from there" in warned
    said = kernel.run(
        "begun = model.score(X, y)\nmodel.set_params(sigma=model.sigma_, max_iter=1, verbose=0).fit(X, y)\n"
        "print('no worse', model.score(X, y) > begun - 0.02 > 0)"
    )
    assert "no worse True" in said
