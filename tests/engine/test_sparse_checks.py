"""Sparse rows whose arrays lead outside: refused with the row, in a process that lives on."""

from __future__ import annotations

import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import dkl
from dkl.features.rows import finite_inputs
from dkl.features.sparse import as_csr
from tests.engine.test_sparse import write

N, M = 300, 50
OPTIONS = {"n_components": 20, "sigma": 0.8, "random_state": 0, "verbose": 0}


def matrix(format="csr"):
    """A fresh matrix that may be spoilt."""
    return sp.random_array((N, M), density=0.1, format=format, rng=np.random.default_rng(0))


def outside(X):
    """A column that is not there, in row 7."""
    X.indices[X.indptr[7]] = 5000


def negative(X):
    """A column before the first, in row 7."""
    X.indices[X.indptr[7]] = -3


def falling(X):
    """Row 7 ends before it begins."""
    X.indptr[8] = X.indptr[7] - 2


def beyond(X):
    """Row 7, and those after it, reach beyond the last value."""
    X.indptr[8:] = X.nnz + 10**6


SPOILT = [outside, negative, falling, beyond]
Y = np.arange(N) % 2


def uses(X):
    """Every way from a sparse matrix to a number."""
    good = matrix()
    fitted = dkl.SingleKernelClassifier(**OPTIONS).fit(good, Y)
    chi2 = dkl.Chi2Features().fit(good)
    fourier = dkl.FourierFeatures(n_components=8).fit(good)
    return {
        "fit": lambda: dkl.SingleKernelClassifier(**OPTIONS).fit(X, Y),
        "predict": lambda: fitted.predict(X),
        "evaluate": lambda: fitted.evaluate(X, Y),
        "transform": lambda: fourier.transform(X),
        "chi2": lambda: chi2.transform(X),
        "chi2 fit": lambda: dkl.Chi2Features().fit(X),
        "pca": lambda: dkl.FeaturePCA(dkl.FourierFeatures(n_components=8), n_components=2).fit(X),
        "nystroem": lambda: dkl.NystroemFeatures(n_components=8).fit(X),
    }


@pytest.mark.parametrize("spoil", SPOILT)
def test_in_memory(spoil):
    """Row 7 is named, by every estimator."""
    X = matrix()
    spoil(X)
    for name, use in uses(X).items():
        with pytest.raises(ValueError, match="row 7 of X"):
            pytest.fail(f"{name}: {use()}")


def blocks(X):
    """A Dask array of sparse blocks of 100 rows, the second of which is X."""
    good = matrix()[:100]

    def block(block_id=None):
        return X if block_id[0] == 1 else good

    return da.map_blocks(block, chunks=((100, 100, 100), (M,)), dtype=float, meta=sp.csr_array((0, M)))


@pytest.mark.parametrize("spoil", SPOILT)
def test_in_dask_blocks(spoil):
    """Row 107 of all is row 7 of its block."""
    X = matrix()[:100]
    spoil(X)
    rows = blocks(X)
    fitted = dkl.SingleKernelClassifier(**OPTIONS).fit(matrix(), Y)
    y = da.from_array(Y, chunks=100)
    with pytest.raises(ValueError, match="row 107 of X"):
        dkl.SingleKernelClassifier(**OPTIONS).fit(rows, y)
    with pytest.raises(ValueError, match="row 107 of X"):
        list(fitted.predict_blocks(rows))
    with pytest.raises(ValueError, match=r"row 7 of X|index pointer"):  # scipy's own, of what it notices itself
        fitted.predict(rows).compute()


@pytest.mark.parametrize("spoil", SPOILT)
def test_in_zarr(tmp_path, spoil):
    """The row of the data, from whatever block; ingest refuses it too."""
    write(tmp_path / "x.zarr", matrix(), 100)
    X = matrix()
    spoil(X)
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="r+")
    group["X"]["indices"][:], group["X"]["indptr"][:] = X.indices, X.indptr
    group.create_array("y", data=Y)
    fitted = dkl.SingleKernelClassifier(**OPTIONS).fit(matrix(), Y)
    path = str(tmp_path / "x.zarr")
    for use in (
        lambda: dkl.SingleKernelClassifier(**OPTIONS).fit(path),
        lambda: fitted.predict(path).compute(),
        lambda: list(fitted.predict_blocks(path)),
        lambda: fitted.evaluate(path),
    ):
        with pytest.raises(ValueError, match=r"x\.zarr/X is damaged: row (7|100|200) "):
            pytest.fail(str(use()))
    with pytest.raises(ValueError, match=r"x\.zarr.* is damaged"):
        dkl.ingest(path, tmp_path / "d.zarr", verbose=0)


@pytest.mark.parametrize("format", ["csc", "bsr", "coo", "lil", "dok"])
def test_other_formats(format):
    """Sound ones give the same matrix; spoilt ones are refused before they are converted."""
    X = matrix(format)
    np.testing.assert_array_equal(as_csr(X).toarray(), matrix().toarray())
    X = matrix(format)
    if format == "lil":
        X.rows[7] = [5000]
        X.data[7] = [1.0]
    elif format == "dok":
        X._dict[(7, 5000)] = 1.0
    elif format == "coo":
        X.col[3] = 5000
    else:
        X.indices[0] = 5000
    with pytest.raises(ValueError, match="5000"):
        as_csr(X)
    with pytest.raises(ValueError, match="5000"):
        dkl.SingleKernelClassifier(**OPTIONS).fit(X, Y)


def test_a_column_twice_is_added():
    """As scipy adds them, though it may have noted before that there was none."""
    X = matrix()
    assert X.has_canonical_format
    row = int(np.argmax(np.diff(X.indptr) >= 2))
    X.indices[X.indptr[row] + 1] = X.indices[X.indptr[row]]
    wanted = np.zeros(X.shape)
    for i in range(N):
        for k in range(X.indptr[i], X.indptr[i + 1]):
            wanted[i, X.indices[k]] += X.data[k]
    found = finite_inputs(X, np.dtype(float))
    assert found.nnz == X.nnz - 1
    np.testing.assert_array_equal(found.toarray(), wanted)


def test_no_process_dies():
    """Indices that lead far away, in a process of their own: it ends with sentences, not with a signal."""
    code = """
import numpy as np, scipy.sparse as sp, dkl
X = sp.random_array((300, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
m = dkl.SingleKernelClassifier(n_components=20, sigma=0.8, verbose=0).fit(X, np.arange(300) % 2)
spoilt = (("indices", 5, 2**30), ("indptr", 9, 2**30), ("indptr", 300, 2**31 - 1), ("indptr", 0, -(2**31)))
for name, place, value in spoilt:
    bad = X.copy()
    getattr(bad, name)[place] = value
    for call in (lambda: m.fit(bad, np.arange(300) % 2), lambda: m.predict(bad)):
        try:
            call()
        except ValueError as error:
            print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 8
    assert all("row " in line for line in ran.stdout.splitlines())
