"""Continuous kernels as estimators: going on, features taken out, plots, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.linear_model import Ridge

import dkl

mpl.use("Agg")

N, M = 400, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
Y = 30 + 5 * np.sin(2 * X[:, 0] + X[:, 1])
CODE = np.array(["low", "middle", "high"])[np.digitize(Y, [27, 33])]
OPTIONS: dict[str, Any] = {"n_components": 25, "random_state": 0, "verbose": 0, "validation": None, "batch_size": 64}


def classifier(**options: Any) -> dkl.ContinuousKernelClassifier:
    """A small network."""
    return dkl.ContinuousKernelClassifier(**OPTIONS | options)


def regressor(**options: Any) -> dkl.ContinuousKernelRegressor:
    """A small network."""
    return dkl.ContinuousKernelRegressor(**OPTIONS | options)


def same(one: Any, other: Any) -> None:
    """The same network, but for the rounding of what is taken over."""
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(one.features_.unit, other.features_.unit, rtol=1e-8, atol=1e-10)
    assert one.epochs_ == other.epochs_


def test_epochs_one_by_one_are_those_of_a_fit() -> None:
    """partial_fit and warm_start: parameters, velocities, momentum and the order of the rows go on."""
    whole, parts = classifier(max_iter=6).fit(X, CODE), classifier()
    for _ in range(6):
        parts.partial_fit(X, CODE, classes=["low", "middle", "high"])
    same(parts, whole)
    halves = classifier(max_iter=3, warm_start=True).fit(X, CODE).fit(X, CODE)
    same(halves, whole)
    again = classifier(max_iter=3).fit(X, CODE).fit(X, CODE)
    assert again.epochs_ == 3
    numbers, some = regressor(max_iter=4).fit(X, Y), regressor()
    for _ in range(4):
        some.partial_fit(X, Y)
    same(some, numbers)
    np.testing.assert_array_equal(some.spectrum_["start"], numbers.spectrum_["start"])


def test_partial_fit_on_rows_that_lack_a_class() -> None:
    """The classes are those of the first call, and others are refused."""
    model = classifier().partial_fit(X[CODE != "high"], CODE[CODE != "high"], classes=np.unique(CODE))
    model.partial_fit(X[CODE == "high"], CODE[CODE == "high"])
    assert model.predict_proba(X).shape == (N, 3)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    with pytest.raises(ValueError, match="y has the label 'odd', not a class; classes are"):
        model.partial_fit(X, np.where(CODE == "low", "odd", CODE))
    with pytest.raises(ValueError, match="are not those of the first call"):
        model.partial_fit(X, CODE, classes=["low", "high"])
    with pytest.raises(ValueError, match="the first call of partial_fit needs all classes"):
        classifier().partial_fit(X, CODE)
    with pytest.raises(ValueError, match="has one class"):
        classifier().partial_fit(X, CODE, classes=["low"])
    with pytest.raises(ValueError, match="class_weight='balanced' needs all rows"):
        classifier(class_weight="balanced").partial_fit(X, CODE, classes=np.unique(CODE))


def test_what_does_not_go_on_is_refused() -> None:
    """Other inputs, another width, other classes."""
    model = classifier(max_iter=1, warm_start=True).fit(X, CODE)
    with pytest.raises(ValueError, match="n_components=9, and the model that warm_start=True goes on with has 25"):
        clone(model).set_params(n_components=25).fit(X, CODE).set_params(n_components=9).fit(X, CODE)
    with pytest.raises(ValueError, match="n_features=2, and the model that warm_start=True goes on with has 3"):
        model.fit(X[:, :2], CODE)
    with pytest.raises(ValueError, match="not a class"):
        model.fit(X, np.where(CODE == "low", "odd", CODE))


def test_a_loaded_model_goes_on(tmp_path: Path) -> None:
    """From its parameters, at rest."""
    model = classifier(max_iter=5).fit(X, CODE)
    model.save(tmp_path / "m")
    again = dkl.load(tmp_path / "m")
    assert again.spectrum_.identical(model.spectrum_)
    assert again.epochs_ == 5
    before = again.coef_.copy()
    again.partial_fit(X, CODE)
    assert again.epochs_ == 6
    assert 0 < np.abs(again.coef_ - before).max() < 1


@pytest.mark.filterwarnings("ignore:cv chose alpha:UserWarning")
def test_learned_features_stay_what_they_are(tmp_path: Path) -> None:
    """Cloned, fitted again, saved: in ridge, among several kernels, in FeaturePCA."""
    model = regressor(max_iter=40).fit(X, Y)
    features = model.to_features()
    Psi = np.sqrt(2 / 25) * np.cos(
        X @ model.spectrum_["frequency"].values + 2 * np.pi * model.spectrum_["phase"].values
    )
    np.testing.assert_allclose(features.transform(X), Psi, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(clone(features).fit(X[:7]).transform(X), features.transform(X))
    np.testing.assert_allclose(model.predict(X), Psi @ model.coef_ + model.intercept_, rtol=1e-10)
    np.testing.assert_allclose(model.kernel_matrix(X[:5], X[:9]), Psi[:5] @ Psi[:9].T, rtol=1e-10, atol=1e-12)
    assert Ridge(1e-6).fit(features.transform(X), Y).score(features.transform(X), Y) > 0.99
    axes = dkl.FeaturePCA(features, n_components=4).fit(X)
    np.testing.assert_array_equal(axes.features_.unit, model.features_.unit)
    path = {"n_alphas": 5, "eps": 1e-4}
    several = dkl.MultipleKernelRegressor(features=[features], **path, verbose=0, random_state=0).fit(X, Y)
    assert several.score(X, Y) > 0.9
    features.save(tmp_path / "f")
    np.testing.assert_array_equal(dkl.load(tmp_path / "f").transform(X), features.transform(X))
    with pytest.raises(ValueError, match="X has 2 features, but LearnedFeatures is expecting 3"):
        clone(features).fit(X[:, :2])
    with pytest.raises(ValueError, match=r"LearnedFeatures\(\) has no frequencies to keep"):
        type(features)().fit(X)


def test_the_spectrum_has_the_names_of_the_inputs() -> None:
    """Frequencies in radians per unit of X; the start is that of the kernel at sigma."""
    rows = xr.DataArray(X, dims=("row", "input"), coords={"input": ["a", "b", "c"]})
    model = classifier(max_iter=8, sigma=0.7, frequencies="iid", n_components=3000, learning_rate=0.01).fit(rows, CODE)
    spectrum = model.spectrum_
    assert spectrum["input"].values.tolist() == ["a", "b", "c"]
    assert spectrum["start"].std().item() == pytest.approx(0.7, rel=0.03)
    np.testing.assert_allclose(spectrum["frequency"], model.features_.wide_sigma[:, None] * model.features_.unit)
    assert (spectrum["frequency"] != spectrum["start"]).all()
    with pytest.raises(ValueError, match="the kernel of learned frequencies has no exact form"):
        model.kernel_matrix(X, exact=True)
    ax = dkl.plot.plot_spectrum(model)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["start", "learned"]
    dkl.plot.plot_kernel(model)
    dkl.plot.plot_convergence(model)


def test_units_of_the_data_do_not_matter() -> None:
    """X and y times powers of two: the same predictions, bit for bit."""
    model = regressor(max_iter=5).fit(X, Y - 30)
    scaled = regressor(max_iter=5).fit(1024 * X, (Y - 30) / 4096)
    np.testing.assert_array_equal(scaled.predict(1024 * X) * 4096, model.predict(X))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "square"}, "loss='square' is for numbers; use loss='log_loss'"),
        ({"loss": "huber"}, "is for numbers and ContinuousKernelClassifier learns classes"),
        ({"sigma": 0.0}, "sigma=0.0 has a zero, and frequencies begin at sigma"),
        ({"learning_rate": 0}, "learning_rate=0 must be a finite number above 0"),
        ({"momentum": 1.0}, "momentum=1.0 must be a number from 0 to below 1"),
        ({"momentum_start": -0.1}, "momentum_start contains -0.1"),
        ({"momentum_ramp": 1.5}, "momentum_ramp=1.5 must be a whole number of at least 0"),
        ({"decay": -1.0}, "decay contains -1.0"),
        ({"max_norm": 0}, "max_norm=0 must be a finite number above 0"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number of at least 1"),
        ({"patience": 0}, "patience=0 must be a whole number of at least 1"),
        ({"validation": 1.0}, "validation=1.0 must be a share of the rows"),
        ({"validation": np.zeros(N, bool)}, "validation holds out 0 of 400 rows"),
        ({"warm_start": "no"}, "warm_start='no' must be True or False"),
    ],
)
def test_parameters_that_no_data_make_right(options: dict[str, Any], said: str) -> None:
    """One line that shows the value."""
    with pytest.raises(ValueError, match=said):
        classifier(**options).fit(X, CODE)


def test_held_out_rows_of_no_weight_are_refused() -> None:
    """Nothing could end the training."""
    mask = np.arange(N) < 50
    with pytest.raises(ValueError, match="the rows held out by validation have a weight of 0"):
        classifier(validation=mask).fit(X, CODE, sample_weight=np.where(mask, 0.0, 1.0))


def test_kernels_of_histograms_and_several_outputs() -> None:
    """The frequencies are those of the additive map; outputs share them."""
    H = np.abs(X)
    model = regressor(kernel="exp_chi2", n_terms=2, max_iter=60).fit(H, np.column_stack([Y, -Y]))
    assert model.spectrum_["frequency"].shape == (2 * M, 25)
    assert model.coef_.shape == (2, 25)
    np.testing.assert_allclose(model.predict(H)[:, 0], -model.predict(H)[:, 1], atol=30)
    assert model.score(np.abs(X), np.column_stack([Y, -Y])) > 0.1


def test_a_plan_says_whether_rows_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """And counts them."""
    plan = classifier().plan(X, CODE, calibrate=False)
    assert "kept in memory" in str(plan)
    monkeypatch.setattr("dkl.engine.kept.KEPT_SHARE", 0.0)
    monkeypatch.setattr("dkl.learn.batches.MOST_SHELF", 20)
    monkeypatch.setattr("dkl.learn.batches.LEAST_SHELF", 10)
    assert "read anew in every epoch" in str(classifier().plan(X, CODE, calibrate=False))


def test_the_units_of_y_change_no_training() -> None:
    """y and the parameter of a loss times 1024: the same network; a loss far below y learns too."""
    for loss, scaled in (
        ("square", "square"),
        ("huber:delta=2", "huber:delta=2048"),
        ("epsilon_insensitive:epsilon=0.5,gamma=8", "epsilon_insensitive:epsilon=512,gamma=0.0078125"),
    ):
        one, other = (regressor(loss=name, max_iter=8).fit(X, f * Y) for name, f in ((loss, 1), (scaled, 1024)))
        np.testing.assert_allclose(other.predict(X) / 1024, one.predict(X), rtol=1e-10)
    for loss in ("huber", "epsilon_insensitive"):
        both = regressor(loss=loss, max_iter=40).fit(X, np.c_[1e4 * Y, Y])
        assert both.score(X, np.c_[1e4 * Y, Y]) > 0.8


def test_the_plan_counts_what_the_steps_are_solved_with() -> None:
    """Parameters and velocities at the start of an epoch, now, and in the making, and the gradient: seven in all."""
    rows = np.zeros((100, 500))
    narrow, wide = (dkl.plan(rows, regressor(n_components=D), np.zeros(100)).solve_bytes for D in (1000, 3000))
    assert wide - narrow >= 7 * 8 * 2000 * (500 + 2)
