"""Objectives of lam through the group lasso: values and slopes from the rows themselves, by a complex step."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.solvers.group_adjoint import (
    Grouping,
    group_adjoint_cost,
    group_error,
    group_errors,
    held_out_group_side,
    joint_group_side,
    largest_group_lam,
)
from dkl.solvers.hypergradient import System, make_system
from dkl.solvers.ridge import Moments
from tests.learn.several_data import GROUPS, NUMBERS, SIGMAS, SIZES, WEIGHT, N, complex_objective, dense_features

STEP = 1e-30
ETA = np.sqrt(np.array(SIZES, float))
PSI = dense_features(SIGMAS)
FOLD = np.arange(N) % 2


def moments(rows: np.ndarray, Y: np.ndarray, w: np.ndarray) -> Moments:
    """Sums over some rows."""
    P, T, v = PSI[rows], Y[rows], w[rows]
    W = v[:, None]
    return Moments(v.sum(), P.T @ (W * P), P.T @ (W * T), v @ P, v @ T, v @ T**2)


def system_of(objective: str, Y: np.ndarray, w: np.ndarray, intercept: bool) -> System:
    """Fold 0 trains, fold 1 tests; or all rows train."""
    if objective == "joint":
        return make_system(moments(FOLD >= 0, Y, w), None, float(N), intercept)
    return make_system(moments(FOLD == 0, Y, w), moments(FOLD == 1, Y, w), float((FOLD == 0).sum()), intercept)


@pytest.mark.parametrize("objective", ["validation", "joint"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("lam", [0.5, 8.0, 30.0])
def test_values_and_slopes_in_lam(objective: str, intercept: bool, outputs: int, weighted: bool, lam: float) -> None:
    """Against the rows: a complex step through the equations of the groups that are used."""
    Y, w = NUMBERS[:, :outputs], WEIGHT if weighted else np.ones(N)
    side = held_out_group_side if objective == "validation" else joint_group_side
    found, norms = side(system_of(objective, Y, w, intercept), lam, Grouping(GROUPS, ETA))
    right = complex_objective(objective, Y, w, FOLD, PSI.astype(complex), lam + 1j * STEP, intercept, ETA)
    assert found.value == pytest.approx(right.real, rel=1e-10)
    assert found.slope == pytest.approx(right.imag / STEP, rel=1e-8)
    assert norms.shape == (3,)
    assert (found.adjoint is None) == (objective == "joint")


@pytest.mark.parametrize("by_output", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_slopes_with_a_ridge_and_groups_of_each_output(by_output: bool, ridge: float) -> None:
    """By central differences of the error itself, which has no gradient to be wrong in the same way."""
    system, of = system_of("validation", NUMBERS, WEIGHT, True), Grouping(GROUPS, ETA, ridge, by_output)
    lam, step = 6.0, 1e-4
    found = held_out_group_side(system, lam, of).side
    above, below = (group_error(system, lam * np.exp(sign * step), of) for sign in (1, -1))
    assert found.value == pytest.approx(group_error(system, lam, of), rel=1e-12)
    assert lam * found.slope == pytest.approx((above - below) / (2 * step), rel=1e-6)
    assert group_errors(system, np.array([2 * lam, lam]), of)[1] == pytest.approx(found.value, rel=1e-4)


@pytest.mark.parametrize("outputs", [1, 2])
def test_groups_that_are_zero_have_no_adjoint(outputs: int) -> None:
    """Between the lams at which groups enter; from the largest on all weights are zero, and nothing moves."""
    system, of, used = system_of("validation", NUMBERS[:, :outputs], WEIGHT, True), Grouping(GROUPS, ETA), []
    top = largest_group_lam(system, of)
    for share in (0.01, 0.3, 0.9, 0.999):
        side, norms = held_out_group_side(system, share * top, of)
        assert side.adjoint is not None
        off = norms[GROUPS] == 0
        used.append(int((norms > 0).sum()))
        assert (side.adjoint[off] == 0).all()
        assert (side.bound[off] == 0).all()
        assert side.adjoint[~off].any()
    assert used == sorted(used, reverse=True)
    assert used[0] > used[-1] >= 1
    side, norms = held_out_group_side(system, top, of)
    assert not norms.any()
    assert side.adjoint is not None
    assert not side.adjoint.any()
    assert (side.slope, side.coef.any()) == (0.0, False)
    test = system.test
    assert test is not None
    missed = WEIGHT[FOLD == 1] @ (NUMBERS[FOLD == 1][:, :outputs] - side.intercept) ** 2
    assert side.value == pytest.approx(float(missed.mean() / test.weight), rel=1e-9)
    assert joint_group_side(system_of("joint", NUMBERS, WEIGHT, True), 1e9, of).norms.tolist() == [0, 0, 0]


def test_the_bound_holds() -> None:
    """|psi_bar_k| of all rows, over the root of their weights."""
    for intercept in (True, False):
        w = WEIGHT
        side, _ = held_out_group_side(system_of("validation", NUMBERS, w, intercept), 3.0, Grouping(GROUPS, ETA))
        assert side.adjoint is not None
        E = PSI @ side.coef + side.intercept - NUMBERS
        F = PSI @ side.adjoint + side.adjoint_intercept
        tested = ((FOLD == 1)[:, None] * (w[:, None] * side.gain * E)) @ side.coef.T
        trained = (FOLD == 0)[:, None] * w[:, None] * (E @ side.adjoint.T + F @ side.coef.T)
        size = np.sqrt(((tested - trained) ** 2 / w[:, None]).sum(axis=0))
        assert (size <= side.bound).all()
        assert (side.bound < 100 * size).all()


def test_degenerate_targets_and_cost() -> None:
    """A constant y: no weights and no error; more systems and features cost more."""
    Y = np.full((N, 1), 3.0)
    side, norms = held_out_group_side(system_of("validation", Y, np.ones(N), True), 1.0, Grouping(GROUPS, ETA))
    assert side.value == pytest.approx(0, abs=1e-20)
    assert not norms.any()
    assert side.intercept[0] == pytest.approx(3)
    small, large = group_adjoint_cost(100, 1, 2), group_adjoint_cost(200, 2, 5)
    assert small.bytes < large.bytes
    assert small.flops < large.flops
