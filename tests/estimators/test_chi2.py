"""Chi2Features as a user meets it: accuracy, every kind of rows, clusters of blocks, refusals."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.metrics.pairwise import additive_chi2_kernel

import dkl

HISTOGRAMS = np.random.default_rng(5).dirichlet(np.full(64, 0.25), 400)
A, B = HISTOGRAMS[:200], HISTOGRAMS[200:]


def error(model):
    """Mean absolute error of the kernel between two halves, by scikit-learn's exact one (rows sum to one)."""
    exact = 1 + additive_chi2_kernel(A, B) / 2
    return np.abs(model.transform(A) @ model.transform(B).T - exact).mean()


@pytest.mark.parametrize(
    ("method", "n_terms", "most"),
    [
        ("direct", 3, 3e-3), ("direct", 5, 3e-4), ("direct", 9, 2e-5), ("greedy", 5, 1e-2), ("zolotarev", 9, 5e-4),
        ("chebyshev", 5, 4e-3), ("homogeneous", 5, 3e-3), ("homogeneous", 9, 6e-4),
    ],
)  # fmt: skip
def test_errors_of_the_methods(method, n_terms, most):
    """Within the design's table, and (direct) far below scikit-learn's at as many terms."""
    found = error(dkl.Chi2Features(method, n_terms, verbose=0).fit(HISTOGRAMS))
    assert found < most
    if (method, n_terms) == ("direct", 5):
        assert found < error(AdditiveChi2Sampler(sample_steps=3).fit(HISTOGRAMS)) / 10


def test_every_kind_of_rows_gives_the_same(tmp_path):
    """numpy, Dask of any chunks, Zarr, xarray and csr: the same nodes, the same numbers."""
    X = np.where(HISTOGRAMS > 0.01, HISTOGRAMS, 0.0)
    model = dkl.Chi2Features(verbose=0).fit(X)
    expected = model.transform(X)
    zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(64, 64))
    labelled = xr.DataArray(X, dims=("image", "bin"), coords={"image": np.arange(400)})
    for rows in (da.from_array(X, (37, -1)), da.from_array(X, (400, -1)), str(tmp_path / "x.zarr"), labelled):
        again = dkl.Chi2Features(verbose=0).fit(rows)
        np.testing.assert_array_equal(again.additive_.nodes, model.additive_.nodes)
        np.testing.assert_array_equal(np.asarray(again.transform(rows)), expected)
    assert again.transform(labelled).dims == ("image", "component")
    sparse = dkl.Chi2Features(verbose=0).fit(sp.csr_array(X))
    np.testing.assert_array_equal(sparse.additive_.nodes, model.additive_.nodes)
    lifted = sparse.transform(sp.csr_array(X))
    assert lifted.nnz == 5 * np.count_nonzero(X)
    np.testing.assert_array_equal(lifted.toarray(), expected)
    lazy = da.from_array(X, (100, -1)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))
    blocks = dkl.Chi2Features(verbose=0).fit(lazy).transform(lazy)
    assert blocks.shape == (400, 320)
    first = blocks.blocks[0].compute()
    assert sp.issparse(first)
    np.testing.assert_array_equal(first.toarray(), expected[:100])


def test_units_of_the_entries_do_not_matter():
    """Counts instead of shares: the nodes are in the units of x, and Phi grows by the root."""
    one, many = (dkl.Chi2Features(verbose=0).fit(c * HISTOGRAMS) for c in (1.0, 1024.0))
    np.testing.assert_allclose(many.transform(1024 * A), 32 * one.transform(A), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", ["intersection", "jensen_shannon"])
def test_other_kernels(kernel):
    """Their error falls with the number of terms, and exact=True is the kernel."""
    models = [dkl.Chi2Features("homogeneous", n, kernel=kernel, verbose=0).fit(HISTOGRAMS) for n in (1, 5, 15)]
    exact = models[0].kernel_matrix(A, B, exact=True)
    if kernel == "intersection":
        np.testing.assert_allclose(exact, np.minimum(A[:, None], B[None]).sum(axis=2), atol=1e-12)
    errors = [np.abs(m.kernel_matrix(A, B) - exact).mean() for m in models]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]
    np.testing.assert_allclose(models[1].kernel_matrix(A, B), models[1].transform(A) @ models[1].transform(B).T)


def test_rows_of_zeros():
    """Nothing to fit to: features of zeros are zeros, others are still finite."""
    for method in ("direct", "greedy", "chebyshev", "homogeneous"):
        model = dkl.Chi2Features(method, 3, verbose=0).fit(np.zeros((5, 4)))
        assert not model.transform(np.zeros((2, 4))).any()
        assert np.isfinite(model.transform(np.ones((2, 4)))).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "direkt"}, "did you mean 'direct'"),
        ({"n_terms": 0}, "n_terms=0"),
        ({"n_terms": 2.5}, "n_terms=2.5"),
        ({"method": "homogeneous", "n_terms": 4}, "n_terms=4 .*use n_terms=5"),
        ({"kernel": "intersection"}, "method='homogeneous'"),
        ({"kernel": "chi3"}, "did you mean 'chi2'"),
        ({"window": "hann"}, "window='hann'"),
    ],
)
def test_options_that_are_refused(options, said):
    """One line that says what to type."""
    with pytest.raises(ValueError, match=said) as caught:
        dkl.Chi2Features(**options).fit(HISTOGRAMS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lazy", [False, True])
def test_negative_entries_are_named(lazy):
    """Row and column, at fit and at transform."""
    X = HISTOGRAMS.copy()
    X[123, 7] = -0.25
    rows = da.from_array(X, (50, -1)) if lazy else X
    with pytest.raises(ValueError, match=r"-0\.25 at row 123, column 7; Chi2Features is for histograms"):
        dkl.Chi2Features(verbose=0).fit(rows)
    model = dkl.Chi2Features("zolotarev", verbose=0).fit(HISTOGRAMS)
    with pytest.raises(ValueError, match=r"-0\.25 at row"):
        np.asarray(model.transform(rows))
