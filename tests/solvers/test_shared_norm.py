"""The norm of shared and specific weights against scipy, and its prox and dual norm by their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dkl.solvers.fista import kkt_residual
from dkl.solvers.group_quadratic import group_quadratic
from dkl.solvers.shared_norm import SharedGroups, SharedNorm

RNG = np.random.default_rng(0)
GROUPS, FACTOR = np.array([0, 1, 2, 0, 1, 2, 3]), np.array([1.0, 0.5, 2.0, 1.5])
RATIOS = [0.3, 1.0, 1.4, 1.9, None, 5.0]
TASKS = 4


def make(ratio, groups=GROUPS, factor=FACTOR):
    return SharedNorm(groups, factor, ratio)


def ratio_of(ratio):
    """The default is the fourth root of the tasks."""
    return TASKS**0.25 if ratio is None else ratio


def by_parts(V, s, ratio):
    """The value of one split, by hand."""
    total = 0.0
    for g, eta in enumerate(FACTOR):
        own = g == GROUPS
        total += eta * (ratio * np.linalg.norm(s[own]) + np.linalg.norm(V[own] - s[own][:, None]))
    return total


@pytest.mark.parametrize("ratio", RATIOS)
def test_norm_is_the_least_over_splits(ratio):
    """Found by scipy from several starts; `split` gives the one."""
    for shift in (0.0, 0.5, 3.0):
        V = RNG.normal(size=(7, TASKS)) + shift * RNG.normal(size=(7, 1))
        shared, own = make(ratio).split(V)
        np.testing.assert_allclose(shared[:, None] + own, V)
        value = by_parts(V, shared, ratio_of(ratio))
        assert make(ratio).value(V) == pytest.approx(value, rel=1e-12)
        for start in (np.zeros(7), V.mean(axis=1), RNG.normal(size=7)):
            best = minimize(lambda s, V=V: by_parts(V, s, ratio_of(ratio)), start, method="Powell")
            assert best.fun >= value * (1 - 1e-9)


def test_ends_of_the_ratio():
    """Root of the tasks and above: nothing is shared, and the norm is that of groups; a low one shares all it can."""
    V = RNG.normal(size=(7, TASKS)) + 2
    for ratio in (2.0, 9.0):
        assert not make(ratio).split(V)[0].any()
        lengths = np.sqrt(np.bincount(GROUPS, (V * V).sum(axis=1)))
        assert make(ratio).value(V) == pytest.approx(FACTOR @ lengths)
    shared, own = make(1e-6).split(V)
    np.testing.assert_allclose(shared, V.mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(own.mean(axis=1), 0, atol=1e-5)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("step", [1e-3, 0.3, 1.0, 3.0])
def test_prox_is_the_argmin(ratio, step):
    """Strongly convex: every other point is higher by half the squared distance."""
    norm = make(ratio)
    for shift in (0.0, 2.0):
        v = RNG.normal(size=(7, TASKS)) + shift
        p = norm.prox(v, step)
        best = 0.5 * ((p - v) ** 2).sum() + step * norm.value(p)
        for size in 10.0 ** np.arange(-6, 2):
            tries = (p + size * RNG.normal(size=v.shape), p + size, (1 - size) * p, v * size, p * [[1, 1, 1, 1 - size]])
            for other in tries:
                far = 0.5 * ((other - p) ** 2).sum()
                there = 0.5 * ((other - v) ** 2).sum() + step * norm.value(other)
                assert there >= best + far - 1e-12 * (1 + best + far)


@pytest.mark.parametrize("ratio", RATIOS)
def test_dual_norm(ratio):
    """The largest product with what has norm one: no point of many exceeds it, and the steepest one reaches it."""
    norm = make(ratio)
    for shift in (0.0, 1.0):
        C = RNG.normal(size=(7, TASKS)) + shift
        many = RNG.normal(size=(2000, 7, TASKS)) + RNG.normal(size=(2000, 7, 1)) * [[0], [1], [2], [0], [1], [2], [4]]
        ratios = [(C * V).sum() / norm.value(V) for V in many]
        assert max(ratios) <= norm.dual_norm(C) * (1 + 1e-12)
        by_group = norm.duals(C) / FACTOR
        best = int(np.argmax(by_group))
        V = np.where((best == GROUPS)[:, None], norm.steepest(C), 0.0)
        assert (C * V).sum() / norm.value(V) == pytest.approx(norm.dual_norm(C), rel=1e-9)


@pytest.mark.parametrize("ratio", [0.8, 1.4, None])
def test_steepest_is_the_derivative(ratio):
    """Of the dual norm of each group, by central differences."""
    norm, C = make(ratio), RNG.normal(size=(7, TASKS)) + 0.5
    found, step = norm.steepest(C), 1e-6
    for place in np.ndindex(C.shape):
        ends = []
        for sign in (1, -1):
            moved = C.copy()
            moved[place] += sign * step
            ends.append(norm.duals(moved)[GROUPS[place[0]]])
        assert found[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("ratio", [0.9, 1.4])
def test_least_squares_of_several_tasks(ratio):
    """Each task has a gram of its own; the optimum's KKT residual vanishes, and no split of either part is better."""
    groups = SharedGroups("l21", GROUPS, FACTOR, ratio=ratio)
    Psi = RNG.normal(size=(TASKS, 50, 7))
    truth = RNG.normal(size=7)[:, None] * np.array([1, 1, 0, 1, 1, 0, 0])[:, None] + 0.2 * RNG.normal(size=(7, TASKS))
    y = np.einsum("tni,it->tn", Psi, truth)
    grams = np.einsum("tni,tnj->tij", Psi, Psi) / 50
    cross = np.einsum("tni,tn->it", Psi, y) / 50
    lam = 0.3
    found = group_quadratic(grams, cross, lam, groups, start=np.zeros((7, TASKS)), tol=1e-10, max_iter=50_000)
    C = cross - np.einsum("tij,jt->it", grams, found.coef)
    assert kkt_residual(C, found.coef, lam, groups.penalty) <= 1e-9 * lam

    def objective(x):
        s, own = x[:7], x[7:].reshape(7, TASKS)
        V = s[:, None] + own
        quadratic = 0.5 * np.einsum("it,tij,jt->", V, grams, V) - (V * cross).sum()
        lengths = [
            eta * (ratio * np.linalg.norm(s[g == GROUPS]) + np.linalg.norm(own[g == GROUPS]))
            for g, eta in enumerate(FACTOR)
        ]
        return quadratic + lam * sum(lengths)

    shared, own = groups.penalty.split(found.coef)
    best = objective(np.concatenate([shared, own.ravel()]))
    for size in (1e-3, 1e-1):
        for _ in range(200):
            other = np.concatenate([shared, own.ravel()]) + size * RNG.normal(size=7 * (1 + TASKS))
            assert objective(other) >= best - 1e-12


def test_refusals():
    """A ratio of zero, and scores that share a loss."""
    with pytest.raises(ValueError, match="ratio=0 must be a finite number above 0"):
        SharedGroups("l21", GROUPS, FACTOR, ratio=0)
    with pytest.raises(ValueError, match="3 scores of a row share a loss; shared weights need one for each output"):
        SharedGroups("l21", GROUPS, FACTOR).part(np.arange(2), np.array([0, 1]), 3)
