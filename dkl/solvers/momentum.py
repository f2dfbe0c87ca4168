"""Gradient descent with momentum as an immutable state; several candidates step side by side.

v <- mu v - rate g,   theta <- theta + v
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]


class Moving(NamedTuple):
    """Parameters by name, and their velocities."""

    parameters: Arrays
    velocity: Arrays


def at_rest(parameters: Mapping[str, np.ndarray]) -> Moving:
    """Parameters that do not move yet."""
    return Moving(dict(parameters), {name: np.zeros_like(values) for name, values in parameters.items()})


def moved(
    at: Moving, gradients: Mapping[str, np.ndarray], rate: Mapping[str, np.ndarray], mu: Mapping[str, np.ndarray]
) -> Moving:
    """One step; rates and momenta broadcast against the parameters."""
    velocity = {}
    for name, gradient in gradients.items():
        velocity[name] = mu[name] * at.velocity[name]
        velocity[name] -= rate[name] * gradient
    return Moving({name: at.parameters[name] + velocity[name] for name in velocity}, velocity)
