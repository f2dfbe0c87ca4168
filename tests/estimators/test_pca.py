"""Principal axes from sums against scikit-learn's PCA of stored features, and ridge on them against its pipeline."""

from __future__ import annotations

import re

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

import dkl
from dkl.engine import memory
from dkl.solvers.evidence import likely_rank

RNG = np.random.default_rng(4)
X = RNG.standard_normal((700, 5))
Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] * X[:, 3]]) + 0.1 * RNG.standard_normal((700, 2))
MAP = dkl.FourierFeatures(n_components=60, sigma=0.3, random_state=0, verbose=0)
PSI = MAP.fit(X).transform(X)


def fit(rows=X, count=12, **options):
    """A fitted FeaturePCA."""
    return dkl.FeaturePCA(MAP, count, verbose=0).fit(rows, **options)


def assert_same_axes(model, theirs, rows=PSI):
    """The same subspace, variances and mean; coordinates up to sign."""
    assert subspace_angles(model.components_.T, theirs.components_.T).max() < 1e-6
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(model.mean_, theirs.mean_, atol=1e-12)
    found = np.abs(theirs.transform(rows))
    np.testing.assert_allclose(np.abs(model.transform(X)), found, atol=1e-6)


def test_like_sklearn():
    """A number of axes."""
    assert_same_axes(fit(), PCA(12).fit(PSI))


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_share_of_the_variance(share):
    """As many axes as scikit-learn keeps."""
    theirs = PCA(share, svd_solver="full").fit(PSI)
    model = fit(count=share)
    assert model.n_components_ == theirs.n_components_
    assert_same_axes(model, theirs)


@pytest.mark.parametrize("n_features", [6, 20, 60])
def test_as_many_as_the_evidence_speaks_for(n_features):
    """The number that scikit-learn's PCA finds in the stored features."""
    features = dkl.FourierFeatures(n_components=n_features, sigma=0.8, random_state=1, verbose=0)
    theirs = PCA("mle").fit(features.fit(X).transform(X))
    model = dkl.FeaturePCA(features, "mle", verbose=0).fit(X)
    assert 1 <= model.n_components_ == theirs.n_components_
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-9)
    assert dkl.FeaturePCA(features, "mle", verbose=0).fit(X[:7]).n_components_ <= 6


def test_unlabelled_rows_shape_the_axes():
    """PCA of both sets together, with the map of the first."""
    more = 2 * RNG.standard_normal((300, 5)) + 1
    theirs, lazy = PCA(12).fit(np.vstack([PSI, MAP.transform(more)])), da.from_array(more, (100, -1))
    assert_same_axes(fit(X_unlabelled=more), theirs)
    assert_same_axes(fit(X_unlabelled=lazy), theirs)
    assert_same_axes(fit(da.from_array(X, (100, -1)), X_unlabelled=more), theirs)


def test_any_chunks_give_the_same():
    """Lazy rows, transformed lazily; float32 within its rounding."""
    expected = fit()
    for chunks in (100, 333, 700):
        model = fit(da.from_array(X, (chunks, -1)))
        np.testing.assert_allclose(np.abs(model.components_), np.abs(expected.components_), atol=1e-8)
        lazy = model.transform(da.from_array(X, (chunks, -1)))
        np.testing.assert_allclose(np.abs(lazy.compute()), np.abs(expected.transform(X)), atol=1e-8)
    narrow = dkl.FeaturePCA(MAP, 4, verbose=0).fit(X.astype(np.float32))
    assert narrow.transform(X.astype(np.float32)).dtype == np.float32
    assert subspace_angles(narrow.components_.T, expected.components_[:4].T).max() < 1e-3


def test_rounding_is_no_axis():
    """Features of rank two: axes beyond are not kept, whatever was asked for."""
    flat = np.repeat(RNG.standard_normal((3, 5)), 50, axis=0)
    assert fit(flat, 30).n_components_ == 2


