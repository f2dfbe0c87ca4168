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


def at(x, value, gradient, **fields):
    """A state that has begun at x, in a wide box, whose trial is one unit downhill."""
    x, gradient = np.array(x, float), np.array(gradient, float)
    state = lbfgs.begin(x, np.full(len(x), -50.0), np.full(len(x), 50.0))
    state = state._replace(value=value, gradient=gradient, iteration=0, direction=-gradient, trial=x - gradient)
    return state._replace(**fields)


def test_where_a_descent_begins():
    """Nothing is known yet, and the first point is the one to try; whatever its value, it is accepted."""
    state = lbfgs.begin(np.ones(2), np.zeros(2), np.full(2, 3.0))
    assert (state.value, state.iteration, state.decrease, state.length, state.stalled) == (np.inf, -1, np.inf, 1, False)
    assert not state.begun
    np.testing.assert_array_equal(state.trial, state.x)
    assert state.steps.shape == state.changes.shape == (0, 2)
    assert not state.gradient.any()
    assert lbfgs.judged(state, np.inf) == (True, state)
    first = lbfgs.moved(state, 5.0, np.ones(2))
    assert first.begun
    assert (first.iteration, first.value, first.decrease) == (0, 5.0, np.inf)


@pytest.mark.parametrize(
    ("value", "share"),
    [(9.9997, 0.5), (10.0, 0.5), (18.0, 4 / 24), (30.0, 0.1), (100.0, 0.1), (np.inf, 0.1), (np.nan, 0.1)],
)
def test_how_much_shorter(value, share):
    """The parabola through both values and the slope: promised / 2 (value - old + promised), from 0.1 to 0.5."""
    state = at([1.0, 2.0], 10.0, [0.0, 2.0])
    assert state.promised == 4.0
    accepted, shorter = lbfgs.judged(state, value)
    assert not accepted
    assert not shorter.stalled
    assert shorter.length == pytest.approx(share)
    np.testing.assert_allclose(shorter.trial, [1.0, 2.0 - 2 * share])
    again = lbfgs.judged(shorter, np.inf)[1]
    assert again.length == pytest.approx(0.1 * share)
    np.testing.assert_allclose(again.trial, [1.0, 2.0 - 0.2 * share])


def test_a_value_that_is_good_enough():
    """A ten-thousandth of what is promised, and no less."""
    state = at([1.0], 10.0, [2.0])
    assert lbfgs.judged(state, 10 - 4e-4) == (True, state)
    assert not lbfgs.judged(state, 10 - 3.99e-4)[0]


def test_the_shortest_step():
    """A step of a millionth of its length is the last."""
    for length, stalled in ((1.1e-6, False), (1e-6, True), (0.9e-6, True)):
        state = at([1.0], 10.0, [2.0], length=length)
        assert lbfgs.judged(state, 11.0)[1].stalled == stalled


def test_worth_of_a_step():
    """The shorter step must promise that share of the value, to either side of zero."""
    for value in (10.0, -10.0):
        state = at([1.0], value, [2.0])
        assert not lbfgs.judged(state, value + 1, worth=0.159)[1].stalled
        assert not lbfgs.judged(state, value, worth=0.2)[1].stalled
        assert lbfgs.judged(state, value, worth=0.2001)[1].stalled


def test_when_it_has_converged():
    """Two small decreases; or one, and a promise of no more than tol; or a promise of a hundredth of that."""
    assert lbfgs.WORTH == 0.01
    state = at([1.0], -8.0, [2.0], trial=np.array([0.5]))
    assert state.promised == 1.0
    assert state.has_converged(2, 0.0)
    assert state.has_converged(3, 0.0)
    assert state.has_converged(1, 0.125)
    assert not state.has_converged(1, 0.1249)
    assert not state.has_converged(0, 0.125)
    assert state.has_converged(0, 12.5)
    assert not state.has_converged(0, 12.49)


def test_the_gradient_that_counts():
    """What pushes against an edge does not, what pulls away from it does, nor does any sign."""
    state = at([0.0, 0.0, 1.0, 1.0, 0.5], 1.0, [9.0, -2.0, 3.0, -8.0, 1.0])
    state = state._replace(lower=np.zeros(5), upper=np.ones(5))
    assert state.gradient_norm == 3.0
    assert state._replace(gradient=np.array([9.0, -5.0, 3.0, -8.0, 1.0])).gradient_norm == 5.0
    assert state._replace(gradient=np.array([9.0, 0.0, 0.0, -8.0, 0.0])).gradient_norm == 0.0
    assert state._replace(gradient=np.array([0.0, 0.0, 0.0, 0.0, -0.5])).gradient_norm == 0.5


@pytest.mark.parametrize("gradient", [[6.0, -3.0], [6e-9, -3e-9]])
def test_the_first_step(gradient):
    """0.3 along the steepest coordinate, whatever the size of the gradient."""
    state = lbfgs.moved(lbfgs.begin(np.zeros(2), np.full(2, -9.0), np.full(2, 9.0)), 1.0, np.array(gradient))
    np.testing.assert_allclose(state.trial, [-0.3, 0.15], rtol=1e-12)
    np.testing.assert_allclose(state.direction, state.trial, rtol=1e-12)
    assert state.length == 1.0
    at_rest = lbfgs.moved(lbfgs.begin(np.zeros(2), np.full(2, -9.0), np.full(2, 9.0)), 1.0, np.zeros(2))
    np.testing.assert_array_equal(at_rest.trial, 0)


