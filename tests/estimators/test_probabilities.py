"""Probabilities of classes against scikit-learn: predict_proba, its absence, and the figures of evaluate.

Weights of a log loss come from the toy family; a square model whose `loss` says otherwise has the same scores, so its
probabilities are known functions of decision_function.
"""

from __future__ import annotations

import json
import pickle

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from sklearn.model_selection import cross_val_score

import dkl
from dkl.learn.evaluate import CountProgram
from dkl.losses import Logistic, Softmax
from tests.contracts.toy import ToyClassifier
from tests.learn.test_evaluate import close, made_scores

pytestmark = pytest.mark.filterwarnings("ignore:learning stopped at:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2500, 3))
CODE = (X @ RNG.normal(size=(3, 4)) + RNG.normal(size=(2500, 4))).argmax(axis=1)
WORDS = np.array(["pear", "apple", "fig", "plum"])[CODE]
LABELS = {"two": CODE % 2, "four": CODE, "words": WORDS}
OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0, "verbose": 0}
TRAIN = slice(0, 800)
TOY = {**OPTIONS, "max_iter": 4000, "tol": 1e-7}
LOSSES = ("log_loss", "softmax", "logistic")


def toy(y, **options):
    """Fitted by the log loss."""
    return ToyClassifier(**(TOY | options)).fit(X[TRAIN], y[TRAIN])


def said(loss, y, **options):
    """Square weights whose model says that they are of another loss."""
    model = dkl.SingleKernelClassifier(**OPTIONS, **options).fit(X[TRAIN], y[TRAIN])
    model.loss = loss
    return model


def expected(scores, loss):
    """Probabilities of scores."""
    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    if loss == "logistic":
        return expit(scores) / expit(scores).sum(axis=1, keepdims=True)
    return softmax(scores, axis=1)


@pytest.mark.parametrize("name", LABELS)
def test_like_logistic_regression(name):
    """The toy's probabilities are those of LogisticRegression on the same features at the same penalty."""
    y = LABELS[name]
    model = toy(y, alpha=2.0)
    Psi = model.features_.at(np.float64).transform(X)
    C = 4 / 2.0 if name == "two" else 1 / 2.0  # the toy's one score is half the log odds
    right = LogisticRegression(C=C, tol=1e-10, max_iter=5000).fit(Psi[TRAIN], y[TRAIN])
    assert model.classes_.tolist() == right.classes_.tolist()
    found = model.predict_proba(X)
    np.testing.assert_allclose(found, right.predict_proba(Psi), atol=1e-4)
    np.testing.assert_allclose(model.predict_log_proba(X), right.predict_log_proba(Psi), atol=1e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-13)
    assert (model.classes_[found.argmax(axis=1)] == model.predict(X)).all()


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_of_the_loss_by_its_name(name, loss):
    """The parameter `loss` alone says what the scores mean; one score is the log odds."""
    model = said(loss, LABELS[name])
    wanted = expected(model.decision_function(X), loss)
    assert model.predict_proba(X).shape == (len(X), len(model.classes_))
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(wanted), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("name", ["two", "words"])
def test_far_scores(name):
    """Logarithms stay finite where a probability is too small for a number."""
    model = said("log_loss", LABELS[name])
    model.coef_ = model.coef_ * 1e5
    with np.errstate(all="raise", under="ignore"):
        p, log_p = model.predict_proba(X), model.predict_log_proba(X)
    assert p.min() == 0
    assert np.isfinite(log_p).all()
    assert log_p.min() < -1e3


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
@pytest.mark.parametrize("name", ["two", "words"])
def test_kinds_of_rows(method, name):
    """Lazy for Dask, labelled for xarray, the same numbers."""
    model = toy(LABELS[name], max_iter=20)
    ask = getattr(model, method)
    here = ask(X)
    lazy = ask(da.from_array(X, chunks=(700, -1)))
    assert isinstance(lazy, da.Array)
    assert lazy.shape == here.shape
    assert lazy.chunks[0] == (700, 700, 700, 400)
    np.testing.assert_allclose(lazy.compute(), here, rtol=1e-12)
    labelled = ask(xr.DataArray(X, dims=("day", "input"), coords={"day": np.arange(len(X)) * 2}))
    assert labelled.dims[0] == "day"
    np.testing.assert_array_equal(labelled["day"], np.arange(len(X)) * 2)
    np.testing.assert_array_equal(labelled.values, here)
    with pytest.raises(ValueError, match="NaN at row 3"):
        ask(np.where(np.arange(10)[:, None] == 3, np.nan, X[:10]))