def test_round_trip(tmp_path):
    """Saved and loaded, it gives the same bits."""
    model = fit()
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.features.get_params() == model.features.get_params()
    for name in ("mean_", "components_", "explained_variance_", "explained_variance_ratio_", "n_components_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "n_components=0"), (1.5, "n_components=1.5"), (61, "61 axes of 60 features"), ("mel", "did you mean 'mle'")],
)
def test_numbers_of_axes_that_are_refused(count, said):
    """One line."""
    with pytest.raises(ValueError, match=said):
        fit(count=count)
    with pytest.raises(ValueError, match=r"must be a dkl\.FourierFeatures"):
        dkl.FeaturePCA(PCA(2)).fit(X)


@pytest.mark.parametrize("reduce", [7, 0.8, "mle"])
def test_ridge_on_the_axes(reduce):
    """The predictions of PCA and Ridge one after the other; the weights are those of the features."""
    model = dkl.SingleKernelRegressor(n_components=60, sigma=0.3, alpha=0.7, reduce=reduce, random_state=0, verbose=0)
    model.fit(X, Y)
    stored = dkl.FourierFeatures(n_components=60, sigma=0.3, verbose=0).fit(X)
    stored.features_ = model.features_
    axes = PCA(reduce, svd_solver="full").fit(stored.transform(X))
    ridge = Ridge(alpha=0.7).fit(axes.transform(stored.transform(X)), Y)
    np.testing.assert_allclose(model.predict(X), ridge.predict(axes.transform(stored.transform(X))), atol=1e-8)
    assert model.reduced_["axes"] == axes.n_components_
    assert model.reduced_["share"] == pytest.approx(axes.explained_variance_ratio_.sum(), rel=1e-9)
    assert model.coef_.shape == (2, 60)


def test_rows_without_weight_are_no_evidence():
    """A row of weight zero counts neither in the sums nor as a row."""
    options = {"n_components": 60, "sigma": 0.8, "reduce": "mle", "alpha": 1.0, "random_state": 0, "verbose": 0}
    weight = np.r_[np.full(40, 1.0), np.zeros(660)]
    some = dkl.SingleKernelRegressor(**options).fit(X, Y, sample_weight=weight)
    alone = dkl.SingleKernelRegressor(**options).fit(X[:40], Y[:40])
    assert some.reduced_ == pytest.approx(alone.reduced_, rel=1e-9)
    assert some.reduced_["axes"] < dkl.SingleKernelRegressor(**options).fit(X, Y).reduced_["axes"]


def test_all_axes_are_plain_ridge():
    """Nothing is lost if nothing is left out."""
    options = {"n_components": 40, "alpha": 0.5, "random_state": 0, "verbose": 0}
    plain = dkl.SingleKernelRegressor(**options).fit(X, Y)
    with pytest.warns(UserWarning, match="reduce=40 keeps all of n_components=40 features, so it changes nothing"):
        whole = dkl.SingleKernelRegressor(reduce=40, **options).fit(X, Y)
    np.testing.assert_allclose(whole.predict(X), plain.predict(X), atol=1e-8)
    assert not hasattr(plain, "reduced_")


def test_axes_of_each_fold():
    """cv chooses alpha with the axes of the rows it trains on, as a pipeline in GridSearchCV would."""
    fold = np.arange(700) % 3
    alphas = [0.01, 1.0]
    model = dkl.SingleKernelRegressor(
        n_components=60, sigma=0.3, alpha=alphas, cv=fold, reduce=9, random_state=0, verbose=0
    ).fit(X, Y)
    stored = dkl.FourierFeatures(n_components=60, sigma=0.3, verbose=0).fit(X)
    stored.features_ = model.features_
    Psi = stored.transform(X)
    for i, alpha in enumerate(alphas):
        scores = []
        for k in range(3):
            axes = PCA(9).fit(Psi[fold != k])
            ridge = Ridge(alpha=alpha).fit(axes.transform(Psi[fold != k]), Y[fold != k])
            scores.append(-np.mean((ridge.predict(axes.transform(Psi[fold == k])) - Y[fold == k]) ** 2))
        assert model.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(scores), rel=1e-8)


