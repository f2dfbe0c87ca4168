"""Principal axes of several channels in two passes, against scikit-learn's PCA of all stored features."""

from __future__ import annotations

from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array
from sklearn.decomposition import PCA

import dkl
from dkl.engine.blocks import Rows
from dkl.engine.tables import Table
from dkl.features.fourier import fourier_cost
from dkl.features.projected import projected_cost
from dkl.features.side_by_side import side_by_side_cost
from dkl.learn import plan
from dkl.sums.scatter import ScatterProgram

RNG = np.random.default_rng(8)
X = RNG.standard_normal((600, 9)) * np.r_[np.ones(6), np.full(3, 2.0)]
X[:, 5] += X[:, 0]
LABELS = np.array(["r", "g", "r", "b", "g", "r", "b", "b", "b"])
COLUMNS = [np.flatnonzero(label == LABELS) for label in "bgr"]
HISTOGRAMS = np.where((H := RNG.dirichlet(np.full(9, 0.3), 400)) > 0.01, H, 0.0)


def fourier(**options):
    """The map of every channel; its generator gives the same numbers each time."""
    return dkl.FourierFeatures(n_components=14, random_state=np.random.default_rng(5), verbose=0, **options)


def fit(rows=X, count=10, features=None, channels=LABELS, more=None, **options):
    """Fitted axes of all channels."""
    model = dkl.FeaturePCA(features or fourier(), count, channels=channels, verbose=0, **options)
    return model.fit(rows, X_unlabelled=more)


def stored(*parts, columns=COLUMNS):
    """Features of all channels side by side: each has a map of its own, all drawn from one generator."""
    rng, found = np.random.default_rng(5), []
    for inputs in columns:
        features = fourier().set_params(random_state=rng).fit(parts[0][:, inputs])
        found.append(np.vstack([features.transform(part[:, inputs]) for part in parts]))
    return np.hstack(found)


def assert_axes(model, theirs, Psi, rows=X):
    """The same subspace, variances and mean; coordinates up to sign."""
    assert subspace_angles(model.components_.T, theirs.components_.T).max() < 1e-6
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(model.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-8)
    np.testing.assert_allclose(model.mean_, theirs.mean_, atol=1e-12)
    np.testing.assert_allclose(np.abs(model.transform(rows)), np.abs(theirs.transform(Psi)), atol=1e-6)
    gram = model.components_ @ model.components_.T
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-10)


@pytest.mark.parametrize("count", [1, 10, 30, 0.5, 0.95, "mle"])
def test_all_axes_of_each_channel_are_one_pca(count):
    """Nothing is lost if the first pass keeps everything: PCA of the features side by side."""
    Psi = stored(X)
    assert_axes(fit(count=count, per_channel=14), PCA(count, svd_solver="full").fit(Psi), Psi)


@pytest.mark.parametrize("per_channel", [4, 0.8, "mle"])
def test_few_axes_of_each_channel(per_channel):
    """PCA of each channel, then PCA of what that leaves."""
    Psi = stored(X)
    kept = [PCA(per_channel, svd_solver="full").fit(part) for part in np.split(Psi, 3, axis=1)]
    left = np.hstack([pca.transform(part) for pca, part in zip(kept, np.split(Psi, 3, axis=1), strict=True)])
    theirs = PCA(6).fit(left)
    model = fit(count=6, per_channel=per_channel)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(theirs.transform(left)), atol=1e-6)
    total = Psi.var(axis=0, ddof=1).sum()
    np.testing.assert_allclose(model.explained_variance_ratio_, theirs.explained_variance_ / total, rtol=1e-8)
    assert model.components_.shape == (6, 42)


def test_what_each_channel_keeps_if_nothing_is_said():
    """As many axes as are wanted of all, or their share: the share of all features is then reached."""
    np.testing.assert_array_equal(fit(count=8).components_, fit(count=8, per_channel=8).components_)
    shared = fit(count=0.7)
    np.testing.assert_array_equal(shared.components_, fit(count=0.7, per_channel=0.7).components_)
    assert shared.explained_variance_ratio_.sum() >= 0.7 > shared.explained_variance_ratio_[:-1].sum()