def test_saved(tmp_path):
    """The same bits after dkl.load and pickle; a clone has none before it is fitted."""
    model = toy(WORDS, max_iter=30, calibrate=50)
    model.save(tmp_path / "m.zarr")
    for again in (dkl.load(tmp_path / "m.zarr"), pickle.loads(pickle.dumps(model))):
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert again.predict_log_proba(X).tobytes() == model.predict_log_proba(X).tobytes()
        assert again.evaluate(X, WORDS) == model.evaluate(X, WORDS)
    assert hasattr(clone(model), "predict_proba")


@pytest.mark.parametrize("name", ["two", "words"])
def test_before_calibration(name):
    """thresholds_ move the choice, and no probability."""
    model = said("log_loss", LABELS[name])
    before, choice = model.predict_proba(X), model.predict(X)
    assert (model.calibrate_scores(X, 30).predict(X) != choice).any()
    np.testing.assert_array_equal(model.predict_proba(X), before)
    _, _, columns = next(model.predict_blocks(X, proba=True))
    np.testing.assert_allclose(columns, before, rtol=1e-13)


@pytest.mark.parametrize("loss", ["square", "squared_hinge", "smoothed_hinge:mu=0.3", "no_such_loss"])
@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
def test_without(loss, method):
    """hasattr is False; the error is one line that says what to type."""
    model = said(loss, WORDS)
    assert not hasattr(model, method)
    with pytest.raises(AttributeError) as caught:
        getattr(model, method)
    text = str(caught.value)
    assert method in text
    assert "loss='log_loss' or loss='logistic'" in text
    assert "CalibratedClassifierCV" in text
    assert repr(loss) in text
    assert "\n" not in text
    with pytest.raises(ValueError, match="gives no probabilities; fit with loss='log_loss'"):
        next(model.predict_blocks(X, proba=True))
    assert "thresholds_" in type(model).predict_proba.__doc__


