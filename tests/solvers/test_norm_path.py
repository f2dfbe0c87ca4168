"""Paths of l1linf and l2, against proximal gradients written here, scipy and scikit-learn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge

from dkl.solvers.group_norms import GroupNorm
from dkl.solvers.norm_path import lams_of, linf_path, path_cost, path_of, ridge_path

N, D = 80, 12
GROUPS, ETA = np.array([0, 1, 1, 2, 0, 3, 3, 3, 0, 1, 2, 2]), np.array([1.0, 0.5, 2.0, 1.5])


def drawn(seed: int, c: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose columns are of several sizes, and targets of few of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * np.exp(-0.2 * np.arange(D)) @ np.linalg.qr(rng.normal(size=(D, D)))[0]
    return X, X[:, :4] @ rng.normal(size=(4, c)) + 0.3 * rng.normal(size=(N, c))


def largest(C: np.ndarray) -> float:
    """lam_max of l1linf, group by group."""
    return max(float(np.abs(C[g == GROUPS]).sum()) / ETA[g] for g in range(4))


def value(X: np.ndarray, Y: np.ndarray, W: np.ndarray, lam: float, ridge: float) -> float:
    """P on the rows."""
    norm = sum(ETA[g] * np.abs(W[g == GROUPS]).max() for g in range(4))
    return 0.5 * float(((Y - X @ W) ** 2).sum()) + lam * (norm + ridge / 2 * float((W * W).sum()))


def least_of(X: np.ndarray, Y: np.ndarray, lam: float, ridge: float) -> float:
    """P at its least, as a smooth problem: |W_g| <= t_g entry by entry, solved by scipy's SLSQP."""
    c, size = Y.shape[1], D * Y.shape[1]

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        W, t = x[:size].reshape(D, c), x[size:]
        left = X @ W - Y
        total = 0.5 * float((left**2).sum()) + lam * (float(ETA @ t) + ridge / 2 * float((W * W).sum()))
        return total, np.concatenate([(X.T @ left + lam * ridge * W).ravel(), lam * ETA])

    of = np.repeat(GROUPS, c)
    pick = np.zeros((size, 4))
    pick[np.arange(size), of] = 1
    above, below = np.hstack([-np.eye(size), pick]), np.hstack([np.eye(size), pick])
    rows = np.vstack([above, below])
    start = np.concatenate([np.zeros(size), np.ones(4)])
    end = minimize(
        objective, start, jac=True, method="SLSQP", options={"maxiter": 2000, "ftol": 1e-14},
        constraints={"type": "ineq", "fun": lambda x: rows @ x, "jac": lambda x: rows},
    )  # fmt: skip
    assert end.success or end.status == 8  # which is the end of what a line search can tell
    return value(X, Y, end.x[:size].reshape(D, c), lam, ridge)  # bounds may be missed by a little