def test_ways_to_say_what_belongs_together():
    """Labels, slices, the name of a coordinate; one channel of all inputs is no channels."""
    order = np.argsort(LABELS, kind="stable")
    expected = fit(X[:, order], channels=LABELS[order])
    sliced = fit(X[:, order], channels=[slice(0, 4), slice(4, 6), slice(6, 9)])
    named = xr.DataArray(X[:, order], dims=("row", "input"), coords={"colour": ("input", LABELS[order])})
    for model in (sliced, fit(named, channels="colour")):
        np.testing.assert_array_equal(model.components_, expected.components_)
        np.testing.assert_array_equal(model.channels_, [0, 0, 0, 0, 1, 1, 2, 2, 2])
    assert fit(named, channels="colour").transform(named).dims == ("row", "component")
    one, none = fit(channels=np.zeros(9)), fit(channels=None)
    np.testing.assert_allclose(one.explained_variance_, none.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(one.transform(X)), np.abs(none.transform(X)), atol=1e-7)
    assert hasattr(none, "sigma_")
    assert not hasattr(one, "sigma_")


def test_more_rows():
    """Unlabelled rows shape the axes of the channels and of all, with the maps of X."""
    more = RNG.standard_normal((200, 9)) + 1
    both = stored(X, more)
    assert_axes(fit(more=more, per_channel=14), PCA(10).fit(both), both[:600])


def test_any_kind_of_rows(tmp_path):
    """Dask in any chunks, Zarr and float32; lazy coordinates too."""
    expected = fit()
    zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(64, 5))
    for rows in (*(da.from_array(X, (chunks, -1)) for chunks in (1, 7, 64, 600)), str(tmp_path / "x.zarr")):
        model = fit(rows)
        np.testing.assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-8)
        np.testing.assert_allclose(np.abs(np.asarray(model.transform(rows))), np.abs(expected.transform(X)), atol=1e-7)
    narrow = fit(X.astype(np.float32), 4)
    assert narrow.transform(X.astype(np.float32)).dtype == np.float32
    assert subspace_angles(narrow.components_.T, fit(count=4).components_.T).max() < 1e-2


@pytest.mark.parametrize("method", ["direct", "zolotarev"])
def test_additive_features(method):
    """Channels of as many features as they have inputs, dense and csr, of units that differ by a thousand."""
    rows = HISTOGRAMS * np.where(LABELS == "g", 1000.0, 1.0)
    features = dkl.Chi2Features(method, 3, verbose=0)
    Phi = np.hstack([features.fit(rows[:, inputs]).transform(rows[:, inputs]) for inputs in COLUMNS])
    dense, sparse = (fit(kind, 7, features, per_channel=12) for kind in (rows, csr_array(rows)))
    assert_axes(dense, PCA(7).fit(Phi), Phi, rows)
    np.testing.assert_allclose(sparse.explained_variance_, dense.explained_variance_, rtol=1e-8)


@pytest.mark.parametrize("features", [None, dkl.Chi2Features(n_terms=3, verbose=0)], ids=["fourier", "chi2"])
def test_round_trip(features, tmp_path):
    """Saved and loaded, the same bits."""
    model = fit(HISTOGRAMS, 6, features)
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    np.testing.assert_array_equal(again.transform(HISTOGRAMS), model.transform(HISTOGRAMS))
    for name in ("mean_", "components_", "explained_variance_", "explained_variance_ratio_", "channels_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.n_features_in_ == 9
    xr.open_zarr(tmp_path / "m", consolidated=False).close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"channels": [0, 1]}, r"channels has shape \(2,\), but X has 9 inputs"),
        ({"channels": "band"}, "channels='band' is not a coordinate"),
        ({"channels": 3}, "channels=3 must be"),
        ({"channels": [slice(0, 4), slice(5, 9)]}, "channels leaves input 4 out"),
        ({"channels": None, "per_channel": 3}, "per_channel=3 needs channels"),
        ({"per_channel": 15}, "per_channel=15 axes of at most 14 features of a channel"),
        ({"per_channel": 1.5}, "per_channel=1.5"),
        ({"per_channel": "mel"}, "per_channel='mel' is not known; did you mean 'mle'"),
        ({"count": 43}, "n_components=43 axes of 42 of all channels"),
        ({"count": 13, "per_channel": 4}, "n_components=13 axes of 12 of all channels"),
    ],
)
def test_channels_that_are_refused(options, said):
    """One line that says what came."""
    with pytest.raises(ValueError, match=said) as caught:
        fit(**options)
    assert "\n" not in str(caught.value)


