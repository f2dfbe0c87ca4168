"""Objectives of lam from sums: values from the rows themselves, slopes and adjoints by central differences."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.solvers.hypergradient import (
    gcv_side,
    held_out_side,
    joint_side,
    log_loss_side,
    make_system,
    solve_system,
    unseen_error,
)
from dkl.solvers.ridge import Moments

D, LAM, SHARE = 5, 0.7, np.array([0.4, 2.0])
RNG = np.random.default_rng(4)


def draw(n, shift):
    """Features, two outputs and weights."""
    Psi = RNG.normal(size=(n, D)) + 0.6
    return Psi, Psi @ RNG.normal(size=(D, 2)) + RNG.normal(size=(n, 2)) + shift, RNG.gamma(2, size=n)


TRAIN, TEST = draw(30, 3.0), draw(17, 2.5)
ROWS = float(len(TRAIN[0]))


def sums_of(rows):
    Psi, Y, w = rows
    W = w[:, None]
    return Moments(w.sum(), Psi.T @ (W * Psi), Psi.T @ (W * Y), w @ Psi, w @ Y, w @ Y**2)


S, V = sums_of(TRAIN), sums_of(TEST)


def dense_fit(lam, intercept):
    """B, b0 and the matrix that takes targets to fitted values, from the rows with the intercept as a column."""
    Psi, Y, w = TRAIN
    A = np.column_stack([Psi, np.ones(len(Psi))]) if intercept else Psi
    ridge = lam * np.diag([1.0] * D + [0.0] * intercept)
    solve = np.linalg.solve(A.T @ (w[:, None] * A) + ridge, A.T * w)
    found = solve @ Y
    return found[:D], found[D] if intercept else np.zeros(2), A @ solve


def dense_value(objective, lam, intercept):
    """J by definition, with the weight of each output."""
    B, b0, hat = dense_fit(lam, intercept)
    Psi, Y, w = TEST if objective == "cv" else TRAIN
    energy = w @ (Psi @ B + b0 - Y) ** 2
    if objective == "joint":
        energy = energy + lam * (B * B).sum(axis=0)
    if objective == "gcv":
        energy = energy * (ROWS / (ROWS - np.trace(hat))) ** 2
    return float((SHARE * energy).mean() / w.sum())


def system(intercept, train=S, rows=ROWS):
    return make_system(train, V, rows, intercept)


OBJECTIVES = {"cv": held_out_side, "joint": joint_side, "gcv": gcv_side}
both = pytest.mark.parametrize("intercept", [False, True])


@both
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_value_and_slope(objective, intercept):
    """J of the rows, dJ/dlam by differences of that, the weights and the gain of each output."""
    side = OBJECTIVES[objective](system(intercept), LAM, SHARE)
    B, b0, hat = dense_fit(LAM, intercept)
    np.testing.assert_allclose(side.coef, B, rtol=1e-9)
    np.testing.assert_allclose(side.intercept, b0, rtol=1e-9, atol=1e-12)
    assert side.value == pytest.approx(dense_value(objective, LAM, intercept), rel=1e-9)
    step = 1e-4
    slope = (dense_value(objective, LAM + step, intercept) - dense_value(objective, LAM - step, intercept)) / (2 * step)
    assert side.slope == pytest.approx(slope, rel=1e-5)
    stretch = (ROWS / (ROWS - np.trace(hat))) ** 2 if objective == "gcv" else 1.0
    weight = V.weight if objective == "cv" else S.weight
    np.testing.assert_allclose(side.gain, 2 * stretch * SHARE / (2 * weight), rtol=1e-9)


@both
def test_error_without_a_gradient(intercept):
    """The same number as that of the held-out objective."""
    assert unseen_error(system(intercept), LAM, SHARE) == pytest.approx(dense_value("cv", LAM, intercept), rel=1e-9)


def changed(name, at, step):
    """The sums to train with, one number of them moved."""
    values = getattr(S, name).copy()
    values[at] += step
    return S._replace(**{name: values})


@both
@pytest.mark.parametrize("objective", ["cv", "gcv"])
def test_adjoints_are_slopes_in_the_sums(objective, intercept):
    """dJ/dR = A and dJ/dsy = A0; of gcv less gain B and gain b0, for R and sy are in its energy as well."""
    make = OBJECTIVES[objective]
    side, step = make(system(intercept), LAM, SHARE), 1e-5
    own = objective == "gcv"
    for name, adjoint, weights in (
        ("cross", side.adjoint, side.coef),
        ("target_sum", side.adjoint_intercept, side.intercept),
    ):
        if name == "target_sum" and not intercept:
            assert not side.adjoint_intercept.any()
            continue
        for at in np.ndindex(adjoint.shape):
            ends = [make(system(intercept, changed(name, at, sign * step)), LAM, SHARE).value for sign in (1, -1)]
            expected = (adjoint - own * side.gain * weights)[at]
            assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(expected, rel=1e-4, abs=1e-8)


@both
def test_curvature(intercept):
    """dJ of gcv through the degrees of freedom t alone: 2 value / free * dt/dG, twice."""
    side = gcv_side(system(intercept), LAM, SHARE)
    Psi, _, w = TRAIN
    Psi = Psi - intercept * (w @ Psi / w.sum())
    Q = np.linalg.inv(Psi.T @ (w[:, None] * Psi) + LAM * np.eye(D))
    free = ROWS - np.trace(dense_fit(LAM, intercept)[2])
    expected = 2 * (2 * side.value / free) * LAM * Q @ Q
    np.testing.assert_allclose(side.curvature, expected, rtol=1e-8, atol=1e-12 * np.abs(expected).max())
    for other in (held_out_side, joint_side):
        assert other(system(intercept), LAM, SHARE).curvature is None
    assert joint_side(system(intercept), LAM, SHARE).adjoint is None


def dense_bound(side, energy, slopes, intercept, lam=LAM):
    """|B| (gain |e| + |Psi A + A0|) + |A| |e of no features|, with each norm or a bound of it, from the rows."""
    Psi, Y, w = TRAIN
    Psi = Psi - intercept * (w @ Psi / w.sum())
    Y = Y - intercept * (w @ Y / w.sum())
    Q = Psi.T @ (w[:, None] * Psi) + lam * np.eye(D)
    A = side.adjoint
    swing = np.sqrt(((Q @ A) * A).sum(axis=0) + intercept * slopes**2 / w.sum())
    return np.abs(side.coef) @ (energy + swing) + np.abs(A) @ np.sqrt(w @ Y**2)


@both
def test_bounds(intercept):
    """What the second pass may count on: no row pulls a feature more than that."""
    B, b0, _ = dense_fit(LAM, intercept)
    energies = {name: w @ (Psi @ B + b0 - Y) ** 2 for name, (Psi, Y, w) in {"cv": TEST, "gcv": TRAIN}.items()}
    side = held_out_side(system(intercept), LAM, SHARE)
    Psi, Y, w = TEST
    slopes = side.gain * (w @ (Psi @ B + b0 - Y))
    expected = dense_bound(side, side.gain * np.sqrt(energies["cv"]), slopes, intercept)
    np.testing.assert_allclose(side.bound, expected, rtol=1e-9)

    side = joint_side(system(intercept), LAM, SHARE)
    np.testing.assert_allclose(side.bound, np.abs(B) @ (side.gain * np.sqrt(energies["gcv"])), rtol=1e-9)

    side = gcv_side(system(intercept), LAM, SHARE)
    expected = dense_bound(side, side.gain * np.sqrt(energies["gcv"]), np.zeros(2), intercept)
    Psi, _, w = TRAIN
    Psi = Psi - intercept * (w @ Psi / w.sum())
    Q = np.linalg.inv(Psi.T @ (w[:, None] * Psi) + LAM * np.eye(D))
    free = ROWS - np.trace(dense_fit(LAM, intercept)[2])
    expected = expected + 2 * LAM * 2 * side.value / free * np.sqrt(np.diag(Q @ Q @ Q))
    np.testing.assert_allclose(side.bound, expected, rtol=1e-9)


def test_more_unknowns_than_rows():
    """Degrees of freedom that are used up count as next to none, not as below zero."""
    side = gcv_side(system(True, rows=2.0), 1e-9, SHARE)
    B, b0, _ = dense_fit(1e-9, True)
    Psi, Y, w = TRAIN
    expected = (SHARE * (w @ (Psi @ B + b0 - Y) ** 2)).mean() / w.sum() * 1e24
    assert side.value == pytest.approx(expected, rel=1e-6)


def test_a_target_that_is_fitted_exactly():
    """Energies that rounding puts below zero are none."""
    zero = S._replace(cross=np.zeros((D, 2)), target_sum=np.zeros(2), target_square=np.full(2, -1e-18))
    side = held_out_side(make_system(zero, zero, ROWS, False), LAM, SHARE)
    assert side.value == 0
    np.testing.assert_array_equal(side.bound, 0)


@both
def test_log_loss_side(intercept):
    """A loss that is linear in B and b0: its value, dJ/dlam and the adjoints by differences through the solve."""
    g, g0, part = RNG.normal(size=(D, 2)), RNG.normal(size=2), 0.3

    def loss(train, lam):
        found = solve_system(system(intercept, train), lam)
        return part * float((found.coef * g).sum() + found.intercept @ g0 * intercept)

    solved = solve_system(system(intercept), LAM)
    side = log_loss_side(solved, 7.0, g, g0, 1.9, part)
    B, b0, _ = dense_fit(LAM, intercept)
    np.testing.assert_allclose(side.coef, B, rtol=1e-9)
    np.testing.assert_allclose(side.intercept, b0, rtol=1e-9, atol=1e-12)
    assert side.value == pytest.approx(2.1)
    assert side.gain.tolist() == [part, part]
    step = 1e-4
    assert side.slope == pytest.approx((loss(S, LAM + step) - loss(S, LAM - step)) / (2 * step), rel=1e-4)
    for at in np.ndindex(D, 2):
        ends = [loss(changed("cross", at, sign * step), LAM) for sign in (1, -1)]
        assert side.adjoint[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-9)
    for at in range(2):
        ends = [loss(changed("target_sum", at, sign * step), LAM) for sign in (1, -1)]
        assert side.adjoint_intercept[at] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4, abs=1e-9)
    expected = dense_bound(side, np.full(2, part * 1.9 * np.sqrt(V.weight)), part * g0, intercept)
    np.testing.assert_allclose(side.bound, expected, rtol=1e-9)


def test_a_solved_system_lets_its_matrices_go():
    """Only the factor, the weights and the small sums are kept."""
    kept = solve_system(system(True), LAM).system
    for matrix in (kept.train.gram, kept.train.cross, kept.test.gram, kept.test.cross, *kept.inner):
        assert matrix.size == 0
    assert kept.test.weight == V.weight
