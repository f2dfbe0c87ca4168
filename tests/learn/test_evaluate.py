"""Figures of predictions against scikit-learn's metrics on all rows at once."""

from __future__ import annotations

import json

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    max_error,
    mean_absolute_error,
    precision_score,
    r2_score,
    recall_score,
    root_mean_squared_error,
    top_k_accuracy_score,
)

import dkl
from dkl import SingleKernelClassifier, SingleKernelRegressor
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.learn.evaluate import CountProgram, ErrorProgram, evaluate_classes, evaluate_numbers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 3))
OPTIONS = {"n_components": 40, "sigma": 0.7, "random_state": 0, "verbose": 0}
CODES = (X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(3000, 4))).argmax(axis=1)
LABELS = {
    "binary": CODES % 2,
    "multiclass": CODES,
    "strings": np.array(["pear", "apple", "fig", "plum"])[CODES],
    "objects": np.array(["pear", "apple", "fig", "plum"], object)[CODES],
    "negative": CODES - 2,
}


def classifier(y, rows=slice(0, 1000)):
    """A fitted classifier."""
    return SingleKernelClassifier(**OPTIONS).fit(X[rows], y[rows])


def close(found, wanted):
    """Plain values, nested, equal to rounding."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            close(found[key], value)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            close(one, other)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-10, abs=1e-10)
    else:
        assert found == wanted


@pytest.mark.parametrize("name", sorted(LABELS))
def test_like_sklearn(name):
    """Accuracy, recall, precision, confusion."""
    y = LABELS[name]
    model = classifier(y)
    found = model.evaluate(X, y)
    predicted, classes = model.predict(X), model.classes_
    assert json.loads(json.dumps(found)) == found, "plain values"
    assert found["rows"] == len(X)
    assert found["unknown_labels"] == 0
    assert found["accuracy"] == pytest.approx(accuracy_score(y, predicted), abs=1e-12)
    assert found["accuracy"] + found["error"] == pytest.approx(1)
    np.testing.assert_array_equal(found["confusion"], confusion_matrix(y, predicted, labels=classes))
    recall = recall_score(y, predicted, labels=classes, average=None)
    precision = precision_score(y, predicted, labels=classes, average=None)
    assert [c["class"] for c in found["classes"]] == classes.tolist()
    np.testing.assert_allclose([c["recall"] for c in found["classes"]], recall)
    np.testing.assert_allclose([c["precision"] for c in found["classes"]], precision)
    assert found["mean_recall"] == pytest.approx(recall.mean())
    assert [c["rows"] for c in found["classes"]] == [int((y == c).sum()) for c in classes]


def test_top_five():
    """scikit-learn's top_k_accuracy_score of eight classes, rows of an unknown class counted as errors; else None."""
    rng = np.random.default_rng(8)
    rows, y = rng.normal(size=(300, 4)), rng.integers(0, 8, 300)
    model = dkl.SingleKernelClassifier(n_components=20, random_state=0, verbose=0).fit(rows, y)
    expected = top_k_accuracy_score(y, model.decision_function(rows), k=5)
    found = model.evaluate(rows, y)
    assert 0 < found["top5_error"] < found["error"]
    assert found["top5_error"] == pytest.approx(1 - expected, abs=1e-12)
    assert model.evaluate(rows, np.where(y == 3, 99, y))["top5_error"] > found["top5_error"]
    assert classifier(LABELS["multiclass"]).evaluate(X, LABELS["multiclass"])["top5_error"] is None


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_calibration(name):
    """Ten bins of the chosen class's confidence, by plain numpy."""
    y = LABELS[name]
    model = classifier(y)
    scores = model.decision_function(X)
    best = np.abs(scores) if name == "binary" else scores.max(axis=1)
    p = np.clip((best + 1) / 2, 0, 1)
    right = model.predict(X) == y
    found = model.evaluate(X, y)
    gap = 0.0
    for i, line in enumerate(found["calibration"]):
        inside = (p >= i / 10) & ((p < (i + 1) / 10) if i < 9 else (p <= 1))
        assert line["from"] == pytest.approx(i / 10)
        assert line["to"] == pytest.approx((i + 1) / 10)
        assert line["rows"] == inside.sum()
        if inside.any():
            assert line["confidence"] == pytest.approx(p[inside].mean())
            assert line["accuracy"] == pytest.approx(right[inside].mean())
            gap += inside.sum() * abs(p[inside].mean() - right[inside].mean())
        else:
            assert line["confidence"] is None
            assert line["accuracy"] is None
    assert found["calibration_error"] == pytest.approx(gap / len(X))


