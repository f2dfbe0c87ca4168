"""Group paths and their K-fold errors from one pass, against another solver on the rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dkl.learn.group_path import GroupOptions, chosen_lams, solve_groups, solve_groups_cost
from dkl.penalties import GroupL21, L1Linf
from dkl.solvers.fista import fista
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from tests.learn.test_ridge import FEATURES, SEED, K, N, draw

GROUPS = np.arange(20) // 5


def sums_of(kind="values", weighted=False, folds=K, centre=True):
    """The sums of one pass, what they are of, and dense targets."""
    X, y, w, Y, targets = draw(kind, weighted, centre)
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=folds, seed=SEED)
    sums = program.start()
    program.add(sums, program.workspace(), 0, 0, (X, y, w, None))
    return sums, targets, FEATURES.at(np.float64).transform(X), Y, np.ones(N) if w is None else w


def refitted(Psi, Y, w, lam, intercept, keep=slice(None)):
    """Weights and intercept on some rows, by steps along the gradient."""
    P, y, v = Psi[keep], Y[keep], w[keep]
    mean = np.average(P, axis=0, weights=v) * intercept, np.average(y, axis=0, weights=v) * intercept
    P, y, root = P - mean[0], y - mean[1], np.sqrt(v)[:, None]
    P, y = root * P, root * y
    penalty = GroupL21(GROUPS, np.full(4, 5**0.5))
    coef = fista(P.T @ P, P.T @ y, lam, penalty, energy=float((y * y).sum()), tol=1e-12, max_iter=50_000).coef
    return coef, mean[1] - mean[0] @ coef


@pytest.mark.parametrize("by_output", [False, True])
@pytest.mark.parametrize("kind", ["values", "two classes", "three classes"])
@pytest.mark.parametrize(("weighted", "intercept"), [(True, True), (False, False)])
def test_errors_and_weights_are_those_of_refits(kind, weighted, intercept, by_output) -> None:
    """Of each fold, by the weights of the others; the best alpha is used on all rows."""
    sums, targets, Psi, Y, w = sums_of(kind, weighted, centre=intercept)
    options = GroupOptions(GROUPS, intercept, count=5, least=0.1, by_output=by_output, tol=1e-11)
    end = solve_groups(sums, scale=FEATURES.scale, targets=targets, options=options)
    member, c = fold_of(0, N, K, SEED), Y.shape[1]
    outputs = [[j] for j in range(c)] if by_output else [list(range(c))]
    assert len(end.paths) == len(outputs)
    for own, path in zip(outputs, end.paths, strict=True):
        expected = np.empty((5, K))
        for i, alpha in enumerate(path.alphas):
            for k in range(K):
                coef, constant = refitted(Psi, Y[:, own], w, alpha, intercept, member != k)
                missed = ((Y[:, own] - Psi @ coef - constant) ** 2).mean(axis=1)
                expected[i, k] = np.average(missed[member == k], weights=w[member == k])
        np.testing.assert_allclose(path.errors, expected, rtol=1e-4)
        assert path.best == path.chosen == expected.mean(axis=1).argmin()
        coef, constant = refitted(Psi, Y[:, own], w, path.alphas[path.best], intercept)
        np.testing.assert_allclose(end.coef[:, own], coef, atol=2e-3)
        np.testing.assert_allclose(end.intercept[own], constant, atol=2e-3)
        np.testing.assert_allclose(path.intercepts[path.best], end.intercept[own])
        np.testing.assert_allclose(
            path.norms[path.best], [np.linalg.norm(coef[g == GROUPS]) for g in range(4)], atol=2e-3
        )
        assert path.gap.max() <= 1e-11
        assert not path.norms[0].any()
    assert end.converged


def test_the_one_standard_error_rule() -> None:
    """The first alpha that is as good, but for the spread of folds."""
    errors = np.array([[9.0, 9.0, 9.0], [2.0, 3.0, 4.0], [1.5, 2.5, 4.0], [2.5, 3.5, 4.5]])
    assert chosen_lams(errors) == (2, 1)
    sums, targets, *_ = sums_of()
    found = {}
    for rule in ("best", "one_se", "last"):
        options = GroupOptions(GROUPS, True, count=8, rule=rule)
        found[rule] = solve_groups(sums, scale=FEATURES.scale, targets=targets, options=options)
    path = found["one_se"].paths[0]
    assert path.chosen == path.one_se <= path.best
    assert found["last"].paths[0].chosen == 7


def test_weights_computed_anew() -> None:
    """scikit-learn's ridge on the features of the groups that were chosen."""
    sums, targets, Psi, Y, w = sums_of("values", True)
    options = GroupOptions(GROUPS, True, count=6, rule="one_se", refit=0.3)
    end = solve_groups(sums, scale=FEATURES.scale, targets=targets, options=options)
    on = np.isin(GROUPS, end.paths[0].active[end.paths[0].chosen])
    right = Ridge(alpha=0.3).fit(Psi[:, on], Y, sample_weight=w)
    np.testing.assert_allclose(end.coef[on], right.coef_.T, atol=1e-8)
    np.testing.assert_allclose(end.intercept, right.intercept_, atol=1e-8)
    assert not end.coef[~on].any()


