"""The part of a fit that learns: what `learn`, `validation`, `cv` and `alpha` ask for, and what is left behind."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import check_nonnegative
from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.advice import ended_early, when_far_off
from dkl.estimators.aim import Aim, learning_of
from dkl.features.fourier import FourierMap
from dkl.learn.bandwidth import Learned, Schedule, Start, learn_kernel
from dkl.learn.history import COLUMNS, history_dataset, legs_of
from dkl.learn.log_loss import Redrawn
from dkl.learn.objective import Problem
from dkl.learn.parameters import Frequencies, Parameters, Scales
from dkl.learn.redrawn import learn_redrawn
from dkl.learn.ridge import RidgeOptions
from dkl.learn.walk import INTERRUPTED
from dkl.prepare.input_ranges import Extent
from dkl.store.checkpoint import Checkpoint
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets

ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""What cv chooses from if alpha is "auto"; it goes on by tens while the least, or the largest, is the best."""
START_STEP, ALPHA_STEP, NOTHING = 3.0, 4.0, 0.9
"""Factor between neighbouring starts, in sigma and (frequencies) in alpha; the
share of the variance of y above which an error has learned nothing."""


def check_learning(params: dict) -> None:
    """Refuse what no rows could make right."""
    learn = learning_of(params["learn"])
    for name in ("sigma_l1", "sigma_l2"):
        if learn == "none" and params[name]:
            raise ValueError(f"{name}={params[name]!r} is a penalty on what is learned; say learn='cv', or {name}=0")
    if params["cv"] is not None and learn in ("validation", "joint", "gcv"):
        cv = repr(params["cv"]) if np.isscalar(params["cv"]) else type(params["cv"]).__name__
        raise ValueError(f"cv={cv} does not go with learn={learn!r}; use learn='cv', or cv=None")
    early = params["early_stopping"]
    if early != "auto" and early and learn in ("none", "log_loss"):
        why = "learns nothing" if learn == "none" else "draws fresh frequencies for every step"
        raise ValueError(f"early_stopping={early!r} does not go with learn={learn!r}, which {why}; use None")
    alpha = params["alpha"]
    if isinstance(alpha, str):
        pass
    elif np.size(alpha) != 1 and learn != "none":
        raise ValueError(
            f"alpha has {np.size(alpha)} values, and learn={learn!r} takes one; use alpha='auto' to have it learned, "
            "or a number to keep it"
        )
    elif learn != "none" and not np.all(np.asarray(alpha) > 0):
        raise ValueError(f"alpha={alpha!r} with learn={learn!r} must be above 0; use alpha='auto' to have it learned")
    landmarks = params["landmarks"]
    if learn != "none" and landmarks is not None:
        raise ValueError(
            f"learn={learn!r} moves frequencies, and landmarks={landmarks!r} has none; use landmarks=None, or "
            "learn='none' with a sigma that was learned"
        )
    if learn == "frequencies" and (params["sigma_l1"] or params["sigma_l2"]):
        raise ValueError("sigma_l1 and sigma_l2 are penalties on sigma, which learn='frequencies' does not change")
    for name in ("sigma_l1", "sigma_l2"):
        if learn == "log_loss" and params[name]:
            raise ValueError(
                f"{name}={params[name]!r} does not go with learn='log_loss', which has its own prior on sigma; use "
                f"learn='cv', or {name}=0"
            )


def check_reduce(reduce: Any, n_components: Any, fit_intercept: Any) -> None:
    """Refuse axes that cannot be kept."""
    if reduce is None:
        return
    if not isinstance(reduce, str) and reduce > n_components:
        raise ValueError(f"reduce={reduce} is more than n_components={n_components}; keep fewer axes, or draw more")
    if reduce == n_components:
        warnings.warn(
            f"reduce={reduce} keeps all of n_components={n_components} features, so it changes nothing; draw more of "
            f"them: n_components={3 * n_components}",
            UserWarning,
            stacklevel=5,
        )
    if not fit_intercept:
        raise ValueError(f"reduce={reduce} takes axes about the mean, so it needs fit_intercept=True")


def starting_alpha(params: dict, objective: str | None) -> np.ndarray:
    """alpha as numbers: what was given, or what "auto" stands for before anything is learned."""
    alpha = params["alpha"]
    if not isinstance(alpha, str):
        return check_nonnegative("alpha", alpha)
    return np.array(ALPHAS) if params["cv"] is not None and objective is None else np.array(1.0)


