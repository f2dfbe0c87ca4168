"""Spectral projected gradient in a box, as an immutable state that asks for one evaluation after the other.

    direction = P(x - b g) - x,   b = s's / s'y (Barzilai and Borwein),   P clips to the box
    a trial x + t direction is taken if   f(trial) <= max of the last 10 values + 1e-4 t g'direction

Values may rise for a while, so steps keep the length of the curvature instead of being cut. The state holds the point
to try next; `evaluated(state, value, gradient)` takes it, or asks for a shorter step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost

REMEMBERED = 10
"""Values that a trial is compared with."""
ARMIJO = 1e-4
"""Share of the promised decrease that is enough."""
SHORTEST, LONGEST = 1e-10, 1e10
"""Ends of the spectral step."""
GIVEN_UP = 1e-8
"""A step is given up at this share of its length."""
ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""Relative error of a value, if nothing else is said."""
STATE = 20
"""Numbers for each coordinate that a descent holds."""


def descent_cost(size: int) -> SolveCost:
    """The state of a descent in so many coordinates."""
    return SolveCost(8 * STATE * size, 2.0 * STATE * size)


class Descent(NamedTuple):
    """The last accepted point, the step from it, and the point to try."""

    x: np.ndarray
    gradient: np.ndarray
    past: np.ndarray  # the last values, newest last
    trial: np.ndarray
    direction: np.ndarray
    length: float  # of the step along the direction
    spectral: float
    lower: np.ndarray
    upper: np.ndarray
    noise: float  # relative error of a value
    iteration: int
    stalled: bool

    @property
    def begun(self) -> bool:
        """Whether a first point has been accepted."""
        return self.iteration >= 0

    @property
    def value(self) -> float:
        """f(x)."""
        return float(self.past[-1]) if self.begun else float("inf")


def begin(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, noise: float = ROUNDING) -> Descent:
    """A descent from x."""
    x = np.clip(x, lower, upper)
    nothing = np.zeros_like(x)
    return Descent(x, nothing, np.empty(0), x, nothing, 1.0, 0.0, lower, upper, noise, -1, False)


def evaluated(state: Descent, value: float, gradient: np.ndarray) -> Descent:
    """The state after f and its gradient at the trial are known: it is taken, or a shorter step is tried."""
    if not state.begun:
        return _moved(state, value, gradient, _first_step(state.x, gradient))
    slope = float(state.gradient @ state.direction)
    most = float(state.past.max())
    if value <= most + ARMIJO * state.length * slope + state.noise * abs(most):
        s, y = state.trial - state.x, gradient - state.gradient
        curve = float(s @ y)
        spectral = float(s @ s) / curve if curve > 0 else 10 * state.spectral
        return _moved(state, value, gradient, spectral)
    length = state.length * _shorter(value - state.value, state.length * slope)
    if length < GIVEN_UP:
        return state._replace(stalled=True, trial=state.x)
    return state._replace(length=length, trial=_inside(state, state.x + length * state.direction))


def _first_step(x: np.ndarray, gradient: np.ndarray) -> float:
    """The largest coordinate of the gradient moves its own by as much as the largest of x, or by one."""
    steepest = float(np.abs(gradient).max(initial=0.0))
    size = float(np.abs(x).max(initial=0.0))
    return (size or 1.0) / steepest if steepest > 0 else 1.0


def _shorter(rise: float, promised: float) -> float:
    """The least point of the parabola through the two values, between a tenth and half of the step."""
    curve = 2 * (rise - promised)
    share = -promised / curve if np.isfinite(curve) and curve > 0 else 0.1
    return min(max(share, 0.1), 0.5)


def _inside(state: Descent, point: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(point, state.lower, state.upper))


def _moved(state: Descent, value: float, gradient: np.ndarray, spectral: float) -> Descent:
    """The trial as the new point, with a new direction and the whole step along it to try."""
    x, spectral = state.trial, min(max(spectral, SHORTEST), LONGEST)
    end = _inside(state, x - spectral * gradient)
    return state._replace(
        x=x, gradient=gradient, past=np.append(state.past, value)[-REMEMBERED:], trial=end, direction=end - x,
        length=1.0, spectral=spectral, iteration=state.iteration + 1, stalled=bool((end == x).all()),
    )  # fmt: skip
