"""Thresholds of scores against a sort of the scores of the same model without them."""

from __future__ import annotations

import copy
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, top_k_accuracy_score

import dkl
from dkl.engine.progress import listening
from dkl.store.record import open_record, save_record
from dkl.sums import top
from tests.learn.test_evaluate import close

N, K = 600, 40
RNG = np.random.default_rng(4)
CENTRES = RNG.normal(size=(6, 4)) * 1.5
CODE = RNG.choice(6, N, p=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02])
X = CENTRES[CODE] + RNG.normal(size=(N, 4))
LABELS = {"six": CODE, "two": (CODE > 1).astype(int), "names": np.array(list("fbdace"))[CODE]}
OPTIONS = {"n_components": 50, "sigma": 0.4, "random_state": 0, "verbose": 0}


def make(**options):
    """Not fitted yet."""
    return dkl.SingleKernelClassifier(**(OPTIONS | options))


def kth(scores, k=K):
    """The k-th highest score of each class, by a sort; of two classes from -s and s."""
    every = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    return np.sort(every, axis=0)[-k]


def plain_scores(model, rows=X):
    """Scores of the same model without its thresholds."""
    bare = copy.copy(model)
    vars(bare).pop("thresholds_", None)
    return bare.decision_function(rows)


def less(scores, thresholds):
    """Scores as they should be when calibrated."""
    return scores - (thresholds if scores.ndim > 1 else (thresholds[1] - thresholds[0]) / 2)


@pytest.mark.parametrize("name", LABELS)
def test_thresholds_are_those_of_a_sort(name):
    """By the parameter and by the method; weights stay, scores are lessened everywhere, and nothing is done twice."""
    y = LABELS[name]
    plain, model = make().fit(X, y), make(calibrate=K).fit(X, y)
    scores = plain.decision_function(X)
    wanted = kth(scores)
    assert not hasattr(plain, "thresholds_")
    assert model.thresholds_.shape == model.classes_.shape
    np.testing.assert_array_equal(model.thresholds_, wanted)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.intercept_, plain.intercept_)
    again = make().fit(X, y)
    assert again.calibrate_scores(X, k=3) is again
    np.testing.assert_array_equal(again.thresholds_, kth(scores, 3))
    np.testing.assert_array_equal(again.calibrate_scores(X, K).thresholds_, wanted)
    expected = less(scores, wanted)
    for calibrated in (model, again):
        np.testing.assert_array_equal(calibrated.decision_function(X), expected)
        best = (expected > 0).astype(int) if expected.ndim == 1 else expected.argmax(axis=1)
        np.testing.assert_array_equal(calibrated.predict(X), plain.classes_[best])
        numbers, predicted, blocks = zip(*calibrated.predict_blocks(X, scores=True), strict=True)
        assert np.concatenate(numbers).tolist() == list(range(N))
        np.testing.assert_array_equal(np.concatenate(predicted), plain.classes_[best])
        np.testing.assert_array_equal(np.vstack(blocks).reshape(expected.shape), expected)
    assert (model.predict(X) != plain.predict(X)).any()


def test_two_classes_as_if_they_had_two_scores():
    """The sign of the one score says which of -s - thr_0 and s - thr_1 is higher."""
    y = LABELS["two"]
    s, model = make().fit(X, y).decision_function(X), make(calibrate=K).fit(X, y)
    both = np.column_stack([-s, s]) - model.thresholds_
    np.testing.assert_array_equal(model.predict(X), both.argmax(axis=1))
    np.testing.assert_allclose(model.decision_function(X), (both[:, 1] - both[:, 0]) / 2, atol=1e-14)


