"""GaborFeatures: the grid and random filters, alone, in FeaturePCA, and in sums of several kernels."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import dkl
from dkl.engine import embedded
from dkl.prepare.gabor import draw_filters, grid_of_filters

RNG = np.random.default_rng(0)
N, SIDE = 300, 8
LABEL = RNG.integers(0, 2, N)


def stripes(count=N):
    """Patches of vertical or horizontal stripes of any phase, and noise; the mean says nothing."""
    phase, place = RNG.uniform(0, 2 * np.pi, (count, 1)), np.arange(SIDE)
    wave = np.cos(2 * np.pi * 0.2 * place + phase)
    upright = np.broadcast_to(wave[:, None, :], (count, SIDE, SIDE))
    flat = np.where(LABEL[:, None, None] == 1, upright, np.swapaxes(upright, 1, 2)).reshape(count, -1)
    return flat + 0.8 * RNG.normal(size=(count, SIDE * SIDE)) + RNG.normal(size=(count, 1))


X = stripes()


def test_stripes_of_any_phase():
    """Which no linear function of the pixels can tell apart."""
    one = make_pipeline(dkl.GaborFeatures(verbose=0), RidgeClassifier(0.01)).fit(X[:200], LABEL[:200])
    plain = RidgeClassifier(0.01).fit(X[:200], LABEL[:200])
    assert one.score(X[200:], LABEL[200:]) > 0.97
    assert plain.score(X[200:], LABEL[200:]) < 0.75


def test_the_grid():
    """Every combination once; n_components draws instead, the same filters from the same seed."""
    orientation, frequency, along, across = grid_of_filters()
    assert len(set(zip(orientation, frequency, along, strict=True))) == 81
    np.testing.assert_array_equal(along, across)
    model = dkl.GaborFeatures((SIDE, SIDE), verbose=0).fit(X)
    assert model.transform(X).shape == (N, 81)
    assert list(model.get_feature_names_out()[:1]) == ["gaborfeatures0"]
    drawn = [dkl.GaborFeatures(n_components=12, random_state=seed, verbose=0).fit_transform(X) for seed in (0, 0, 1)]
    assert drawn[0].shape == (N, 12)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.allclose(drawn[0], drawn[2])


def test_random_filters_are_in_range():
    """Orientations of half a turn, waves of two pixels to one side, widths from one pixel to half a side."""
    orientation, frequency, along, across = draw_filters((10, 20), 4000, np.random.default_rng(0))
    for values, low, high in (
        (orientation, 0, np.pi), (frequency, 1 / 20, 0.5), (along, 1, 5), (across, 1, 5),
    ):  # fmt: skip
        assert low <= values.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < values.max() <= high
    assert abs(np.corrcoef(along, across)[0, 1]) < 0.05


@pytest.mark.parametrize("unit", [1.0, 255.0])
def test_features_have_no_unit(unit):
    """The same for bytes and fractions; their squares add up to at most one for a typical patch."""
    plain, scaled = (dkl.GaborFeatures(verbose=0).fit_transform(rows) for rows in (X, unit * X))
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)
    assert 0.005 < (plain**2).sum(axis=1).mean() <= 1


def test_any_container():
    """Dask and csr rows have the features of dense ones; a row without weight does not count for the unit."""
    model = dkl.GaborFeatures(verbose=0).fit(X)
    expected = model.transform(X)
    for rows in (da.from_array(X, chunks=(70, -1)), csr_array(X)):
        other = dkl.GaborFeatures(verbose=0).fit(rows)
        np.testing.assert_allclose(np.asarray(other.transform(rows)), expected, rtol=1e-9)
    weight = np.ones(N)
    weight[-1] = 0
    weighed = dkl.GaborFeatures(verbose=0).fit(np.vstack([X[:-1], 1e6 * X[-1:]]), sample_weight=weight).features_
    plain = dkl.GaborFeatures(verbose=0).fit(X[:-1]).features_
    assert (weighed.unit, weighed.largest) == pytest.approx((plain.unit, plain.largest), rel=1e-12)


def test_principal_axes():
    """Those of scikit-learn's PCA of the stored features; unlabelled rows that are larger keep the sums exact."""
    features = dkl.GaborFeatures(n_components=20, random_state=0, verbose=0)
    stored = features.fit_transform(X)
    model = dkl.FeaturePCA(features, 6, verbose=0).fit(X)
    theirs = PCA(6).fit(stored)
    np.testing.assert_allclose(model.explained_variance_, theirs.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(theirs.transform(stored)), atol=1e-8)
    more = dkl.FeaturePCA(features, 6, verbose=0).fit(X[:200], X_unlabelled=5 * X[200:])
    fitted = features.fit(X[:200])
    both = np.vstack([fitted.transform(X[:200]), fitted.transform(5 * X[200:])])
    np.testing.assert_allclose(more.explained_variance_, PCA(6).fit(both).explained_variance_, rtol=1e-9)


def test_one_of_several_kernels(tmp_path):
    """A group of the sum of kernels, chosen for what it tells; saved and loaded with it."""
    groups = {"gabor": dkl.GaborFeatures(verbose=0), "pixels": dkl.FourierFeatures(n_components=40, random_state=0)}
    model = dkl.MultipleKernelClassifier(features=groups, alpha=1.0, random_state=0, verbose=0)
    model.fit(X[:200], LABEL[:200])
    weights = dict(zip(model.groups_, model.kernel_weights_.values.ravel(), strict=True))
    assert weights["gabor"] > 2 * weights["pixels"]
    assert model.score(X[200:], LABEL[200:]) > 0.95
    model.save(tmp_path / "m.zarr")
    np.testing.assert_array_equal(
        dkl.load(tmp_path / "m.zarr").decision_function(X[200:]), model.decision_function(X[200:])
    )


def test_plan(monkeypatch):
    """The bank of filters is counted, and refused where there is no memory for it."""
    small, large = (dkl.GaborFeatures(n_components=count, verbose=0) for count in (81, 20_000))
    plans = [one.plan(X, calibrate=False) for one in (small, large)]
    bank = 8 * SIDE**2 * 4
    assert plans[1].worker_bytes - plans[0].worker_bytes > 0.9 * bank * (20_000 - 81)
    assert "81 features" in str(plans[0])
    assert plans[0].flops == 2 * 65 * 4 * 81 * N
    monkeypatch.setattr(embedded, "memory_here", lambda: (0, 2**26 + 4 * bank * 20_000 // 5))
    with pytest.raises(MemoryError, match=r"would need .* but may use .*; use fewer components \(now 20,000\)"):
        large.fit(X)
    small.fit(X)


def test_refusals():
    """Shapes that are not those of the rows."""
    for shape, width, said in (
        ((8, 9), 64, r"image_shape=\(8, 9\) has 72 pixels, but X has 64 inputs"),
        (None, 63, r"image_shape=None and 63 inputs, which are no square; give \(height, width\)"),
        ((1, 1), 1, r"image_shape=\(1, 1\) is one pixel, to which no filter responds"),
    ):
        with pytest.raises(ValueError, match=said):
            dkl.GaborFeatures(shape, verbose=0).fit(X[:, :width])
    bad = X.copy()
    bad[3, 5] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 3, column 5"):
        dkl.GaborFeatures(verbose=0).fit(bad)