def test_numbers_have_none():
    """A regressor has neither the method nor the columns."""
    model = dkl.SingleKernelRegressor(**OPTIONS).fit(X, X[:, 0])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="gives no probabilities"):
        next(model.predict_blocks(X, proba=True))


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_scikit_learns_calibration_of_the_square_loss(name, method):
    """CalibratedClassifierCV makes probabilities of any loss, better than those of the classes' shares."""
    y = LABELS[name]
    outer = CalibratedClassifierCV(dkl.SingleKernelClassifier(**OPTIONS), method=method, cv=3).fit(X[TRAIN], y[TRAIN])
    p = outer.predict_proba(X[800:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    share = np.array([(y[TRAIN] == label).mean() for label in outer.classes_])
    naive = np.broadcast_to(share, p.shape)
    assert log_loss(y[800:], p, labels=outer.classes_) < 0.99 * log_loss(y[800:], naive, labels=outer.classes_)
    assert outer.score(X[800:], y[800:]) > share.max()


def test_scikit_learns_scoring():
    """neg_log_loss, by folds, asks for predict_proba."""
    model = ToyClassifier(**(TOY | {"max_iter": 50, "tol": 1e-3}))
    assert (cross_val_score(model, X[TRAIN], WORDS[TRAIN], cv=3, scoring="neg_log_loss") > -np.log(4)).all()


# evaluate


def reliability(p, choice, y, classes):
    """Ten bins by plain numpy: (rows, mean confidence, share right), and the calibration error."""
    best = np.searchsorted(classes, choice)
    top, right = p[np.arange(len(p)), best], choice == y
    bins, gap = [], 0.0
    for i in range(10):
        inside = (top >= i / 10) & (top < (i + 1) / 10 if i < 9 else top <= 1)
        bins.append(
            (inside.sum(), top[inside].mean() if inside.any() else None, right[inside].mean() if inside.any() else None)
        )
        gap += inside.sum() * abs(top[inside].mean() - right[inside].mean()) if inside.any() else 0.0
    return bins, gap / len(p)


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("how", ["toy", *LOSSES])
@pytest.mark.parametrize("calibrate", [None, 40])
def test_figures(name, how, calibrate):
    """scikit-learn's log_loss, brier_score_loss and accuracy; the table of confidence by plain numpy."""
    y = LABELS[name]
    options = {"calibrate": calibrate}
    model = toy(y, max_iter=30, **options) if how == "toy" else said(how, y, **options)
    found, p = model.evaluate(X, y), model.predict_proba(X)
    assert json.loads(json.dumps(found)) == found, "plain values"
    assert found["log_loss"] == pytest.approx(log_loss(y, p, labels=model.classes_), rel=1e-10)
    last = (y == model.classes_[1], p[:, 1]) if name == "two" else (y, p)
    assert found["brier_score"] == pytest.approx(brier_score_loss(*last), rel=1e-10)
    assert found["accuracy"] == pytest.approx(accuracy_score(y, model.predict(X)))
    bins, gap = reliability(p, model.predict(X), y, model.classes_)
    assert found["calibration_error"] == pytest.approx(gap)
    for line, (rows, confidence, share) in zip(found["calibration"], bins, strict=True):
        assert line["rows"] == rows
        assert line["confidence"] == (None if confidence is None else pytest.approx(confidence))
        assert line["accuracy"] == (None if share is None else pytest.approx(share))
    close(model.evaluate(da.from_array(X, chunks=(333, -1)), y), found)


@pytest.mark.parametrize("name", LABELS)
def test_figures_without_probabilities(name):
    """Of the square loss (score + 1) / 2 is a confidence, and no probability; of hinges there is neither."""
    y = LABELS[name]
    square = dkl.SingleKernelClassifier(**OPTIONS).fit(X[TRAIN], y[TRAIN]).evaluate(X, y)
    assert (square["log_loss"], square["brier_score"]) == (None, None)
    assert square["calibration_error"] > 0
    for loss in ("squared_hinge", "smoothed_hinge"):
        hinge = said(loss, y).evaluate(X, y)
        for key in ("log_loss", "brier_score", "calibration_error", "calibration"):
            assert hinge.pop(key) is None
        close(hinge, {key: value for key, value in square.items() if key in hinge})


def test_unknown_labels():
    """Errors of accuracy and of confidence; log loss and Brier score are of the other rows."""
    model = toy(WORDS, max_iter=30)
    strange = np.where(np.arange(len(X)) % 5 == 0, "zebra", WORDS)
    known = strange != "zebra"
    found, p = model.evaluate(X, strange), model.predict_proba(X)
    assert found["unknown_labels"] == (~known).sum()
    assert found["rows"] == len(X)
    assert found["log_loss"] == pytest.approx(log_loss(WORDS[known], p[known], labels=model.classes_))
    assert found["brier_score"] == pytest.approx(brier_score_loss(WORDS[known], p[known], labels=model.classes_))
    assert found["calibration_error"] == pytest.approx(reliability(p, model.predict(X), strange, model.classes_)[1])
    assert sum(line["rows"] for line in found["calibration"]) == len(X)


def test_a_block_by_hand():
    """Three classes with p = 1/4, 1/2, 1/4: -log p of the true one, and (p - onehot)^2."""
    z = np.log([[1.0, 2.0, 1.0]] * 3)
    program = CountProgram(made_scores(z), np.array([10, 20, 30]), None, Softmax())
    counts = program.value((np.arange(3)[:, None], np.array([20, 30, 99])))
    assert counts.surprise == pytest.approx(np.log(2) + np.log(4))
    assert counts.distance == pytest.approx((1 + 4 + 1) / 16 + (1 + 4 + 9) / 16)
    assert counts.confidence[5].tolist() == [3, 1.5, 1]
    twice = counts + counts
    assert (twice.surprise, twice.distance) == (2 * counts.surprise, 2 * counts.distance)
    odds = CountProgram(made_scores([[np.log(3.0)]]), np.array([0, 1]), None, Logistic())
    one = odds.value((np.zeros((1, 1), int), np.array([0])))
    assert (one.surprise, one.distance) == (pytest.approx(np.log(4)), pytest.approx(2 * 9 / 16))


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("name", LABELS)
def test_blocks_in_order(name, scores):
    """Columns of predict_blocks: scores, if asked for, then probabilities; predictions are those of predict."""
    model = toy(LABELS[name], max_iter=30, calibrate=40)
    numbers, predicted, columns = zip(
        *model.predict_blocks(da.from_array(X, chunks=(400, -1)), scores, True), strict=True
    )
    np.testing.assert_array_equal(np.concatenate(numbers), np.arange(len(X)))
    np.testing.assert_array_equal(np.concatenate(predicted), model.predict(X))
    wanted = [model.decision_function(X).reshape(len(X), -1)] * scores + [model.predict_proba(X)]
    np.testing.assert_allclose(np.concatenate(columns), np.hstack(wanted), rtol=1e-12)
