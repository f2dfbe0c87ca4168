"""What `learn=` may be, as rows of a table: the objective, the rows it tells apart, what moves, and what does not fit.

A new way to learn sigma is a row here and, if its steps are new, a method beside learn/bandwidth.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.tables import Table
from dkl.features.fourier import FourierMap
from dkl.learn.bandwidth import Bandwidth, Start
from dkl.learn.bandwidth_steps import Problem
from dkl.learn.learned import Learned
from dkl.learn.loss_bandwidth import loss_bandwidth, loss_learning_costs
from dkl.learn.objectives import CV, GCV, JOINT, VALIDATION, Objective
from dkl.learn.parameters import Frequencies, Parameters, Scales
from dkl.learn.plan import learning_costs
from dkl.learn.redrawn import RedrawnBandwidth, least_log_loss
from dkl.learn.redrawn_steps import SHARPNESS, TRIALS, Redrawn
from dkl.learn.ridge import AlphaPass
from dkl.learn.run import Method
from dkl.losses import find_loss, loss_of_scores
from dkl.prepare.folds import Split, held_split, read_folds, unseen_share
from dkl.prepare.prepared import Prepared
from dkl.prepare.scales import group_index

START_STEP, ALPHA_STEP = 3.0, 4.0
"""Factor between neighbouring starts, in sigma and (frequencies) in alpha."""
FEW = 10
"""Learned sigmas that do not overfit."""
PENALTIES = ("sigma_l1", "sigma_l2")
SQUARE = "square"
"""The loss that every row of the table takes; the others are for those with `any_loss`."""


@dataclass(frozen=True)
class Learner:
    """One row: how sigma is learned. Words are completed to sentences by `conflict`."""

    name: str
    objective: Objective | None = None  # None: nothing is learned
    folds: int | None = None  # folds if cv is None; None: cv does not go with it (or, if nothing is learned, is free)
    moves_frequencies: bool = False
    redraws: bool = False  # whether each step draws fresh frequencies, for the log loss
    for_classes: bool = False
    overfits: bool = True  # whether many sigmas can overfit, with nothing else that guards them
    no_early_stopping: str = ""  # why not
    no_penalty: str = ""  # why not
    any_loss: bool = False  # whether its objective may be of any smooth loss
    l2_only: bool = False  # whether it is the objective of the weights too, which it knows with l2

    @property
    def learns(self) -> bool:
        """Whether anything is learned."""
        return self.objective is not None

    @property
    def first_row(self) -> int:
        """Rows of the history, for each start and stage, that no step led to."""
        return 0 if self.redraws else 1

    @property
    def tests_errors(self) -> bool:
        """Whether the error of the history is that of rows held out while the weights were solved for."""
        return self.objective is not None and self.objective.holds_out and not self.redraws

    def conflict(self, params: Mapping[str, Any]) -> str | None:
        """Why the other parameters do not go with this row, in a sentence; None if they do."""
        name, early, landmarks = f"learn={self.name!r}", params["early_stopping"], params["landmarks"]
        given = {each: params[each] for each in PENALTIES if params[each]}
        if given and self.no_penalty:
            first = next(iter(given))
            return f"{first}={given[first]!r} does not go with {name}, {self.no_penalty}, or {first}=0"
        if params["cv"] is not None and self.learns and self.folds is None:
            cv = repr(params["cv"]) if np.isscalar(params["cv"]) else type(params["cv"]).__name__
            return f"cv={cv} does not go with {name}; use learn='cv', or cv=None"
        if early and early != "auto" and self.no_early_stopping:
            return f"early_stopping={early!r} does not go with {name}, which {self.no_early_stopping}; use None"
        if not self.learns:
            few = params.get("learn_components")
            return None if few is None else (
                f"learn_components={few} does not go with {name}; use learn='cv', or learn_components=None"
            )  # fmt: skip
        if (conflict := self._loss_conflict(params)) is not None:
            return conflict
        few = params.get("learn_components")
        if few is not None and self.moves_frequencies:
            return f"learn_components={few} does not go with {name}, whose frequencies are the model; use learn='cv'"
        if landmarks is not None and few is None:
            return (
                f"{name} moves frequencies, and landmarks={landmarks!r} has none; use landmarks=None, or "
                "learn_components=1000 to learn sigma with so many frequencies first"
            )
        alpha = params["alpha"]
        if not isinstance(alpha, str) and np.size(alpha) != 1:
            return (
                f"alpha has {np.size(alpha)} values, and {name} takes one; use alpha='auto' to have it learned, or a "
                "number to keep it"
            )
        if not isinstance(alpha, str) and not np.all(np.asarray(alpha) > 0):
            return f"alpha={alpha!r} with {name} must be above 0; use alpha='auto' to have it learned"
        return None

    def _loss_conflict(self, params: Mapping[str, Any]) -> str | None:
        """Why a loss other than the squared error does not go with this row; None if it does."""
        loss, early, name = params.get("loss", SQUARE), params["early_stopping"], f"learn={self.name!r}"
        penalty = params.get("penalty", "l2")
        if self.l2_only and penalty != "l2":
            return f"penalty={penalty!r} does not go with {name}, which descends the objective with l2; use learn='cv'"
        if loss == SQUARE or self.redraws:
            return None
        if not self.any_loss:
            return (
                f"loss={loss!r} does not go with {name}, whose objective is of squared errors; use learn='cv', "
                "'validation' or 'joint', or loss='square'"
            )
        if penalty != "l2" and isinstance(params["alpha"], str):
            return (
                f"alpha={params['alpha']!r} would be learned for penalty='l2', and means something else for "
                f"penalty={penalty!r}; give a number, e.g. alpha=0.1, or use penalty='l2'"
            )
        if early and early != "auto":
            return f"early_stopping={early!r} does not go with loss={loss!r}, which sets no rows aside; use None"
        return None

    def split(self, params: Mapping[str, Any], X: Table, y: Table | None) -> Split:
        """The rows that its passes tell apart."""
        if self.objective is not None and self.objective.held:
            split = held_split(params["validation"], X)
        else:
            split = Split(read_folds(self.folds if params["cv"] is None else params["cv"], X, y))
        if self.of_loss(params):  # which sets no rows aside
            return split
        unseen = unseen_share(params["early_stopping"], X.array.shape[0], split, self._can_overfit(params, X))
        return split._replace(unseen=unseen)

    def _can_overfit(self, params: Mapping[str, Any], X: Table) -> bool:
        """Whether many numbers are learned, with nothing else that guards them."""
        if not self.learns or not self.overfits or params["sigma_l1"]:
            return False
        groups = group_index(params["groups"], X.n_columns, X.input_coords)
        return self.moves_frequencies or len(np.unique(groups)) > FEW

    def of_loss(self, params: Mapping[str, Any]) -> bool:
        """Whether the objective is of another loss than the squared error."""
        return self.any_loss and params.get("loss", SQUARE) != SQUARE

    def keeps_alpha(self, params: Mapping[str, Any]) -> bool:
        """Whether alpha stays what it is while sigma is learned."""
        assert self.objective is not None
        return not self.objective.learns_alpha or not isinstance(params["alpha"], str)

    def parameters(self, params: Mapping[str, Any], data: Prepared) -> Parameters:
        """What moves."""
        features = data.features
        assert isinstance(features, FourierMap)  # `conflict` refuses landmarks
        if self.moves_frequencies:
            return Frequencies(features)
        return Scales(features, data.groups, float(params["sigma_l1"]), float(params["sigma_l2"]))

    def method(self, params: Mapping[str, Any], data: Prepared, alpha: float | None) -> Method[Any, Learned]:
        """The method of learning from prepared data; alpha=None: learned too."""
        assert self.objective is not None
        if self.of_loss(params):
            return self._loss_method(params, data, alpha)
        parameters, targets, tol = self.parameters(params, data), data.targets, float(params["tol"])
        factor = 1.0 if targets.class_weight is None else float(targets.class_weight.max())
        size = np.sqrt(data.input_squares * (factor / targets.weight_unit))
        fixed = self.objective, parameters, targets, bool(params["fit_intercept"]), alpha, size, tol
        first, share = data.gram(data.split, unseen=True), params["subsample"]
        if self.redraws:
            problem = Redrawn(*fixed, params["frequencies"], data.seed, int(params["max_iter"]))
            return RedrawnBandwidth(problem, first, share)
        several = params["starts"]
        starts = alpha_starts(several if alpha is None else 1) if self.moves_frequencies else starts_of(several)
        return Bandwidth(Problem(*fixed, unseen=data.split.unseen is not None), first, starts, float(share or 1.0))

    def _loss_method(self, params: Mapping[str, Any], data: Prepared, alpha: float | None) -> Method[Any, Learned]:
        """The method for a loss other than the squared error."""
        assert self.objective is not None
        scales = self.parameters(params, data)
        assert isinstance(scales, Scales)
        return loss_bandwidth(
            data, loss_of_scores(find_loss(params["loss"]), data.targets.n_outputs), self.objective, scales,
            alpha=alpha, fit_intercept=bool(params["fit_intercept"]), tol=float(params["tol"]),
            starts=starts_of(params["starts"]), share=float(params["subsample"] or 1.0),
        )  # fmt: skip

    def costs(self, sizes: Sizes, of: MapCost, folds: int, loss: str = SQUARE) -> list[Cost]:
        """What the passes of learning cost, beside those of the weights."""
        if self.objective is None:
            return []
        if self.any_loss and loss != SQUARE:
            systems, adjoints = self.objective.systems(folds), self.objective.adjoints
            return loss_learning_costs(sizes, of, folds=folds, systems=systems, adjoints=adjoints)
        tried = {"trials": TRIALS, "sharpnesses": len(SHARPNESS)} if self.redraws else {}
        return learning_costs(
            sizes, of, folds=folds, systems=self.objective.systems(folds), by_frequency=self.moves_frequencies,
            adjoints=self.objective.adjoints, curvature=self.objective.curved, **tried,
        )  # fmt: skip

    def refinement(self, share: float) -> tuple[Objective | None, AlphaPass | None]:
        """How alpha, learned on that share of the rows, is refined on all: from the last sums, or by one more pass."""
        if self.redraws:  # whose last frequencies were others
            return None, least_log_loss
        settled = share == 1 or self.moves_frequencies  # which have fitted the folds: no alpha from them
        return (None if settled else self.objective), None


NONE = Learner(
    "none", no_early_stopping="learns nothing", no_penalty="as it is a penalty on what is learned; say learn='cv'"
)
LEARNERS = {
    each.name: each
    for each in (
        NONE,
        Learner("validation", VALIDATION, any_loss=True),
        Learner("cv", CV, folds=5, any_loss=True),
        Learner("joint", JOINT, overfits=False, any_loss=True, l2_only=True),
        Learner("gcv", GCV),
        Learner(
            "log_loss",
            CV,
            folds=5,
            redraws=True,
            for_classes=True,
            overfits=False,
            no_early_stopping="draws fresh frequencies for every step",
            no_penalty="which has its own prior on sigma; use learn='cv'",
        ),
        Learner(
            "frequencies",
            CV,
            folds=5,
            moves_frequencies=True,
            no_penalty="which does not change sigma; use learn='cv'",
        ),
    )
}
"""By the name that `learn` takes."""


def learner_of(learn: str | None) -> Learner:
    """The row of a name; None is "none"."""
    return NONE if learn is None else LEARNERS[learn]


def starts_of(count: int) -> tuple[Start, ...]:
    """Multiples of sigma: 1, then 1/3, 3, 1/9 ..."""
    steps = [0, *(sign * k for k in range(1, count) for sign in (-1, 1))][:count]
    return tuple(Start(factor=START_STEP**step) for step in steps)


def alpha_starts(count: int) -> tuple[Start, ...]:
    """Multiples of the best alpha at the start: 1, 4, 16 ..."""
    return tuple(Start(stretch=ALPHA_STEP**step) for step in range(count))
