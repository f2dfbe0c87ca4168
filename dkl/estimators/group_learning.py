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
from dkl.engine.tables import Table
from dkl.estimators.advice import warn_of_early_end
from dkl.learn.group_weights import GroupOptions
from dkl.learn.iterate import Iterated
from dkl.learn.learners import starts_of
from dkl.learn.run import INTERRUPTED, Run
from dkl.learn.several_bandwidths import BandwidthOptions, LearnedBandwidths, learn_bandwidths, several_costs
from dkl.losses import Square, find_loss, loss_of_scores
from dkl.options.fields import parameters_of
from dkl.options.multiple import penalty_of
from dkl.prepare.folds import Split, held_split, read_folds
from dkl.prepare.prepared import Prepared


def learns(model: Any) -> bool:
    """Whether any sigma is learned."""
    return model.learn not in (None, "none")


def check_learning(model: Any) -> None:
    """Refuse what does not go with learning sigma."""
    if not learns(model):
        return
    learn = f"learn={model.learn!r}"
    for name in ("per_channel", "features"):
        if getattr(model, name) is not None:
            raise ValueError(
                f"{name}={getattr(model, name)!r} does not go with {learn}, which moves kernels; leave it out"
            )
    if penalty_of(model.penalty)[0] != "l21":
        raise ValueError(f"penalty={model.penalty!r} does not go with {learn}; use penalty='l21'")
    if model.learn == "joint" and isinstance(model.alpha, str):
        raise ValueError(f"alpha={model.alpha!r} does not go with {learn}, which would always lower it; give a number")
    if np.size(model.alpha) > 1:
        raise ValueError(f"alpha has {np.size(model.alpha)} values, and {learn} takes one, or 'auto'")
    if model.learn == "cv" and model.cv is None:
        raise ValueError(f"{learn} needs folds, got cv={model.cv}; use cv=5")
    if not isinstance(find_loss(model.loss), Square) and (model.learn != "joint" or model.by_output):
        raise ValueError(
            f"loss={model.loss!r} with {learn} and by_output={model.by_output}: other losses than 'square' take "
            "learn='joint' and by_output=False"
        )


def split_of(model: Any, X: Table, y: Table | None) -> Split:
    """The rows that learning tells apart."""
    if model.learn == "validation":
        return held_split(model.validation, X)
    return Split(read_folds(model.cv, X, y)) if model.learn == "cv" else Split()


def costs_of(model: Any, sizes: Sizes, of: MapCost, split: Split, inputs: int, largest: int) -> list[Cost]:
    """What learning costs, beside the path."""
    if not learns(model):
        return []
    loss = not isinstance(find_loss(model.loss), Square)
    return several_costs(
        sizes, of, objective=model.learn, folds=split.n_folds, sigmas=inputs, size=largest, loss=loss
    )  # fmt: skip


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
    if model.learn == "cv" and fixed is None:
        return run, data, options, done
    alpha = done.result.alpha if fixed is None else fixed
    data = replace(data, split=Split())
    return run, data, replace(options, alphas=np.array([alpha]), rule="last"), done