@pytest.mark.parametrize("ridge", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_l1linf_is_the_least_point(seed: int, ridge: float) -> None:
    """Of every lam: the objective is scipy's, and the gap bounds what is left."""
    X, Y = drawn(seed)
    yy, lams = float((Y * Y).sum()), largest(X.T @ Y) * np.geomspace(1, 0.01, 8)
    path = linf_path(X.T @ X, X.T @ Y, yy, GROUPS, eta=ETA, lams=lams, ridge=ridge, tol=1e-11, max_iter=1000)
    assert lams[0] == pytest.approx(lams_of("l1linf", X.T @ Y, 1.0, GROUPS, ETA, 5, 0.1)[0], rel=1e-12)
    assert path.gap.max() <= 1e-11
    assert not path.norms[0].any()
    sizes = []
    for i, lam in enumerate(lams):
        W = path.coef(i)
        assert path.objective[i] == pytest.approx(value(X, Y, W, lam, ridge), rel=1e-10)
        assert path.objective[i] == pytest.approx(least_of(X, Y, lam, ridge), rel=1e-7)
        np.testing.assert_allclose(path.norms[i], [np.linalg.norm(W[g == GROUPS]) for g in range(4)], atol=1e-12)
        sizes.append(len(path.active[i]))
    assert sizes[0] == 0 < sizes[1] < 4
    assert sizes[-1] == 4


def test_gap_bounds_the_excess_of_a_path_that_is_cut_short() -> None:
    """The certificate is honest: after one round it is large, and above what is left."""
    X, Y = drawn(5)
    yy, lams = float((Y * Y).sum()), largest(X.T @ Y) * np.array([0.01])
    rough = linf_path(X.T @ X, X.T @ Y, yy, GROUPS, eta=ETA, lams=lams, tol=1e-14, max_iter=0)
    assert rough.gap[0] * yy >= rough.objective[0] - least_of(X, Y, lams[0], 0.0) > 1e-3 * yy


@pytest.mark.parametrize("c", [1, 2])
def test_l2_is_ridge(c: int) -> None:
    """scikit-learn's, with a gap that is rounding."""
    X, Y = drawn(1, c)
    yy, lams = float((Y * Y).sum()), np.array([100.0, 1.0, 1e-4])
    path = ridge_path(X.T @ X, X.T @ Y, yy, GROUPS, lams)
    for i, lam in enumerate(lams):
        right = Ridge(alpha=lam, fit_intercept=False).fit(X, Y).coef_.reshape(c, D).T
        np.testing.assert_allclose(path.coef(i), right, atol=1e-9)
        expected = 0.5 * float(((Y - X @ right) ** 2).sum()) + lam / 2 * float((right**2).sum())
        assert path.objective[i] == pytest.approx(expected, rel=1e-10)
    assert path.gap.max() <= 1e-12
    assert path.active[0].tolist() == [0, 1, 2, 3]
    grid = lams_of("l2", X.T @ Y, float(np.trace(X.T @ X)), GROUPS, None, 4, 0.1)
    np.testing.assert_allclose(grid, np.trace(X.T @ X) * np.array([1, 0.1, 0.01, 0.001]))


def test_ridge_gap_bounds_the_excess() -> None:
    """|C - lam W|^2 / 2 lam at weights that are not the least point, against the objective."""
    X, Y = drawn(2)
    lam, rng = 0.5, np.random.default_rng(0)
    right = np.linalg.solve(X.T @ X + lam * np.eye(D), X.T @ Y)

    def total(W: np.ndarray) -> float:
        return 0.5 * float(((Y - X @ W) ** 2).sum()) + lam / 2 * float((W * W).sum())

    for size in (1.0, 1e-3):
        W = right + size * rng.normal(size=right.shape)
        C = X.T @ (Y - X @ W)
        assert float(np.square(C - lam * W).sum()) / (2 * lam) >= total(W) - total(right) > 0


def test_group_norms_are_dual() -> None:
    """|<C, W>| <= dual(C) norm(W) of each group, met by some W; the penalty is their sum."""
    rng = np.random.default_rng(0)
    for kind in ("l21", "l1linf"):
        norm = GroupNorm(kind, GROUPS, ETA, 0.2)
        for _ in range(20):
            W, C = rng.normal(size=(2, D, 3))
            for g in range(4):
                w, v = W[g == GROUPS], C[g == GROUPS]
                size = np.linalg.norm(w) if kind == "l21" else np.abs(w).max()
                dual = norm.duals(C)[g]
                assert abs((w * v).sum()) <= dual * size * (1 + 1e-12)
                best = v / np.linalg.norm(v) if kind == "l21" else np.sign(v)
                assert (best * v).sum() == pytest.approx(dual)
        sizes = [np.linalg.norm(W[g == GROUPS]) if kind == "l21" else np.abs(W[g == GROUPS]).max() for g in range(4)]
        assert norm.penalty.value(W) == pytest.approx(ETA @ sizes + 0.1 * (W * W).sum())
        part = norm.of(np.array([1, 3]))
        assert part.value(W[norm.features(np.array([1, 3]))]) == pytest.approx(
            ETA[[1, 3]] @ np.array(sizes)[[1, 3]] + 0.1 * (W[np.isin(GROUPS, [1, 3])] ** 2).sum()
        )


def test_refusals() -> None:
    """What is no penalty, no path, and no option of l2."""
    X, Y = drawn(0)
    sums = X.T @ X, X.T @ Y, 1.0, GROUPS
    options = {"eta": None, "lams": np.ones(1), "ridge": 0.0, "tol": 1e-6, "max_iter": 9}
    with pytest.raises(ValueError, match="penalty='l22' is not known"):
        path_of("l22", *sums, **options)
    with pytest.raises(ValueError, match=r"eta=.* takes eta=None"):
        path_of("l2", *sums, **options | {"eta": ETA})
    with pytest.raises(ValueError, match="use ridge=0"):
        path_of("l2", *sums, **options | {"ridge": 0.1})
    with pytest.raises(ValueError, match="each below the one before"):
        path_of("l1linf", *sums, **options | {"lams": np.array([1.0, 2.0])})
    with pytest.raises(ValueError, match=r"ridge=-1\.0 must be"):
        path_of("l1linf", *sums, **options | {"ridge": -1.0})


@pytest.mark.parametrize("penalty", ["l1linf", "l2"])
def test_the_cost_is_what_is_taken(penalty: str) -> None:
    """No more bytes than stated, and not much less."""
    d, rng = 300, np.random.default_rng(0)
    X = rng.normal(size=(400, d)) / 20
    gram, cross = X.T @ X, X.T @ (X[:, :60].sum(axis=1) + rng.normal(size=400))[:, None]
    options = {"eta": None, "lams": float(np.abs(cross).sum()) * np.geomspace(1, 1e-2, 10) / 6**0.5}
    tracemalloc.start()
    try:
        path_of(penalty, gram, cross, 1e3, np.arange(d) // 50, **options, ridge=0.0, tol=1e-6, max_iter=100)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= path_cost(penalty, d, 1, 10, 50).bytes <= 4 * taken
