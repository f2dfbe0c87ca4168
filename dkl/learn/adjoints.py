"""What the second pass of a gradient needs of the systems: weights and adjoints side by side, for unscaled features."""

from __future__ import annotations

import numpy as np

from dkl.learn.objectives import Objective
from dkl.solvers.hypergradient import Side, System
from dkl.sums.pullback import Adjoint


def adjoint_of(
    sides: list[Side],
    systems: list[System],
    objective: Objective,
    folds: int,
    weight: float,
    scale: float,
    unseen: bool = False,
) -> Adjoint:
    """Weights and adjoints of all systems side by side, for unscaled features; J is multiplied by the total weight."""
    each, c = weight / len(sides), len(sides[0].gain)
    gain, train = np.zeros((folds, len(sides) * c)), np.zeros((folds, len(sides) * c))
    for k, (side, test) in enumerate(zip(sides, objective.tests(folds - unseen), strict=True)):
        columns = slice(k * c, (k + 1) * c)
        gain[0 if test is None else test, columns] = each * side.gain
        train[: folds - unseen, columns] = 1.0
        if test is not None:
            train[test, columns] = 0.0
    none = np.zeros((len(sides[0].coef), 0))
    curvature = sides[0].curvature
    middle = systems[0].train.feature_sum / systems[0].train.weight / scale
    centre = middle if systems[0].fit_intercept else np.zeros_like(middle)
    return Adjoint(
        coef=scale * np.hstack([side.coef for side in sides]),
        intercept=np.concatenate([side.intercept for side in sides]),
        adjoint=scale * each * np.hstack([none if side.adjoint is None else side.adjoint for side in sides]),
        adjoint_intercept=each * np.concatenate([side.adjoint_intercept for side in sides])
        if objective.adjoints
        else none[0],
        gain=gain,
        train=train,
        curvature=None if curvature is None else scale * scale * each * curvature,
        centre=None if curvature is None else centre,
        bound=scale * each * sum((side.bound for side in sides), np.zeros(len(none))),
    )
