"""NystroemFeatures and landmarks= as a user meets them: against dense kernels and scikit-learn."""

from __future__ import annotations

import re

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from scipy.linalg import subspace_angles
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge

import dkl
from dkl.features.landmark_weights import Far, Leverage
from dkl.features.nystroem import NystroemMap
from dkl.features.stored import restore_map, store_map
from dkl.kernels import KERNELS, is_for_histograms
from dkl.solvers.whiten import whitening

RNG = np.random.default_rng(2)
X = np.abs(RNG.standard_normal((400, 6)))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
SCHEMES = ("uniform", "kmeans++", "leverage")


def fitted(rows=X, **options):
    """Features of 40 landmarks."""
    return dkl.NystroemFeatures(**{"n_components": 40, "random_state": 0, "verbose": 0} | options).fit(rows)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_exact_at_the_landmarks(kernel):
    """phi(x)'phi(l) = k(x, l) for every row x and landmark l; elsewhere |phi| <= 1."""
    model = fitted(kernel=kernel, groups="each", sigma=np.linspace(0.3, 1, 6))
    at, Phi = model.landmark_rows_, model.transform(X)
    assert len(set(at)) == 40
    np.testing.assert_allclose(Phi @ Phi[at].T, model.kernel_matrix(X, X[at], exact=True), atol=1e-8)
    np.testing.assert_allclose(model.kernel_matrix(X), Phi @ Phi.T, atol=1e-12)
    assert (np.square(Phi).sum(axis=1) <= 1 + 1e-8).all()


def test_scikit_learns_features():
    """With its landmarks, Nystroem has the same products."""
    model = fitted(sigma=0.7)
    theirs = Nystroem(gamma=0.7**2 / 2, n_components=40)
    Phi = theirs.fit(X[model.landmark_rows_]).transform(X)
    np.testing.assert_allclose(model.transform(X) @ model.transform(X).T, Phi @ Phi.T, atol=1e-7)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_kind_of_rows(scheme, tmp_path):
    """Dask of any chunks, Zarr, xarray and csr draw the rows that numpy draws (400 rows are one block of a pass)."""
    model = fitted(landmarks=scheme)
    expected = model.transform(X)
    zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(64, 6))
    labelled = xr.DataArray(X, dims=("row", "input"), coords={"row": np.arange(400)})
    for rows in (da.from_array(X, (400, -1)), str(tmp_path / "x.zarr"), labelled, sp.csr_array(X)):
        again = fitted(rows, landmarks=scheme)
        np.testing.assert_array_equal(again.landmark_rows_, model.landmark_rows_)
        np.testing.assert_allclose(np.asarray(again.transform(rows)), expected, atol=1e-8)
    assert again.transform(X).shape == (400, 40)
    assert fitted(labelled).transform(labelled).dims == ("row", "component")


@pytest.mark.parametrize("chunk", [1, 7, 64, 400])
def test_uniform_landmarks_do_not_depend_on_chunks(chunk):
    """A hash of the row number draws them."""
    rows = da.from_array(X, (chunk, -1))
    np.testing.assert_array_equal(fitted(rows, sigma=1.0).landmark_rows_, fitted(sigma=1.0).landmark_rows_)


def test_far_landmarks_find_rare_rows():
    """Twelve rows of 2000 lie far away, each by itself: kmeans++ takes all, a uniform draw hardly any."""
    rows = RNG.standard_normal((2000, 4)) * 0.05
    rare = np.arange(3, 2000, 167)
    rows[rare] = 10 * np.eye(4)[RNG.integers(4, size=len(rare))] * RNG.choice([-1, 1], (len(rare), 1)) + np.arange(
        len(rare)
    ).reshape(-1, 1)
    taken = [np.isin(rare, fitted(rows, landmarks=name, sigma=1.0).landmark_rows_).sum() for name in SCHEMES]
    assert taken[1] == len(rare)
    assert taken[2] >= 0.75 * len(rare)
    assert taken[0] <= 3


@pytest.mark.parametrize("scheme", ["kmeans++", "leverage"])
def test_better_than_uniform(scheme):
    """Spectral error of the kernel matrix of digits, mean over five draws."""
    rows = load_digits().data[:600] / 16

    def error(name):
        models = [fitted(rows, landmarks=name, n_components=100, random_state=seed) for seed in range(5)]
        exact = models[0].kernel_matrix(rows, exact=True)
        return np.mean([np.linalg.norm(exact - model.kernel_matrix(rows), 2) for model in models])

    assert error(scheme) < 0.95 * error("uniform")


