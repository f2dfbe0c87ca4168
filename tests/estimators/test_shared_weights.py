"""penalty="shared": outputs as tasks, with weights that all share and weights of each."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dkl
from dkl.options.infinite import sparsity_of

RNG = np.random.default_rng(0)
N, TASKS = 160, 4
X = RNG.normal(size=(N, 2))
COMMON = np.sin(2 * X[:, 0])
Y = COMMON[:, None] + 0.3 * np.cos(3 * X[:, [1]] + np.arange(TASKS)) * [1, 0, 0, 0] + 0.05 * RNG.normal(size=(N, TASKS))
QUICK = {"max_features": 10, "candidates": 20, "alpha": 0.5, "max_iter": 12, "random_state": 0, "verbose": 0}


def fit(cls=dkl.InfiniteFeatureRegressor, y=Y, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return cls(**(QUICK | {"penalty": "shared:ratio=1.2"} | how)).fit(X, y)


def test_what_is_common_is_shared():
    """The parts add up to the weights; most of them are shared where outputs are alike, and nothing at a high ratio."""
    model = fit()
    np.testing.assert_allclose(model.shared_coef_ + model.task_coef_, model.coef_, atol=1e-12)
    assert model.shared_coef_.shape == (model.features_.n_features,)
    assert model.task_coef_.shape == model.coef_.shape
    assert np.linalg.norm(model.shared_coef_) > np.linalg.norm(model.task_coef_[1:], axis=1).max()
    shared = model.features_.at(np.float64).transform(X) @ model.shared_coef_
    assert np.corrcoef(shared, COMMON)[0, 1] > 0.95
    assert model.certificate_["met"]
    alone = fit(penalty="shared:ratio=9")
    assert not alone.shared_coef_.any()
    right = fit(penalty="l21")
    np.testing.assert_allclose(alone.coef_, right.coef_, atol=1e-2 * np.abs(right.coef_).max())


@pytest.mark.parametrize("loss", ["square", "huber"])
def test_every_master(loss):
    """The same objective by the gram, by Newton's steps and by alternating directions."""
    found = [fit(loss=loss, solver=solver, solver_tol=1e-6) for solver in ("auto", "newton", "admm")]
    objectives = [float(model.path_.objective[-1]) for model in found]
    assert objectives == pytest.approx([objectives[0]] * 3, rel=1e-3)
    for model in found[1:]:
        np.testing.assert_allclose(model.predict(X), found[0].predict(X), atol=0.02)


def test_classes_one_against_the_rest():
    """Their margin losses are tasks; the parts are saved with the model, and known when it is loaded."""
    y = np.digitize(COMMON + 0.2 * X[:, 1], [-0.5, 0.5])
    model = fit(dkl.InfiniteFeatureClassifier, y, loss="squared_hinge", alpha=1.0)
    assert model.score(X, y) > 0.85
    assert model.task_coef_.shape[0] == 3


def test_refusals():
    """Scores that share a loss, parameters that are none, and models that share nothing."""
    y = np.digitize(COMMON, [-0.5, 0.5])
    with pytest.raises(ValueError, match=r"joins the scores of 3 classes, and penalty=.* needs a loss of each"):
        fit(dkl.InfiniteFeatureClassifier, y, loss="log_loss")
    for text in ("shared:ratio=0", "shared:rate=2", "shared:ratio=1,ratio=2", "l21:ratio=2", "shared:ratio"):
        with pytest.raises(ValueError, match="behind the colon stands"):
            sparsity_of(text)
    assert (sparsity_of("shared:ridge=0.1,ratio=2").ridge, sparsity_of("shared:ridge=0.1,ratio=2").ratio) == (0.1, 2)
    with pytest.raises(AttributeError, match="penalty='l21' shares no weights; fit with penalty='shared'"):
        _ = fit(penalty="l21").shared_coef_
