"""Stopping on rows that no fold has seen, convergence that counts every coordinate, and the refit without l1."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import dkl
from dkl.learn.iterate import iterate
from dkl.sums.folds import fold_of, held_out

COMMON = {"random_state": 0, "verbose": 0, "dtype": "float64"}


def noisy(n: int, seed: int, inputs: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Two of many inputs decide, every seventh row lies in the wrong class: easy to learn by heart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, inputs))
    y = (X[:, 0] + X[:, 1] > 0) ^ (rng.random(n) < 0.15)
    return X, y.astype(int)


def quiet(model, *data):
    """Fit, whatever it says about limits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


def seed_of(model: dkl.SingleKernelRegressor, X: np.ndarray, y: np.ndarray) -> int:
    """The seed of the folds, as the library draws it; only which rows are where follows from it."""
    found = []

    def spy(run, method):
        found.append(method.first.seed)
        return iterate(run, method)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkl.estimators.single.iterate", spy)
        quiet(model, X, y)
    return found[0]


def test_both_errors_of_the_start_are_those_of_explicit_ridges():
    """scikit-learn's Ridge over the folds without the rows set aside, and on those rows."""
    X, y = make_friedman1(400, n_features=12, noise=0.5, random_state=1)
    model = dkl.SingleKernelRegressor(
        n_components=40, learn="cv", groups="each", alpha=0.3, starts=1, max_iter=1, early_stopping=0.25, **COMMON
    )
    seed = seed_of(model, X, y)
    unseen = held_out(0, 400, (1, 4), seed + 1) == 1
    fold = fold_of(0, 400, 5, seed)
    start = dkl.FourierFeatures(n_components=40, groups="each", random_state=0, verbose=0, dtype="float64").fit(X)
    Psi = start.transform(X)
    errors = []
    for k in range(5):
        train, test = ~unseen & (fold != k), ~unseen & (fold == k)
        ridge = Ridge(alpha=0.3, solver="cholesky").fit(Psi[train], y[train])
        errors.append(np.mean((ridge.predict(Psi[test]) - y[test]) ** 2))
    np.testing.assert_allclose(model.history_.objective[0], np.mean(errors), rtol=1e-8)
    ridge = Ridge(alpha=0.3, solver="cholesky").fit(Psi[~unseen], y[~unseen])
    wanted = np.mean((ridge.predict(Psi[unseen]) - y[unseen]) ** 2)
    np.testing.assert_allclose(model.history_.unseen_error[0], wanted, rtol=1e-8)


@pytest.mark.parametrize("learn", ["validation", "cv", "gcv", "frequencies"])
def test_rows_set_aside_do_not_touch_the_descent(learn):
    """Whatever y they have, objective, gradient and sigma of every iteration are the same."""
    X, y = make_friedman1(300, n_features=5, noise=0.5, random_state=2)
    options = {"n_components": 20, "groups": "each", "alpha": 0.3, "starts": 1, "max_iter": 3, "sigma": 1.0}
    model = dkl.SingleKernelRegressor(learn=learn, early_stopping=0.2, **options, **COMMON)
    seed = seed_of(model, X, y)
    other = y.copy()
    unseen = held_out(0, 300, (1, 5), seed + 1) == 1
    other[unseen] = y[unseen][::-1]  # as many, as large: the units of y stay
    again = quiet(dkl.SingleKernelRegressor(learn=learn, early_stopping=0.2, **options, **COMMON), X, other)
    count = 1 + np.argmax(model.history_.passes.values)  # the last row may be a copy of the best one
    for name in ("objective", "gradient_norm", "sigma"):
        np.testing.assert_allclose(again.history_[name][:3], model.history_[name][: min(3, count)], rtol=1e-9)
    assert np.abs(again.history_.unseen_error[0] / model.history_.unseen_error[0] - 1) > 0.1


def test_frequencies_stop_before_they_learn_the_folds_by_heart():
    """The end is the point with the least error on unseen rows, and test rows confirm it."""
    (X, y), (A, a) = noisy(600, 0), noisy(4000, 1)
    options = {"n_components": 200, "learn": "frequencies", "starts": 1, **COMMON}
    stopped = quiet(dkl.SingleKernelClassifier(**options), X, y)
    by_heart = quiet(dkl.SingleKernelClassifier(**options, early_stopping=None), X, y)
    history = stopped.history_
    assert history.unseen_error[-1] == history.unseen_error.min()
    assert history.objective[-1] > history.objective.min()
    assert "unseen_error" not in by_heart.history_
    assert by_heart.score(X, y) == 1.0
    assert stopped.score(A, a) > by_heart.score(A, a) + 0.01


def test_many_sigmas_stop_before_they_learn_the_folds_by_heart():
    """Held-out rows of one share are learned by heart soonest."""
    (X, y), (A, a) = noisy(600, 0), noisy(4000, 1)
    options = {"n_components": 200, "learn": "validation", "groups": "each", "starts": 1, **COMMON}
    stopped = quiet(dkl.SingleKernelClassifier(**options), X, y)
    by_heart = quiet(dkl.SingleKernelClassifier(**options, early_stopping=None), X, y)
    assert stopped.history_.unseen_error[-1] == stopped.history_.unseen_error.min()
    assert stopped.score(A, a) > by_heart.score(A, a)


