"""Ridge from sums against scikit-learn's Ridge on the rows."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dkl.solvers.ridge import (
    Moments,
    centred,
    centred_cross,
    largest_eigenvalue,
    least_objective,
    residual_energy,
    solve_ridge,
)

N, D = 90, 12


def draw(weighted, outputs=3):
    rng = np.random.default_rng(0)
    Psi = rng.normal(size=(N, D)) + 0.7
    Y = Psi @ rng.normal(size=(D, outputs)) + rng.normal(size=(N, outputs)) + 5
    w = rng.gamma(2, size=N) if weighted else np.ones(N)
    return Psi, Y, w


def sums_of(Psi, Y, w):
    W = w[:, None]
    return Moments(w.sum(), Psi.T @ (W * Psi), Psi.T @ (W * Y), w @ Psi, w @ Y, w @ Y**2)


@pytest.mark.parametrize("alpha", [[1e-6], [0.3], [100.0], [0.1, 5.0, 0.1]], ids=str)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_solve_ridge(weighted, fit_intercept, alpha):
    """The same coefficients and intercepts, with one alpha or one for each output."""
    Psi, Y, w = draw(weighted)
    alpha = np.array(alpha)
    model = Ridge(np.broadcast_to(alpha, 3), fit_intercept=fit_intercept, solver="cholesky").fit(Psi, Y, w)
    found = solve_ridge(sums_of(Psi, Y, w), alpha, fit_intercept)
    np.testing.assert_allclose(found.coef, model.coef_.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.intercept, np.broadcast_to(model.intercept_, 3), rtol=1e-9, atol=1e-9)
    assert [f.method for f in found.factors] == ["cholesky"] * len(set(alpha))


def test_constant_target_has_no_weights():
    """The intercept takes it all."""
    Psi, _, w = draw(weighted=True)
    found = solve_ridge(sums_of(Psi, np.full((N, 1), 4.0), w), np.array([1.0]), True)
    np.testing.assert_allclose(found.coef, 0, atol=1e-12)
    np.testing.assert_allclose(found.intercept, 4.0, rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_residual_energy_on_other_rows(weighted, fit_intercept):
    """Weighted squared residuals of a model on rows it was not fitted to, one number for each output."""
    Psi, Y, w = draw(weighted)
    train, test = slice(0, 50), slice(50, N)
    found = solve_ridge(sums_of(Psi[train], Y[train], w[train]), np.array([1.0]), fit_intercept)
    expected = w[test] @ (Psi[test] @ found.coef + found.intercept - Y[test]) ** 2
    energy = residual_energy(sums_of(Psi[test], Y[test], w[test]), found.coef, found.intercept)
    np.testing.assert_allclose(energy, expected, rtol=1e-10)


def test_residual_energy_is_never_negative():
    """A perfect fit is zero up to rounding, from above."""
    Psi, _, w = draw(weighted=True)
    coef = np.random.default_rng(1).normal(size=(D, 50))
    energy = residual_energy(sums_of(Psi, Psi @ coef, w), coef, np.zeros(50))
    assert (energy >= 0).all()
    assert energy.max() < 1e-9


@pytest.mark.parametrize("d", [1, 2, 12, 60])
def test_largest_eigenvalue_of_a_gram_matrix(d):
    """An estimate from below, within a tenth."""
    Psi = np.random.default_rng(d).normal(size=(200, d)) + 0.3
    top = np.linalg.eigvalsh(Psi.T @ Psi)[-1]
    assert 0.9 * top <= largest_eigenvalue(Psi.T @ Psi) <= top * (1 + 1e-12)


def test_largest_eigenvalue_of_a_diagonal():
    """One large entry is found."""
    assert largest_eigenvalue(np.diag([1.0, 2.0, 50.0, 3.0])) == pytest.approx(50, rel=1e-9)


def test_largest_eigenvalue_of_opposite_features():
    """A top eigenvector without a mean, as of two opposite features, is found as well."""
    assert largest_eigenvalue(np.array([[1.0, -1.0], [-1.0, 1.0]])) == pytest.approx(2, rel=1e-9)


def test_largest_eigenvalue_of_zero():
    """Nothing to find."""
    assert largest_eigenvalue(np.zeros((3, 3))) == 0


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_centred_sums_are_those_of_centred_rows(fit_intercept):
    """Gc and Rc of rows less their weighted means; without an intercept, of the rows as they are."""
    Psi, Y, w = draw(weighted=True)
    S = sums_of(Psi, Y, w)
    if fit_intercept:
        Psi, Y = Psi - w @ Psi / w.sum(), Y - w @ Y / w.sum()
    found = centred(S, fit_intercept)
    np.testing.assert_allclose(found.gram, Psi.T @ (w[:, None] * Psi), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.cross, Psi.T @ (w[:, None] * Y), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(centred_cross(S, fit_intercept), found.cross)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_least_objective(fit_intercept):
    """Square loss + lam |coef|^2 of the rows at the solution, and never below zero."""
    Psi, Y, w = draw(weighted=True)
    S, lam = sums_of(Psi, Y, w), np.array([0.1, 5.0, 40.0])
    found = solve_ridge(S, lam, fit_intercept)
    expected = w @ (Psi @ found.coef + found.intercept - Y) ** 2 + lam * (found.coef**2).sum(axis=0)
    np.testing.assert_allclose(least_objective(S, found, fit_intercept), expected, rtol=1e-9)
    below = S._replace(target_square=np.zeros(3))
    assert (least_objective(below, found, fit_intercept) == 0).all()


def test_power_steps():
    """As many as asked for, twenty if nothing is said."""
    A = np.diag([1.0, 0.999, 0.5])
    v = np.cos([1.0, 2.0, 3.0])
    for steps, given in ((20, {}), (3, {"steps": 3}), (1, {"steps": 1})):
        ends = np.linalg.norm(np.linalg.matrix_power(A, steps) @ v) / np.linalg.norm(
            np.linalg.matrix_power(A, steps - 1) @ v
        )
        assert largest_eigenvalue(A, **given) == pytest.approx(ends, rel=1e-12)
