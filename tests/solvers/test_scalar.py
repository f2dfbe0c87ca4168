"""The least value along a line against scipy, in few evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dkl.solvers.scalar import Point, _cubic_minimum, minimise_log

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


def cubic(a, b, c, at):
    """a + b x + c x^2 + x^3 and its slope."""
    return Point(at, a + b * at + c * at**2 + at**3, b + 2 * c * at + 3 * at**2, None)


@pytest.mark.parametrize(("left", "right"), [(0.1, 1.9), (0.5, 1.2), (0.7, 2.9), (-0.2, 1.2)])
def test_the_minimum_of_a_cubic(left, right):
    """2 - 3 x + x^3 has its minimum at 1, from any two points about it, whichever is named first."""
    a, b = cubic(2, -3, 0, left), cubic(2, -3, 0, right)
    assert _cubic_minimum(a, b) == _cubic_minimum(b, a) == pytest.approx(1.0, rel=1e-12)


def test_off_the_ends():
    """A minimum next to an end of the bracket is put a tenth of the width away from it; a line, in the middle."""
    assert _cubic_minimum(cubic(2, -3, 0, 0.99), cubic(2, -3, 0, 2.99)) == pytest.approx(1.19)
    assert _cubic_minimum(cubic(2, -3, 0, -0.5), cubic(2, -3, 0, 1.01)) == pytest.approx(1.01 - 0.151)
    assert _cubic_minimum(Point(1.0, 5.0, 0.0, None), Point(3.0, 5.0, 0.0, None)) == 2.0


def test_a_flat_place_is_the_end():
    """A slope of two ten-thousandths of the value, whatever its sign, is none; a little more is one."""
    for sign in (1, -1):
        for slope, places in ((1.9e-4, 1), (2e-4, 1), (2.1e-4, 2)):
            asked = []

            def line(at):
                asked.append(at)  # noqa: B023
                return Point(at, sign * 1.0, -slope if len(asked) == 1 else 0.0, None)  # noqa: B023

            minimise_log(line, 0.0, -9.0, 9.0)
            assert len(asked) == places


def test_never_more_than_so_many():
    """Downhill without end: twelve places beyond the first, each twice as far, then the best is taken."""
    asked = []

    def slide(at):
        asked.append(at)
        return Point(at, -at, -1.0 - abs(at), None)

    found = minimise_log(slide, 0.0, -1e9, 1e9)
    np.testing.assert_allclose(np.diff(asked), 0.5 * 2.0 ** np.arange(12))
    assert found.at == asked[-1]


def test_two_per_cent_is_near_enough():
    """A next place within 0.02 of this one is not asked for, nor is one in a bracket as narrow as that."""
    for edge, places in ((0.019, 1), (0.021, 2)):
        evaluate, asked = watched("steep")
        minimise_log(evaluate, edge, 0.0, 4.0)
        assert len(asked) == places