def test_a_bad_row_is_counted_in_all_inputs():
    """Not in those of its channel."""
    hole = X.copy()
    hole[77, 7] = np.nan
    with pytest.raises(ValueError, match=r"^X_unlabelled contains NaN at row 77, column 7"):
        fit(da.from_array(X, (100, -1)), more=da.from_array(hole, (100, -1)))
    model = fit(features=fourier(kernel="skewed_chi2"), rows=np.abs(X))
    low = np.abs(X)
    low[99, 8], low[99, 3] = -2, -3
    with pytest.raises(ValueError, match="X contains -3 at row 99, column 3"):
        model.transform(low)


def test_a_gram_of_all_features_is_never_made(monkeypatch):
    """The sums of a pass are those of each channel, then those of what is left."""
    sizes, start = [], ScatterProgram.start

    def noted(program):
        sums = start(program)
        sizes.append(sums.gram.size)
        return sums

    monkeypatch.setattr(ScatterProgram, "start", noted)
    fit(count=5)
    assert set(sizes) == {3 * 14**2, 15**2}


@pytest.mark.parametrize(("per_channel", "passes"), [(5, 0), (0.99, 1)])
def test_both_passes_are_promised(per_channel, passes, monkeypatch):
    """Before anything is summed, or (a share) as soon as the width of the second is known; nothing is fitted."""
    summed, start = [], ScatterProgram.start
    monkeypatch.setattr(ScatterProgram, "start", lambda program: summed.append(1) or start(program))
    real = plan.make_plan

    def little_memory(engine, sizes, passes, measure):
        found = real(engine, sizes, passes)
        return found if passes[0].maps > 1 else replace(found, solve_limit=0)

    monkeypatch.setattr(plan, "make_plan", little_memory)
    model = dkl.FeaturePCA(fourier(), 5, channels=LABELS, per_channel=per_channel, verbose=0)
    with pytest.raises(MemoryError, match="would need"):
        model.fit(X)
    assert bool(summed) == bool(passes)
    assert not hasattr(model, "features_")


def test_plan_of_channels():
    """dkl.plan says what fit will be held to: the pass that needs most, here the first; nothing is fitted."""
    wide = dkl.FourierFeatures(n_components=300, sigma=0.3)
    model = dkl.FeaturePCA(wide, 5, channels=LABELS, per_channel=5, verbose=0)
    found = dkl.plan(X, model)
    assert (found.cost.features, found.cost.maps) == (900, 3)
    assert "900 features of 3 channels" in str(found)
    assert found.seconds > 0
    assert found.fits
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match=r"per_channel=.* needs channels"):
        dkl.plan(X, dkl.FeaturePCA(fourier(), 5, per_channel=5))
    for wrong in (0, 2.5, "foo"):
        with pytest.raises(ValueError, match=f"n_components={wrong!r}"):
            dkl.plan(X, dkl.FeaturePCA(fourier(), wrong, channels=LABELS))


def test_the_promise_is_below_that_of_all_features():
    """Ten channels of 300 features, 20 axes of each: far less than 3000 features; more than one channel."""
    dtype = np.dtype(np.float64)
    rows = Rows([Table("memory", RNG.standard_normal((5000, 40)))], ["X"])
    sizes, channel = plan.sizes_of(rows, 40, dtype), fourier_cost(4, 300, "paired", 1, dtype)

    def need(*maps):
        [cost] = plan.axes_costs(sizes, maps)
        return cost.sums_bytes, cost.solve.bytes, cost.thread_bytes + cost.sums_bytes

    first, second = need(*[channel] * 10), need(side_by_side_cost([projected_cost(channel, 20, dtype)] * 10))
    whole = need(fourier_cost(40, 3000, "paired", 1, dtype))
    for together, one, all_of_them in zip(np.maximum(first, second), need(channel), whole, strict=True):
        assert one < together < 0.5 * all_of_them