@pytest.mark.parametrize("count", [10, 60])
def test_leverage_is_that_of_the_dense_kernel(count):
    """diag K^ (K^ + lam I)^-1 and what K^ = Phi Phi' misses; with all rows as pilot, the leverage of K itself."""
    kernel, sigma, lam, rows = KERNELS["laplacian"], np.full(6, 0.4), 0.3, X[:60]
    K = np.exp(-cdist(0.4 * rows, 0.4 * rows, "cityblock"))
    V = whitening(K[:count, :count], False)
    pilot = NystroemMap(kernel, sigma, rows[:count], V, np.arange(count), 1.0, True).at(np.float64)
    Phi = pilot.transform(rows)
    values, vectors = np.linalg.eigh(Phi.T @ Phi)
    found = Leverage(pilot, vectors / np.sqrt(values + lam), lam)(pilot.prepare(rows))
    seen = K[:, :count] @ np.linalg.solve(K[:count, :count], K[:count])
    expected = np.diag(seen @ np.linalg.inv(seen + lam * np.eye(60))) + (1 - np.diag(seen)) / lam
    np.testing.assert_allclose(found, expected, atol=1e-8)
    if count == 60:
        np.testing.assert_allclose(found, np.diag(K @ np.linalg.inv(K + lam * np.eye(60))), atol=1e-8)


def test_far_is_the_distance_in_feature_space():
    """|phi(x) - phi(l)|^2 / 2 of the nearest landmark, from the dense kernel; zero at a landmark."""
    model = fitted(kernel="matern32", sigma=0.8)
    far = Far(KERNELS["matern32"], model.sigma_, model.features_.landmarks)(X)
    K = model.kernel_matrix(X, X[model.landmark_rows_], exact=True)
    np.testing.assert_allclose(far, (2 - 2 * K).min(axis=1) / 2, atol=1e-12)
    assert (far[model.landmark_rows_] == 0).all()


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_float32_is_near(kernel):
    """Features of float32 rows, far apart too, have the products of the exact kernel at the landmarks within 1e-3."""
    rows = np.vstack([X[:200], X[200:] + (0 if is_for_histograms(kernel) else 100)]).astype(np.float32)
    model = fitted(rows, kernel=kernel, sigma=0.7)
    Phi, at = model.transform(rows), model.landmark_rows_
    assert Phi.dtype == np.float32
    exact = model.kernel_matrix(rows, rows[at], exact=True)
    np.testing.assert_allclose(Phi @ Phi[at].T, exact, atol=1e-3)
    assert np.square(Phi).sum(axis=1).max() < 1.001


def test_a_fit_keeps_its_precision():
    """Directions that only float64 can tell from rounding, kept in a fit to float64 rows, are used for float32 ones."""
    rows = np.random.default_rng(1).standard_normal((600, 3))
    model = fitted(rows, n_components=400, sigma=0.3)
    wide, narrow = model.transform(rows), model.transform(rows.astype(np.float32))
    assert narrow.dtype == np.float32
    weights = Ridge(alpha=1e-6).fit(wide, np.sin(rows.sum(axis=1)))
    np.testing.assert_allclose(weights.predict(narrow), weights.predict(wide), atol=1e-2)
    axes = dkl.FeaturePCA(dkl.NystroemFeatures(n_components=400, sigma=0.3, random_state=0), 50, verbose=0).fit(rows)
    np.testing.assert_allclose(axes.transform(rows.astype(np.float32)), axes.transform(rows), atol=1e-4)


def test_values_that_overflow_are_refused():
    """Rows so large that squared distances are infinite."""
    with pytest.raises(ValueError, match=r"the kernel value of rows \d+ and \d+ is (nan|inf); scale the inputs"):
        fitted(X * 1e200, sigma=1.0)


def test_tiny_weights_are_weights():
    """Chances are proportional to weights of any size."""
    model = dkl.NystroemFeatures(n_components=40, sigma=1.0, random_state=0, verbose=0)
    small = clone(model).fit(X, sample_weight=np.full(400, 1e-310))
    np.testing.assert_array_equal(small.landmark_rows_, model.fit(X).landmark_rows_)


