"""Paths of the group lasso from their sums, against scikit-learn, scipy and the conditions of a least point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from sklearn.linear_model import ElasticNet, Lasso, MultiTaskLasso

from dkl.penalties import Elastic, GroupL21
from dkl.solvers import group_directions
from dkl.solvers.fista import fista
from dkl.solvers.group_blocks import Blocks, Groups
from dkl.solvers.group_directions import Directions, bent_at, factor_of
from dkl.solvers.group_path import group_path, group_path_cost, lam_grid, largest_lam
from dkl.solvers.group_steps import group_step, line_step, secular_root

TIGHT = {"fit_intercept": False, "tol": 1e-14, "max_iter": 10**6}


def drawn(seed: int, sizes: tuple[int, ...], c: int = 1, n: int = 80):
    """Rows with correlated groups, targets of the first two, and the number of each feature's group."""
    rng = np.random.default_rng(seed)
    d = sum(sizes)
    X = rng.normal(size=(n, d)) * rng.gamma(2, size=d) + rng.normal(size=(n, 1))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    B = rng.normal(size=(d, c)) * (groups < 2)[:, None]
    Y = X @ B + rng.normal(size=(n, c))
    return X - X.mean(0), Y - Y.mean(0), groups


def solved(X, Y, groups, **options):
    return group_path(X.T @ X, X.T @ Y, (Y * Y).sum(axis=0), groups, **options)


def objective(X, Y, W, lam, groups, eta, ridge=0.0):
    """P, from the rows."""
    lengths = [np.linalg.norm(W[groups == g]) for g in range(len(eta))]
    return 0.5 * ((Y - X @ W) ** 2).sum() + lam * (eta @ lengths + ridge / 2 * (W * W).sum())


def check_conditions(X, Y, W, lam, groups, eta, ridge=0.0, near=1e-3):
    """Every group: C_g = lam eta_g W_g / |W_g|, or |C_g| <= lam eta_g if it is zero."""
    C = X.T @ (Y - X @ W) - lam * ridge * W
    for g in range(len(eta)):
        own, size = C[groups == g], np.linalg.norm(W[groups == g])
        if size:
            assert np.linalg.norm(own - lam * eta[g] * W[groups == g] / size) <= near * lam * eta[g]
        else:
            assert np.linalg.norm(own) <= lam * eta[g] * (1 + near)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("c", [1, 3])
