"""A report: every section for every family, checks that see what is wrong, names that never run, its size."""

from __future__ import annotations

import json
import re
import sys
import warnings
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, mean_absolute_error, r2_score, recall_score

import dkl
from dkl.estimators.intervals import Interval
from dkl.report import checks as of
from dkl.report.facts import script_safe
from dkl.report.splits import Scored, splits_of

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
NUMBERS = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=120)
EVIL = "<script>alert('x')</script>"
LABELS = np.where(X[:, 0] > 0.3, EVIL, np.where(X[:, 1] > 0, 'b"><img src=x onerror=alert(1)>', "$c$ & </script>"))
QUICK = {"random_state": 0, "verbose": 0}
SMALL = {"n_components": 30, **QUICK}
SECTIONS = {
    "checks": "Checks", "model": "Model", "scores": "Scores by split", "reliability": "Reliability",
    "confusion": "Confusion of the worst classes", "convergence": "Convergence", "sigma": "Sigma of inputs or groups",
    "spectrum": "Spectrum before and after", "kernel": "Kernel slices", "path": "Path and kernel weights",
    "features": "Features found", "took": "Plan, and what it took", "data": "Data set and recipe",
    "again": "How to make it again",
}  # fmt: skip


class Page(HTMLParser):
    """Elements, their text by section, and what a browser would load or run."""

    def __init__(self, html):
        super().__init__()
        self.section, self.text, self.tags, self.loads, self.json, self.inside = "", {}, [], [], "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self.inside = tag
        if tag == "section":
            self.section = attrs["id"]
        self.loads += [v for k, v in attrs.items() if k in ("src", "href", "xlink:href", "data") or k.startswith("on")]

    def handle_data(self, data):
        if self.inside == "script":
            self.json += data
        elif self.inside != "style":
            self.text[self.section] = self.text.get(self.section, "") + data


def fitted(name):
    """A small model of each family, and rows to try it on."""
    frame = pd.DataFrame(X, columns=["<b>age</b>", "_hidden", "$x$"])
    models = {
        "single": (
            dkl.SingleKernelClassifier(n_components=30, learn="validation", max_iter=3, starts=1, **QUICK),
            LABELS,
        ),
        "regression": (dkl.SingleKernelRegressor(sigma=1.0, cv=3, alpha=[0.1, 1.0], **SMALL), NUMBERS),
        "multiple": (dkl.MultipleKernelRegressor(["gaussian", "laplacian"], 10, n_alphas=5, **QUICK), NUMBERS),
        "infinite": (dkl.InfiniteFeatureRegressor(max_features=6, **QUICK), NUMBERS),
        "continuous": (dkl.ContinuousKernelClassifier(n_components=10, search=3, max_iter=3, **QUICK), LABELS),
    }
    model, y = models[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(frame[:80], y[:80]), frame, y


@pytest.fixture(scope="module", params=["single", "regression", "multiple", "infinite", "continuous"])
def made(request):
    """A report, the model and the rows."""
    model, frame, y = fitted(request.param)
    report = model.report(frame[80:], y[80:], train=(frame[:80], y[:80]))
    return SimpleNamespace(name=request.param, model=model, X=frame, y=y, report=report, page=Page(report.html))


def test_every_section_is_there(made):
    """A heading, and below it a picture, a table, or the reason why there is none."""
    found = {attrs["id"] for tag, attrs in made.page.tags if tag == "section"}
    assert found == set(SECTIONS)
    for section, heading in SECTIONS.items():
        text = made.page.text[section]
        assert heading in text
        assert len(text.replace(heading, "").strip()) > 20, (section, text)
    pictures = made.report.html.count("<svg ")
    reasons = made.report.html.count("No picture: ")
    assert pictures + reasons in (8, 9), "every picture, or why not; searches have one more"
    assert pictures >= 2
    there = {"single": "convergence", "multiple": "path", "infinite": "features", "continuous": "spectrum"}
    section = there.get(made.name, "sigma")
    assert "No picture" not in made.page.text[section].split("No picture: the model has one kernel")[0]


def test_nothing_is_loaded_and_nothing_runs(made):
    """No address but places in the page and data; one script, which is data; hostile names only as text."""
    for load in made.page.loads:
        assert load.startswith(("#", "data:image/png")), load
    scripts = [attrs for tag, attrs in made.page.tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "dkl-report"}]
    assert not [
        tag for tag, attrs in made.page.tags if tag in ("img", "iframe", "object", "link") and "class" not in attrs
    ]
    assert "url(http" not in made.report.html
    assert "@import" not in made.report.html
    assert len(made.report.html) < 400_000
    whole = "".join(made.page.text.values())
    if hasattr(made.model, "classes_"):
        assert EVIL in made.page.text["confusion"]
        assert EVIL in json.dumps(json.loads(made.page.json)["splits"])
    if hasattr(made.model, "sigma_") and made.name != "continuous":
        assert "_hidden" in whole
        assert "<b>age</b>" in whole