def test_no_class_is_chosen_only_for_being_common():
    """On classes of very different sizes every class stands equally often above its threshold, the choices level out,
    and rows of a set in which all classes are as frequent are recognised more often."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 5)) * 1.2
    y, even = rng.choice(6, 4000, p=[0.6, 0.2, 0.1, 0.05, 0.03, 0.02]), rng.integers(0, 6, 3000)
    rows, others = centres[y] + rng.normal(size=(4000, 5)), centres[even] + rng.normal(size=(3000, 5))
    model = make(n_components=200, sigma="scale", alpha=1.0).fit(rows, y)
    before, chosen = model.score(others, even), np.bincount(model.predict(rows), minlength=6)
    model.calibrate_scores(rows, k=4000 // 6)
    scores, after = model.decision_function(rows), np.bincount(model.predict(rows), minlength=6)
    assert (np.abs((scores > 1e-12).sum(axis=0) - (4000 // 6 - 1)) <= 1).all()
    assert chosen.max() > 20 * chosen.min()
    assert after.max() < 3 * after.min()
    assert model.score(others, even) > before + 0.03


@pytest.mark.parametrize("name", ["six", "two"])
def test_evaluate(name):
    """Errors by the calibrated scores, confidence by the score that the chosen class had before."""
    y = LABELS[name]
    plain, model = make().fit(X, y), make(calibrate=K).fit(X, y)
    found, scores = model.evaluate(X, y), plain.decision_function(X)
    predicted = model.predict(X)
    assert found["accuracy"] == pytest.approx(accuracy_score(y, predicted), abs=1e-12)
    every = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    p = np.clip((every[np.arange(N), predicted] + 1) / 2, 0, 1)
    assert [line["rows"] for line in found["calibration"]] == np.histogram(p, np.linspace(0, 1, 11))[0].tolist()
    total = sum(line["rows"] * (line["confidence"] or 0) for line in found["calibration"])
    assert total == pytest.approx(p.sum())
    if name == "six":
        near = top_k_accuracy_score(y, model.decision_function(X), k=5)
        assert found["top5_error"] == pytest.approx(1 - near, abs=1e-12)
        assert found["top5_error"] != plain.evaluate(X, y)["top5_error"]
    lazy = da.from_array(X, chunks=(70, -1))
    close(model.evaluate(lazy, y), found)


@pytest.mark.parametrize(("kind", "chunk"), [*(("dask", chunk) for chunk in (1, 7, 64, N)), ("zarr", 64), ("zarr", N)])
def test_any_chunking(kind, chunk, tmp_path):
    """The same thresholds for lazy rows, and lazy scores from them."""
    model = make(calibrate=K).fit(X, CODE)
    wanted = model.thresholds_
    del model.thresholds_
    rows = da.from_array(X, chunks=(chunk, -1))
    if kind == "zarr":
        zarr.create_array(str(tmp_path / "X.zarr"), data=X, chunks=(chunk, 4))
    model.calibrate_scores(rows if kind == "dask" else str(tmp_path / "X.zarr"), K)
    np.testing.assert_array_equal(model.thresholds_, wanted)
    scores = model.decision_function(rows)
    assert isinstance(scores, da.Array)
    pieces = [model.decision_function(X[i : i + chunk]) for i in range(0, N, chunk)]
    np.testing.assert_array_equal(scores.compute(), np.vstack(pieces))
    np.testing.assert_array_equal(model.predict(rows).compute(), np.vstack(pieces).argmax(axis=1))


@pytest.mark.parametrize("size", [7, 64])
@pytest.mark.parametrize("threads", [1, 4])
def test_many_blocks(size, threads, monkeypatch):
    """Small blocks on several threads: a sort of the scores of those blocks."""
    monkeypatch.setattr(top.TopProgram, "rows_wanted", size)
    model = make().fit(X, CODE)
    count = -(-N // size)
    cuts = [i * N // count for i in range(1, count)]
    wanted = kth(np.vstack([model.decision_function(block) for block in np.split(X, cuts)]))
    tens = da.from_array(X, chunks=(size * 10, -1))  # looked at in tenths
    wanted_of_tens = kth(np.vstack([model.decision_function(X[i : i + size]) for i in range(0, N, size)]))
    with dask.config.set(num_workers=threads):
        np.testing.assert_array_equal(model.calibrate_scores(X, K).thresholds_, wanted)
        np.testing.assert_array_equal(model.calibrate_scores(tens, K).thresholds_, wanted_of_tens)


def test_rows_of_every_kind():
    """xarray in memory and lazy, sparse."""
    rows = np.abs(X) * (np.abs(X) > 1)
    model = make().fit(rows, CODE)
    wanted = model.calibrate_scores(rows, K).thresholds_
    labelled = xr.DataArray(rows, dims=("row", "input"))
    for kind in (labelled, labelled.chunk(row=70)):
        np.testing.assert_array_equal(model.calibrate_scores(kind, K).thresholds_, wanted)
    np.testing.assert_allclose(model.calibrate_scores(sp.csr_array(rows), K).thresholds_, wanted, rtol=1e-12)


def test_a_data_set_calibrates_itself(tmp_path):
    """The path of a data set, for fit and for calibration."""
    group = zarr.open_group(str(tmp_path / "d.zarr"), mode="w")
    group.create_array("X", data=X, chunks=(200, 4))
    group.create_array("y", data=CODE, chunks=(200,))
    model = make(calibrate=K).fit(str(tmp_path / "d.zarr"))
    wanted = model.thresholds_
    np.testing.assert_array_equal(model.calibrate_scores(str(tmp_path / "d.zarr"), K).thresholds_, wanted)
    np.testing.assert_array_equal(wanted, kth(plain_scores(model)))


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_without_weight_do_not_count(lazy):
    """As if they were not there; other weights do not matter for the thresholds of given scores."""
    weight = np.where(RNG.random(N) < 0.3, 0.0, 1.0 + RNG.random(N))
    rows = da.from_array(X, chunks=(70, -1)) if lazy else X
    model = make(calibrate=K).fit(rows, CODE, sample_weight=weight)
    scores = plain_scores(model)
    np.testing.assert_array_equal(model.thresholds_, kth(scores[weight > 0]))
    assert (model.thresholds_ != kth(scores)).any()


@pytest.mark.parametrize("k", [N + 1, 10**6])
def test_fewer_rows_than_k(k):
    """The lowest score, with a warning that says what to use; k = N is enough."""
    with pytest.warns(UserWarning, match=rf"calibrate={k} is more than the {N} rows .* use calibrate={N} or less"):
        model = make(calibrate=k).fit(X, CODE)
    plain = make().fit(X, CODE)
    np.testing.assert_array_equal(model.thresholds_, plain.decision_function(X).min(axis=0))
    with pytest.warns(UserWarning, match=rf"k={k} is more than the 50 rows .* use k=50 or less") as told:
        plain.calibrate_scores(X[:50], k)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(calibrate=N).fit(X, CODE)


@pytest.mark.parametrize("k", [0, -1, "many", 2.5, True, [5]])
def test_refused_numbers(k):
    """By fit before any row is read, by the plan, and by the method; what was there stays."""
    with pytest.raises(ValueError, match=r"calibrate=.* must be a whole number of at least 1"):
        make(calibrate=k).fit(X, CODE)
    with pytest.raises(ValueError, match=r"calibrate=.* must be a whole number"):
        make(calibrate=k).plan(X, CODE)
    model = make(calibrate=K).fit(X, CODE)
    before = model.thresholds_
    with pytest.raises(ValueError, match=r"k=.* must be a whole number of at least 1"):
        model.calibrate_scores(X, k)
    assert model.thresholds_ is before


def test_refused_rows():
    """A bad row is named, and earlier thresholds stay; a model that is not fitted says so."""
    model = make(calibrate=K).fit(X, CODE)
    before, bad = model.thresholds_, X.copy()
    bad[345, 1] = np.nan
    with pytest.raises(ValueError, match="NaN at row 345"):
        model.calibrate_scores(da.from_array(bad, chunks=(100, -1)))
    with pytest.raises(ValueError, match="X has 3 features"):
        model.calibrate_scores(X[:, :3])
    assert model.thresholds_ is before
    with pytest.raises(NotFittedError):
        make().calibrate_scores(X)


def test_refit_and_clone():
    """A fit without calibrate forgets thresholds; a clone has the parameter and no thresholds."""
    model = make(calibrate=K).fit(X, CODE)
    assert model.get_params()["calibrate"] == K
    assert clone(model).calibrate == K
    assert not hasattr(clone(model), "thresholds_")
    wanted = model.thresholds_
    np.testing.assert_array_equal(model.fit(X, CODE).thresholds_, wanted)
    assert not hasattr(model.set_params(calibrate=None).fit(X, CODE), "thresholds_")
    assert not hasattr(model.calibrate_scores(X, 5).fit(X, CODE), "thresholds_")


@pytest.mark.parametrize("name", LABELS)
def test_save_and_load(name, tmp_path):
    """The same bits; thresholds that do not belong there are refused."""
    model = make(calibrate=K).fit(X, LABELS[name])
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    assert again.calibrate == K
    assert again.thresholds_.tobytes() == model.thresholds_.tobytes()
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    attributes, arrays = open_record(tmp_path / "m", 10**9)
    rest = {key: attributes[key] for key in ("estimator", "params", "fitted")}
    c = len(model.classes_)
    for wrong in (np.zeros(c + 1), np.zeros((c, 1)), np.zeros(1), np.full(c, np.nan), np.r_[np.zeros(c - 1), np.inf]):
        changed = {key: (tuple("xyz"[: a.ndim]), a) for key, a in (arrays | {"thresholds": wrong}).items()}
        save_record(tmp_path / "wrong", rest, changed, overwrite=True)
        with pytest.raises(ValueError, match=r"thresholds must be finite|array 'thresholds' of .* holds (nan|inf)"):
            dkl.load(tmp_path / "wrong")


def test_checkpoint(tmp_path):
    """Sums are taken from the checkpoint, also by a fit that calibrates otherwise; the last pass is run again."""
    plain = make(calibrate=K).fit(X, CODE)
    for k in (K, K, 7, None):
        events: list = []
        with listening(events.append):
            model = make(calibrate=k, checkpoint=tmp_path / "c").fit(X, CODE)
        passes = [e["name"] for e in events if e["event"] == "pass"]
        assert passes.count("calibrating") == (k is not None)
        np.testing.assert_array_equal(model.coef_, plain.coef_)
        assert hasattr(model, "thresholds_") == (k is not None)
        if k == K:
            np.testing.assert_array_equal(model.thresholds_, plain.thresholds_)


def test_with_learning_and_folds():
    """After the last solve, whatever came before it."""
    for options in ({"cv": 3, "alpha": [0.1, 1.0]}, {"learn": "cv", "starts": 1}, {"reduce": 0.9}):
        model = make(calibrate=K, **options).fit(X, CODE)
        np.testing.assert_array_equal(model.thresholds_, kth(plain_scores(model)))


def test_plan_counts_what_is_kept():
    """Ten million scores of each class do not go unnoticed; as many as there are rows at most."""
    rows = da.zeros((10**7, 4), chunks=(10**4, 4))
    few, many, most = (make(calibrate=k).plan(rows, CODE, calibrate=False) for k in (5, 10**7, 10**12))
    assert many.cost == most.cost
    assert abs(many.worker_bytes - most.worker_bytes) < 2**26  # what this process uses may change
    assert many.worker_bytes > few.worker_bytes + 8 * 6 * 10**7
