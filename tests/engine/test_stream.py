"""Blocks of predictions in order, whatever the rows are; a bad row is named by its number."""

from __future__ import annotations

import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

import dkl
from dkl.engine import stream
from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress, listening
from dkl.engine.stream import stream_rows
from dkl.engine.tables import open_table

RNG = np.random.default_rng(0)
N = 9000
X = RNG.normal(size=(N, 3))
OPTIONS = {"n_components": 20, "sigma": 0.7, "random_state": 0, "verbose": 0}
CODES = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 1)]
MODELS = {
    "one": lambda: dkl.SingleKernelRegressor(**OPTIONS).fit(X, X[:, 0]),
    "column": lambda: dkl.SingleKernelRegressor(**OPTIONS).fit(X, X[:, :1]),
    "outputs": lambda: dkl.SingleKernelRegressor(**OPTIONS).fit(X, X[:, :2] ** 2),
    "binary": lambda: dkl.SingleKernelClassifier(**OPTIONS).fit(X, X[:, 0] > 0),
    "names": lambda: dkl.SingleKernelClassifier(**OPTIONS).fit(X, CODES),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks of few rows."""
    monkeypatch.setattr(stream, "ROWS", 700)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """The same rows, as everything they can be."""
    place = str(tmp_path_factory.mktemp("rows") / "x.zarr")
    array = zarr.create_array(place, data=X, chunks=(450, 3))
    lazy = da.from_array(X, chunks=((1, 999, 3000, 5000), (3,)))
    mean = lazy - lazy.mean(axis=0) + X.mean(axis=0)
    return {
        "numpy": X, "dask": lazy, "shared": mean, "path": place, "zarr": array,
        "xarray": xr.DataArray(X, dims=("row", "input")), "lazy xarray": xr.DataArray(lazy, dims=("row", "input")),
    }  # fmt: skip


def whole(result):
    """Any result as numpy."""
    return np.asarray(result.compute() if hasattr(result, "compute") else result)


def check(model, rows):
    """Concatenated blocks are predict and decision_function."""
    blocks = list(model.predict_blocks(rows, scores=True))
    numbers, predicted, scores = (np.concatenate([b[i] for b in blocks]) for i in range(3))
    np.testing.assert_array_equal(numbers, np.arange(N))
    assert scores.shape == (N, np.atleast_2d(model.coef_).shape[0])
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(predicted, whole(model.predict(rows)))
        wanted = whole(model.decision_function(rows))
        np.testing.assert_allclose(scores, wanted.reshape(N, -1), rtol=1e-12, atol=1e-13)
    else:
        assert predicted.shape == model.predict(X).shape
        np.testing.assert_allclose(predicted, whole(model.predict(rows)), rtol=1e-12, atol=1e-13)
        np.testing.assert_array_equal(scores, predicted.reshape(N, -1))
    return len(blocks)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_like_predict(kinds, name):
    """Every kind of rows."""
    model = MODELS[name]()
    for rows in kinds.values():
        assert check(model, rows) >= 3
    assert next(iter(model.predict_blocks(X)))[2] is None


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_on_a_cluster(kinds, pair):
    """The same there, in order; a bad row is named."""
    model = MODELS["names"]()
    for kind in ("dask", "shared", "path"):
        assert check(model, kinds[kind]) >= 3
    with pytest.raises(ValueError, match="NaN at row 8123, column 2"):
        list(model.predict_blocks(bad_rows(8123)))


def bad_rows(row):
    """Lazy rows of which one is not a number."""
    bad = X.copy()
    bad[row, 2] = np.nan
    return da.from_array(bad, chunks=(1000, -1))


@pytest.mark.parametrize("row", [0, 999, 1000, 8123, N - 1])
def test_a_bad_row_is_named(row):
    """By its number among all rows, in memory and lazy; blocks before it came."""
    model = MODELS["one"]()
    for rows in (bad_rows(row), bad_rows(row).compute()):
        came = []
        with pytest.raises(ValueError, match=f"NaN at row {row}, column 2"):
            came.extend(len(numbers) for numbers, _, _ in model.predict_blocks(rows))
        assert sum(came) <= row


def test_few_blocks_are_under_way():
    """What is not taken is not computed; leaving early leaves nothing running."""
    rows, calls, lock = Rows([open_table(X)], ["X"]), [0], threading.Lock()

    def count(block):
        with lock:
            calls[0] += 1
        return len(block)

    with dask.config.set(num_workers=2):
        blocks = stream_rows(Embedded(), count, rows, Progress(0))
        assert next(blocks) > 0
        time.sleep(0.05)
        assert calls[0] <= 6
        blocks.close()
    before = calls[0]
    time.sleep(0.05)
    assert calls[0] == before


def test_events():
    """One pass over all rows."""
    events = []
    model = MODELS["one"]()
    with listening(events.append):
        list(model.predict_blocks(X))
        model.evaluate(X, X[:, 0])
    assert [(e["event"], e["name"], e["rows"]) for e in events] == [
        ("pass", "predicting", N),
        ("pass", "evaluating", N),
    ]


def test_wrong_width():
    """Refused before anything is computed."""
    with pytest.raises(ValueError, match="expecting 3 features"):
        next(MODELS["one"]().predict_blocks(X[:, :2]))
