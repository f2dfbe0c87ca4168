"""Alternating directions: the loss's proximal step against scipy, and the whole iteration in dense numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.linear_model import Lasso, LogisticRegression

from dkl.losses import find_loss
from dkl.losses.prox import loss_prox
from dkl.penalties import L1
from dkl.solvers.admm import APART, EVERY, LAST, RowSums, advanced, begun, next_xi, residuals, system_of

RNG = np.random.default_rng(0)
SINGLE = [
    "square", "huber:delta=0.7", "epsilon_insensitive", "logistic", "squared_hinge", "smoothed_hinge:mu=0.3", "log_loss"
]  # fmt: skip


def rows(loss, count, outputs=1):
    """Points, and targets of the loss's kind."""
    v = 4 * RNG.normal(size=(count, outputs))
    y = RNG.integers(0, max(2, outputs), count) if loss.is_class else 3 * RNG.normal(size=(count, outputs))
    return v, y


@pytest.mark.parametrize("xi", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", SINGLE)
def test_prox_of_one_score(name, xi):
    """Scipy's scalar minimiser; the start does not matter, nor do other rows."""
    loss = find_loss(name)
    v, y = rows(loss, 12)
    found = loss_prox(loss, v, y, xi, v)
    for i in range(len(v)):

        def objective(a, i=i):
            return loss.value(np.array([[a]]), y[[i]])[0] + xi / 2 * (a - v[i, 0]) ** 2

        best = minimize_scalar(objective, bracket=(v[i, 0] - 1, v[i, 0] + 1), options={"xtol": 1e-12})
        assert found[i, 0] == pytest.approx(best.x, abs=2e-7)
        alone = loss_prox(loss, v[[i]], y[[i]], xi, v[[i]])
        np.testing.assert_allclose(alone, found[[i]], rtol=0, atol=1e-13 * (1 + abs(v[i, 0])))
    np.testing.assert_allclose(loss_prox(loss, v, y, xi, 0 * v), found, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("xi", [0.05, 2.0])
@pytest.mark.parametrize("outputs", [3, 5])
def test_prox_of_scores_that_share_a_loss(outputs, xi):
    """The softmax of a row, against scipy."""
    loss = find_loss("log_loss:sharpness=1.3")
    v, y = rows(loss, 6, outputs)
    found = loss_prox(loss, v, y, xi, np.zeros_like(v))
    for i in range(len(v)):

        def objective(a, i=i):
            return loss.value(a[None], y[[i]])[0] + xi / 2 * ((a - v[i]) ** 2).sum()

        best = minimize(objective, v[i], method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(found[i], best.x, atol=2e-6)


@pytest.mark.parametrize("name", [*SINGLE, "log_loss"])
def test_prox_is_as_near_as_rounding_allows(name):
    """dl/da + xi (a - v) vanishes, whatever xi, also far out."""
    loss = find_loss(name)
    for outputs in (1, 4):
        v, y = rows(loss, 300, outputs)
        v[:20] *= 1e6
        for xi in (1e-4, 0.3, 100.0):
            a = loss_prox(loss, v, y, xi, v)
            left = np.abs(loss.slope(a, y) + xi * (a - v))
            assert (left <= 1e-13 * (1 + xi * np.abs(v).max(axis=1, keepdims=True) + np.abs(v))).all()


N, D = 150, 8
PSI = RNG.normal(size=(N, D)) + 0.3
TRUTH = PSI[:, :3] @ [1.0, -2.0, 0.7] + 0.5


def iterate(loss, y, weight, lam, intercept=True, steps=400, xi=None):
    """The method on dense rows, with no pass and no engine: sums by hand."""
    w = weight.sum()
    mean = PSI.T @ weight / w * intercept
    gram = (PSI - mean).T @ (weight[:, None] * (PSI - mean)) / w
    system, c = system_of(gram, mean, 1.0, intercept), 1
    W, b, a = np.zeros((D, c)), np.zeros(c), np.zeros((N, c))
    mu = loss.slope(a, y)

    def sums(z):
        def pair(values):
            return PSI.T @ (weight[:, None] * values) / w, weight @ values / w

        size = max(weight @ (z * z) / w, weight @ (a * a) / w)
        return RowSums(*pair(a), *pair(mu), float((weight @ (z - a) ** 2).sum() / w), float(np.sum(size)))

    at, seen = begun(W, b, sums(a), xi or loss.most_curved(1)), []
    z = a
    for _ in range(steps):
        at = advanced(system, at, sums(z), L1(), lam)
        z = PSI @ at.weights + at.intercept
        v = z + mu / at.xi
        a = loss_prox(loss, v, y, at.xi, a)
        mu = at.xi * (v - a)
        seen.append(residuals(system, at, sums(z)))
    return at, seen


@pytest.mark.parametrize("intercept", [True, False])
def test_squares_are_the_lasso(intercept):
    """Scikit-learn's lasso, exact zeros included; both residuals vanish."""
    y = (TRUTH + 0.1 * RNG.normal(size=N))[:, None]
    at, seen = iterate(find_loss("square"), y, np.ones(N), 0.2, intercept)
    theirs = Lasso(0.2, fit_intercept=intercept, tol=1e-12, max_iter=100_000).fit(PSI, y[:, 0])
    np.testing.assert_allclose(at.sparse[:, 0], theirs.coef_, atol=1e-8)
    assert ((at.sparse[:, 0] == 0) == (theirs.coef_ == 0)).all()
    assert at.intercept[0] == pytest.approx(float(theirs.intercept_), abs=1e-8)
    assert max(seen[-1]) < 1e-9
    assert max(seen[0]) > 1e-3


@pytest.mark.parametrize("start", [0.01, 0.25, 20.0])
def test_log_loss_with_weights(start):
    """Scikit-learn's l1, without an intercept (theirs is penalised), wherever xi begins; KKT residual below 1e-5."""
    y = (TRUTH + RNG.normal(size=N) > 0).astype(int)
    weight = RNG.uniform(0.2, 3, N)
    loss, lam = find_loss("logistic"), 0.05
    at, _ = iterate(loss, y, weight, lam, intercept=False, steps=600, xi=start)
    C = -PSI.T @ (weight[:, None] * loss.slope(PSI @ at.sparse, y)) / weight.sum()
    on = at.sparse != 0
    assert np.abs(C[on] - lam * np.sign(at.sparse[on])).max() < 1e-5 * lam
    assert np.abs(C[~on]).max() <= lam * (1 + 1e-5)
    theirs = LogisticRegression(
        C=1 / (lam * weight.sum()), l1_ratio=1.0, solver="saga", fit_intercept=False, tol=1e-10, max_iter=20_000
    ).fit(PSI, y, weight)  # fmt: skip
    np.testing.assert_allclose(at.sparse[:, 0], theirs.coef_[0], atol=1e-5)


def test_xi_follows_the_larger_residual():
    """Doubled or halved every tenth step, up to the last that looks."""
    system = system_of(np.eye(2), np.zeros(2), 1.0, False)
    zero, one = np.zeros((2, 1)), np.ones((2, 1))
    sums = RowSums(one, np.zeros(1), zero, np.zeros(1), 0.0, 1.0)
    at = begun(zero, np.zeros(1), sums, 1.0)
    moving = at._replace(number=EVERY, before=(zero, np.zeros(1), zero))
    apart = at._replace(number=EVERY, weights=100 * one)
    assert next_xi(system, moving, sums) == 0.5
    assert next_xi(system, apart, sums) == 2.0
    for still in (at, moving._replace(number=EVERY + 1), moving._replace(number=LAST + EVERY)):
        assert next_xi(system, still, sums) == 1.0
    primal, dual = residuals(system, moving._replace(weights=one), sums)
    assert max(primal / dual, dual / primal) < APART
    assert next_xi(system, moving._replace(weights=one), sums) == 1.0