def test_rows_that_add_nothing():
    """The same row many times is one direction; n_components above the number of rows warns and takes all."""
    assert fitted(np.repeat(X[:7], 30, axis=0), n_components=200, sigma=1.0).transform(X).shape == (400, 7)
    with pytest.warns(UserWarning, match="n_components=40, but X gives 12 landmarks"):
        model = fitted(X[:12], sigma=0.5)
    np.testing.assert_allclose(model.kernel_matrix(X[:12]), model.kernel_matrix(X[:12], exact=True), atol=1e-8)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_without_weight_are_no_rows(scheme):
    """Their values change nothing, and none of them becomes a landmark."""
    weight = (np.arange(400) % 3 > 0).astype(float)
    other = np.where(weight[:, None] > 0, X, 50 + X)
    model = dkl.NystroemFeatures(n_components=40, landmarks=scheme, random_state=0, verbose=0)
    one, two = (clone(model).fit(rows, sample_weight=weight) for rows in (X, other))
    np.testing.assert_array_equal(one.landmark_rows_, two.landmark_rows_)
    np.testing.assert_array_equal(one.features_.whitening, two.features_.whitening)
    assert (weight[one.landmark_rows_] > 0).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_estimators_are_ridge_of_the_features(scheme):
    """Weights of scikit-learn's Ridge on the same features; cv, reduce and saving as for Fourier features."""
    options = {"n_components": 40, "landmarks": scheme, "random_state": 0, "verbose": 0}
    model = dkl.SingleKernelRegressor(alpha=0.01, **options).fit(X, Y)
    Phi = model.features_.at(np.float64).transform(X)
    np.testing.assert_allclose(model.coef_, Ridge(alpha=0.01).fit(Phi, Y).coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), Ridge(alpha=0.01).fit(Phi, Y).predict(Phi), atol=1e-8)
    chosen = dkl.SingleKernelRegressor(alpha=[1e-4, 100.0], cv=3, **options).fit(X, Y)
    np.testing.assert_array_equal(chosen.features_.numbers, model.features_.numbers)
    assert chosen.alpha_ < 100
    np.testing.assert_allclose(chosen.predict(X), Ridge(alpha=chosen.alpha_).fit(Phi, Y).predict(Phi), atol=1e-7)


def test_reduce_is_ridge_on_axes():
    """scikit-learn's PCA of the features, then Ridge."""
    model = dkl.SingleKernelRegressor(n_components=40, landmarks="uniform", reduce=9, alpha=0.01, random_state=0)
    model.set_params(verbose=0).fit(X, Y)
    Phi = model.features_.at(np.float64).transform(X)
    Z = PCA(9).fit_transform(Phi)
    np.testing.assert_allclose(model.predict(X), Ridge(alpha=0.01).fit(Z, Y).predict(Z), atol=1e-7)


def test_axes_of_the_features():
    """FeaturePCA of Nystroem features: kernel PCA on the landmarks' span; channels have landmarks of their own."""
    model = dkl.FeaturePCA(dkl.NystroemFeatures(n_components=40, random_state=0), 5, verbose=0).fit(X)
    Phi = model.features_.at(np.float64).transform(X)
    assert subspace_angles(model.components_.T, PCA(5).fit(Phi).components_.T).max() < 1e-6
    own = dkl.NystroemFeatures(n_components=20, random_state=0)
    two = dkl.FeaturePCA(own, 30, channels=[0, 0, 0, 1, 1, 1], per_channel=20, verbose=0).fit(X)
    both = np.hstack([one.of.at(np.float64).transform(X[:, one.inputs]) for one in two.features_.channels])
    assert subspace_angles(two.components_.T, PCA(30).fit(both).components_.T).max() < 1e-6


@pytest.mark.parametrize(
    "model",
    [
        dkl.NystroemFeatures("exp_chi2", 30, landmarks="leverage", random_state=0, verbose=0),
        dkl.SingleKernelRegressor("matern32", 30, landmarks="kmeans++", random_state=0, verbose=0),
        dkl.FeaturePCA(dkl.NystroemFeatures(n_components=30, random_state=0), 4, verbose=0),
    ],
)
def test_saved_and_loaded(model, tmp_path):
    """The same answers, bit for bit, and the same landmarks."""
    model.fit(X, Y)
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    answer = "predict" if hasattr(model, "predict") else "transform"
    np.testing.assert_array_equal(getattr(again, answer)(X), getattr(model, answer)(X))
    np.testing.assert_array_equal(again.features_.numbers, model.features_.numbers)
    assert {k: str(v) for k, v in again.get_params().items()} == {k: str(v) for k, v in model.get_params().items()}


