"""Targets and weights of any size, and refusals that come before any row is read."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold

import dkl

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 4))
y = X[:, 0] ** 2 + X[:, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-30, 1e-6, 1e6, 1e37])
def test_predictions_scale_with_y(size, dtype):
    """y times a constant gives predictions times that constant, in float32 too."""
    model = dkl.SingleKernelRegressor(n_components=60, random_state=0, dtype=dtype, alpha=[0.1, 10.0], cv=3)
    once, scaled = model.fit(X, y).predict(X), model.fit(X, y * size).predict(X)
    np.testing.assert_allclose(scaled / size, once, rtol=1e-4 if dtype == "float32" else 1e-9, atol=1e-5)


@pytest.mark.parametrize("size", [1e-60, 1e-3, 1e3, 1e60])
def test_weights_of_any_size_mean_what_ridge_says(size):
    """Weights times a constant, alpha times the same: the same model, and sklearn's Ridge's at that scale."""
    weight = rng.uniform(0.5, 2, len(X))
    model = dkl.SingleKernelRegressor(n_components=60, random_state=0, sigma=0.5, alpha=size, dtype="float32")
    got = model.fit(X, y, sample_weight=weight * size).predict(X)
    features = dkl.FourierFeatures(n_components=60, sigma=0.5, random_state=0).fit_transform(X)
    want = Ridge(alpha=1.0).fit(features, y, sample_weight=weight).predict(features)
    np.testing.assert_allclose(got, want, atol=2e-3)


def test_what_overflows_is_refused():
    """Squares beyond float64 are named, for y and for X."""
    with pytest.raises(ValueError, match="divide y by a constant"):
        dkl.SingleKernelRegressor(n_components=10).fit(X, y * 1e200)
    with pytest.raises(ValueError, match=r"y is so small .* multiply y by a constant"):
        dkl.SingleKernelRegressor(n_components=10).fit(X, y * 1e-180)
    with pytest.raises(ValueError, match="variance is infinite"):
        dkl.SingleKernelRegressor(n_components=10).fit(X * 1e200, y)


WRONG = [
    {"kernel": "gausian"},
    {"n_components": 0},
    {"alpha": -1.0},
    {"form": "pared"},
    {"frequencies": "sobol"},
    {"sigma": "auto"},
    {"groups": 3},
]


@pytest.mark.parametrize("wrong", [*WRONG, {"n_components": 10**6}], ids=str)
@pytest.mark.parametrize("cls", [dkl.SingleKernelRegressor, dkl.SingleKernelClassifier])
def test_refused_before_a_row_is_read(cls, wrong):
    """Wrong parameters, and fits that cannot fit, cost no pass."""
    reads = []

    def count(block):
        reads.append(len(block))
        return block

    rows = da.zeros((1000, 4), chunks=(100, 4)).map_blocks(count, meta=np.empty((0, 0)))
    reads.clear()
    with pytest.raises((ValueError, MemoryError)):
        cls(**wrong).fit(rows, rows[:, 0])
    assert not reads


def test_reordered_dataframe_columns_are_refused():
    """A lazy dataframe in another order than at fit is refused, as pandas is."""
    import dask.dataframe as dd

    frame = pd.DataFrame(X, columns=list("abcd"))
    model = dkl.SingleKernelRegressor(n_components=10).fit(frame, y)
    lazy = dd.from_pandas(frame, npartitions=2)
    np.testing.assert_allclose(model.predict(lazy).compute(), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(lazy[list("dcba")])


def test_a_stratified_splitter_sees_the_labels():
    """cv=StratifiedKFold works with labels in memory and is refused with lazy ones."""
    labels = (y > 1).astype(int)
    splitter = StratifiedKFold(3)
    model = dkl.SingleKernelClassifier(n_components=20, alpha=[0.1, 1.0], cv=splitter, random_state=0).fit(X, labels)
    folds = np.empty(len(X), int)
    for k, (_, test) in enumerate(splitter.split(X, labels)):
        folds[test] = k
    same = dkl.SingleKernelClassifier(n_components=20, alpha=[0.1, 1.0], cv=folds, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(model.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])
    with pytest.raises(ValueError, match="give the fold of each row"):
        model.fit(da.from_array(X, chunks=100), da.from_array(labels, chunks=100))


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (np.array([["2020-01-01"]] * 10, "M8[D]"), "datetime64"),
        (np.array([["1.5"]] * 10), "<U3"),
        (pd.DataFrame({"good": [1.0] * 10, "when": pd.date_range("2020", periods=10)}), "'when'"),
        (pd.DataFrame({"name": ["a"] * 10}), "'name'"),
        ({"a": 1}, "dict"),
        (None, "NoneType"),
    ],
    ids=["dates", "strings", "frame of dates", "frame of strings", "dict", "None"],
)
def test_columns_that_are_not_numbers(bad, word):
    """Dates, strings and things that are no table are refused in one line that names them."""
    with pytest.raises(ValueError, match=word) as caught:
        dkl.SingleKernelRegressor(n_components=10).fit(bad, np.arange(10.0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("labels", "word"), [(["a", None, "b"], "None at row 1"), ([1, "a", 2], "int, str")])
def test_labels_that_cannot_be_ordered(labels, word):
    """A missing label is named with its row; labels of two types with both types."""
    with pytest.raises(ValueError, match=word):
        dkl.SingleKernelClassifier(n_components=10).fit(X[:3], np.array(labels, object))
