"""L-BFGS of a convex function in whitened coordinates, as an immutable state.

    x_{k+1} = x_k + t p,   p = -H g,   H from the last pairs (s, y) by the two-loop recursion, H = I at first

The second derivative is at most I there, so the first step cannot overshoot. Every trial brings its value and its
gradient: a step that is accepted costs one evaluation. A trial is accepted if the value falls as promised, or if it is
level within rounding and the slope along the step has become small (the test of Hager and Zhang).

Where a loss is linear, a pair shows no curvature and H would step without limit. So a step is at most GROWTH times as
long as the last one, and a direction without decrease is tried again without pairs before a descent stalls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost

PAIRS = 10
ARMIJO, LEVEL = 1e-4, 1e-7
"""Share of the promised decrease that is enough; relative differences of values that may be rounding of float32."""
SHORTEST = 1e-4
"""A step that is shorter than this share of the first trial is given up."""
GROWTH = 10.0
"""The length of a step over that of the one before, at most."""


def quasi_newton_cost(size: int, systems: int = 1) -> SolveCost:
    """Pairs and points of so many systems of that many unknowns."""
    return SolveCost(8 * systems * size * (2 * PAIRS + 8), 4.0 * systems * size * (2 * PAIRS + 4))


class Descent(NamedTuple):
    """The last accepted point, the pairs, and the point to try."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    steps: np.ndarray  # (pairs, p)
    changes: np.ndarray  # (pairs, p)
    trial: np.ndarray
    direction: np.ndarray
    length: float = 1.0
    longest: float = 1.0  # the length that is tried first
    iteration: int = -1
    stalled: bool = False

    @property
    def begun(self) -> bool:
        """Whether a first point has been accepted."""
        return self.iteration >= 0


def begin(x: np.ndarray) -> Descent:
    """A descent from x."""
    pairs, nothing = np.empty((0, x.size)), np.zeros_like(x)
    return Descent(x, np.inf, nothing, pairs, pairs, x, nothing)


def evaluated(state: Descent, value: float, gradient: np.ndarray) -> Descent:
    """The state after the trial's value and gradient are known: a new point, or a shorter step."""
    if not state.begun:
        return _aimed(state, value, gradient)
    before, after = float(state.gradient @ state.direction), float(gradient @ state.direction)
    falls = value <= state.value + ARMIJO * state.length * before
    level = value <= state.value + LEVEL * abs(state.value) and after <= (2 * ARMIJO - 1) * before
    if falls or level:
        return _aimed(state, value, gradient)
    if state.length <= SHORTEST * state.longest:
        return state._replace(stalled=True, trial=state.x) if not len(state.steps) else _without_pairs(state)
    share = before / (before - after) if after > before else 0.5
    length = state.length * min(max(share, 0.1), 0.5)
    return state._replace(length=length, trial=state.x + length * state.direction)


def _aimed(state: Descent, value: float, gradient: np.ndarray) -> Descent:
    """The trial is the new point; a new direction from it."""
    steps, changes = state.steps, state.changes
    if state.begun:
        s, y = state.trial - state.x, gradient - state.gradient
        if s @ y > 1e-10 * np.sqrt((s @ s) * (y @ y)):
            steps, changes = (np.vstack([old, new])[-PAIRS:] for old, new in ((steps, s), (changes, y)))
    direction = _direction(gradient, steps, changes)
    if gradient @ direction >= 0:  # rounding has spoilt the pairs
        steps, changes, direction = steps[:0], changes[:0], -gradient
    length = 1.0
    if len(steps):
        size = float(np.linalg.norm(direction))
        length = min(1.0, GROWTH * float(np.linalg.norm(state.trial - state.x)) / size) if size else 1.0
    trial = state.trial + length * direction
    return Descent(
        state.trial, value, gradient, steps, changes, trial, direction, length, length, state.iteration + 1
    )  # fmt: skip


def _without_pairs(state: Descent) -> Descent:
    """Downhill from the last point, which cannot overshoot."""
    direction, none = -state.gradient, state.steps[:0]
    return state._replace(
        steps=none, changes=none, direction=direction, trial=state.x + direction, length=1.0, longest=1.0
    )  # fmt: skip


def _direction(gradient: np.ndarray, steps: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """-H g."""
    q, shares = gradient.copy(), []
    for s, y in zip(steps[::-1], changes[::-1], strict=True):
        share = (s @ q) / (s @ y)
        q -= share * y
        shares.append(share)
    if len(steps):
        q *= (steps[-1] @ changes[-1]) / (changes[-1] @ changes[-1])
    for s, y, share in zip(steps, changes, shares[::-1], strict=True):
        q += s * (share - (y @ q) / (s @ y))
    return -q