def dense_direction(steps, changes, gradient):
    """-H g with the matrix itself: (I - s y'/s'y) H (I - y s'/s'y) + s s'/s'y from s'y / y'y of the last pair."""
    eye = np.eye(len(gradient))
    H = eye * (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y in zip(steps, changes, strict=True):
        V = eye - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    return -H @ gradient


@pytest.mark.parametrize("pairs", [1, 2, 5])
def test_the_direction_is_that_of_the_matrix(pairs):
    """The two-loop recursion against the update of the whole matrix; then a step of no more than 2."""
    rng = np.random.default_rng(pairs)
    steps = rng.normal(size=(pairs, 4))
    changes = steps @ np.diag([1.0, 2.0, 3.0, 4.0]) + 0.05 * rng.normal(size=(pairs, 4))
    gradient = rng.normal(size=4)
    expected = dense_direction(steps, changes, gradient)
    like = at(np.zeros(4), 1.0, np.zeros(4))._replace(steps=steps, changes=changes)
    begun = lbfgs.begin(np.zeros(4), np.full(4, -50.0), np.full(4, 50.0), like=like)
    found = lbfgs.moved(begun, 1.0, gradient)
    assert np.abs(expected).max() < 2
    np.testing.assert_allclose(found.direction, expected, rtol=1e-9)
    np.testing.assert_allclose(found.trial, expected, rtol=1e-9)
    far = lbfgs.moved(begun, 1.0, 100 * gradient)
    np.testing.assert_allclose(far.direction, 2 * expected / np.abs(expected).max(), rtol=1e-9)


def test_coordinates_at_an_edge_stand_still():
    """The pairs count without them, as if they were not there; a trial beyond an edge is put on it."""
    rng = np.random.default_rng(7)
    steps = rng.normal(size=(3, 4))
    changes, gradient = steps * [1.0, 2.0, 3.0, 4.0], np.array([0.3, 0.2, -0.1, 0.4])
    lower = np.array([-50.0, 0.0, -50.0, -0.01])
    like = at(np.zeros(4), 1.0, np.zeros(4))._replace(steps=steps, changes=changes)
    found = lbfgs.moved(lbfgs.begin(np.zeros(4), lower, np.full(4, 50.0), like=like), 1.0, gradient)
    free = [0, 2, 3]
    expected = dense_direction(steps[:, free], changes[:, free], gradient[free])
    np.testing.assert_allclose(found.direction[free], expected, rtol=1e-9)
    assert found.direction[1] == 0
    assert found.trial[3] == -0.01
    assert found.trial[1] == 0


def test_how_far_the_value_fell():
    """Relative to the size of the value before."""
    state = at([1.0], -4.0, [2.0], iteration=3)
    after = lbfgs.moved(state, -5.0, np.array([1.0]))
    assert (after.decrease, after.iteration, after.value) == (0.25, 4, -5.0)
    np.testing.assert_array_equal(after.x, state.trial)
    np.testing.assert_array_equal(after.steps, [[-2.0]])
    np.testing.assert_array_equal(after.changes, [[-1.0]])
    assert lbfgs.moved(at([1.0], 0.0, [2.0]), -1.0, np.array([1.0])).decrease > 1e300


def test_pairs_of_next_to_no_curvature():
    """s'y must be above 1e-10 |s| |y|, or the pair is not taken, nor used."""
    for bend, taken in ((1e-9, 1), (1e-11, 0), (0.0, 0), (-1.0, 0)):
        state = at([0.0, 0.0], 1.0, [1.0, 0.0])
        after = lbfgs.moved(state, 0.9, np.array([1.0 - bend, 1.0]))
        assert len(after.steps) == len(after.changes) == taken
    like = at(np.zeros(2), 1.0, np.zeros(2))
    like = like._replace(steps=np.array([[1.0, 0.0], [1.0, 0.0]]), changes=np.array([[2.0, 0.0], [1e-11, 1.0]]))
    begun = lbfgs.begin(np.zeros(2), np.full(2, -50.0), np.full(2, 50.0), like=like)
    np.testing.assert_allclose(lbfgs.moved(begun, 1.0, np.array([1.0, 1.0])).direction, [-0.5, -0.5])


def test_a_restart_goes_down_the_gradient():
    """Pairs are forgotten where a descent has stalled, and it goes on from the same point."""
    curved = np.diag([1.0, 30.0])
    state = lbfgs.begin(np.array([3.0, 1.0]), np.full(2, -9.0), np.full(2, 9.0))
    for _ in range(4):
        accepted, state = lbfgs.judged(state, 0.5 * state.trial @ curved @ state.trial)
        if accepted:
            state = lbfgs.moved(state, 0.5 * state.trial @ curved @ state.trial, curved @ state.trial)
    assert len(state.steps)
    again = lbfgs.restarted(state._replace(stalled=True))
    assert (len(again.steps), again.stalled) == (0, False)
    np.testing.assert_array_equal(again.x, state.x)
    step, gradient = again.trial - again.x, again.gradient
    np.testing.assert_allclose(step / np.linalg.norm(step), -gradient / np.linalg.norm(gradient))
    assert np.abs(step).max() == pytest.approx(lbfgs.FIRST)