def test_figures_are_those_of_scikit_learn(made):
    """Of both splits, from the JSON in the page; the verdict has that of the last."""
    facts = json.loads(made.page.json)
    for name, rows in (("train", slice(0, 80)), ("test", slice(80, 120))):
        found, y, guess = facts["splits"][name], made.y[rows], made.model.predict(made.X[rows])
        assert found["rows"] == len(y)
        score = found["accuracy"] if hasattr(made.model, "classes_") else found["R^2"]
        want = accuracy_score(y, guess) if hasattr(made.model, "classes_") else r2_score(y, guess)
        assert score["value"] == pytest.approx(want, rel=1e-4)
        assert score["low"] < score["value"] < score["high"] or score["value"] == 1
        if hasattr(made.model, "classes_"):
            recalls = [one["recall"] for one in found["classes"]]
            want = recall_score(y, guess, labels=made.model.classes_, average=None, zero_division=0)
            np.testing.assert_allclose(recalls, want, rtol=1e-4)
        else:
            assert found["mean absolute error"]["value"] == pytest.approx(mean_absolute_error(y, guess), rel=1e-4)
    assert f"{score['value']:.4f}" in made.page.text[""] or f"{score['value']:.3f}" in made.page.text[""]


def test_the_plan_stands_beside_what_was_measured(made):
    """Bytes planned and measured, and the time of the fit."""
    from dkl.engine.memory import duration, gib

    info = made.model.fit_info_
    assert gib(info["planned_bytes"]) in made.page.text["took"]
    assert gib(info["bytes"]) in made.page.text["took"]
    assert duration(info["seconds"]) in made.page.text["took"]


def test_the_command_makes_it_again(made):
    """The Python of the page, run as it stands, gives the same weights."""
    if made.name == "infinite":
        pytest.skip("the same line as the others, and slower")
    text = re.search(r"<pre>(.*?)</pre>", made.report.html, re.S)[1]
    from html import unescape

    y = made.y[:80]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = eval(unescape(text), {"dkl": dkl, "X": made.X[:80], "y": y})
    np.testing.assert_array_equal(again.coef_, made.model.coef_)


