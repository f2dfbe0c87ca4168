"""Sigma learned with few features, weights of many: the factor that is chosen is that of a dense search."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import dkl
from dkl.learn import widened
from dkl.sums.folds import held_out

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, size=(900, 4))
Y = np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1]) + 0.05 * RNG.normal(size=900)
LABELS = np.where(Y > 0, "up", "down")
OPTIONS = {
    "n_components": 400, "learn_components": 40, "learn": "gcv", "groups": np.arange(4), "random_state": 0,
    "max_iter": 15, "verbose": 0, "dtype": "float64",
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_the_factor_is_about_that_of_a_dense_search(solver):
    model = dkl.SingleKernelRegressor(**OPTIONS, solver=solver).fit(X, Y)
    tried = dict(zip(model.scales_["factor"], model.scales_["held_out_loss"], strict=True))
    best = min(tried, key=tried.get)
    learned = model.sigma_ / best
    errors = {}
    for factor in tried:
        Psi = dkl.FourierFeatures(n_components=400, sigma=factor * learned, random_state=3, dtype="float64")
        Psi, found = np.asarray(Psi.fit_transform(X)), []
        for alpha in 10.0 ** np.arange(-6, 2):
            rest = [
                ((Ridge(alpha).fit(Psi[a], Y[a]).predict(Psi[b]) - Y[b]) ** 2).mean()
                for a, b in KFold(5, shuffle=True, random_state=0).split(Psi)
            ]
            found.append(np.mean(rest))
        errors[factor] = min(found)
    assert errors[best] < 1.3 * min(errors.values())
    assert len(model.coef_) == 400
    assert model.certificate_["met"]


def test_many_features_are_better_than_the_few():
    few = dkl.SingleKernelRegressor(**(OPTIONS | {"n_components": 12, "learn_components": None})).fit(X[:700], Y[:700])
    many = dkl.SingleKernelRegressor(**(OPTIONS | {"learn_components": 12})).fit(X[:700], Y[:700])
    assert many.score(X[700:], Y[700:]) > few.score(X[700:], Y[700:])


@pytest.mark.parametrize("loss", ["square", "log_loss"])
def test_classes_and_other_losses(loss):
    model = dkl.SingleKernelClassifier(**(OPTIONS | {"learn": "log_loss", "max_iter": 8}), loss=loss).fit(X, LABELS)
    assert model.score(X, LABELS) > 0.9
    assert model.features_.n_features == 400


def test_landmarks_follow_any_learning():
    model = dkl.SingleKernelRegressor(**OPTIONS, landmarks="uniform").fit(X, Y)
    assert model.score(X, Y) > 0.95
    assert len(model.features_.numbers) == 400


def test_saved_and_resumed_models_are_the_same(tmp_path):
    want = dkl.SingleKernelRegressor(**OPTIONS, solver="cg").fit(X, Y)
    model = dkl.SingleKernelRegressor(**OPTIONS, solver="cg", checkpoint=tmp_path / "kept").fit(X, Y)
    assert np.array_equal(model.coef_, want.coef_)
    again = dkl.SingleKernelRegressor(**OPTIONS, solver="cg", checkpoint=tmp_path / "kept").fit(X, Y, resume=True)
    assert np.array_equal(again.coef_, want.coef_)
    want.save(tmp_path / "model")
    loaded = dkl.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X), want.predict(X))
    assert np.array_equal(loaded.scales_["factor"], want.scales_["factor"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"learn": "none"}, "learn_components=40 does not go with learn='none'"),
        ({"learn": "frequencies"}, "whose frequencies are the model"),
        ({"learn_components": 0}, "learn_components=0"),
    ],
)
def test_what_does_not_go_together_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        dkl.SingleKernelRegressor(**(OPTIONS | options)).fit(X, Y)


@pytest.mark.parametrize(("loss", "learn"), [("square", "gcv"), ("huber", "joint")])
def test_an_alpha_that_is_given_stays(loss, learn):
    model = dkl.SingleKernelRegressor(**(OPTIONS | {"learn": learn, "max_iter": 3}), alpha=0.3, loss=loss).fit(X, Y)
    assert model.alpha_ == 0.3
    assert set(np.round(model.scales_["alpha"], 12)) == {0.3}


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_some_rows_are_enough_for_the_choice(solver, monkeypatch):
    """The held-out loss of a factor is that of ridge on the rows that take part: a half, of which a fifth tests."""
    seen, real = [], widened._fitted
    monkeypatch.setattr(widened, "_fitted", lambda run, data, *rest: seen.append(data) or real(run, data, *rest))
    monkeypatch.setattr(widened, "ROWS", 450)
    monkeypatch.setattr(widened, "ROWS_PER_FEATURE", 0)
    model = dkl.SingleKernelRegressor(**OPTIONS, alpha=0.3, solver=solver).fit(X, Y)
    takes = held_out(0, len(X), (1, 2), seen[0].seed + 2) == 1
    trains = held_out(0, len(X), (4, 5), seen[0].seed) == 1
    assert takes.sum() == 450
    assert 340 <= (takes & trains).sum() <= 380
    for data, loss in zip(seen, model.scales_["held_out_loss"], strict=True):
        Psi = data.features.at(np.float64).transform(X)
        found = Ridge(0.3).fit(Psi[takes & trains], Y[takes & trains])
        error = ((found.predict(Psi[takes & ~trains]) - Y[takes & ~trains]) ** 2).mean()
        assert loss == pytest.approx(error, rel=0.15 if solver == "cg" else 1e-6)
    assert len(seen) >= 3