@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (1, 4, 2, 7, 1), (12,), (5, 5)])
def test_conditions_of_a_least_point(sizes, c, ridge) -> None:
    """At every lam, from the rows; and the record is what it says."""
    X, Y, groups = drawn(0, sizes, c)
    eta = np.sqrt(sizes)
    path = solved(X, Y, groups, ridge=ridge, tol=1e-11)
    assert len(path.lams) == 50
    largest = max(np.linalg.norm((X.T @ Y)[groups == g]) / eta[g] for g in range(len(sizes)))
    assert path.lams[0] == pytest.approx(largest)
    assert path.lams[0] == pytest.approx(largest_lam(X.T @ Y, groups))
    assert path.gap.max() <= 1e-11
    assert len(path.active[0]) == 0 < len(path.active[1])
    for i, lam in enumerate(path.lams):
        W = path.coef(i)
        check_conditions(X, Y, W, lam, groups, eta, ridge)
        lengths = np.array([np.linalg.norm(W[groups == g]) for g in range(len(sizes))])
        np.testing.assert_allclose(path.norms[i], lengths, atol=1e-12)
        np.testing.assert_array_equal(path.active[i], np.flatnonzero(lengths))
        assert len(path.weights[i]) == sum(np.array(sizes)[path.active[i]])
        assert path.objective[i] == pytest.approx(objective(X, Y, W, lam, groups, eta, ridge), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_lasso_of_scikit_learn(seed) -> None:
    """Groups of one feature."""
    X, Y, _ = drawn(seed, (10,), 2)
    alone, n = np.arange(10), len(X)
    path = solved(X, Y, alone, tol=1e-12)
    for i in (5, 20, 49):
        right = MultiTaskLasso(alpha=path.lams[i] / n, **TIGHT).fit(X, Y).coef_.T
        np.testing.assert_allclose(path.coef(i), right, atol=1e-5)
    for j in range(2):
        one = solved(X, Y[:, [j]], alone, tol=1e-12, eta=np.ones(10))
        elastic = solved(X, Y[:, [j]], alone, tol=1e-12, eta=np.ones(10), ridge=3.0)
        for i in (5, 20, 49):
            right = Lasso(alpha=one.lams[i] / n, **TIGHT).fit(X, Y[:, j]).coef_
            np.testing.assert_allclose(one.coef(i)[:, 0], right, atol=1e-5)
            alpha = 4 * elastic.lams[i] / n
            right = ElasticNet(alpha=alpha, l1_ratio=0.25, **TIGHT).fit(X, Y[:, j]).coef_
            np.testing.assert_allclose(elastic.coef(i)[:, 0], right, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_the_least_point_of_scipy(seed) -> None:
    """|w_g| = min over t_g > 0 of (|w_g|^2 / t_g + t_g) / 2: ridge weights of given t, and t by scipy."""
    X, Y, groups = drawn(seed, (2, 3, 1), 1, 25)
    eta, y = np.array([1.0, 0.7, 2.0]), Y[:, 0]
    path = solved(X, Y, groups, eta=eta, tol=1e-11)
    for i in (10, 30, 49):
        lam = path.lams[i]

        def value(t, lam=lam):
            w = np.linalg.solve(X.T @ X + np.diag((lam * eta / t)[groups]), X.T @ y)
            squares = np.bincount(groups, w * w)
            smooth = 0.5 * ((y - X @ w) ** 2).sum() + lam / 2 * eta @ (squares / t + t)
            return smooth, lam / 2 * eta * (1 - squares / t**2)

        end = minimize(
            value, np.ones(3), jac=True, bounds=[(1e-9, None)] * 3, method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-10},
        )  # fmt: skip
        assert path.objective[i] <= end.fun * (1 + 1e-9)
        assert end.fun <= path.objective[i] * (1 + 1e-6)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_the_gap_bounds_the_excess(tol, ridge) -> None:
    """Also where it was stopped early; the least point is that of another solver."""
    X, Y, groups = drawn(1, (4, 4, 4, 4), 2)
    G, R, yy = X.T @ X, X.T @ Y, float((Y * Y).sum())
    penalty = GroupL21(groups, np.full(4, 2.0))
    for limit in (1, 2, 100):
        path = solved(X, Y, groups, tol=tol, max_iter=limit, ridge=ridge)
        for i in (3, 15, 30, 49):
            right = fista(G, R, path.lams[i], Elastic(penalty, ridge), energy=yy, tol=1e-12, max_iter=100_000)
            excess = objective(X, Y, path.coef(i), path.lams[i], groups, penalty.factor, ridge) - right.objective
            assert excess <= yy * path.gap[i] + 1e-9
        if limit == 100:
            assert path.gap.max() <= tol


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=8),
    c=st.integers(1, 3),
    rows=st.sampled_from([5, 20, 60]),
    shuffled=st.booleans(),
)
def test_any_sizes(seed, sizes, c, rows, shuffled) -> None:
    """Conditions at every lam, with more features than rows too, and groups in any order; screening loses nothing."""
    X, Y, groups = drawn(seed, tuple(sizes), c, rows)
    if shuffled:
        groups = np.random.default_rng(seed).permutation(groups)
    options = {"tol": 1e-10, "lams": lam_grid(largest_lam(X.T @ Y, groups), 12, 0.05)}
    path, whole = solved(X, Y, groups, **options), solved(X, Y, groups, screen=False, **options)
    assert path.gap.max() <= 1e-10
    for i, lam in enumerate(path.lams):
        check_conditions(X, Y, path.coef(i), lam, groups, np.sqrt(sizes), near=1e-2)
        assert path.objective[i] == pytest.approx(whole.objective[i], rel=1e-7)
        surely = whole.norms[i] > 1e-3 * whole.norms[i].max()
        if rows > sum(sizes):
            assert set(np.flatnonzero(surely)) <= set(path.active[i])


def test_groups_without_variance_and_groups_twice() -> None:
    """Zero weights, and as good as one group of the two; and columns that others add up to."""
    X, Y, groups = drawn(2, (3, 3, 3), 2)
    alone = solved(X, Y, groups, tol=1e-10)
    zero = solved(np.hstack([X, np.zeros((80, 2))]), Y, np.append(groups, [3, 3]), tol=1e-10)
    np.testing.assert_allclose(zero.objective, alone.objective, rtol=1e-8)
    assert not zero.norms[:, 3].any()
    twice = solved(np.hstack([X, X[:, :3]]), Y, np.append(groups, [3, 3, 3]), tol=1e-10)
    assert twice.gap.max() <= 1e-10
    np.testing.assert_allclose(twice.objective, alone.objective, rtol=1e-8)
    sums = twice.coef(30)[:3] + twice.coef(30)[9:]
    np.testing.assert_allclose(sums, alone.coef(30)[:3], atol=1e-3)
    collinear = np.hstack([X[:, :3], X[:, :3] @ np.ones((3, 1)), X[:, 3:]])
    path = solved(collinear, Y, np.insert(groups, 3, 0), tol=1e-10)
    assert path.gap.max() <= 1e-10
    for i, lam in enumerate(path.lams):
        check_conditions(collinear, Y, path.coef(i), lam, np.insert(groups, 3, 0), np.sqrt([4, 3, 3]))


