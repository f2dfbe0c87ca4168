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
from dkl.learn.objectives import CV, GCV, JOINT, VALIDATION, Objective
from dkl.learn.parameters import Frequencies, Parameters, Scales
from dkl.learn.plan import learning_costs
from dkl.learn.redrawn import RedrawnBandwidth, least_log_loss
from dkl.learn.redrawn_steps import SHARPNESS, TRIALS, Redrawn
from dkl.learn.ridge import AlphaPass
from dkl.learn.run import Method
from dkl.prepare.folds import Split, held_split, read_folds, unseen_share
from dkl.prepare.prepared import Prepared
from dkl.prepare.scales import group_index

START_STEP, ALPHA_STEP = 3.0, 4.0
"""Factor between neighbouring starts, in sigma and (frequencies) in alpha."""
FEW = 10
"""Learned sigmas that do not overfit."""
PENALTIES = ("sigma_l1", "sigma_l2")


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
            return None
        if landmarks is not None:
            return (
                f"{name} moves frequencies, and landmarks={landmarks!r} has none; use landmarks=None, or learn='none' "
                "with a sigma that was learned"
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

    def split(self, params: Mapping[str, Any], X: Table, y: Table | None) -> Split:
        """The rows that its passes tell apart."""
        if self.objective is not None and self.objective.held:
            split = held_split(params["validation"], X)
        else:
            split = Split(read_folds(self.folds if params["cv"] is None else params["cv"], X, y))
        unseen = unseen_share(params["early_stopping"], X.array.shape[0], split, self._can_overfit(params, X))
        return split._replace(unseen=unseen)

    def _can_overfit(self, params: Mapping[str, Any], X: Table) -> bool:
        """Whether many numbers are learned, with nothing else that guards them."""
        if not self.learns or not self.overfits or params["sigma_l1"]:
            return False
        groups = group_index(params["groups"], X.n_columns, X.input_coords)
        return self.moves_frequencies or len(np.unique(groups)) > FEW

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

    def costs(self, sizes: Sizes, of: MapCost, folds: int) -> list[Cost]:
        """What the passes of learning cost, beside those of the weights."""
        if self.objective is None:
            return []
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
        Learner("validation", VALIDATION),
        Learner("cv", CV, folds=5),
        Learner("joint", JOINT, overfits=False),
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