def learn(
    params: dict,
    aim: Aim,
    engine: Any,
    rows: Rows,
    features: FourierMap,
    groups: np.ndarray,
    squares: np.ndarray,
    targets: Targets,
    dtype: np.dtype,
    seed: int,
    progress: Progress,
    checkpoint: Checkpoint | None,
    extent: Extent | None = None,
    finish: bool = False,
) -> tuple[FourierMap, Learned, RidgeOptions]:
    """The learned map, the way to it, and how the weights are to be solved for."""
    assert aim.objective is not None
    parameters: Parameters = (
        Frequencies(features)
        if params["learn"] == "frequencies"
        else Scales(features, groups, float(params["sigma_l1"]), float(params["sigma_l2"]))
    )
    kept = aim.objective == "joint" or not isinstance(params["alpha"], str)
    alpha = float(starting_alpha(params, aim.objective)) if kept else None
    factor = 1.0 if targets.class_weight is None else float(targets.class_weight.max())
    size = np.sqrt(squares * (factor / targets.weight_unit))
    fit_intercept = bool(params["fit_intercept"])
    fixed = (aim.objective, parameters, targets, fit_intercept, alpha, size, float(params["tol"]))
    first = GramProgram(features.at(dtype), targets, rows.n_rows, aim.fold_count, seed, aim.held, aim.unseen)
    share, max_time = params["subsample"], params["max_time"]
    if aim.objective == "log_loss":
        redrawn = Redrawn(*fixed, params["frequencies"], seed, params["max_iter"])
        learned = learn_redrawn(engine, rows, redrawn, first, share, max_time, progress, checkpoint, finish)
    else:
        frequencies = params["learn"] == "frequencies"
        starts = alpha_starts(params["starts"] if alpha is None else 1) if frequencies else starts_of(params["starts"])
        schedule = Schedule(starts, float(share or 1.0), params["max_iter"], max_time)
        problem = Problem(*fixed, unseen=aim.unseen is not None)
        learned = learn_kernel(engine, rows, problem, first, schedule, progress, checkpoint, finish)
    if not (finish and learned.reason == INTERRUPTED):  # which was asked for
        _warn(params, learned, targets.variance, extent, groups)
    settled = learned.share == 1 and aim.objective != "log_loss"  # whose last frequencies were others
    settled |= params["learn"] == "frequencies"  # which have fitted the folds: no alpha from them
    refine = aim.objective if alpha is None and not settled else None
    last = np.array([learned.alpha if alpha is None else alpha])
    options = RidgeOptions(last, fit_intercept, refine=refine, reduce=params["reduce"], own=alpha is None)
    return parameters.map(learned.x), learned, options


def starts_of(count: int) -> tuple[Start, ...]:
    """Multiples of sigma: 1, then 1/3, 3, 1/9 ..."""
    steps = [0, *(sign * k for k in range(1, count) for sign in (-1, 1))][:count]
    return tuple(Start(factor=START_STEP**step) for step in steps)


def alpha_starts(count: int) -> tuple[Start, ...]:
    """Multiples of the best alpha at the start: 1, 4, 16 ..."""
    return tuple(Start(stretch=ALPHA_STEP**step) for step in range(count))


def _warn(params: dict, learned: Learned, variance: float, extent: Extent | None, groups: np.ndarray) -> None:
    """Say that nothing was learned, or why learning ended early, and what to do."""
    if learned.reason == INTERRUPTED:
        warnings.warn(ended_early(params, learned, extent, groups), ConvergenceWarning, stacklevel=6)
        return
    if params["learn"] == "log_loss":
        if learned.reason == "max_time":
            warnings.warn(
                f"learning stopped at max_time={params['max_time']:g} after {len(learned.history)} of "
                f"{params['max_iter']} iterations; raise max_time, or lower max_iter",
                ConvergenceWarning,
                stacklevel=6,
            )
        return
    missed = learned.history.columns["validation_error"][-1]
    if params["learn"] not in ("joint", "gcv") and missed > NOTHING * variance > 0:
        warnings.warn(
            f"the learned kernel leaves {missed / variance:.0%} of the variance of y unexplained on held-out rows; y "
            f"may be noise, or sigma far off: {when_far_off(params, extent, groups)}",
            ConvergenceWarning,
            stacklevel=6,
        )
        return
    if learned.reason in ("converged", "early_stopping"):
        if not learned.moved and variance > 0:
            warnings.warn(_stayed(params, learned), ConvergenceWarning, stacklevel=6)
        return
    warnings.warn(ended_early(params, learned, extent, groups), ConvergenceWarning, stacklevel=6)


def _stayed(params: dict, learned: Learned) -> str:
    """Why the kernel is still the one it began with."""
    what = "frequencies" if params["learn"] == "frequencies" else "sigma"
    ended = f"learning ended where it began, so {what} did not change"
    if learned.reason == "early_stopping":
        return (
            f"{ended}: every step raised the error on the rows that early_stopping sets aside; use more rows, fewer "
            "sigmas (groups=None), or learn='none'"
        )
    return f"{ended}: no step lowered the objective by tol={params['tol']:g}; lower tol, or use learn='none'"


def input_names(table: Table, names: Any, groups: np.ndarray) -> dict[str, Any]:
    """Coordinates along the inputs: those of xarray or of the data set, the columns of a dataframe, and the groups."""
    taken = {*COLUMNS, "sigma", "iteration"}
    coords = {f"input_{name}" if name in taken else name: values for name, values in table.input_coords.items()}
    if "input" not in coords and names is not None:
        coords["input"] = np.asarray(names, np.str_)
    return coords if "group" in coords else {**coords, "group": groups}


def set_history(model: Any, learned: Learned | None, inputs: dict[str, Any]) -> None:
    """history_, n_iter_ (steps that were taken; where a start or a stage begins is none) and selected_inputs_."""
    for name in ("history_", "selected_inputs_", "refit_errors_"):
        if hasattr(model, name):
            delattr(model, name)
    model.n_iter_ = 1
    if learned is not None:
        columns = learned.history.arrays()
        legs = legs_of(columns, beginning=0 if model.learn == "log_loss" else 1)
        model.n_iter_ = sum(leg.iterations for leg in legs)
        if not hasattr(model, "classes_"):
            del columns["error_rate"]
        if np.isnan(columns["unseen_error"]).all():
            del columns["unseen_error"]
        model.history_ = history_dataset(columns, inputs)
        model.selected_inputs_ = model.sigma_ > 0
        if learned.refit is not None:
            model.refit_errors_ = dict(zip(("penalised", "refit"), learned.refit, strict=True))
