"""Gabor filters found by column generation: better than random ones, saved, drawn, and the same bits everywhere."""

from __future__ import annotations

import warnings

import dask.array as da
import matplotlib as mpl
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dkl
from dkl.features.gabor_groups import GaborGroups
from dkl.plot.filters import mosaic
from dkl.prepare.gabor import HIGHEST, draw_filters, lowest, widest
from dkl.prepare.gabor_candidates import GaborSource

mpl.use("Agg")
RNG = np.random.default_rng(0)
N, SIDE = 240, 9
LABEL = RNG.integers(0, 3, N)


def waves(count=N):
    """Patches of waves of 40, 50 or 60 degrees, of any phase, and noise."""
    y, z = np.mgrid[:SIDE, :SIDE]
    turned = np.deg2rad(40 + 10 * LABEL[:count])[:, None, None]
    phase = RNG.uniform(0, 2 * np.pi, (count, 1, 1))
    patches = np.cos(2 * np.pi * 0.25 * (z * np.cos(turned) + y * np.sin(turned)) + phase)
    return patches.reshape(count, -1) + 0.3 * RNG.normal(size=(count, SIDE * SIDE))


X = waves()
QUICK = {"max_features": 6, "candidates": 30, "loss": "log_loss", "alpha": 0.3, "max_iter": 8, "random_state": 0}


def fit(rows=X, **how):
    """A classifier of few filters."""
    features = dkl.GaborFeatures((SIDE, SIDE), stride=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return dkl.InfiniteFeatureClassifier(**({"features": features, "verbose": 0} | QUICK | how)).fit(rows, LABEL)


def test_filters_are_found():
    """A few of them tell waves apart that differ by 10 degrees; steps uphill find better ones."""
    plain, improved = fit(), fit(improve=5)
    assert isinstance(plain.features_, GaborGroups)
    assert 0 < plain.features_.n_features <= 6
    assert plain.certificate_["met"]
    assert min(improved.score(X, LABEL), plain.score(X, LABEL)) > 0.9
    first = [float(model.history_["violation"][0]) for model in (plain, improved)]
    assert first[1] > 1.02 * first[0]
    chosen = improved.selected_
    assert set(chosen) >= {"weight", "orientation", "frequency", "along", "across"}
    assert (np.diff(chosen["weight"]) <= 0).all()
    assert abs(float(chosen["frequency"][0]) - 0.25) < 0.15


def test_lengths_are_those_of_dense_features():
    """The root mean square of each filter's responses, in the unit of the rows' norms, which GaborFeatures has too."""
    model = fit(max_features=1, max_iter=1, alpha=0.01)
    plain = dkl.GaborFeatures((SIDE, SIDE), stride=4, verbose=0).fit(X).features_
    one = model.features_
    assert (one.largest, one.unit) == pytest.approx((plain.largest, plain.unit))
    Psi = one.at(np.float64).transform(X)
    assert model.lengths_[0] == pytest.approx(np.sqrt((Psi**2).mean()), rel=1e-9)


def test_steps_stay_in_range():
    """Orientations within half a turn; frequencies and widths as they are drawn."""
    like = GaborGroups((SIDE, SIDE), 4, *draw_filters((SIDE, SIDE), 3, RNG), 1.0, 1.0)
    far = like.with_parameters(
        orientation=np.array([-0.1, 4.0, 1.0]), frequency=np.array([-1.0, 0.9, 0.2]),
        along=np.array([0.1, 90.0, 2.0]), across=np.array([-3.0, 2.0, 3.0]),
    )  # fmt: skip
    near = GaborSource(like).nearest(far)
    np.testing.assert_allclose(near.orientation, [np.pi - 0.1, 4 - np.pi, 1])
    np.testing.assert_allclose(near.frequency, [lowest((SIDE, SIDE)), HIGHEST, 0.2])
    np.testing.assert_allclose(near.along, [1, widest((SIDE, SIDE)), 2])
    np.testing.assert_allclose(near.across, [1, 2, 3])
    drawn = GaborSource(like).draw(np.random.default_rng(0), 7)
    assert drawn.n_groups == 7
    assert GaborSource(like).nearest(drawn).orientation.tobytes() == drawn.orientation.tobytes()
    assert drawn.scale == like.scale


@pytest.mark.parametrize("how", ["blocks", pytest.param("admm", marks=pytest.mark.long)])
def test_any_container_and_any_solver(how):
    """The same filters and, but for rounding, the same weights."""
    right = fit()
    other = fit(da.from_array(X, chunks=(50, -1))) if how == "blocks" else fit(solver="admm", solver_tol=1e-7)
    np.testing.assert_allclose(other.features_.orientation, right.features_.orientation)
    np.testing.assert_allclose(other.coef_, right.coef_, atol=2e-3 * np.abs(right.coef_).max())


def test_saved_and_drawn(tmp_path):
    """Loaded bit for bit; pictures of the filters, the heaviest first."""
    model = fit()
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert isinstance(again.features, dkl.GaborFeatures)
    ax = dkl.plot.plot_filters(model)
    shown = ax.images[0].get_array()
    order = np.argsort(-np.linalg.norm(model.coef_, axis=0), kind="stable")
    np.testing.assert_array_equal(shown, mosaic(model.features_, order))
    first = mosaic(model.features_, order[:1])
    assert first.shape == (SIDE, SIDE)
    assert np.abs(first).max() == 1
    assert first[SIDE // 2, SIDE // 2] == 1
    grid = dkl.GaborFeatures((SIDE, SIDE), verbose=0).fit(X)
    assert dkl.plot.plot_filters(grid).images[0].get_array().shape == (9 * 10 - 1, 9 * 10 - 1)
    with pytest.raises(ValueError, match="FourierFeatures has a fourier map, and no filters to draw"):
        dkl.plot.plot_filters(dkl.FourierFeatures(verbose=0).fit(X))
    with pytest.raises(ValueError, match="are filters, not frequencies; draw them with dkl"):
        dkl.plot.plot_features(model)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"features": dkl.FourierFeatures()}, "must be a dkl.GaborFeatures, whose filters are the candidates"),
        ({"features": dkl.GaborFeatures(n_components=5)}, "n_components=5, but candidates are drawn in every round"),
        ({"features": dkl.GaborFeatures((3, 3))}, r"image_shape=\(3, 3\) has 9 pixels, but X has 81 inputs"),
        ({"bandwidths": 1.0}, "bandwidths=1.0 is for frequencies; leave it out with features="),
        ({"kernel": "laplacian"}, "kernel='laplacian' is for frequencies"),
    ],
)
def test_refusals(how, said):
    """Before any pass."""
    with pytest.raises(ValueError, match=said):
        fit(**how)