def test_labels_the_model_does_not_know():
    """They are errors, counted apart, in no line of the confusion."""
    y = LABELS["strings"].copy()
    model = classifier(y)
    strange = y.copy()
    strange[::5], strange[1::50] = "zebra", "ant"
    found = model.evaluate(X, strange)
    assert found["unknown_labels"] == np.isin(strange, ["zebra", "ant"]).sum()
    assert found["accuracy"] == pytest.approx(accuracy_score(strange, model.predict(X)))
    known = ~np.isin(strange, ["zebra", "ant"])
    wanted = confusion_matrix(strange[known], model.predict(X)[known], labels=model.classes_)
    np.testing.assert_array_equal(found["confusion"], wanted)
    assert found["rows"] == len(X)
    precision = precision_score(strange, model.predict(X), labels=model.classes_, average=None)
    np.testing.assert_allclose([c["precision"] for c in found["classes"]], precision)


@pytest.mark.parametrize("other", [np.array(["a", "b"])[CODES % 2], CODES + 0.5, CODES + 100])
def test_no_label_is_known(other):
    """There is nothing to say of such rows."""
    with pytest.raises(ValueError, match="no row of y has a class of the model"):
        classifier(CODES).evaluate(X, other)


def test_a_class_that_is_absent_from_the_rows():
    """Its recall is not defined, and does not enter the mean."""
    model = classifier(CODES)
    rows = CODES != 2
    found = model.evaluate(X[rows], CODES[rows])
    assert found["classes"][2]["recall"] is None
    assert found["classes"][2]["rows"] == 0
    present = recall_score(CODES[rows], model.predict(X[rows]), labels=[0, 1, 3], average=None)
    assert found["mean_recall"] == pytest.approx(present.mean())
    one = model.evaluate(X[:1], CODES[:1])
    assert one["rows"] == 1


Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * 30 + 5, X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(3000, 3))
VALUES = {"one": Y[:, 0], "column": Y[:, :1], "outputs": Y, "float32": Y[:, 1].astype(np.float32)}


@pytest.mark.parametrize("name", sorted(VALUES))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_numbers_like_sklearn(name, fit_intercept):
    """Root mean square, mean, largest error, R^2."""
    y = VALUES[name]
    model = SingleKernelRegressor(**OPTIONS, fit_intercept=fit_intercept).fit(X[:1000], y[:1000])
    found, predicted = model.evaluate(X, y), model.predict(X)
    exact = y.astype(float)
    assert json.loads(json.dumps(found)) == found
    assert found["rows"] == len(X)
    assert found["r2"] == pytest.approx(r2_score(exact, predicted), rel=1e-9)
    assert found["mae"] == pytest.approx(mean_absolute_error(exact, predicted))
    mean_square = np.mean((exact.reshape(3000, -1) - predicted.reshape(3000, -1)) ** 2)
    assert found["rmse"] == pytest.approx(np.sqrt(mean_square))
    assert found["largest_error"] == pytest.approx(np.abs(exact - predicted).max())
    if exact.ndim == 1:
        assert found["rmse"] == pytest.approx(root_mean_squared_error(exact, predicted))
        assert found["largest_error"] == pytest.approx(max_error(exact, predicted))
    assert model.score(X, y) == pytest.approx(found["r2"], rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 2.0, -1e6])
def test_constant_targets_that_are_not_met(value):
    """R^2 is 0, as scikit-learn has it."""
    model = SingleKernelRegressor(**OPTIONS).fit(X, Y[:, 0])
    y = np.full(len(X), value)
    assert model.evaluate(X, y)["r2"] == r2_score(y, model.predict(X)) == 0.0


