"""Learning the sigmas of several kernels: what goes together, what it costs, and how it is done.

learn="joint"              the objective itself, at a given alpha
learn="validation", "cv"   squared error on held-out rows through the weights that the path leaves; alpha too
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import warn_user
from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.blocks import Rows
from dkl.engine.tables import Table
from dkl.estimators.advice import warn_of_early_end
from dkl.estimators.linear_family import Given
from dkl.features.side_by_side import SideBySide
from dkl.learn.channels import along_axes
from dkl.learn.group_weights import GroupOptions
from dkl.learn.iterate import Iterated
from dkl.learn.learners import starts_of
from dkl.learn.objectives import Objective
from dkl.learn.run import INTERRUPTED, Run
from dkl.learn.several_bandwidths import (
    OBJECTIVES,
    BandwidthOptions,
    LearnedBandwidths,
    learn_bandwidths,
    several_costs,
)
from dkl.losses import Square, find_loss, loss_of_scores
from dkl.options.fields import parameters_of
from dkl.options.multiple import penalty_of
from dkl.prepare.folds import Split, held_split, read_folds
from dkl.prepare.kernel_maps import with_components
from dkl.prepare.prepared import Prepared


def objective_of(model: Any) -> Objective | None:
    """What its sigmas are learned for; None: they are not."""
    return OBJECTIVES.get(model.learn)


def learns(model: Any) -> bool:
    """Whether any sigma is learned."""
    return objective_of(model) is not None


def takes_folds(model: Any) -> bool:
    """Whether every row is held out once."""
    objective = objective_of(model)
    return objective is not None and objective.folded


def holds_a_share_out(model: Any) -> bool:
    """Whether a share of the rows judges sigma and alpha together, which leaves no path to choose from."""
    objective = objective_of(model)
    return objective is not None and objective.held


def check_learning(model: Any) -> None:
    """Refuse what does not go with learning sigma."""
    objective = objective_of(model)
    learn, few = f"learn={model.learn!r}", model.learn_components
    if objective is None:
        if few is not None:
            raise ValueError(
                f"learn_components={few} does not go with {learn}; use learn='joint', or learn_components=None"
            )
        return
    if model.features is not None:
        raise ValueError(
            f"features={model.features!r} does not go with {learn}, which moves the sigma of kernels; use "
            "kernels= with their names, e.g. ['gaussian'], or learn='none'"
        )
    if penalty_of(model.penalty)[0] != "l21":
        raise ValueError(f"penalty={model.penalty!r} does not go with {learn}; use penalty='l21'")
    if not objective.learns_alpha and isinstance(model.alpha, str):
        raise ValueError(f"alpha={model.alpha!r} does not go with {learn}, which would always lower it; give a number")
    if np.size(model.alpha) > 1:
        raise ValueError(f"alpha has {np.size(model.alpha)} values, and {learn} takes one, or 'auto'")
    if takes_folds(model) and model.cv is None:
        raise ValueError(f"{learn} needs folds, got cv={model.cv}; use cv=5")
    if not isinstance(find_loss(model.loss), Square) and (objective.holds_out or model.by_output):
        raise ValueError(
            f"loss={model.loss!r} with {learn} and by_output={model.by_output}: other losses than 'square' take "
            "learn='joint' and by_output=False; or learn the sigmas with loss='square', and give sigmas_ as kernels"
        )


def split_of(model: Any, X: Table, y: Table | None) -> Split:
    """The rows that learning tells apart."""
    if holds_a_share_out(model):
        return held_split(model.validation, X)
    return Split(read_folds(model.cv, X, y)) if takes_folds(model) else Split()


def costs_of(model: Any, sizes: Sizes, of: MapCost, split: Split, inputs: int, largest: int) -> list[Cost]:
    """What learning costs, beside the path."""
    if not learns(model):
        return []
    loss = loss_of_scores(find_loss(model.loss), sizes.outputs)
    return several_costs(
        sizes, of, objective=model.learn, folds=split.n_folds, sigmas=inputs, size=largest, loss=loss
    )  # fmt: skip


def widened(model: Any, run: Run, data: Prepared, given: Given) -> Prepared:
    """The learned kernels with the features that the weights have: n_components of each, along their axes."""
    features, layout = data.features, model._layout
    assert isinstance(features, SideBySide)
    if model.learn_components is not None:
        features = with_components(features, layout.options, np.random.default_rng([data.seed, 1]))
    if model.per_channel is not None:
        rows = {"X": Rows([given.X], ["X"])}
        features = along_axes(run.engine, rows, features, data.dtype, model.per_channel, run.progress)
    return data if features is data.features else data.with_map(features)


def learn_sigmas(
    model: Any, run: Run, data: Prepared, options: GroupOptions
) -> tuple[Run, Prepared, GroupOptions, Iterated[LearnedBandwidths]]:
    """The run after learning, the data with the learned map, what is asked of the weights there, and the way."""
    fixed = None if isinstance(model.alpha, str) else float(np.asarray(model.alpha).reshape(-1)[0])
    loss = loss_of_scores(find_loss(model.loss), data.targets.n_outputs)
    asked = BandwidthOptions(
        model.learn, options.fit_intercept, fixed, "input" if model.groups == "each" else "kernel", options.eta,
        options.ridge, options.by_output, float(model.sigma_l2), starts_of(model.starts), float(model.subsample or 1.0),
        loss=loss,
    )  # fmt: skip
    done = learn_bandwidths(run, data, asked)
    warn_of_early_end(parameters_of(model), done, run.finish)
    if done.result.warning:
        warn_user(done.result.warning, ConvergenceWarning)
    run = replace(run, finish=False, checkpoint=None if done.reason == INTERRUPTED else run.checkpoint)
    data = replace(data, features=done.result.features)  # type: ignore[arg-type]
    if takes_folds(model) and fixed is None:
        return run, data, options, done
    alpha = done.result.alpha if fixed is None else fixed
    data = replace(data, split=Split())
    return run, data, replace(options, alphas=np.array([alpha]), rule="last"), done
