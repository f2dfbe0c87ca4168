"""Successive halving: at each rung the best 1 / eta of the candidates go on, the others are dropped.

    rungs  r, eta r, eta^2 r ... epochs,   r the epochs of about 300 steps, at most 20,   while more than one is left

Networks often learn little before their frequencies have turned, so an earlier rung drops those that are best later. A
candidate is as good as the least held-out loss it has had; of two alike the first one goes on.
"""

from __future__ import annotations

import math

import numpy as np

FIRST_STEPS, FIRST_EPOCHS = 300, 20
"""Steps before anyone is dropped, about, and epochs, at most."""


def rungs_of(count: int, eta: float | None, steps: int, epochs: int) -> tuple[int, ...]:
    """Epochs after which candidates are dropped; none for eta=None."""
    if eta is None:
        return ()
    found, left, at = [], count, float(min(FIRST_EPOCHS, math.ceil(FIRST_STEPS / max(1, steps))))
    while left > 1 and at < epochs:
        found.append(round(at))
        left, at = left_after(left, eta), eta * at
    return tuple(dict.fromkeys(found))


def left_after(count: int, eta: float) -> int:
    """How many of so many go on at a rung; at least one, and fewer than before."""
    return max(1, min(count - 1, math.ceil(count / eta)))


def those_left(scores: np.ndarray, alive: np.ndarray, eta: float) -> np.ndarray:
    """Numbers of those that go on, in rising order; `scores` are of all candidates, inf of one that has none."""
    order = alive[np.argsort(scores[alive], kind="stable")]
    return np.sort(order[: left_after(len(alive), eta)])


def epochs_trained(count: int, eta: float | None, steps: int, epochs: int) -> float:
    """Epochs of all candidates together, at most."""
    left, before, total = count, 0, 0.0
    for rung in rungs_of(count, eta, steps, epochs):
        total += left * (rung - before)
        left, before = left_after(left, eta or 1.0), rung
    return total + left * (epochs - before)
