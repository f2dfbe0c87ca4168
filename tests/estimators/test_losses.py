"""Weights by loss, penalty and solver through the estimators, against scikit-learn and scipy on the dense features."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression, Ridge
from sklearn.model_selection import PredefinedSplit
from sklearn.svm import LinearSVC

import dkl

RNG = np.random.default_rng(0)
N, M = 600, 3
X = RNG.normal(size=(N, M))
NUMBERS = 2 + np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.standard_t(2, size=N)
CODES = (X @ RNG.normal(size=(M, 3)) + 0.5 * RNG.normal(size=(N, 3))).argmax(axis=1)
TWO = np.where(CODES == 1, "yes", "no")
WEIGHT = RNG.integers(1, 4, N).astype(float)
FIXED = {"n_components": 40, "sigma": 0.7, "random_state": 0, "dtype": "float64", "verbose": 0}
ALPHA, TIGHT = 0.5, 1e-9


def classifier(**options):
    return dkl.SingleKernelClassifier(**(FIXED | {"alpha": ALPHA, "solver_tol": TIGHT} | options))


def regressor(**options):
    return dkl.SingleKernelRegressor(**(FIXED | {"alpha": ALPHA, "solver_tol": TIGHT} | options))


def features(model):
    """The features of X, as the model has them."""
    own = {name: getattr(model, name) for name in ("n_components", "sigma", "random_state", "dtype")}
    return np.asarray(dkl.FourierFeatures(**own).fit_transform(X))


def met(model):
    """The model, which has proved that it is the least point."""
    assert model.certificate_["met"]
    assert model.certificate_["value"] <= model.certificate_["tol"]
    return model


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
@pytest.mark.parametrize("y", [TWO, CODES], ids=["two", "three"])
def test_log_loss_is_that_of_scikit_learn(y, solver, weight):
    model = met(classifier(loss="log_loss", solver=solver, max_iter=200).fit(X, y, weight))
    ours = model.predict_proba(X)
    other = LogisticRegression(C=1 / ALPHA, tol=1e-10, max_iter=10_000).fit(features(model), y, weight)
    assert np.allclose(ours, other.predict_proba(features(model)), atol=2e-5)
    assert ours.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_one_against_all_is_one_logistic_regression_for_each_class(solver):
    model = met(classifier(loss="logistic", solver=solver).fit(X, CODES))
    for k in range(3):
        other = LogisticRegression(C=1 / ALPHA, tol=1e-10, max_iter=10_000).fit(features(model), k == CODES)
        assert np.allclose(model.decision_function(X)[:, k], other.decision_function(features(model)), atol=1e-4)


def test_squared_hinge_is_a_linear_svm():
    model = met(classifier(loss="squared_hinge", fit_intercept=False).fit(X, TWO))
    other = LinearSVC(C=0.5 / ALPHA, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=100_000)
    Psi = features(model)
    ours, theirs = model.coef_.ravel(), other.fit(Psi, TWO).coef_.ravel()
    scale = objective_of_hinge(Psi, ours) / objective_of_hinge(Psi, theirs)
    assert scale == pytest.approx(1, abs=1e-6) or np.allclose(ours, theirs, atol=1e-4)


def objective_of_hinge(Psi, coef):
    margin = np.maximum(0, 1 - np.where(TWO == "yes", 1, -1) * (Psi @ coef))
    return 0.5 * (margin**2).sum() / ALPHA + 0.5 * coef @ coef


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_huber_is_the_least_point_of_scipy(solver):
    model = met(regressor(loss="huber:delta=0.3", solver=solver).fit(X, NUMBERS))
    Psi = np.column_stack([features(model), np.ones(N)])

    def objective(v):
        r = Psi @ v - NUMBERS
        small = np.abs(r) <= 0.3
        value = np.where(small, 0.5 * r * r, 0.3 * (np.abs(r) - 0.15)).sum() + 0.5 * ALPHA * v[:-1] @ v[:-1]
        return value, Psi.T @ np.clip(r, -0.3, 0.3) + ALPHA * np.append(v[:-1], 0)

    least = minimize(objective, np.zeros(41), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9})
    ours, _ = objective(np.append(model.coef_, model.intercept_))
    assert ours == pytest.approx(least.fun, rel=1e-8)


@pytest.mark.parametrize("solver", ["cholesky", "cg", "lbfgs", "newton"])
def test_all_solvers_find_the_ridge_of_scikit_learn(solver):
    model = met(regressor(solver=solver, max_iter=200).fit(X, NUMBERS, WEIGHT))
    other = Ridge(ALPHA).fit(features(model), NUMBERS, WEIGHT)
    assert np.allclose(model.coef_, other.coef_, atol=1e-5 * np.abs(other.coef_).max())
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-5)
    assert model.factorisation_["method"].startswith(solver)


def test_fewer_rows_than_features_have_a_certificate_too():
    model = met(regressor(n_components=900).fit(X, NUMBERS))
    other = Ridge(ALPHA).fit(features(model), NUMBERS)
    assert np.allclose(model.predict(X), other.predict(features(model)), atol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_l1_is_the_lasso(solver):
    model = met(regressor(penalty="l1", alpha=3.0, solver=solver, solver_tol=1e-8).fit(X, NUMBERS))
    other = Lasso(3.0 / N, tol=1e-12, max_iter=1_000_000).fit(features(model), NUMBERS)
    assert np.allclose(model.coef_, other.coef_, atol=1e-4)
    assert 0 < np.count_nonzero(np.abs(model.coef_) > 1e-6) < 40


def test_l1_of_log_loss_is_that_of_scikit_learn():
    model = met(classifier(loss="log_loss", penalty="l1", alpha=2.0, solver_tol=1e-7).fit(X, TWO))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = LogisticRegression(penalty="l1", C=0.5, solver="saga", tol=1e-9, max_iter=50_000)
        other.fit(features(model), TWO)
    assert np.allclose(model.coef_, other.coef_, atol=2e-3)
    assert model.factorisation_["method"] == "newton"


@pytest.mark.parametrize("penalty", ["group_l21", "l1_linf"])
def test_groups_drop_features_for_all_classes_together(penalty):
    model = met(classifier(penalty=penalty, alpha=20.0, solver_tol=1e-7).fit(X, CODES))
    off = np.abs(model.coef_).max(axis=0) < 1e-9
    assert 0 < off.sum() < 40
    assert model.score(X, CODES) > 0.6


def test_a_ridge_beside_l1_is_the_elastic_net():
    from sklearn.linear_model import ElasticNet

    model = met(regressor(penalty="l1:ridge=0.5", alpha=3.0, solver_tol=1e-9).fit(X, NUMBERS))
    other = ElasticNet(4.5 / N, l1_ratio=2 / 3, tol=1e-12, max_iter=1_000_000).fit(features(model), NUMBERS)
    assert np.allclose(model.coef_, other.coef_, atol=1e-4)


def test_folds_choose_alpha_by_the_held_out_log_loss():
    fold = np.arange(N) % 3
    alphas = [0.01, 1.0, 100.0]
    model = met(classifier(loss="log_loss", alpha=alphas, cv=fold, solver_tol=1e-8).fit(X, CODES))
    Psi, errors = features(model), []
    for alpha in alphas:
        found = []
        for train, test in PredefinedSplit(fold).split():
            other = LogisticRegression(C=1 / alpha, tol=1e-9, max_iter=10_000).fit(Psi[train], CODES[train])
            found.append(-other.predict_log_proba(Psi[test])[np.arange(len(test)), CODES[test]].mean())
        errors.append(np.mean(found))
    order = np.argsort(model.cv_results_["param_alpha"])
    assert np.allclose(-model.cv_results_["mean_test_score"][order], errors, rtol=1e-4)
    assert model.alpha_ == alphas[int(np.argmin(errors))]


@pytest.mark.parametrize("loss", ["log_loss", "logistic", "squared_hinge", "smoothed_hinge"])
def test_auto_alpha_chooses_by_folds(loss):
    model = dkl.SingleKernelClassifier(**FIXED, loss=loss, cv=3).fit(X, CODES)
    assert met(model).score(X, CODES) > 0.75
    assert model.alpha_ in model.cv_results_["param_alpha"]


@pytest.mark.parametrize("loss", ["log_loss", "logistic"])
@pytest.mark.parametrize("chunk", [100, 250])
def test_chunks_give_the_same_weights(loss, chunk):
    options = {"loss": loss, "solver_tol": 1e-6}
    whole = classifier(**options).fit(X, CODES)
    parts = classifier(**options).fit(da.from_array(X, chunks=(chunk, M)), da.from_array(CODES, chunks=chunk))
    assert np.allclose(whole.coef_, parts.coef_, atol=1e-6)


def test_saved_models_keep_loss_certificate_and_probabilities(tmp_path):
    model = classifier(loss="log_loss").fit(X, CODES)
    model.save(tmp_path / "model")
    again = dkl.load(tmp_path / "model")
    assert again.certificate_ == model.certificate_
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("options", [{"loss": "log_loss"}, {"solver": "cg"}, {"loss": "log_loss", "penalty": "l1"}])
def test_a_fit_that_died_goes_on_with_the_same_bits(tmp_path, options, monkeypatch):
    from dkl.engine.embedded import Embedded

    want = classifier(**options, solver_tol=1e-7).fit(X, CODES)
    calls, whole = [0], Embedded.sum

    def dying(self, *args, **kwargs):
        calls[0] += 1
        if calls[0] == 7:
            raise RuntimeError("killed")
        return whole(self, *args, **kwargs)

    model = classifier(**options, solver_tol=1e-7, checkpoint=tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr(Embedded, "sum", dying)
        with pytest.raises(RuntimeError, match="killed"):
            model.fit(X, CODES)
    model.fit(X, CODES, resume=True)
    assert np.array_equal(model.coef_, want.coef_)
    assert len(model.history_.iteration) == len(want.history_.iteration)


def test_an_unmet_certificate_is_said():
    with pytest.warns(ConvergenceWarning, match="above solver_tol=1e-09"):
        model = classifier(loss="log_loss", max_iter=1, alpha=1e-6).fit(X, CODES)
    assert not model.certificate_["met"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_iter": 1, "alpha": 1e-3}, r"a KKT residual of .*, above solver_tol=1e-09 \(max_iter\); raise max_iter"),
        ({"max_time": 1e-9}, r"before a pass had measured their KKT residual \(max_time\); raise max_time"),
    ],
)
def test_a_warning_of_newton_says_what_to_do(options, said):
    with pytest.warns(ConvergenceWarning, match=said):
        model = classifier(loss="log_loss", penalty="l1", **options).fit(X, CODES)
    assert not model.certificate_["met"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "huber"}, "loss='huber' is for numbers"),
        ({"loss": "hinge"}, "loss='hinge'"),
        ({"penalty": "l3"}, "penalty='l3'"),
        ({"penalty": "l2:ridge=1"}, "behind the colon"),
        ({"penalty": "l1:ridge=-1"}, "above 0"),
        ({"solver": "cg", "loss": "log_loss"}, "solver='cg' is for loss='square'"),
        ({"solver": "lbfgs"}, "takes a loss of classes"),
        ({"solver": "cg", "reduce": 5}, "reduce=5"),
        ({"loss": "log_loss", "reduce": 5}, "reduce=5 needs squared errors"),
        ({"loss": "log_loss", "alpha": 0.0}, "alpha above 0"),
        ({"loss": "log_loss", "learn": "gcv"}, "gcv"),
        ({"solver_tol": 0}, "solver_tol=0"),
    ],
)
def test_what_does_not_go_together_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        classifier(**options).fit(X, CODES)


def test_the_plan_says_which_solver_and_why():
    few = dkl.plan(X, dkl.SingleKernelRegressor(n_components=100), NUMBERS)
    assert "cholesky" in str(few)
    assert "flops" in few.solver
    many = da.zeros((500_000, 10), chunks=(10_000, 10), dtype="float32")
    wide = dkl.plan(many, dkl.SingleKernelRegressor(n_components=60_000), da.zeros(500_000, chunks=10_000))
    assert wide.solver.startswith("cg")
    assert wide.worker_bytes < 4 * 2**30


@pytest.mark.parametrize("learn", ["joint", "validation", "cv"])
def test_sigma_is_learned_under_the_log_loss(learn):
    noise = np.column_stack([X, RNG.normal(size=(N, 2))])
    groups = np.arange(5)
    options = FIXED | {"sigma": 0.5, "groups": groups, "loss": "log_loss", "learn": learn, "max_iter": 8, "alpha": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = dkl.SingleKernelClassifier(**options).fit(noise, CODES)
    objective = model.history_.objective.values
    assert objective[-1] < objective[0]
    assert model.predict_proba(noise).shape == (N, 3)
    if learn != "joint":
        assert model.sigma_[3:].max() < model.sigma_[:3].max()


def test_huber_resists_outliers():
    y = NUMBERS.copy()
    y[::20] += 50
    ours, square = regressor(loss="huber").fit(X, y), regressor().fit(X, y)
    other = HuberRegressor(epsilon=1.35, alpha=ALPHA, max_iter=5000).fit(features(square), y)
    clean = np.median(np.abs(other.predict(features(square)) - NUMBERS))
    assert np.median(np.abs(ours.predict(X) - NUMBERS)) < 2 * clean + 0.2
    assert np.median(np.abs(square.predict(X) - NUMBERS)) > 2


def test_one_score_is_the_log_odds():
    model = classifier(loss="log_loss").fit(X, TWO)
    assert np.allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)))


@pytest.mark.parametrize("loss", ["log_loss", "logistic", "squared_hinge"])
def test_certificate_after_a_choice_is_over_the_gradient_at_zero(loss):
    model = classifier(loss=loss, cv=3, alpha=[0.1, 1.0, 10.0]).fit(X, CODES)
    Psi = np.column_stack([features(model), np.ones(N)])
    Y = 2.0 * (CODES[:, None] == np.arange(3)) - 1

    def slope(weights):
        z = Psi @ weights
        if loss == "log_loss":
            of_scores = softmax(z, axis=1) - (Y > 0)
        else:
            of_scores = -Y * (expit(-Y * z) if loss == "logistic" else np.maximum(0, 1 - Y * z))
        return Psi.T @ of_scores + model.alpha_ * np.vstack([weights[:-1], 0 * weights[-1:]])

    found = np.vstack([model.coef_.T, model.intercept_])
    true = np.linalg.norm(slope(found)) / np.linalg.norm(slope(0 * found))
    assert model.certificate_["value"] == pytest.approx(true, rel=1e-3)


@pytest.mark.parametrize("alpha", [1e-2, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_intercept_far_from_the_mean_is_reached(alpha, unit):
    y = np.where(np.arange(N) % 10 == 0, 50.0, NUMBERS)
    model = met(regressor(loss=f"huber:delta={0.1 * unit}", alpha=alpha).fit(X, unit * y))
    residual = features(model) @ np.atleast_2d(model.coef_).reshape(-1) + model.intercept_ - unit * y
    assert abs(np.clip(residual / unit, -0.1, 0.1).sum()) < 1e-4 * N
    assert model.n_iter_ < 100


def test_one_alpha_has_scores_of_its_folds():
    model = classifier(loss="log_loss", cv=np.arange(N) % 3, alpha=0.5).fit(X, CODES)
    assert model.alpha_ == 0.5
    held, errors = features(model), []
    for train, test in PredefinedSplit(np.arange(N) % 3).split():
        other = LogisticRegression(C=2.0, tol=1e-9, max_iter=10_000).fit(held[train], CODES[train])
        errors.append(-other.predict_log_proba(held[test])[np.arange(len(test)), CODES[test]].mean())
    assert -model.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(errors), rel=1e-3)


@pytest.mark.parametrize("solver", ["cg", "lbfgs", "newton"])
def test_only_the_gram_has_principal_axes(solver):
    with pytest.raises(ValueError, match=f"solver='{solver}' finds no principal axes for reduce=5; use solver='chol"):
        regressor(solver=solver, reduce=5).fit(X, NUMBERS)


def test_units_of_a_loss_are_no_share_of_the_variance():
    options = {"learn": "cv", "loss": "epsilon_insensitive:epsilon=1e-5,gamma=1e4", "alpha": 10.0, "max_iter": 3}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the learned kernel leaves")
        warnings.filterwarnings("ignore", "learning stopped|learning ended")
        assert regressor(**options, starts=1).fit(X, 1e-3 * X[:, 0]).score(X, 1e-3 * X[:, 0]) > 0.99


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"learn": "cv", "loss": "huber", "penalty": "l1"}, "alpha='auto' would be learned for penalty='l2'"),
        ({"learn": "joint", "penalty": "l1"}, "penalty='l1' does not go with learn='joint'"),
        ({"loss": "huber", "penalty": "l1", "cv": 5}, "solver='newton', which cannot choose alpha by folds"),
        ({"loss": "huber", "alpha": [0.1, 1.0]}, "takes one alpha, not 2; set cv=5"),
        ({"loss": "huber:delta=1,delta=2"}, "delta is given twice"),
        ({"learn_components": 50}, "use learn='cv', or learn_components=None"),
    ],
)
def test_no_alpha_of_another_penalty(options, said):
    with pytest.raises(ValueError, match=said):
        regressor(**({"alpha": "auto"} | options)).fit(X, NUMBERS)


def test_blanks_between_the_parameters_of_a_loss():
    close, apart = (f"epsilon_insensitive:epsilon=0.1,{blank}gamma=3" for blank in ("", " "))
    assert np.array_equal(regressor(loss=close).fit(X, NUMBERS).coef_, regressor(loss=apart).fit(X, NUMBERS).coef_)


@pytest.mark.parametrize(
    "options", [{"solver": "newton"}, {"solver": "lbfgs"}, {"solver": "lbfgs", "cv": 3, "alpha": "auto"}]
)
def test_weights_that_were_stopped_can_be_saved_and_read(tmp_path, options):
    with pytest.warns(ConvergenceWarning, match=r"\(max_time\); raise max_time"):
        model = classifier(loss="log_loss", max_time=1e-9, **options).fit(X, CODES)
    assert not model.certificate_["met"]
    assert model.certificate_["value"] is None or model.certificate_["value"] > TIGHT
    model.save(tmp_path / "stopped")
    again = dkl.load(tmp_path / "stopped")
    assert again.certificate_ == model.certificate_
    assert np.array_equal(again.predict(X), model.predict(X))


def test_conjugate_gradients_name_the_limit_that_they_met():
    with pytest.warns(ConvergenceWarning, match=r"above solver_tol=1e-09 \(max_time\); raise max_time"):
        assert not classifier(solver="cg", max_time=1e-9).fit(X, CODES).certificate_["met"]


def test_save_refuses_what_load_would_refuse(tmp_path):
    model = classifier().fit(X, CODES)
    model.certificate_ = model.certificate_ | {"value": float("nan")}
    with pytest.raises(ValueError, match="value is nan"):
        model.save(tmp_path / "nan")
    assert not (tmp_path / "nan").exists()
