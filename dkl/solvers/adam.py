"""Adam in a box as an immutable state: steps along gradients that are noisy, each in units of its own size.

    m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2,   x <- x - s_t (m / (1 - b1^t)) / sqrt(v / (1 - b2^t))
    s_t = 0.15 (1 - 0.8 t / T),   in the end the mean of x over the second half of the T steps

No value is asked for, so it may differ from step to step, as it does when every step has other random features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

B1, B2 = 0.8, 0.95
STEP, FALL = 0.15, 0.8
"""The first step of a coordinate, and the share of it that is gone in the end."""
TINY = 1e-12
"""A gradient of this size is none."""


class Adam(NamedTuple):
    """The point, running means of the gradient and of its square, and the sum of the points of the second half."""

    x: np.ndarray
    mean: np.ndarray
    square: np.ndarray
    total: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    iteration: int = 0
    counted: int = 0

    @property
    def end(self) -> np.ndarray:
        """The mean point of the second half; before that, the point."""
        return self.total / self.counted if self.counted else self.x

    def recounted(self) -> Adam:
        """The same point with no part of the second half yet."""
        return self._replace(total=np.zeros_like(self.total), counted=0)


def begin(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Adam:
    """No step yet."""
    nothing = np.zeros_like(x)
    return Adam(x, nothing, nothing, nothing, lower, upper)


def stepped(state: Adam, gradient: np.ndarray, steps: int) -> Adam:
    """The state after one more of so many steps."""
    t = state.iteration
    mean = B1 * state.mean + (1 - B1) * gradient
    square = B2 * state.square + (1 - B2) * gradient * gradient
    length = STEP * (1 - FALL * t / steps)
    size = np.sqrt(square / (1 - B2 ** (t + 1))) + TINY
    x = np.clip(state.x - length * (mean / (1 - B1 ** (t + 1))) / size, state.lower, state.upper)
    late = t >= steps // 2
    return state._replace(
        x=x, mean=mean, square=square, total=state.total + x if late else state.total,
        iteration=t + 1, counted=state.counted + late,
    )  # fmt: skip
