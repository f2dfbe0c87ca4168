"""Which passes the parameters of a single kernel ask for, and what they cost."""

from __future__ import annotations

from typing import Any

from dkl.cost import Cost, Sizes
from dkl.estimators.aim import Aim
from dkl.estimators.learning import starting_alpha
from dkl.learn.log_loss import SHARPNESS, TRIALS
from dkl.learn.plan import (
    fourier_map_cost,
    landmark_costs,
    learning_costs,
    nystroem_map_cost,
    single_kernel_costs,
)


def fit_costs(params: dict[str, Any], aim: Aim, sizes: Sizes) -> list[Cost]:
    """What each pass of the fit costs, with its solve."""
    folds, landmarks = aim.fold_count, params["landmarks"]
    map_cost = fourier_map_cost if landmarks is None else nystroem_map_cost
    of = map_cost(params, sizes.inputs, sizes.dtype)
    tried = starting_alpha(params, None).size if aim.objective is None and aim.folds.count > 1 else 0
    reduced, kept = params["reduce"] is not None, min(sizes.rows, params.get("calibrate") or 0)
    passes = single_kernel_costs(sizes, of, folds=folds, alphas=tried, reduced=reduced, kept=kept)
    if landmarks is not None:
        passes += landmark_costs(sizes, of, compares=landmarks != "uniform", pilot=landmarks == "leverage")
    if aim.objective is not None:
        by_frequency = params["learn"] == "frequencies"
        asked = _learning(aim.objective, folds)
        passes += learning_costs(sizes, of, folds=folds, by_frequency=by_frequency, **asked)
    return passes


def _learning(objective: str, folds: int) -> dict[str, Any]:
    """What an objective asks of every iteration."""
    found: dict[str, dict[str, Any]] = {
        "validation": {},
        "cv": {"systems": folds},
        "joint": {"adjoints": False},
        "gcv": {"curvature": True},
        "log_loss": {"systems": folds, "trials": TRIALS, "sharpnesses": len(SHARPNESS)},
    }
    return found[objective]