def test_learned_then_reduced(tmp_path):
    """sigma is learned first; the model is saved with what was kept."""
    model = dkl.SingleKernelRegressor(
        n_components=80, learn="gcv", starts=1, reduce=0.9, random_state=0, verbose=0
    ).fit(X, Y[:, 0])
    assert 1 <= model.reduced_["axes"] < 80
    model.save(tmp_path / "m")
    assert dkl.load(tmp_path / "m").reduced_ == model.reduced_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reduce": 101}, "reduce=101 is more than n_components=100"),
        ({"reduce": 0}, "reduce=0"),
        ({"reduce": 2.5}, "reduce=2.5"),
        ({"reduce": "ml"}, "did you mean 'mle'"),
        ({"reduce": 5, "fit_intercept": False}, "needs fit_intercept=True"),
    ],
)
def test_reductions_that_are_refused(options, said):
    """One line."""
    with pytest.raises(ValueError, match=said):
        dkl.SingleKernelRegressor(n_components=100, verbose=0, **options).fit(X, Y)


HISTOGRAMS = np.where((H := RNG.dirichlet(np.full(16, 0.3), 500)) > 0.01, H, 0.0)


def fit_chi2(rows=HISTOGRAMS, method="direct", count=9, **options):
    """Axes of an additive map."""
    return dkl.FeaturePCA(dkl.Chi2Features(method, 3, verbose=0), count, verbose=0).fit(rows, **options)


@pytest.mark.parametrize("method", ["direct", "zolotarev", "chebyshev", "homogeneous"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e5])
def test_additive_features_like_sklearn(method, unit):
    """The same axes as those of the stored features, whatever the histograms add up to."""
    rows = unit * HISTOGRAMS
    Phi = dkl.Chi2Features(method, 3, verbose=0).fit(rows).transform(rows)
    model, theirs = fit_chi2(rows, method), PCA(9).fit(Phi)
    assert subspace_angles(model.components_.T, theirs.components_.T).max() < 1e-6
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(rows)), np.abs(theirs.transform(Phi)), atol=1e-6 * np.sqrt(unit))
    assert model.features_.largest == rows.max()


@pytest.mark.parametrize("method", ["direct", "zolotarev"])
def test_additive_features_of_every_kind_of_rows(method, tmp_path):
    """Dask in any chunks, Zarr, xarray, csr and lazy csr: the same axes; larger entries may come later."""
    expected = fit_chi2(method=method)
    coordinates = np.abs(expected.transform(HISTOGRAMS))
    path = str(tmp_path / "x.zarr")
    zarr.create_array(path, data=HISTOGRAMS, chunks=(64, 16))
    sparse = da.from_array(HISTOGRAMS, (100, -1)).map_blocks(csr_array, meta=csr_array((0, 0)))
    lazy = [da.from_array(HISTOGRAMS, (chunks, -1)) for chunks in (1, 7, 64, 500)]
    for rows in (*lazy, path, xr.DataArray(HISTOGRAMS, dims=("image", "bin")), csr_array(HISTOGRAMS), sparse):
        model = fit_chi2(rows, method)
        np.testing.assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-9)
        np.testing.assert_allclose(np.abs(np.asarray(model.transform(rows))), coordinates, atol=1e-8)
    assert model.n_features_in_ == 16
    assert np.isfinite(expected.transform(1e4 * HISTOGRAMS)).all()
    narrow = fit_chi2(HISTOGRAMS.astype(np.float32), method, 4)
    assert narrow.transform(HISTOGRAMS.astype(np.float32)).dtype == np.float32
    assert subspace_angles(narrow.components_.T, expected.components_[:4].T).max() < 1e-3


def test_additive_features_of_more_rows(tmp_path):
    """Unlabelled rows with larger entries than X has; saved and loaded, the same bits."""
    more = 50 * HISTOGRAMS[:200]
    Phi = dkl.Chi2Features("zolotarev", 3, verbose=0).fit(more)
    model = fit_chi2(method="zolotarev", X_unlabelled=more)
    theirs = PCA(9).fit(np.vstack([Phi.transform(HISTOGRAMS), Phi.transform(more)]))
    assert subspace_angles(model.components_.T, theirs.components_.T).max() < 1e-6
    assert model.features_.largest == more.max()
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(HISTOGRAMS), model.transform(HISTOGRAMS))
    assert again.features_.largest == more.max()
    assert again.features.get_params() == model.features.get_params()
    assert not hasattr(again, "sigma_")


