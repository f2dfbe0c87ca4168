"""Sparse weights from their sums, against scikit-learn on the rows, and against the conditions of a least point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import ElasticNet, Lasso, MultiTaskLasso

from dkl.penalties import L1, L2, PENALTIES, Elastic, GroupL21, L1Linf
from dkl.solvers.fista import fista, kkt_residual

N, D = 60, 12
GROUPS, ETA = np.arange(D) // 3, np.array([1.0, 0.5, 2.0, 1.5])
CASES = {
    "l1": L1(),
    "rows": GroupL21(),
    "groups": GroupL21(GROUPS, ETA),
    "linf": L1Linf(GROUPS, ETA),
    "elastic": Elastic(L1(), 0.3),
    "elastic groups": Elastic(Elastic(GroupL21(GROUPS), 0.1), 0.1),
}


def drawn(seed: int, c: int = 2, decay: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose columns are of several sizes, and targets of few of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * np.exp(-decay * np.arange(D)) @ np.linalg.qr(rng.normal(size=(D, D)))[0]
    return X, X[:, :3] @ rng.normal(size=(3, c)) + 0.1 * rng.normal(size=(N, c))


def solved(X: np.ndarray, Y: np.ndarray, lam: float, penalty, **options):
    return fista(X.T @ X, X.T @ Y, lam, penalty, energy=float((Y * Y).sum()), **options)


@pytest.mark.parametrize("share", [0.5, 0.05, 0.005])
@pytest.mark.parametrize("seed", range(3))
def test_lasso_of_scikit_learn(seed: int, share: float) -> None:
    """l1, elastic and rows of several outputs."""
    X, Y = drawn(seed)
    alpha = share * np.abs(X.T @ Y).max() / N
    tight = {"fit_intercept": False, "tol": 1e-14, "max_iter": 10**6}
    right = Lasso(alpha=alpha, **tight).fit(X, Y).coef_.T
    np.testing.assert_allclose(solved(X, Y, N * alpha, L1(), tol=1e-12).coef, right, atol=1e-4)
    right = MultiTaskLasso(alpha=alpha, **tight).fit(X, Y).coef_.T
    np.testing.assert_allclose(solved(X, Y, N * alpha, GroupL21(), tol=1e-12).coef, right, atol=1e-4)
    right = ElasticNet(alpha=alpha, l1_ratio=0.25, **tight).fit(X, Y).coef_.T
    found = solved(X, Y, N * alpha * 0.25, Elastic(L1(), 3.0), tol=1e-12)
    np.testing.assert_allclose(found.coef, right, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_certificates(name: str, seed: int) -> None:
    """The gap bounds the excess at any point; at the end no direction leads downhill, by differences."""
    (X, Y), penalty, rng = drawn(seed), CASES[name], np.random.default_rng(seed)
    lam = 0.1 * penalty.dual_norm(X.T @ Y)

    def value(B: np.ndarray) -> float:
        return 0.5 * float(((Y - X @ B) ** 2).sum()) + lam * penalty.value(B)

    end = solved(X, Y, lam, penalty, tol=1e-12)
    assert end.converged
    assert end.objective == pytest.approx(value(end.coef), rel=1e-10)
    assert end.kkt <= 1e-4 * lam
    for limit in (1, 7, 30):
        rough = solved(X, Y, lam, penalty, tol=1e-12, max_iter=limit)
        assert value(rough.coef) - end.objective <= rough.gap + 1e-10
        assert rough.converged == (rough.gap <= 1e-12 * (Y * Y).sum())
    for size in (1.0, 0.1, 1e-2):
        for _ in range(20):
            some = rng.normal(size=end.coef.shape) * (rng.random(end.coef.shape) < 0.3)
            assert value(end.coef + size * some) >= end.objective - 1e-10
    for name_of, zeroed in (("rows", 1), ("groups", 3)):
        if name == name_of:
            gone = (end.coef.reshape(D // zeroed, -1) == 0).all(axis=1)
            assert 0 < gone.sum() < D // zeroed


@pytest.mark.parametrize("penalty", [L1(), GroupL21(), L1Linf(GROUPS)])
def test_a_gram_for_each_output(penalty) -> None:
    """Outputs with rows of their own, which the penalty may join: scipy on a smooth form of the problem."""
    rng, lam = np.random.default_rng(5), 2.0
    X, Y = rng.normal(size=(2, N, 6)), rng.normal(size=(N, 2)) + 1
    if not isinstance(penalty, L1):
        penalty = type(penalty)(np.repeat([0, 1], 3))
    grams, cross = np.stack([x.T @ x for x in X]), np.stack([x.T @ Y[:, j] for j, x in enumerate(X)], axis=1)
    end = fista(grams, cross, lam, penalty, energy=float((Y * Y).sum()), tol=1e-12)

    def value(flat: np.ndarray) -> float:
        B = flat.reshape(6, 2)
        z = np.stack([x @ B[:, j] for j, x in enumerate(X)], axis=1)
        return 0.5 * float(((Y - z) ** 2).sum()) + lam * penalty.value(B)

    right = min(
        (minimize(value, at, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14, "maxiter": 10**5}).fun)
        for at in (np.zeros(12), end.coef.ravel())
    )
    assert end.objective == pytest.approx(value(end.coef.ravel()), rel=1e-12)
    assert right >= end.objective - 1e-9
    assert end.converged


def test_warm_starts_limits_and_zero() -> None:
    """A near start takes fewer iterations; a limit is not convergence; a large lam gives zero at once."""
    X, Y = drawn(0, decay=0.5)
    most = L1().dual_norm(X.T @ Y)
    cold = solved(X, Y, 0.01 * most, L1())
    warm = solved(X, Y, 0.01 * most, L1(), start=cold.coef)
    assert warm.iterations == 0 < cold.iterations
    assert not solved(X, Y, 0.01 * most, L1(), max_iter=3).converged
    zero = solved(X, Y, 1.001 * most, L1())
    assert zero.converged
    assert not zero.coef.any()
    blind = fista(X.T @ X, X.T @ Y, 0.01 * most, L1(), tol=1e-7)
    assert blind.converged
    assert np.isnan(blind.gap)
    assert blind.kkt <= 1e-7 * 0.01 * most
    np.testing.assert_allclose(blind.coef, cold.coef, atol=1e-3)
    nothing = fista(np.zeros((3, 3)), np.zeros((3, 1)), 1.0, L1(), energy=1.0)
    assert nothing.converged
    assert not nothing.coef.any()


def test_refusals_and_the_residual_of_a_norm() -> None:
    """Smooth penalties and lam = 0 have other solvers; the residual is zero for a subgradient alone."""
    with pytest.raises(ValueError, match="smooth"):
        fista(np.eye(2), np.ones((2, 1)), 1.0, Elastic(L2(), 1.0))
    with pytest.raises(ValueError, match=r"lam=0\.0 must be above 0"):
        fista(np.eye(2), np.ones((2, 1)), 0.0, L1())
    B = np.array([[1.0], [0.0], [-2.0]])
    assert kkt_residual(np.array([[3.0], [-2.0], [-3.0]]), B, 3.0, L1()) == 0
    assert kkt_residual(np.array([[3.0], [-4.0], [-3.0]]), B, 3.0, L1()) == 1.0
    assert kkt_residual(np.array([[3.0], [0.0], [3.0]]), B, 3.0, L1()) == 4.0
    assert kkt_residual(np.zeros((3, 1)), 0 * B, 3.0, L1()) == 0
    assert set(PENALTIES) == {"l2", "l1", "group_l21", "l1_linf", "elastic"}
