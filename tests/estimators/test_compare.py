"""dkl.compare: scores and paired differences with their intervals, against scikit-learn and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score

import dkl
from dkl.estimators.compare import difference
from dkl.estimators.intervals import share_interval
from dkl.estimators.rows_right import RowErrors

rng = np.random.default_rng(3)
X = rng.normal(size=(300, 3))
NOISE = rng.normal(size=300)
NUMBERS = np.sin(2 * X[:, 0]) + 0.3 * NOISE
LABELS = np.where(X[:, 0] * X[:, 1] + 0.3 * NOISE > 0, "yes", "no")
QUICK = {"n_components": 60, "sigma": 1.0, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def classifiers():
    """One of dkl and two of scikit-learn."""
    return {
        "rff": dkl.SingleKernelClassifier(**QUICK).fit(X[:200], LABELS[:200]),
        "linear": LogisticRegression().fit(X[:200], LABELS[:200]),
        "dummy": DummyClassifier().fit(X[:200], LABELS[:200]),
    }


def test_classifiers(classifiers):
    """Accuracies are scikit-learn's; differences those of the accuracies; the best first; a table and text."""
    found = dkl.compare(classifiers, X[200:], LABELS[200:])
    scores = {name: accuracy_score(LABELS[200:], model.predict(X[200:])) for name, model in classifiers.items()}
    table = found.table.set_index("model")
    assert list(table.index) == sorted(scores, key=lambda name: -scores[name])
    assert table["score"].to_dict() == scores
    best = table.index[0]
    assert found.reference == best == "rff"
    for name in table.index[1:]:
        row = table.loc[name]
        assert row["difference"] == pytest.approx(scores[name] - scores[best])
        assert row["difference_low"] < row["difference"] < row["difference_high"]
        assert row["verdict"] == "worse"
    assert "rff" in str(found)
    assert "accuracy" in str(found)
    assert "100 rows, intervals of 95%" in str(found)
    low, high = table.loc["rff", ["low", "high"]]
    for bound, sign in ((low, 1), (high, -1)):  # the score test at either bound is just at its level
        z = sign * (scores["rff"] - bound) / np.sqrt(bound * (1 - bound) / 100)
        assert 2 * norm.sf(z) == pytest.approx(0.05)


def test_regressors_of_several_outputs():
    """R^2 is scikit-learn's; a reference may be named, and the better model says so."""
    y = np.column_stack([NUMBERS, X[:, 1] ** 2])
    models = [dkl.SingleKernelRegressor(**QUICK).fit(X[:200], y[:200]), Ridge().fit(X[:200], y[:200])]
    found = dkl.compare(models, X[200:], y[200:], reference="Ridge", confidence=0.9)
    assert [one.name for one in found.models] == ["SingleKernelRegressor", "Ridge"]
    for one, model in zip(found.models, models, strict=True):
        assert one.score.value == pytest.approx(r2_score(y[200:], model.predict(X[200:])))
    assert found.models[0].verdict == "better"
    assert found.models[1].difference is None


def test_a_data_set_brings_its_own_y(tmp_path):
    """And a path is read by the models that can."""
    import pandas as pd

    table = pd.DataFrame(X[:120], columns=["a", "b", "c"]).assign(goal=NUMBERS[:120])
    table.to_csv(tmp_path / "t.csv", index=False)
    path = dkl.ingest(tmp_path / "t.csv", tmp_path / "t.zarr", target="goal", scale="none", verbose=0)
    models = {str(s): dkl.SingleKernelRegressor(**{**QUICK, "sigma": s}).fit(path) for s in (0.1, 1.0)}
    found = dkl.compare(models, path)
    want = {name: r2_score(NUMBERS[:120], model.predict(X[:120])) for name, model in models.items()}
    assert {one.name: pytest.approx(one.score.value) for one in found.models} == want


