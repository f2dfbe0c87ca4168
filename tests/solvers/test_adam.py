"""Adam against a plain loop."""

from __future__ import annotations

import numpy as np

from dkl.solvers.adam import begin, stepped


def plain(gradients, x, low, high):
    """The formulas, written out; every point."""
    T, points = len(gradients), []
    m = v = np.zeros_like(x)
    for t, g in enumerate(gradients):
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g**2
        unbiased_m, unbiased_v = m / (1 - 0.8 ** (t + 1)), v / (1 - 0.95 ** (t + 1))
        x = np.minimum(np.maximum(x - 0.15 * (1 - 0.8 * t / T) * unbiased_m / (np.sqrt(unbiased_v) + 1e-12), low), high)
        points.append(x)
    return points


def test_steps_and_end():
    """Every point, inside a box and at its edge, and the mean of the second half; odd and even numbers of steps."""
    rng = np.random.default_rng(0)
    for steps in (1, 7, 20):
        gradients = rng.normal([0.0, 2.0, -0.1], size=(steps, 3))
        low, high = np.array([-9.0, -0.5, -9.0]), np.full(3, 9.0)
        expected = plain(gradients, np.zeros(3), low, high)
        state = begin(np.zeros(3), low, high)
        for t, gradient in enumerate(gradients):
            before = state
            state = stepped(state, gradient, steps)
            np.testing.assert_allclose(state.x, expected[t], rtol=1e-12)
            assert before.iteration == t
        np.testing.assert_allclose(state.end, np.mean(expected[steps // 2 :], axis=0), rtol=1e-12)
        assert steps < 20 or state.x[1] == -0.5
    assert begin(np.ones(2), np.zeros(2), np.ones(2)).end.tolist() == [1, 1]


def test_no_gradient_no_step():
    """A coordinate that nothing depends on stays where it is."""
    state = begin(np.array([1.0, 1.0]), np.full(2, -9.0), np.full(2, 9.0))
    for _ in range(5):
        state = stepped(state, np.array([0.0, 1e-6]), 5)
    assert state.x[0] == 1.0
    assert state.x[1] < 0.7