def test_a_gram_that_rounding_left_indefinite() -> None:
    """Least points of the gram with some jitter; none, if the gram is one of features."""
    X, Y, groups = drawn(3, (4, 4, 4), 2)
    X[:, 3], X[:, 7] = X[:, 2], X[:, 6]
    assert solved(X, Y, groups, tol=1e-9).jitter == 0
    gram = X.T @ X
    gram -= 2e-6 * np.trace(gram) / 12 * np.eye(12)
    assert np.linalg.eigvalsh(gram)[0] < 0
    R = X.T @ Y
    R[3] += 3.0  # pulls where the gram bends down
    lams = lam_grid(largest_lam(R, groups), 30, 1e-5)
    path = group_path(gram, R, (Y * Y).sum(), groups, lams=lams, tol=1e-9)
    assert path.gap.max() <= 1e-9
    assert 1e-6 <= path.jitter * 12 / np.trace(gram) <= 1.1e-5
    mended = group_path(gram + path.jitter * np.eye(12), R, (Y * Y).sum(), groups, lams=lams, tol=1e-9)
    assert mended.jitter == 0
    np.testing.assert_allclose(path.objective, mended.objective, rtol=1e-7)
    with pytest.raises(ValueError, match="the gram of 12 features is not positive; raise alpha"):
        group_path(-gram, R, (Y * Y).sum(), groups, lams=lams)


def test_above_the_largest_lam_and_constant_targets() -> None:
    """Zero weights with a gap of zero, and one lam if there is nothing to learn."""
    X, Y, groups = drawn(3, (4, 4))
    largest = largest_lam(X.T @ Y, groups)
    path = solved(X, Y, groups, lams=np.array([3.0, 1.0001, 0.999]) * largest)
    assert [len(active) for active in path.active] == [0, 0, 1]
    assert path.gap[:2].max() <= 1e-12
    np.testing.assert_allclose(path.objective[:2], 0.5 * (Y * Y).sum())
    nothing = solved(X, 0 * Y, groups)
    assert nothing.lams.tolist() == [0.0]
    assert not nothing.coef(0).any()
    assert nothing.gap.tolist() == [0.0]