@pytest.mark.parametrize("lazy", [False, True])
def test_bad_rows_are_called_by_their_name(lazy):
    """X_unlabelled is not X."""

    def rows(X):
        return da.from_array(X, (60, -1)) if lazy else X

    hole, low = HISTOGRAMS.copy(), HISTOGRAMS.copy()
    hole[73, 2], low[81, 5] = np.nan, -0.5
    with pytest.raises(ValueError, match=r"^X_unlabelled contains NaN at row 73, column 2"):
        fit(rows(HISTOGRAMS[:, :5]), X_unlabelled=rows(hole[:, :5]))
    with pytest.raises(ValueError, match=r"^X contains NaN at row 73, column 2"):
        fit(rows(hole[:, :5]), X_unlabelled=rows(HISTOGRAMS[:, :5]))
    for method in ("direct", "zolotarev"):
        with pytest.raises(ValueError, match=r"X_unlabelled contains -0\.5 at row 81, column 5; Chi2Features"):
            fit_chi2(rows(HISTOGRAMS), method, X_unlabelled=rows(low))
        with pytest.raises(ValueError, match=r"data: X contains -0\.5 at row 81, column 5; Chi2Features"):
            fit_chi2(rows(low), method)
    with pytest.raises(ValueError, match="49 axes of 48 features"):
        fit_chi2(count=49)


@pytest.mark.parametrize("features", [MAP, dkl.Chi2Features(n_terms=3, verbose=0)], ids=["fourier", "chi2"])
def test_axes_that_cannot_fit_are_refused(features, monkeypatch):
    """Both numbers and what to change, before anything is summed."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    with pytest.raises(MemoryError, match=r"would need .* but may use"):
        dkl.FeaturePCA(features, 3, verbose=0).fit(HISTOGRAMS)


@pytest.mark.parametrize("heavy", [0, 1, 16])
@pytest.mark.parametrize("reduce", [7, 0.8])
def test_ridge_on_axes_of_all_rows(reduce, heavy):
    """X_unlabelled: scikit-learn's PCA of the features of all rows, then its Ridge of the labelled ones."""
    more = np.random.default_rng(8).standard_normal((150, X.shape[1])) + 1
    weight = heavy * np.random.default_rng(9).choice([0.0, 1.0, 1.0, 4.0], len(X)) if heavy else None
    options = {"n_components": 60, "sigma": 0.3, "alpha": 0.7, "reduce": reduce, "random_state": 0, "verbose": 0}
    model = dkl.SingleKernelRegressor(**options).fit(X, Y, weight, X_unlabelled=more)
    Psi, other = (model.features_.at(np.float64).transform(rows) for rows in (X, more))
    times = np.ones(len(X), int) if weight is None else weight.astype(int)
    axes = PCA(reduce, svd_solver="full").fit(np.vstack([np.repeat(Psi, times, axis=0), other]))
    ridge = Ridge(alpha=0.7).fit(axes.transform(Psi), Y, weight)
    np.testing.assert_allclose(model.predict(X), ridge.predict(axes.transform(Psi)), atol=1e-8)
    assert model.reduced_["axes"] == axes.n_components_
    plain = dkl.SingleKernelRegressor(**options).fit(X, Y, weight)
    assert np.abs(plain.predict(X) - model.predict(X)).max() > 1e-3 / (heavy or 1)


