"""The least value along a line against scipy, in few evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dkl.solvers.scalar import Point, minimise_log

FUNCTIONS = {
    "bowl": (lambda x: 1 + (x - 0.7) ** 2, lambda x: 2 * (x - 0.7)),
    "cubic": (lambda x: 9 + x**3 / 3 - 2 * x, lambda x: x * x - 2),
    "steep": (lambda x: np.exp(2 * x) - x, lambda x: 2 * np.exp(2 * x) - 1),
    "soft": (
        lambda x: np.logaddexp(x, -2 * x),
        lambda x: (np.exp(x) - 2 * np.exp(-2 * x)) / (np.exp(x) + np.exp(-2 * x)),
    ),
}


def watched(name):
    """A function with slopes, and the list of places where it was asked for."""
    value, slope = FUNCTIONS[name]
    asked = []

    def evaluate(at):
        asked.append(at)
        return Point(at, float(value(at)), float(slope(at)), f"at {at}")

    return evaluate, asked


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("start", [None, -1.0, 0.1, 3.0, 99.0])
def test_against_scipy(name, start):
    """Near scipy's minimum in few steps, from whichever side; what belongs to the best point comes with it."""
    evaluate, asked = watched(name)
    found = minimise_log(evaluate, start, -1.4, 4.0)
    expected = minimize_scalar(FUNCTIONS[name][0], bounds=(-1.4, 4.0), method="bounded", options={"xatol": 1e-9})
    assert found.at == pytest.approx(expected.x, abs=0.02)
    assert found.value == pytest.approx(expected.fun, rel=3e-4)
    assert found.value == min(FUNCTIONS[name][0](at) for at in asked)
    assert found.what == f"at {found.at}"
    assert len(asked) <= (9 + 5 if start is None else 9)
    assert min(asked) >= -1.4
    assert max(asked) <= 4.0


def test_first_places():
    """From a start half a unit downhill, then twice as far; from nothing, nine places and half their distance."""
    evaluate, asked = watched("bowl")
    minimise_log(evaluate, 3.0, -10.0, 10.0)
    np.testing.assert_allclose(asked[:3], [3.0, 2.5, 1.5])
    evaluate, asked = watched("bowl")
    minimise_log(evaluate, None, -4.0, 4.0)
    np.testing.assert_allclose(asked[:10], [*range(-4, 5), 0.5])


def test_a_cubic_takes_one_step():
    """Once the minimum is between two points, the cubic through them is the function itself."""
    evaluate, asked = watched("cubic")
    found = minimise_log(evaluate, 1.2, -1.0, 4.0)
    assert asked[:2] == [1.2, 1.7]
    assert found.at == asked[2] == pytest.approx(np.sqrt(2), abs=1e-9)


@pytest.mark.parametrize(("lower", "upper", "end"), [(-3.0, -1.0, -1.0), (2.0, 5.0, 2.0)])
def test_at_an_edge(lower, upper, end):
    """A minimum outside is sought at the edge, not beyond it."""
    evaluate, asked = watched("bowl")
    assert minimise_log(evaluate, (lower + upper) / 2, lower, upper).at == end
    assert len(asked) < 6
