"""alpha="auto" with cv: a grid that grows at its edge, down to a floor; a list that ends too early is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import dkl

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(600, 2))
SMOOTH = np.sin(X[:, 0]) * np.cos(X[:, 1])
OPTIONS = {"n_components": 60, "sigma": 0.7, "random_state": 0, "verbose": 0}
FOLD = np.arange(600) % 4


def scores(alphas: np.ndarray, Psi: np.ndarray) -> np.ndarray:
    """Mean over folds of minus the squared error, by scikit-learn."""
    found = []
    for alpha in alphas:
        errors = []
        for k in range(4):
            ridge = Ridge(alpha=alpha, solver="svd").fit(Psi[k != FOLD], SMOOTH[k != FOLD])
            errors.append(np.mean((ridge.predict(Psi[k == FOLD]) - SMOOTH[k == FOLD]) ** 2))
        found.append(-np.mean(errors))
    return np.array(found)


def test_the_grid_grows_below():
    """Without noise less is better: tens below 0.01 are tried, until one is not better or the floor is reached."""
    model = dkl.SingleKernelRegressor(**OPTIONS, dtype="float64", cv=FOLD)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, SMOOTH)
    tried = model.cv_results_["param_alpha"]
    assert tried[0] < 0.01
    Psi = dkl.FourierFeatures(**OPTIONS, dtype="float64").fit(X).transform(X)
    wanted = scores(tried, Psi)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], wanted, rtol=1e-4)
    assert model.alpha_ == tried[int(wanted.argmax())]
    floor = 1e-6 * np.linalg.eigvalsh(Psi.T @ Psi)[-1]
    assert model.alpha_ > tried[0] or np.isclose(tried[0], floor, rtol=1e-3)


def test_the_grid_grows_above():
    """Noise alone: more is better, without end; it stops where only the mean is left."""
    model = dkl.SingleKernelRegressor(**OPTIONS, cv=4).fit(X, RNG.normal(size=600))
    assert model.cv_results_["param_alpha"][-1] >= 1000
    assert len(model.cv_results_["param_alpha"]) < 12


@pytest.mark.parametrize("learn", ["none", "cv", "gcv", "validation"])
def test_no_warning_of_our_own_choice(learn):
    """float32 rows, a target without noise: alpha is the least that float32 bears, and nobody is told to raise it."""
    options = {"learn": learn, "cv": 4 if learn in ("none", "cv") else None, "dtype": "float32", "tol": 0.01}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = dkl.SingleKernelRegressor(**OPTIONS, **options).fit(X, SMOOTH)
    assert not [str(one.message) for one in told if "alpha" in str(one.message)]
    assert model.score(X, SMOOTH) > 0.999


def test_a_choice_at_the_edge_of_a_given_list():
    """Named, with what to add; one inside is not."""
    with pytest.warns(UserWarning, match=r"alpha=1, the least of those given.*add 0.1"):
        dkl.SingleKernelRegressor(**OPTIONS, alpha=[1.0, 10.0, 100.0], cv=4).fit(X, SMOOTH)
    noise = np.random.default_rng(1).normal(size=600)
    with pytest.warns(UserWarning, match=r"alpha=0.1, the largest of those given.*add 1"):
        dkl.SingleKernelRegressor(**OPTIONS, alpha=[0.001, 0.01, 0.1], cv=4).fit(X, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = SMOOTH + 0.3 * noise
        model = dkl.SingleKernelRegressor(**OPTIONS, alpha=[1e-5, 1e-2, 0.1, 1.0, 10.0, 1e6], cv=4).fit(X, some)
    assert 1e-5 < model.alpha_ < 1e6
