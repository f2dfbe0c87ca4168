"""The best alpha for one sigma: J as a function of log lam from sums that are there already, so it costs no pass."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from dkl.engine.threads import thread_count
from dkl.learn.objectives import Objective
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.hypergradient import System
from dkl.solvers.ridge import largest_eigenvalue
from dkl.solvers.scalar import Point, minimise_log
from dkl.sums.targets import Targets

FLOOR = 1e-6
"""Least alpha that is sought, over the largest eigenvalue: less is rounding of float32 blocks, and in float64 lets
sigma and alpha fall together without end, towards a polynomial. A given alpha may be anything."""


def value_of(
    systems: list[System], objective: Objective, share: np.ndarray, pool: ThreadPoolExecutor
) -> Callable[[float], Point]:
    """J and dJ/dlog lam as a function of log lam, with the sides it is made of."""

    def evaluate(log_lam: float) -> Point:
        lam = float(np.exp(log_lam))
        sides = list(pool.map(lambda system: objective.side(system, lam, share), systems))
        value = sum(side.value for side in sides) / len(sides)
        return Point(log_lam, value, lam * sum(side.slope for side in sides) / len(sides), sides)

    return evaluate


def best_alpha(
    systems: list[System], objective: Objective, share: np.ndarray, fixed: float | None, start: float | None
) -> Point:
    """J at the given lam, or at the one that is best for these sums."""
    with ThreadPoolExecutor(min(len(systems), thread_count(), SOLVE_THREADS)) as pool:
        evaluate = value_of(systems, objective, share, pool)
        if fixed is not None:
            return evaluate(float(np.log(fixed)))
        lower = least_alpha(systems)
        upper = max(largest_eigenvalue(systems[0].inner.gram), 1e3 * lower)
        return minimise_log(evaluate, start, float(np.log(lower)), float(np.log(upper)))


def least_alpha(systems: list[System]) -> float:
    """The least lam that is sought."""
    train, test = systems[0].train, systems[0].test
    rows = 1.0 if test is None else 1 + test.weight / train.weight
    return FLOOR * rows * (largest_eigenvalue(train.gram) or 1.0)


def alpha_of(log_lam: float, targets: Targets) -> float:
    """alpha, in the user's units of weight."""
    return float(np.exp(log_lam) * targets.weight_unit)