def test_the_steps_of_one_unknown() -> None:
    """Roots against scipy's, from any start; the step of a group is its least point; a line's least point."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        squares, values, limit = rng.gamma(1, size=5), rng.gamma(1, size=5) ** 3, 0.5
        squares *= 4 * limit**2 / squares.sum()
        right = brentq(lambda t, a=squares, v=values: (a / (v * t + 0.5) ** 2).sum() - 1, 0, 1e9, xtol=1e-14)
        for start in (0.0, right / 3, 10 * right):
            assert secular_root(squares, values, limit, start) == pytest.approx(right, rel=1e-9)
        still, X, V = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), None
        V = still.ravel()

        def along(t, V=V, X=X):
            return -3 * t + 0.7 * t * t + 0.4 * np.linalg.norm(V + t * X.ravel())

        t = line_step(-3.0, 1.4, np.array([0.4]), *(np.array([s]) for s in (V @ V, V @ X.ravel(), (X * X).sum())))
        right = minimize(lambda x: along(x[0]), [1.0], tol=1e-12, bounds=[(0, None)]).x[0]
        assert t == pytest.approx(right, rel=1e-4)
    assert secular_root(np.array([4.0, 0.0]), np.array([0.5, 1.0]), 1e-110) == pytest.approx(4.0)
    C, values = rng.normal(size=(4, 2)), np.array([2.0, 1.0, 0.1, 0.0])
    C[3] = 0
    V = group_step(C, np.zeros((4, 2)), values, 0.3, 0.0)
    np.testing.assert_allclose(C - values[:, None] * V, 0.3 * V / np.linalg.norm(V), atol=1e-12)
    assert not group_step(C, np.zeros((4, 2)), values, 100.0, 0.0).any()


def alike(c: int = 1, n: int = 400, count: int = 12, size: int = 20):
    """Groups that are noisy turns of the same features; targets of two."""
    rng = np.random.default_rng(5)
    base = rng.normal(size=(n, size)) * 0.7 ** np.arange(size)
    turns = [np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(count)]
    X = np.hstack([base @ turn + 0.02 * rng.normal(size=(n, size)) for turn in turns])
    Y = base @ rng.normal(size=(size, c)) + 0.1 * rng.normal(size=(n, c))
    return X - X.mean(0), Y - Y.mean(0), np.repeat(np.arange(count), size)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("c", [1, 3])
def test_a_factor_serves_the_directions_of_groups_that_are_alike(monkeypatch, c, ridge) -> None:
    """The same least points in fewer products than without one; and conditions from the rows."""
    X, Y, groups = alike(c)
    options = {"tol": 1e-9, "ridge": ridge, "eta": np.ones(12), "lams": None}
    options["lams"] = lam_grid(largest_lam(X.T @ Y, groups, options["eta"]), 15, 1e-3)
    made = []
    monkeypatch.setattr(group_directions, "factor_of", lambda bent: made.append(1) or factor_of(bent))
    path = solved(X, Y, groups, **options)
    assert made
    for i in (5, 10, 14):
        check_conditions(X, Y, path.coef(i), path.lams[i], groups, options["eta"], ridge, near=1e-2)
    monkeypatch.setattr(group_directions, "PRICE", 1e9)
    made.clear()
    without = solved(X, Y, groups, **options)
    assert not made
    assert max(path.gap.max(), without.gap.max()) <= 1e-9
    np.testing.assert_allclose(path.objective, without.objective, rtol=1e-7)
    assert path.products.sum() < 0.8 * without.products.sum()


@pytest.mark.parametrize("c", [1, 2])
def test_directions_are_those_of_a_dense_solve(c) -> None:
    """H X = C - h V, on the groups that are not zero; by groups, with a new factor, with one of other groups."""
    X, _, groups = alike(c, count=5, size=6)
    made = Groups(groups, None, 30)
    blocks = Blocks(X.T @ X, made)
    blocks.enter(range(4))
    rng, limits, ridge, directions = np.random.default_rng(0), 3.0 * blocks.eta, 0.2, Directions(blocks)
    for step, zero in enumerate(([1], [1], [], [0, 2])):
        if step == 2:
            blocks.enter([4])
            limits = 3.0 * blocks.eta
        V = rng.normal(size=(len(blocks.values), c)) * (~np.isin(blocks.row_group, zero))[:, None]
        C = rng.normal(size=V.shape) * 10
        found = directions.find(C, V, limits, ridge)
        h = (limits / np.where(blocks.lengths(V) > 0, blocks.lengths(V), 1))[blocks.row_group]
        on = ~np.isin(blocks.row_group, zero)
        H = np.kron(blocks.packed[np.ix_(on, on)] + np.diag(ridge + h[on]), np.eye(c))
        for k in range(len(blocks.entered)):
            v = (V * (blocks.row_group == k)[:, None])[on].ravel()
            H -= limits[k] / np.linalg.norm(v) ** 3 * np.outer(v, v) if v.any() else 0.0
        right = (C - h[:, None] * V)[on].ravel()
        least = 0.5 * right @ np.linalg.solve(H, right)
        x = found.X[on].ravel()
        assert right @ x - 0.5 * x @ H @ x == pytest.approx(least, rel=0.02)
        assert not found.X[~on].any()
        np.testing.assert_allclose(found.GX, blocks.packed @ found.X + ridge * found.X, atol=1e-8)
        if step == 0:
            directions.factor = factor_of(bent_at(blocks, V, limits, ridge))
            assert directions.factor is not None


def test_what_is_refused() -> None:
    """Groups, lams and sums of no use."""
    X, Y, groups = drawn(0, (2, 2))
    with pytest.raises(ValueError, match=r"groups \[1\] of 3 have no feature"):
        solved(X, Y, np.array([0, 0, 2, 2]))
    with pytest.raises(ValueError, match="must be 4 whole numbers from 0 on"):
        solved(X, Y, np.array([0, 0, 1]))
    with pytest.raises(ValueError, match="must be 2 finite numbers above 0, one for each group"):
        solved(X, Y, groups, eta=np.array([1.0, 0.0]))
    for lams in ([1.0, 2.0], [1.0, 0.0], [np.inf], []):
        with pytest.raises(ValueError, match="each below the one before"):
            solved(X, Y, groups, lams=np.array(lams))
    with pytest.raises(ValueError, match=r"ridge=-1\.0 must be"):
        solved(X, Y, groups, ridge=-1.0)
    with pytest.raises(ValueError, match=r"they must be \(D, D\) and \(D, c\)"):
        group_path(np.eye(3), X.T @ Y, 1.0, groups)
    with pytest.raises(ValueError, match=r"count=0, least=0\.01"):
        lam_grid(1.0, 0)


def test_cost_grows_as_stated() -> None:
    """With the square of the features."""
    small, large = group_path_cost(100, 1, 50, 10), group_path_cost(200, 1, 50, 10)
    assert 2 < large.bytes / small.bytes < 4.1
    assert 3.5 < large.flops / small.flops < 4.1