@pytest.mark.parametrize("value", [0.1, 0.3, 7.7, 1e6 + 0.1])
def test_constant_targets_that_are_not_powers_of_two(value):
    """The same for numbers whose sums are rounded."""
    model = SingleKernelRegressor(**OPTIONS).fit(X, Y[:, 0])
    assert [model.evaluate(X, np.full(len(X), v))["r2"] for v in (value, value / 3)] == [0.0, 0.0]


def test_a_constant_target_that_is_met():
    """A perfect prediction has R^2 = 1."""
    y = np.full(len(X), 2.0)
    model = SingleKernelRegressor(**OPTIONS).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.evaluate(X, y)["r2"] == r2_score(y, model.predict(X)) == 1.0


def test_targets_far_from_those_of_the_fit():
    """No digits are lost to the distance."""
    model = SingleKernelRegressor(**OPTIONS).fit(X, Y[:, 0])
    y = 1e7 + X[:, 1]
    assert model.evaluate(X, y)["r2"] == pytest.approx(r2_score(y, model.predict(X)), rel=1e-6)


@pytest.mark.parametrize("chunk", [1, 70, 999, 3000])
def test_any_chunking(chunk):
    """The same figures, of lazy rows too."""
    rows = slice(0, 40) if chunk == 1 else slice(None)
    lazy = da.from_array(X[rows], chunks=(chunk, -1))
    model = classifier(LABELS["strings"])
    close(model.evaluate(lazy, LABELS["strings"][rows]), model.evaluate(X[rows], LABELS["strings"][rows]))
    regressor = SingleKernelRegressor(**OPTIONS).fit(X, Y)
    y = da.from_array(Y[rows], chunks=(max(1, chunk // 2), -1))
    close(regressor.evaluate(lazy, y), regressor.evaluate(X[rows], Y[rows]))


def test_refusals():
    """y must be there, and fit; a bad row is named."""
    model = classifier(CODES)
    with pytest.raises(ValueError, match="requires y"):
        model.evaluate(X)
    with pytest.raises(ValueError, match="inconsistent"):
        model.evaluate(X, CODES[:-1])
    bad = X.copy()
    bad[2345, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 2345"):
        model.evaluate(da.from_array(bad, chunks=(500, -1)), CODES)


# blocks by themselves


def made_scores(values, offset=0.0):
    """Scores that are what they are told; X is the number of each row."""
    values = np.asarray(values, float)

    class Given:
        def __init__(self):
            self.offset = offset

        def plain(self, rows):
            return values[np.asarray(rows).ravel()].copy()

        def __call__(self, rows):
            return self.plain(rows) - self.offset

    return Given()


ROWS6 = np.arange(6)[:, None]


def test_counts_of_a_block():
    """Three classes by hand: true by predicted, unknown labels last, bins of confidence, the five highest."""
    given = [[1.0, -1, -1], [0.0, 0.6, -1], [0.2, 0.2, -5], [-3, -2, -1.4], [-1, -1, 5], [0.0, 0.0, 0.0]]
    program = CountProgram(made_scores(given), np.array([10, 20, 30]), None)
    found = program.value((ROWS6, np.array([[10], [30], [20], [30], [99], [5]])))
    assert found.confusion.tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1]]
    rows, confidence, right = found.confidence.T
    assert rows.tolist() == [1, 0, 0, 0, 0, 1, 1, 0, 1, 2]
    np.testing.assert_allclose(confidence, [0, 0, 0, 0, 0, 0.5, 0.6, 0, 0.8, 2.0])
    assert right.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert found.near == 4
    twice = found + found
    assert twice.near == 8
    np.testing.assert_array_equal(twice.confusion, 2 * found.confusion)
    np.testing.assert_array_equal(twice.confidence, 2 * found.confidence)


def test_labels_by_their_names():
    """Codes of a stored y stand for names."""
    names = np.array(["b", "a"])
    program = CountProgram(made_scores([[1.0], [-1.0], [1.0]]), np.array(["a", "b"]), names)
    found = program.value((np.arange(3)[:, None], np.array([0, 0, 1])))
    assert found.confusion.tolist() == [[0, 1], [1, 1], [0, 0]]


def test_the_class_is_chosen_after_calibration_and_its_confidence_is_from_before():
    """Offsets move the choice."""
    program = CountProgram(made_scores([[0.5, 0.25]], np.array([1.0, 0.0])), np.array([0, 1]), None)
    found = program.value((np.zeros((1, 1), int), np.array([1])))
    assert found.confusion.tolist() == [[0, 0], [0, 1], [0, 0]]
    assert found.confidence[6].tolist() == [1, 0.625, 1]


@pytest.mark.parametrize(("true", "near"), [(0, 1), (4, 1), (5, 0), (6, 0)])
def test_equal_scores_go_by_their_order(true, near):
    """Of seven equal ones the first five are near."""
    program = CountProgram(made_scores(np.zeros((1, 7))), np.arange(7), None)
    assert program.value((np.zeros((1, 1), int), np.array([true]))).near == near


def test_error_sums_merge():
    """Means and squares about them, as of all rows at once."""
    rng = np.random.default_rng(1)
    y, scores = rng.normal(5, 2, size=(20, 2)), rng.normal(5, 2, size=(20, 2))
    y[:, 1] = 0.1
    program, rows = ErrorProgram(made_scores(scores)), np.arange(20)[:, None]
    whole = program.value((rows, y))
    parts = program.value((rows[:3], y[:3])) + program.value((rows[3:], y[3:]))
    for one in (whole, parts):
        assert one.rows == 20
        np.testing.assert_allclose(one.mean, y.mean(axis=0))
        np.testing.assert_allclose(one.spread, [((y[:, 0] - y[:, 0].mean()) ** 2).sum(), 0.0], atol=1e-15)
        np.testing.assert_allclose(one.square, ((scores - y) ** 2).sum(axis=0))
        np.testing.assert_allclose(one.absolute, np.abs(scores - y).sum(axis=0))
        assert one.largest == np.abs(scores - y).max()
    assert whole.spread[1] == 0


def figures(scores, y):
    tables = Table("memory", np.arange(len(y))[:, None]), Table("memory", np.asarray(y, float))
    return evaluate_numbers(made_scores(scores), *tables, Progress(0))


def test_r2_of_a_constant():
    """1 if it is met, else 0; several outputs are averaged."""
    assert figures([[2.0], [2.0]], [2.0, 2.0])["r2"] == 1
    assert figures([[2.0], [3.0]], [2.0, 2.0])["r2"] == 0
    both = figures([[2.0, 0.0], [2.0, 1.0]], [[2.0, 0.0], [2.0, 2.0]])
    assert both["r2"] == pytest.approx((1 + 0.5) / 2)
    assert both["rmse"] == pytest.approx(np.sqrt(1 / 4))
    assert (both["mae"], both["largest_error"], both["rows"]) == (0.25, 1.0, 2)


def class_figures(scores, classes, y):
    tables = Table("memory", np.arange(len(y))[:, None]), Table("memory", np.asarray(y))
    return evaluate_classes(made_scores(scores), np.asarray(classes), *tables, Progress(0))


def test_figures_of_classes():
    """A class that is never met has no recall, one that is never chosen no precision; top 5 needs more than five."""
    found = class_figures([[3.0, 0, -9], [3.0, 0, -9], [0.0, 1, -9]], [1, 2, 3], [1, 2, 7])
    assert [(c["rows"], c["recall"], c["precision"]) for c in found["classes"]] == [
        (1, 1, 0.5),
        (1, 0, 0),
        (0, None, None),
    ]
    assert (found["rows"], found["unknown_labels"], found["mean_recall"]) == (3, 1, 0.5)
    assert found["accuracy"] == pytest.approx(1 / 3)
    assert found["error"] == pytest.approx(2 / 3)
    assert found["confusion"] == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert found["calibration_error"] == pytest.approx((2 * 0.5 + 1) / 3)
    assert found["top5_error"] is None
    assert class_figures(np.zeros((1, 5)), np.arange(5), [0])["top5_error"] is None
    six = class_figures(np.zeros((2, 6)), np.arange(6), [0, 5])
    assert six["top5_error"] == 0.5
    with pytest.raises(ValueError, match=r"no row of y has a class of the model \(1, 2, 3, 4, 5 \.\.\.\)"):
        class_figures(np.zeros((2, 6)), np.arange(1, 7), [9, 0])