def test_intervals_cover():
    """Of 400 samples about 95% of intervals hold the truth: shares, their differences, R^2 and its differences."""
    draws, n = 400, 120
    source, held = np.random.default_rng(0), dict.fromkeys(["share", "paired", "r2", "r2 paired"], 0)
    for _ in range(draws):
        u, v = source.random((2, n))
        one, other = u < 0.8, (u < 0.7) | (v < 0.2)  # right with 0.8, and with 0.7 + 0.3 * 0.2
        a, b = RowErrors(one), RowErrors(other)
        truth = source.normal(size=(n, 1))
        e, f = 0.5 * source.normal(size=(2, n, 1))
        distance = (truth - truth.mean()) ** 2
        c, d = RowErrors(None, e, distance), RowErrors(None, e + f, distance)
        for name, span, value in (
            ("share", a.interval(), 0.8), ("paired", difference(a, b, 0.95), 0.8 - 0.76),
            ("r2", c.interval(), 0.75), ("r2 paired", difference(c, d, 0.95), 0.25),
        ):  # fmt: skip
            held[name] += span.low <= value <= span.high
    least, most = binom.ppf([1e-4, 1 - 1e-4], draws, 0.95)
    assert all(least - 8 <= count <= most for count in held.values()), held


def test_models_that_agree_on_every_row_have_an_interval():
    """Its width is not zero: rows not seen may differ."""
    right = np.arange(50) % 5 > 0
    span = difference(RowErrors(right), RowErrors(right.copy()), 0.95)
    assert span.value == 0
    assert 0.02 < span.high == -span.low < 0.1
    assert share_interval(50, 50).high == 1.0
    assert share_interval(0, 50).low == 0.0


def test_names_and_html(classifiers):
    """Names say in what models differ, or are numbered; hostile ones are shown as they are."""
    two = [dkl.SingleKernelClassifier(**{**QUICK, "sigma": s}).fit(X[:50], LABELS[:50]) for s in (0.5, 1.0)]
    assert {one.name for one in dkl.compare(two, X, LABELS).models} == {"sigma=0.5", "sigma=1.0"}
    same = [classifiers["dummy"], classifiers["dummy"]]
    assert {one.name for one in dkl.compare(same, X, LABELS).models} == {"DummyClassifier 1", "DummyClassifier 2"}
    html = dkl.compare({"<script>x</script>": two[0], "b": two[1]}, X, LABELS)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_refusals(classifiers):
    """One line each."""
    with pytest.raises(ValueError, match="two models or more, not 1"):
        dkl.compare([classifiers["rff"]], X, LABELS)
    with pytest.raises(ValueError, match=r"takes several models, not one .*; give a list"):
        dkl.compare(classifiers["rff"], X, LABELS)
    with pytest.raises(ValueError, match="reference='rf' is not known; did you mean 'rff'"):
        dkl.compare(classifiers, X, LABELS, reference="rf")
    with pytest.raises(ValueError, match=r"confidence=95 must lie between 0 and 1; use 0.95"):
        dkl.compare(classifiers, X, LABELS, confidence=95)
    with pytest.raises(ValueError, match=r"is a classifier, .* a regressor"):
        dkl.compare([classifiers["rff"], Ridge().fit(X, NUMBERS)], X, LABELS)
    with pytest.raises(NotFittedError):
        dkl.compare([classifiers["rff"], DummyClassifier()], X, LABELS)
    with pytest.raises(ValueError, match="'b' is a dict, which does not predict"):
        dkl.compare({"a": classifiers["rff"], "b": {}}, X, LABELS)
    with pytest.raises(ValueError, match="on all rows, so"):
        dkl.compare([Ridge().fit(X, NUMBERS), Ridge(2.0).fit(X, NUMBERS)], X, np.ones(300))


def test_y_of_other_rows_or_of_another_kind(classifiers):
    """What a score refuses is refused here too, not counted as wrong answers: here and in a report."""
    import pandas as pd

    frame, y = pd.DataFrame(X), pd.Series(NUMBERS)
    models = [dkl.SingleKernelRegressor(**{**QUICK, "sigma": s}).fit(frame, y) for s in (0.5, 1.0)]
    for ask in (dkl.compare, lambda some, *rows: some[0].report(*rows)):
        with pytest.raises(ValueError, match="the same index labels in another order"):
            ask(models, frame, y[::-1])
    with pytest.raises(ValueError, match=r"y is \[nan\] at row 7, so R\^2 is not known"):
        dkl.compare(models, frame, y.where(y.index != 7))
    codes, names = (LABELS[0] == LABELS).astype(int), np.where(LABELS[0] == LABELS, "one", "other")
    for one, other in ((codes, names), (names, codes), (codes, names.astype(object))):
        two = [DummyClassifier(strategy=s).fit(X, one) for s in ("prior", "stratified")]
        with pytest.raises(ValueError, match="DummyClassifier predicts classes such as"):
            dkl.compare(two, X, other)
    assert dkl.compare([DummyClassifier().fit(X, names), DummyClassifier().fit(X, names)], X, names.astype(object)).rows
