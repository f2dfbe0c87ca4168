"""One positive number by its logarithm: minimise J(l), l = log lam, from values and slopes, in few evaluations.

Between two points whose slopes point at each other lies a minimum; the cubic through both values and slopes guesses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

TOLERANCE, FLAT = 0.02, 2e-4
"""Two per cent of lam, or a slope far below J: in either case J is within about 1e-5 of its minimum."""
MOST = 12


class Point(NamedTuple):
    """J and dJ/dl at l, and whatever came with them."""

    at: float
    value: float
    slope: float
    what: Any


def minimise_log(
    evaluate: Callable[[float], Point], start: float | None, lower: float, upper: float, grid: int = 9
) -> Point:
    """The best point found in [lower, upper]: near `start`, or, if that is None, on a grid and then near its best."""
    if start is None:
        ends = np.linspace(lower, upper, grid)
        here = min((evaluate(float(at)) for at in ends), key=lambda point: point.value)
        step = float(ends[1] - ends[0]) / 2
    else:
        here, step = evaluate(min(max(start, lower), upper)), 0.5
    best, other = here, None
    for _ in range(MOST):
        if other is None:
            at = min(max(here.at - step * np.sign(here.slope), lower), upper)
            step *= 2
        else:
            at = _cubic_minimum(here, other)
        if abs(here.slope) <= FLAT * abs(here.value):
            break
        if abs(at - here.at) < TOLERANCE or (other is not None and abs(other.at - here.at) < TOLERANCE):
            break
        point = evaluate(at)
        if other is None:
            if point.slope * here.slope < 0:
                other = here
        elif point.slope * here.slope < 0:
            other = here
        here = point
        best = min(best, here, key=lambda found: found.value)
    return best


def _cubic_minimum(a: Point, b: Point) -> float:
    """Minimum of the cubic through two points with slopes, kept off the ends of the bracket."""
    a, b = (a, b) if a.at < b.at else (b, a)
    width = b.at - a.at
    mean = a.slope + b.slope - 3 * (b.value - a.value) / width
    root = np.sqrt(max(mean * mean - a.slope * b.slope, 0.0))
    below = b.slope - a.slope + 2 * root
    share = (b.slope + root - mean) / below if below > 0 else 0.5
    return float(b.at - width * min(max(share, 0.1), 0.9))
