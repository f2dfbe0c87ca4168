"""Sparse rows in Zarr against the scipy matrix they were made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

import dkl
from dkl.engine.row_readers import ZarrColumn
from dkl.engine.sparse import SparseRows, is_sparse_group
from tests.engine.conftest import assert_same_bits, embedded, learned
from tests.store.made import ingest

RNG = np.random.default_rng(0)
N, M = 6000, 50
X = sp.csr_array(sp.random(N, M, 0.08, format="csr", random_state=0))
Y = np.asarray(X.sum(axis=1)).ravel() + 0.1 * RNG.normal(size=N)
CODE = (np.asarray(X[:, :9].sum(axis=1)).ravel() > 0.3).astype(int)
OPTIONS = {"n_components": 30, "sigma": 0.8, "random_state": 0, "verbose": 0}


def write(path, matrix, block_rows=None):
    """A group in the layout of a data set, cut by rows as asked."""
    group = zarr.open_group(str(path), mode="w")
    inner = group.create_group("X")
    about = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": list(matrix.shape)}
    inner.attrs.put(about | ({"block_rows": block_rows} if block_rows else {}))
    for name, array in (("data", matrix.data), ("indices", matrix.indices), ("indptr", matrix.indptr)):
        inner.create_array(name, data=array, chunks=(max(1, min(3997, len(array))),))
    return SparseRows(zarr.open(str(path), mode="r")["X"])


def assert_equal(found, wanted):
    """The same csr block."""
    wanted = wanted.tocsr()
    assert found.shape == wanted.shape
    assert found.format == "csr"
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.toarray(), wanted.toarray())


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """X in Zarr."""
    return write(tmp_path_factory.mktemp("sparse") / "x.zarr", X, 500)


@given(st.integers(-N - 5, N + 5) | st.none(), st.integers(-N - 5, N + 5) | st.none())
@settings(max_examples=30, deadline=None)
def test_slices(stored, start, stop):
    """Every slice that scipy has, empty ones too."""
    assert_equal(stored[start:stop], X[slice(start, stop)])


def test_what_it_looks_like(stored):
    """Shape, dtype, chunks, bytes; a step is refused."""
    assert stored.shape == X.shape
    assert stored.dtype == X.dtype
    assert stored.chunks == (500, M)
    assert stored.shards is None
    assert stored.row_bytes >= (X.data.nbytes + X.indices.nbytes) / N
    assert_equal(stored[10:20, :], X[10:20])
    with pytest.raises(IndexError, match="step"):
        stored[::2]


def test_awkward_matrices(tmp_path):
    """No entry at all, one row, empty rows at the ends, one column."""
    for i, matrix in enumerate((sp.csr_array((5, 3)), sp.csr_array([[0, 2.0]]), sp.csr_array([[0.0], [1], [0]]))):
        rows = write(tmp_path / f"{i}.zarr", matrix)
        assert_equal(rows[:], matrix)
        assert_equal(rows[:1], matrix[:1])
        assert rows.row_bytes > 0


def test_damaged_groups(tmp_path):
    """Arrays that do not belong together."""
    write(tmp_path / "a.zarr", X[:100])
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="r+")["X"]
    assert is_sparse_group(group)
    for shape in (None, [99, M], [100], "x"):
        group.attrs["shape"] = shape
        with pytest.raises(ValueError, match="damaged"):
            SparseRows(group)
    group.attrs["encoding-type"] = "csc_matrix"
    assert not is_sparse_group(group)
    with pytest.raises(ValueError, match="group"):
        dkl.SingleKernelRegressor(**OPTIONS).fit(str(tmp_path / "a.zarr"), Y[:100])


def test_it_travels_as_its_address(stored):
    """A worker opens it again."""
    sent = pickle.dumps(ZarrColumn(stored))
    assert len(sent) < 2000
    assert_equal(pickle.loads(sent).read(700, 900), X[700:900])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data set of each target, sparse, in float64."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkl.store.dataset.SMALLEST", 8 * 40_000)
        for name, y in (("y", Y), ("code", CODE)):
            dump_svmlight_file(X, y, str(folder / f"{name}.svm"), zero_based=True)
            task = {"y": "regression", "code": "classification"}[name]
            how = {"layout": "sparse", "dtype": "float64", "task": task, "format": "svmlight"}
            made = ingest(folder / f"{name}.svm", folder / f"{name}.zarr", **how)
    assert isinstance(made["X"], zarr.Group)
    assert SparseRows(made["X"]).chunks[0] < N / 3
    return folder


def as_read(path):
    """The matrix of a data set, in memory."""
    g = zarr.open(str(path), mode="r")["X"]
    return sp.csr_array((g["data"][:], g["indices"][:], g["indptr"][:]), shape=tuple(g.attrs["shape"]))


def check(folder):
    """fit, predict, decision_function, transform, plan, evaluate from the path equal those from memory."""
    path, memory = str(folder / "y.zarr"), as_read(folder / "y.zarr")
    y = zarr.open(path, mode="r")["y"][:]
    np.testing.assert_allclose(y, Y)
    stored, here = (dkl.SingleKernelRegressor(**OPTIONS).fit(*a) for a in ((path,), (memory, y)))
    np.testing.assert_allclose(stored.coef_, here.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(stored.predict(path).compute(), here.predict(memory), rtol=1e-10, atol=1e-11)
    assert stored.score(path) == pytest.approx(here.score(memory, y), rel=1e-9)
    path, code = str(folder / "code.zarr"), zarr.open(str(folder / "code.zarr"), mode="r")["y"][:]
    np.testing.assert_array_equal(code, CODE)
    stored, here = (dkl.SingleKernelClassifier(**OPTIONS).fit(*a) for a in ((path,), (memory, code)))
    scores = here.decision_function(memory)
    np.testing.assert_allclose(stored.decision_function(path).compute(), scores, rtol=1e-9, atol=1e-10)
    sure = np.abs(scores) > 1e-9
    np.testing.assert_array_equal(stored.predict(path).compute()[sure], here.predict(memory)[sure])
    blocks = list(stored.predict_blocks(path))
    np.testing.assert_array_equal(np.concatenate([b[1] for b in blocks])[sure], here.predict(memory)[sure])
    assert stored.evaluate(path)["accuracy"] == pytest.approx(here.evaluate(memory, code)["accuracy"])
    features = [dkl.FourierFeatures(n_components=8, sigma=0.5, random_state=0).fit(rows) for rows in (path, memory)]
    np.testing.assert_allclose(features[0].transform(path).compute(), features[1].transform(memory), atol=1e-12)
    plans = [dkl.SingleKernelClassifier(**OPTIONS).plan(rows, calibrate=False) for rows in (path, memory)]
    assert plans[0].sizes.rows == plans[1].sizes.rows == N
    assert plans[0].sizes.inputs == plans[1].sizes.inputs == M
    assert abs(plans[0].sizes.row_bytes - plans[1].sizes.row_bytes) <= 16
    return learned(stored)


def test_embedded(data):
    """In this process."""
    check(data)


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_on_a_cluster(data, pair):
    """On two workers, with the same bits as here."""
    with embedded():
        wanted = check(data)
    assert_same_bits(check(data), wanted)


def test_cross_validation_and_weights(data):
    """Blocks are cut into folds by row."""
    path, memory = str(data / "y.zarr"), as_read(data / "y.zarr")
    y, weight = zarr.open(path, mode="r")["y"][:], RNG.random(N)
    options = OPTIONS | {"cv": 3, "alpha": [0.1, 1.0, 10.0]}
    stored, here = (dkl.SingleKernelRegressor(**options).fit(*a, sample_weight=weight) for a in ((path,), (memory, y)))
    assert stored.alpha_ == here.alpha_
    np.testing.assert_allclose(stored.coef_, here.coef_, rtol=1e-9, atol=1e-11)
    for name, column in here.cv_results_.items():
        np.testing.assert_allclose(stored.cv_results_[name], column, rtol=1e-9)