def test_a_map_in_parts_is_refused():
    """Arrays that do not belong together."""
    about, arrays = store_map(fitted().features_)
    params, plain = fitted().get_params(), {name: array for name, (_, array) in arrays.items()}
    np.testing.assert_array_equal(restore_map(about, plain, params).whitening, plain["whitening"])
    for name, wrong in (("whitening", np.eye(3)), ("landmarks", X[:40, :2]), ("landmark_rows", np.arange(3))):
        with pytest.raises(ValueError, match=f"{name} .*"):
            restore_map(about, plain | {name: wrong}, params)


def test_resumed_with_the_same_landmarks(tmp_path):
    """A fit goes on from its checkpoint with the map that it drew, also without a seed."""
    rows = da.from_array(X, (50, -1))
    options = {"n_components": 40, "landmarks": "leverage", "alpha": 0.1, "verbose": 0}
    first = dkl.SingleKernelRegressor(checkpoint=str(tmp_path / "c"), **options).fit(rows, Y)
    second = dkl.SingleKernelRegressor(checkpoint=str(tmp_path / "c"), **options).fit(rows, Y, resume=True)
    np.testing.assert_array_equal(first.features_.numbers, second.features_.numbers)
    np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"landmarks": "kmeans"}, "landmarks='kmeans' is not known; did you mean 'kmeans++'?"),
        ({"n_components": 0}, "n_components=0 must be a whole number"),
        ({"kernel": "gauss"}, "kernel='gauss' is not known; did you mean 'gaussian'"),
        ({"sigma": -1.0}, "sigma contains -1.0"),
        ({"place": "moon"}, "place='moon' is not known"),
        ({"dtype": "float16"}, "float16"),
    ],
)
def test_refused(options, sentence):
    """One line that shows the value."""
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fitted(**options)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bad_rows_are_named(scheme):
    """NaN in a lazy block, and a negative entry of a histogram, by row and column; no weight at all."""
    dirty = X.copy()
    dirty[130, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 130, column 2"):
        fitted(da.from_array(dirty, (50, -1)), landmarks=scheme, sigma=1.0)
    with pytest.raises(ValueError, match="Negative values in data: X contains -1 at row 130, column 2"):
        fitted(da.from_array(np.where(np.isnan(dirty), -1, dirty), (50, -1)), kernel="exp_chi2", landmarks=scheme)
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        dkl.NystroemFeatures(landmarks=scheme, sigma=1.0, verbose=0).fit(X, sample_weight=np.zeros(400))


def test_landmarks_do_not_learn():
    """learn= moves frequencies; pictures of them are refused too."""
    with pytest.raises(ValueError, match="learn='cv' moves frequencies, and landmarks='uniform' has none"):
        dkl.SingleKernelRegressor(learn="cv", landmarks="uniform").fit(X, Y)
    model = dkl.SingleKernelRegressor(n_components=20, landmarks="uniform", verbose=0).fit(X, Y)
    with pytest.raises(ValueError, match="landmarks='uniform' has no frequencies to draw"):
        dkl.plot.plot_spectrum(model)


def test_plan_counts_landmarks():
    """More landmarks need more memory and flops; what cannot fit is refused before any row is read."""
    small, large = (dkl.plan(X, dkl.SingleKernelRegressor(n_components=d, landmarks="uniform"), Y) for d in (100, 2000))
    assert large.worker_bytes > small.worker_bytes
    assert large.flops > small.flops
    with pytest.raises(MemoryError, match="use fewer components"):
        fitted(da.zeros((1_000_000, 6), chunks=(1000, 6)), n_components=500_000)


def test_plan_of_the_transformer():
    """Its bytes are those that fit is held to; what no rows could make right is refused by its name."""
    small, large = (dkl.plan(X, dkl.NystroemFeatures(n_components=d)) for d in (100, 2000))
    assert large.worker_bytes > small.worker_bytes
    assert large.solve_bytes > small.solve_bytes + 8 * 2000**2
    assert large.solve_seconds > 10 * small.solve_seconds
    assert "2,000 features" in str(large)
    huge = dkl.plan(da.zeros((1_000_000, 6), chunks=(1000, 6)), dkl.NystroemFeatures(n_components=500_000))
    assert not huge.fits
    with pytest.raises(ValueError, match="landmarks='corners'"):
        dkl.plan(X, dkl.NystroemFeatures(landmarks="corners"))
    with pytest.raises(TypeError, match=r"plan takes a SingleKernelRegressor, .* got Chi2Features"):
        dkl.plan(X, dkl.Chi2Features())
