"""L-BFGS against scipy's, in and out of a box; a state goes on with the same bits wherever it is taken up."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from dkl.solvers import lbfgs

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(8, 8))
HESSIAN = ROOT @ ROOT.T + 0.1 * np.eye(8)
LINEAR = RNG.normal(size=8)


def bowl(x):
    """A quadratic of condition number about 300."""
    return 0.5 * x @ HESSIAN @ x - LINEAR @ x, HESSIAN @ x - LINEAR


def valley(x):
    """Rosenbrock's."""
    return rosen(x), rosen_der(x)


def soft(x):
    """log-sum-exp of a quadratic: convex, far from quadratic."""
    z = np.concatenate([ROOT @ x, -ROOT @ x]) - np.tile(LINEAR, 2)
    top = z.max()
    p = np.exp(z - top)
    return top + np.log(p.sum()) + 0.05 * x @ x, np.vstack([ROOT, -ROOT]).T @ (p / p.sum()) + 0.1 * x


def descend(function, state, iterations=500, tolerance=1e-9):
    """(state, values asked for, gradients asked for)."""
    values = gradients = 0
    while True:
        value, gradient = function(state.trial)
        values += 1
        accepted, state = lbfgs.judged(state, value)
        if state.stalled:
            return state, values, gradients
        if accepted:
            state = lbfgs.moved(state, value, gradient)
            gradients += 1
            if state.gradient_norm <= tolerance or state.iteration >= iterations:
                return state, values, gradients


BOXES = {"open": (-np.inf, np.inf), "wide": (-5.0, 5.0), "tight": (-0.2, 0.5)}


@pytest.mark.parametrize("box", sorted(BOXES))
@pytest.mark.parametrize("function", [bowl, valley, soft])
def test_reaches_what_scipy_reaches(function, box):
    """The same minimum, with not many more evaluations."""
    lower, upper = (np.full(8, edge) for edge in BOXES[box])
    x = np.full(8, 0.3)
    state, values, gradients = descend(function, lbfgs.begin(x, lower, upper))
    bounds = None if box == "open" else list(zip(lower, upper, strict=True))
    expected = minimize(function, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9})
    np.testing.assert_allclose(state.x, expected.x, atol=1e-5)
    np.testing.assert_allclose(state.value, expected.fun, rtol=1e-9, atol=1e-12)
    assert values <= 3 * expected.nfev + 20
    assert gradients <= values
    assert (state.x >= lower).all()
    assert (state.x <= upper).all()


def test_a_rejected_point_costs_no_gradient():
    """From a steep place steps are shortened by values alone."""
    state, values, gradients = descend(valley, lbfgs.begin(np.array([-1.2, 1.0]), np.full(2, -9.0), np.full(2, 9.0)))
    assert gradients < values
    np.testing.assert_allclose(state.x, 1, atol=1e-6)


def test_values_only_fall():
    """Every accepted point is better than the last."""
    state, seen = lbfgs.begin(np.full(5, -0.7), np.full(5, -4.0), np.full(5, 4.0)), [np.inf]
    for _ in range(60):
        value, gradient = valley(state.trial)
        accepted, state = lbfgs.judged(state, value)
        if accepted:
            assert value < seen[-1]
            assert state.begun == (len(seen) > 1)
            state = lbfgs.moved(state, value, gradient)
            seen.append(value)
    assert len(seen) > 20


def test_what_is_not_finite_is_stepped_back_from():
    """An infinite value is a point that was not accepted."""

    def cliff(x):
        return (np.inf, np.full(2, np.nan)) if x[0] > 0.5 else ((x - 0.45) @ (x - 0.45), 2 * (x - 0.45))

    state, _, _ = descend(cliff, lbfgs.begin(np.array([-3.0, 0.0]), np.full(2, -9.0), np.full(2, 9.0)))
    np.testing.assert_allclose(state.x, 0.45, atol=1e-6)


def test_a_flat_function_stalls():
    """No step is good enough: said, not repeated for ever."""
    wall = lambda x: (float(np.abs(x).sum()), -np.ones(2))  # noqa: E731  the slope is wrong on purpose
    state, values, _ = descend(wall, lbfgs.begin(np.ones(2), np.full(2, -9.0), np.full(2, 9.0)))
    assert state.stalled
    assert values < 40
    np.testing.assert_array_equal(state.trial, state.x)


def test_a_step_that_promises_too_little_is_given_up():
    """From x = 1 of x^2 / 2 the first step is 0.3; after a bad value, half of it promises a decrease of 0.15."""
    begun = lbfgs.moved(lbfgs.begin(np.ones(1), np.full(1, -9.0), np.full(1, 9.0)), 0.5, np.ones(1))
    np.testing.assert_allclose(begun.trial, 0.7)
    accepted, shorter = lbfgs.judged(begun, 0.5, worth=0.1)
    assert not accepted
    assert not shorter.stalled
    np.testing.assert_allclose(shorter.trial, 0.85)
    _, given_up = lbfgs.judged(begun, 0.5, worth=0.31)
    assert given_up.stalled
    np.testing.assert_array_equal(given_up.trial, begun.x)


def test_goes_on_with_the_same_bits():
    """The state is all there is: taken up at any evaluation, through a copy of its arrays."""
    lower, upper = np.full(8, -5.0), np.full(8, 5.0)
    whole, _, _ = descend(valley, lbfgs.begin(np.full(8, 0.3), lower, upper), 30, 0)
    for stop in (0, 3, 17):
        half, _, _ = descend(valley, lbfgs.begin(np.full(8, 0.3), lower, upper), stop, 0)
        copied = lbfgs.Descent(*(np.array(v) if isinstance(v, np.ndarray) else v for v in half))
        again, _, _ = descend(valley, copied, 30, 0)
        for a, b in zip(whole, again, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_pairs_of_a_similar_function_help():
    """A descent that begins with another's curvature needs fewer gradients."""
    box = np.full(8, -50.0), np.full(8, 50.0)
    first, _, cold = descend(bowl, lbfgs.begin(np.full(8, 3.0), *box), tolerance=1e-5)
    shifted = lambda x: bowl(x + 0.01)  # noqa: E731
    _, _, warm = descend(shifted, lbfgs.begin(first.x, *box, like=first), tolerance=1e-5)
    _, _, bare = descend(shifted, lbfgs.begin(first.x, *box), tolerance=1e-5)
    assert warm < bare <= cold


def test_a_step_along_negative_curvature_is_no_pair():
    """s'y <= 0 says nothing of a minimum; s'y > 0 is kept, ten pairs at most."""
    state = lbfgs.moved(lbfgs.begin(np.zeros(2), np.full(2, -9.0), np.full(2, 9.0)), 1.0, np.array([1.0, 0.0]))
    step = state.trial - state.x
    assert step[0] < 0
    bent = lbfgs.moved(state, 0.5, np.array([1.5, 0.0]))
    assert len(bent.steps) == len(bent.changes) == 0
    state = lbfgs.moved(state, 0.9, np.array([0.9, 0.0]))
    np.testing.assert_array_equal(state.steps, [step])
    np.testing.assert_allclose(state.changes, [[-0.1, 0.0]], rtol=1e-12)
    end = descend(valley, lbfgs.begin(np.full(3, 3.0), np.full(3, -9.0), np.full(3, 9.0)), 15)[0]
    assert end.steps.shape == end.changes.shape == (10, 3)