def test_many_parameters_do_not_converge_at_the_start():
    """No coordinate of the gradient is large beside the objective; together they lower it by more than half."""
    X, y = load_digits(return_X_y=True)
    options = {"n_components": 100, "learn": "frequencies", "starts": 1, "alpha": 1.0, "tol": 0.02, **COMMON}
    model = quiet(dkl.SingleKernelClassifier(**options), X[:1200] / 16, y[:1200])
    history = model.history_
    assert float(history.gradient_norm[0]) < model.tol * float(history.objective[0])
    assert float(history.objective[-1]) < 0.5 * float(history.objective[0])
    plain = dkl.SingleKernelClassifier(n_components=100, alpha=1.0, **COMMON).fit(X[:1200] / 16, y[:1200])
    assert model.score(X[1200:] / 16, y[1200:]) > plain.score(X[1200:] / 16, y[1200:])


def test_a_learner_that_ends_where_it_began_says_so():
    """A tolerance that nothing can meet."""
    X, y = make_friedman1(300, random_state=0)
    model = dkl.SingleKernelRegressor(n_components=50, learn="gcv", starts=1, tol=1e4, **COMMON)
    with pytest.warns(ConvergenceWarning, match=r"ended where it began, so sigma did not change.*tol=10000"):
        model.fit(X, y)
    assert np.ptp(model.history_.sigma.values, axis=0).max() == 0


def test_alpha_is_held_while_frequencies_move():
    """One alpha for each start: 1, 4 and 16 times the best one there; the model's is one of them."""
    X, y = noisy(600, 0)
    model = quiet(dkl.SingleKernelClassifier(n_components=60, learn="frequencies", max_iter=4, **COMMON), X, y)
    first = model.history_.where(model.history_.stage == 0, drop=True)
    held = [np.unique(first.alpha[first.start == start].round(12)) for start in range(3)]
    assert [len(one) for one in held] == [1, 1, 1]
    np.testing.assert_allclose([one[0] / held[0][0] for one in held], [1, 4, 16], rtol=1e-6)
    assert np.isclose(model.alpha_, np.concatenate(held)).any()


def test_the_bias_of_l1_is_removed():
    """Friedman: five inputs stay selected, and the refit explains test rows better than the penalised sigmas do."""
    X, y = make_friedman1(2500, n_features=15, noise=0.5, random_state=0)
    options = {"n_components": 200, "random_state": 0, "verbose": 0}
    learned = {"learn": "cv", "groups": "each", "sigma_l1": 0.01, "starts": 1}
    model = quiet(dkl.SingleKernelRegressor(**options, **learned), X[:1500], y[:1500])
    np.testing.assert_array_equal(np.flatnonzero(model.selected_inputs_), range(5))
    history, errors = model.history_, model.refit_errors_
    last = int(np.flatnonzero(history.stage < history.stage.max())[-1])
    assert errors["penalised"] == float(history.validation_error[last])
    assert errors["refit"] == float(history.validation_error[-1]) < errors["penalised"]
    penalised = dkl.SingleKernelRegressor(
        **options, sigma=history.sigma.values[last], groups="each", alpha="auto", cv=5
    )
    penalised.fit(X[:1500], y[:1500])
    assert model.score(X[1500:], y[1500:]) > penalised.score(X[1500:], y[1500:]) + 0.002


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"early_stopping": 0.7}, "early_stopping=0.7.*0.01 to 0.5"),
        ({"early_stopping": -0.1}, "early_stopping"),
        ({"early_stopping": "yes"}, "early_stopping='yes'"),
        ({"early_stopping": True}, "early_stopping=True"),
        ({"early_stopping": 0.1, "learn": "none"}, "learn='none', which learns nothing"),
    ],
)
def test_refusals(options, words):
    """A value that is no share, or one that nothing reads."""
    X, y = make_friedman1(100, random_state=0)
    with pytest.raises(ValueError, match=words):
        dkl.SingleKernelRegressor(**({"learn": "cv"} | options)).fit(X, y)


@pytest.mark.parametrize(
    ("options", "is_there"),
    [
        ({"groups": "each"}, True),
        ({"groups": None}, False),  # one sigma
        ({"groups": "each", "sigma_l1": 0.01}, False),
        ({"groups": "each", "cv": np.arange(400) % 40}, False),  # ten rows in a fold
        ({"groups": "each", "learn": "validation", "validation": np.arange(400) < 5}, False),
        ({"groups": None, "learn": "frequencies"}, True),
        ({"groups": "each", "learn": "joint"}, False),
        ({"groups": None, "early_stopping": 0.2}, True),
    ],
)
def test_when_rows_are_set_aside(options, is_there):
    """By default only for many parameters, and only if no fold is left with a few rows."""
    X, y = make_friedman1(400, n_features=12, random_state=0)
    model = dkl.SingleKernelRegressor(
        n_components=20, **({"learn": "cv", "starts": 1, "max_iter": 1} | options), **COMMON
    )
    assert ("unseen_error" in quiet(model, X, y).history_) == is_there