def test_what_is_refused_and_what_is_doubted() -> None:
    """A choice without folds, alphas of no use, a path that ends too early, a certificate that does not hold."""

    def ask(folds=K, **more):
        sums, targets, *_ = sums_of(folds=folds)
        return solve_groups(sums, scale=FEATURES.scale, targets=targets, options=GroupOptions(GROUPS, True, **more))

    with pytest.raises(ValueError, match="needs 2 folds or more, not 1"):
        ask(1)
    with pytest.raises(ValueError, match="rule='bst' is not known; did you mean 'best'"):
        ask(rule="bst")
    with pytest.raises(ValueError, match=r"alphas=\[0\.0\] must be finite numbers above 0"):
        ask(alphas=np.zeros(1))
    with pytest.raises(ValueError, match=r"refit=0\.0 must be"):
        ask(count=3, refit=0.0)
    alone = ask(1, rule="last", alphas=np.array([1.0]))
    assert alone.paths[0].errors is None
    assert alone.alpha.tolist() == [1.0]
    rough = ask(1, rule="last", alphas=np.array([1e-3]), tol=1e-12, max_iter=1)
    assert not rough.converged
    assert "alpha=0.001 are not at their best" in rough.warning
    edge = ask(count=4, least=0.5)
    assert "the least of its path" in edge.warning


def test_the_cost_is_what_is_taken() -> None:
    """No more bytes than stated, and not much less."""
    rng, d, n = np.random.default_rng(0), 400, 600
    from dkl.sums.gram import GramSums
    from dkl.sums.symmetric import packed_size
    from dkl.sums.targets import Targets

    sums = GramSums(
        np.full(2, n / 2), np.full(2, n / 2), np.zeros((2, packed_size(d))), np.zeros((2, 1, d)), np.zeros((2, d)),
        np.zeros((2, 1)), np.full((2, 1), float(n)),
    )  # fmt: skip
    from dkl.sums.order_free import rounder
    from dkl.sums.symmetric import add_rank_k, largest_tile

    for k in range(2):
        Psi = rng.normal(size=(n // 2, d)) / 8
        y = Psi[:, :60].sum(axis=1) + rng.normal(size=n // 2)
        add_rank_k(sums.gram[k], Psi, rounder(1e5), np.empty(largest_tile(d)))
        sums.cross[k, 0], sums.feature_sum[k] = y @ Psi, Psi.sum(axis=0)
        sums.target_sum[k], sums.target_square[k] = y.sum(), y @ y
    targets = Targets(float(n), 1)
    options = GroupOptions(np.arange(d) // 50, True, count=10, least=0.1)
    tracemalloc.start()
    try:
        solve_groups(sums, scale=1.0, targets=targets, options=options)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    stated = solve_groups_cost(d, 1, 2, 10, 50).bytes
    assert taken <= stated <= 4 * taken


@pytest.mark.parametrize("kind", ["values", "three classes"])
def test_l2_is_ridge_along_its_alphas(kind) -> None:
    """Errors of folds and weights are those of scikit-learn's refits."""
    sums, targets, Psi, Y, w = sums_of(kind, True)
    options = GroupOptions(GROUPS, True, penalty="l2", count=6)
    end = solve_groups(sums, scale=FEATURES.scale, targets=targets, options=options)
    path, member, expected = end.paths[0], fold_of(0, N, K, SEED), np.empty((6, K))
    assert path.alphas[-1] == pytest.approx(1e-6 * path.alphas[0])
    for i, alpha in enumerate(path.alphas):
        for k in range(K):
            train, test = member != k, member == k
            fit = Ridge(alpha=alpha).fit(Psi[train], Y[train], sample_weight=w[train])
            missed = (Y - fit.predict(Psi).reshape(Y.shape)) ** 2
            expected[i, k] = np.average(missed.mean(axis=1)[test], weights=w[test])
    np.testing.assert_allclose(path.errors, expected, rtol=1e-6)
    right = Ridge(alpha=float(end.alpha[0])).fit(Psi, Y, sample_weight=w)
    np.testing.assert_allclose(end.coef, right.coef_.reshape(Y.shape[1], -1).T, atol=1e-6)
    assert end.gap <= 1e-10
    assert len(path.active[0]) == 4


def test_l1linf_along_a_path() -> None:
    """Errors of folds and weights are those of refits by another solver; by_output as well."""
    sums, targets, Psi, Y, w = sums_of("values", True)
    for by_output in (False, True):
        options = GroupOptions(GROUPS, True, penalty="l1linf", count=4, least=0.05, tol=1e-11, by_output=by_output)
        end = solve_groups(sums, scale=FEATURES.scale, targets=targets, options=options)
        assert end.converged
        for j, path in enumerate(end.paths):
            own = [j] if by_output else slice(None)
            assert not path.norms[0].any()
            P, y = Psi - np.average(Psi, axis=0, weights=w), Y[:, own] - np.average(Y[:, own], axis=0, weights=w)
            G, R = P.T @ (w[:, None] * P), P.T @ (w[:, None] * y)
            penalty = L1Linf(GROUPS, np.full(4, 5**0.5))
            right = fista(G, R, path.alphas[-1], penalty, tol=1e-10, max_iter=50_000).coef
            got = np.zeros_like(right)
            got[np.isin(GROUPS, path.active[-1])] = path.weights[-1]
            np.testing.assert_allclose(got, right, atol=1e-4)


def test_options_are_refused() -> None:
    """At once, before any pass."""
    with pytest.raises(ValueError, match="penalty='l1' is not known"):
        GroupOptions(GROUPS, True, penalty="l1")
    with pytest.raises(ValueError, match="takes eta=None"):
        GroupOptions(GROUPS, True, penalty="l2", eta=np.ones(4))
    with pytest.raises(ValueError, match="use ridge=0"):
        GroupOptions(GROUPS, True, penalty="l2", ridge=0.1)