def test_unlabelled_rows_count_in_the_evidence():
    """reduce="mle": the rank of all rows as scikit-learn has it; the few labelled ones would speak for fewer axes."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((900, X.shape[1]))
    few, more = rows[:10], rows[10:]
    options = {"n_components": 12, "sigma": 0.5, "alpha": 0.7, "reduce": "mle", "random_state": 0, "verbose": 0}
    model = dkl.SingleKernelRegressor(**options).fit(few, few[:, 0], X_unlabelled=more)
    Psi = model.features_.at(np.float64).transform(rows)
    variances = PCA().fit(Psi).explained_variance_
    expected = PCA("mle").fit(Psi).n_components_
    assert model.reduced_["axes"] == expected == likely_rank(variances, 900, 12, 1e-12)
    assert expected != likely_rank(variances, 10, 12, 1e-12)


def test_unlabelled_rows_in_folds(tmp_path):
    """They shape the axes of every fold; Zarr and Dask rows are added up alike; a checkpoint knows them."""
    more = np.random.default_rng(8).standard_normal((150, X.shape[1])) + 1
    fold, alphas = np.arange(len(X)) % 3, [0.1, 1.0]
    options = {
        "n_components": 60,
        "sigma": 0.3,
        "alpha": alphas,
        "cv": fold,
        "reduce": 9,
        "random_state": 0,
        "verbose": 0,
    }
    model = dkl.SingleKernelRegressor(**options).fit(X, Y, X_unlabelled=more)
    Psi, other = (model.features_.at(np.float64).transform(rows) for rows in (X, more))
    for i, alpha in enumerate(alphas):
        errors = []
        for k in range(3):
            axes = PCA(9).fit(np.vstack([Psi[fold != k], other]))
            ridge = Ridge(alpha=alpha).fit(axes.transform(Psi[fold != k]), Y[fold != k])
            errors.append(np.mean((ridge.predict(axes.transform(Psi[fold == k])) - Y[fold == k]) ** 2))
        assert -model.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(errors), rel=1e-6)
    lazy, kept = da.from_array(X, (len(X), -1)), {**options, "checkpoint": str(tmp_path / "c")}
    again = dkl.SingleKernelRegressor(**kept).fit(lazy, Y, X_unlabelled=da.from_array(more, (150, -1)))
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-9)
    with pytest.raises(ValueError, match="checkpoint"):
        dkl.SingleKernelRegressor(**kept).fit(lazy, Y)


@pytest.mark.parametrize(
    ("more", "reduce", "said"),
    [
        (X, None, "X_unlabelled helps to find principal axes, and reduce=None keeps all; use e.g. reduce=500"),
        (X[:, :2], 9, "X_unlabelled has 2 features, but SingleKernelRegressor is expecting"),
        (da.from_array(X[:, :2], (50, -1)), 9, "X_unlabelled has 2 features, but SingleKernelRegressor is expecting"),
        (np.where(X[3, 1] == X, np.nan, X), 9, "X_unlabelled contains NaN at row 3, column 1"),
    ],
)
def test_unlabelled_rows_that_are_refused(more, reduce, said):
    """One line each."""
    with pytest.raises(ValueError, match=re.escape(said)):
        dkl.SingleKernelRegressor(n_components=60, reduce=reduce, verbose=0).fit(X, Y, X_unlabelled=more)


def test_axes_of_rounding_are_not_kept():
    """Constant rows vary along no axis; what is left after the mean is taken away is rounding of the mean."""
    same = np.ones((20, 3))
    for count in (3, "mle"):
        inner = dkl.FourierFeatures(n_components=60, sigma=1.0, random_state=0)
        assert dkl.FeaturePCA(inner, count, verbose=0).fit(same).n_components_ == 1


def test_unlabelled_rows_are_promised_for():
    """Rows that cannot fit are refused before any is read."""
    X1, more = da.from_array(X, (50, -1)), da.zeros((400_000_000, X.shape[1]), chunks=(400_000_000, -1))
    with pytest.raises(MemoryError, match="smaller blocks"):
        dkl.SingleKernelRegressor(n_components=60, reduce=9, verbose=0).fit(X1, Y, X_unlabelled=more)


@pytest.mark.parametrize("inner", [dkl.FourierFeatures(n_components="a"), dkl.Chi2Features(n_terms="a")])
def test_parameters_of_the_map_are_refused_by_name(inner):
    """Not as a TypeError."""
    with pytest.raises(ValueError, match="='a' must be a whole number"):
        dkl.FeaturePCA(inner, 3, verbose=0).fit(np.abs(X))