def test_filters_are_pictures():
    """Of a model that chose Gabor filters: an image in the section of features, and no network either."""
    y = np.arange(60) % 2
    waves = np.cos(2 * np.pi * 0.25 * np.arange(9))[None, None] * np.where(y, 1.0, -1.0)[:, None, None]
    rows = (waves + 0.3 * rng.normal(size=(60, 9, 9))).reshape(60, -1)
    model = dkl.InfiniteFeatureClassifier(
        features=dkl.GaborFeatures((9, 9), stride=4), max_features=4, candidates=20, loss="log_loss", alpha=0.3,
        max_iter=6, **QUICK,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        html = model.fit(rows, y).report(rows, y).html
    section = html[html.index('<section id="features">') : html.index('<section id="took">')]
    assert "data:image/png;base64," in section
    assert "filters" in section
    assert all(load.startswith(("#", "data:image/png")) for load in Page(html).loads)


def stub(**attributes):
    """Something that looks fitted."""
    return SimpleNamespace(get_params=lambda deep=True: {"max_iter": 5}, **attributes)


def test_alpha_at_the_edge():
    """Of cross-validation, or of a path; in the middle is fine."""
    table = {"param_alpha": np.array([0.1, 1.0, 10.0])}
    assert of.alpha_check(stub(alpha_=1.0, cv_results_=table)).status == of.FINE
    low, high = (of.alpha_check(stub(alpha_=end, cv_results_=table)) for end in (0.1, 10.0))
    assert (low.status, high.status) == (of.LOOK, of.LOOK)
    assert "smaller" in low.advice
    assert "larger" in high.advice
    path = xr.Dataset({"error": (("alpha", "fold"), np.ones((3, 2)))}, coords={"alpha": [3.0, 2.0, 1.0]})
    assert of.alpha_check(stub(alpha_=1.0, path_=path)).status == of.LOOK
    assert of.alpha_check(stub(alpha_=1.0)).status == of.UNKNOWN


def learned(sigma):
    """A model that has learned sigma from 1."""
    columns = {"sigma": (("iteration", "input"), np.stack([np.ones(2), sigma])), "stage": ("iteration", [0, 0]),
               "start": ("iteration", [0, 0]), "objective": ("iteration", [2.0, 1.0])}  # fmt: skip
    return stub(sigma_=np.asarray(sigma), history_=xr.Dataset(columns), fitted_=True, n_iter_=2)


def test_sigma_at_a_bound(monkeypatch):
    """Ten thousand times off its start is the bound; zero is switched off, and all zero is worth a look."""
    monkeypatch.setattr(of, "start_sigma", lambda model: np.ones(2))
    assert of.sigma_check(learned([2.0, 0.0])).status == of.FINE
    assert "1 of 2 inputs are switched off" in of.sigma_check(learned([2.0, 0.0])).words
    for edge in (1e4, 1e-4):
        found = of.sigma_check(learned([1.0, edge]))
        assert found.status == of.LOOK
        assert "1 stand at a bound" in found.words
    assert of.sigma_check(learned([0.0, 0.0])).status == of.LOOK


def split(name, score, half=0.01, **evaluation):
    """Rows of one split with a score."""
    span = Interval(score, score - half, score + half)
    kind = "accuracy" if evaluation else "R^2"
    return Scored(name, 100, {kind: span}, evaluation or None)


def test_checks_of_scores():
    """A gap, a class that is never said, a model no better than a guess, confidence that is too high."""
    assert of.gap_check([split("train", 0.99), split("test", 0.9)]).status == of.LOOK
    assert of.gap_check([split("train", 0.99), split("test", 0.97)]).status == of.FINE
    assert of.gap_check([split("train", 0.99, 0.2), split("test", 0.9, 0.2)]).status == of.FINE, "not told apart"
    assert of.gap_check([split("test", 0.9)]).status == of.UNKNOWN
    classes = [{"class": "a", "rows": 90}, {"class": EVIL, "rows": 10}]
    about = {"classes": classes, "confusion": [[90, 0], [10, 0]], "calibration_error": 0.2}
    never = of.classes_check(split("test", 0.9, **about))
    assert never.status == of.LOOK
    assert EVIL in never.words
    assert of.guess_check(split("test", 0.9, **about)).status == of.LOOK
    assert of.guess_check(split("test", 0.95, **about)).status == of.FINE
    assert of.guess_check(split("test", 0.0)).status == of.LOOK
    assert of.confidence_check(split("test", 0.9, **about)).status == of.LOOK
    assert of.confidence_check(split("test", 0.9, **{**about, "calibration_error": 0.01})).status == of.FINE


def test_checks_of_the_fit():
    """A gap above the tolerance, a run as long as it may be, more memory than was planned."""
    met = {"kind": "duality gap", "value": 1e-7, "tol": 1e-6, "met": True}
    assert of.certificate_check(stub(certificate_=met)).status == of.FINE
    assert of.certificate_check(stub(certificate_={**met, "value": 1e-3, "met": False})).status == of.LOOK
    assert of.certificate_check(stub(certificate_={**met, "value": None, "met": False})).status == of.LOOK
    assert of.certificate_check(stub()).status == of.UNKNOWN
    runs = [xr.Dataset({"objective": ("iteration", np.ones(n))}) for n in (4, 5)]
    assert [of.end_check(stub(history_=run, n_iter_=len(run.objective))).status for run in runs] == [of.FINE, of.LOOK]
    info = {"bytes": 5, "planned_bytes": 6, "planned_solve_bytes": 1, "limit_bytes": 9}
    assert of.memory_check(stub(fit_info_=info)).status == of.FINE
    assert of.memory_check(stub(fit_info_={**info, "bytes": 7})).status == of.LOOK


def test_a_thousand_inputs_and_classes_of_long_names():
    """Below 2 MB, and with the worst classes in it."""
    n = 2000
    rows = pd.DataFrame(
        rng.normal(size=(n, 1000)).astype(np.float32), columns=[f"{EVIL} {i} " * 5 for i in range(1000)]
    )
    y = np.array([f"class {i % 1000} {EVIL * 9}" for i in range(n)])
    model = dkl.SingleKernelClassifier(n_components=20, sigma=np.linspace(0.01, 0.1, 1000).tolist(), **QUICK)
    html = model.fit(rows, y).report(rows, y).html
    assert 100_000 < len(html.encode()) < 2_000_000
    page = Page(html)
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 1
    assert "never predicted" in page.text["checks"]
    assert len(json.loads(page.json)["splits"]["rows"]["classes"]) == 1000


def test_json_cannot_end_its_element():
    """Whatever is in it, it is the same when it is read."""
    value = {"a": "</script><!--", "b": ["\u2028", "&amp;", 1.5, None]}
    text = script_safe(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError):
        script_safe(float("nan"))


def test_rows_by_name(tmp_path):
    """A pair, a dictionary, and the splits of a data set, whose recipe is told."""
    assert list(splits_of(1, 2, None)) == ["rows"]
    assert list(splits_of(1, 2, (3, 4))) == ["train", "test"]
    assert splits_of({"a": (1, 2), "b": "p"}, None, None) == {"a": (1, 2), "b": ("p", None)}
    pd.DataFrame(X, columns=["u", "v", EVIL]).assign(goal=NUMBERS).to_csv(tmp_path / "t.csv", index=False)
    path = dkl.ingest(
        tmp_path / "t.csv", tmp_path / "t.zarr", target="goal", scale="standard", split={"test": 0.3}, verbose=0
    )
    model = dkl.SingleKernelRegressor(n_components=20, sigma=1.0, **QUICK).fit(f"{path}/train")
    report = model.report(path, path=tmp_path / "r.html")
    page = Page((tmp_path / "r.html").read_text())
    assert list(report.facts["splits"]) == ["train", "test"]
    assert "standard" in page.text["data"]
    assert "goal" in page.text["data"]
    assert report.facts["splits"]["test"]["R^2"]["value"] == pytest.approx(model.score(f"{path}/test"), rel=1e-4)
    frame = report._repr_html_()
    assert frame.startswith("<iframe sandbox srcdoc=")
    assert frame.count("<") == 2, "all else is escaped"


def test_refusals(monkeypatch, tmp_path):
    """One line each."""
    model = dkl.SingleKernelRegressor(n_components=5, sigma=1.0, **QUICK)
    with pytest.raises(NotFittedError):
        model.report()
    report = model.fit(X, NUMBERS).report()
    assert "No rows were given" in report.html
    with pytest.raises(ValueError, match=r"does not end in .html; use r.html"):
        report.save(tmp_path / "r.pdf")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        report.save(tmp_path / "no" / "r.html")
    report.save(tmp_path / "r.html")
    with pytest.raises(FileExistsError, match="exists; choose another name or use --overwrite"):
        report.save(tmp_path / "r.html", overwrite=False)
    with pytest.raises(ValueError, match="about a model that predicts, and FourierFeatures does not"):
        dkl.report.make_report(dkl.FourierFeatures(verbose=0).fit(X))
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'dkl\[report\]'"):
        model.report()
