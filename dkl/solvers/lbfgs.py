"""L-BFGS in a box as an immutable state that asks for one evaluation after the other.

    s_k = x_{k+1} - x_k,   y_k = g_{k+1} - g_k,   direction = -H g  with H from the last pairs (two-loop recursion)

The state holds the point to try next. `judged(state, value)` accepts it (then a gradient is wanted, `moved`) or asks
for a shorter step: a rejected point costs a value and no gradient. Coordinates at an edge of the box whose gradient
points outward stand still; a trial beyond an edge is put on it. Whoever keeps the state can go on with the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost

PAIRS = 10
ARMIJO, FIRST, LONGEST = 1e-4, 0.3, 2.0
"""Share of the promised decrease that is enough; longest coordinate of the first step, and of every step."""
SHORTEST = 1e-6
"""A step is given up at this share of its length."""
WORTH = 0.01
"""Share of the tolerance that a shorter step must promise, to be worth another evaluation."""


STATE = 60
"""Numbers for each coordinate that a descent holds: pairs, points, and a step under way."""


def descent_cost(size: int) -> SolveCost:
    """The state of a descent in so many coordinates."""
    return SolveCost(8 * STATE * size, 2.0 * STATE * size)


class Descent(NamedTuple):
    """The last accepted point, the pairs, and the point to try."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    steps: np.ndarray  # (pairs, p)
    changes: np.ndarray  # (pairs, p)
    trial: np.ndarray
    direction: np.ndarray
    length: float
    lower: np.ndarray
    upper: np.ndarray
    iteration: int
    decrease: float  # relative, of the last iteration
    stalled: bool

    @property
    def begun(self) -> bool:
        """Whether a first point has been accepted."""
        return self.iteration >= 0

    @property
    def promised(self) -> float:
        """-g'(trial - x), what the next step promises to first order: it counts every coordinate, in any scale of x."""
        return -float(self.gradient @ (self.trial - self.x))

    def has_converged(self, small: int, tol: float) -> bool:
        """Whether the value falls by no more than tol of itself: twice in a row (`small`), or once and as promised.

        Before it has fallen so little once, the next step must promise next to nothing, as its length may be a guess.
        """
        return small >= 2 or self.promised <= (1.0 if small else WORTH) * tol * abs(self.value)

    @property
    def gradient_norm(self) -> float:
        """The largest coordinate of the gradient that is not held back by the box."""
        return float(np.abs(self.gradient[_free(self)]).max(initial=0.0))


def begin(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, like: Descent | None = None) -> Descent:
    """A descent from x; `like` is an earlier one of a similar function, whose pairs are used."""
    pairs = np.empty((0, len(x)))
    steps, changes = (pairs, pairs) if like is None else (like.steps, like.changes)
    nothing = np.zeros_like(x)
    return Descent(x, np.inf, nothing, steps, changes, x, nothing, 1.0, lower, upper, -1, np.inf, False)


def judged(state: Descent, value: float, worth: float = 0.0) -> tuple[bool, Descent]:
    """Whether the trial's value is good enough; if not, a state with a shorter step.

    A step that promises a decrease of less than `worth` times the value is given up.
    """
    if not state.begun:
        return True, state
    promised = state.promised
    if value <= state.value - ARMIJO * promised:
        return True, state
    curve = 2 * (value - state.value + promised)
    share = promised / curve if np.isfinite(curve) and curve > 0 else 0.1
    shorter = _aim(state, state.length * min(max(share, 0.1), 0.5))
    if state.length <= SHORTEST or shorter.promised < worth * abs(state.value):
        return False, state._replace(stalled=True, trial=state.x)
    return False, shorter


def moved(state: Descent, value: float, gradient: np.ndarray) -> Descent:
    """The state after the trial has been accepted: new pairs, new direction, new trial."""
    steps, changes = state.steps, state.changes
    decrease = np.inf
    if state.begun:
        s, y = state.trial - state.x, gradient - state.gradient
        if s @ y > 1e-10 * np.sqrt((s @ s) * (y @ y)):
            steps, changes = (np.vstack([old, new])[-PAIRS:] for old, new in ((steps, s), (changes, y)))
        decrease = (state.value - value) / max(abs(state.value), np.finfo(float).tiny)
    state = state._replace(
        x=state.trial, value=value, gradient=gradient, steps=steps, changes=changes, decrease=decrease,
        iteration=state.iteration + 1,
    )  # fmt: skip
    return _ahead(state)


def restarted(state: Descent) -> Descent:
    """The same point without its pairs: the next step goes down the gradient, as the first one did."""
    return _ahead(state._replace(steps=state.steps[:0], changes=state.changes[:0], stalled=False))


def _ahead(state: Descent) -> Descent:
    """The state with a new direction and a new trial."""
    free = _free(state)
    direction = _direction(state, free)
    if state.gradient[free] @ direction[free] >= 0:  # pairs of another region: forget them
        state = state._replace(steps=state.steps[:0], changes=state.changes[:0])
        direction = _direction(state, free)
    size = float(np.abs(direction).max(initial=0.0))
    longest = LONGEST if len(state.steps) else FIRST
    if size > longest:
        direction = direction * (longest / size)
    elif not len(state.steps) and size > 0:
        direction = direction * (FIRST / size)
    return _aim(state._replace(direction=direction), 1.0)


def _aim(state: Descent, length: float) -> Descent:
    return state._replace(
        length=length, trial=np.clip(state.x + length * state.direction, state.lower, state.upper)
    )  # fmt: skip


def _free(state: Descent) -> np.ndarray:
    """Coordinates that a step downhill may move."""
    low = (state.x <= state.lower) & (state.gradient > 0)
    high = (state.x >= state.upper) & (state.gradient < 0)
    return ~(low | high)


def _direction(state: Descent, free: np.ndarray) -> np.ndarray:
    """-H g over the free coordinates."""
    q = np.where(free, state.gradient, 0.0)
    steps, changes = state.steps * free, state.changes * free
    used = []
    for s, y in zip(steps[::-1], changes[::-1], strict=True):
        if s @ y > 1e-10 * np.sqrt((s @ s) * (y @ y)):
            share = (s @ q) / (s @ y)
            q = q - share * y
            used.append((s, y, share))
    if used:
        s, y, _ = used[0]
        q = q * ((s @ y) / (y @ y))
    for s, y, share in reversed(used):
        q = q + s * (share - (y @ q) / (s @ y))
    return -q
