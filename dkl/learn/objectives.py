"""What is minimised over sigma and lam, as rows of a table: which folds test, and the value and slopes of one system.

validation   fold 1 tests, fold 0 trains                cv      each fold tests a system of all others
joint        the training objective of all rows         gcv     generalised cross-validation of all rows
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dkl.learn.moments import moments_of
from dkl.solvers.hypergradient import Side, System, gcv_side, held_out_side, joint_side, make_system
from dkl.sums.gram import GramSums
from dkl.sums.targets import Targets


class Unweighted(ValueError):
    """Rows of an objective have no weight."""


@dataclass(frozen=True)
class Objective:
    """One row of the table."""

    name: str
    side: Callable[[System, float, np.ndarray], Side]
    held: bool = False  # whether fold 1 alone tests
    folded: bool = False  # whether each fold tests
    learns_alpha: bool = True  # whether alpha may be chosen by it
    adjoints: bool = True  # whether its gradient needs adjoints; not if the weights minimise it themselves
    curved: bool = False  # whether its gradient has a term of rank d

    def tests(self, folds: int) -> tuple[int | None, ...]:
        """The fold that tests each system; None: the rows it is trained with."""
        if self.folded:
            return tuple(range(folds))
        return (1,) if self.held else (None,)

    def trains(self, test: int | None, folds: int) -> list[int]:
        """The folds that train the system which that fold tests."""
        return [0] if self.held else [fold for fold in range(folds) if fold != test]

    def systems(self, folds: int) -> int:
        """How many ridge systems there are."""
        return len(self.tests(folds))

    def tested_weight(self, weights: np.ndarray) -> float:
        """The weight of the rows whose error counts."""
        return float(weights[1]) if self.held else float(weights.sum())

    def named(self, test: int, folds: int) -> str:
        """A fold that tests, in words."""
        return "the rows held out" if self.held else f"fold {test} of {folds}"

    @property
    def holds_out(self) -> bool:
        """Whether its error is that of rows which a system has not seen."""
        return self.held or self.folded


VALIDATION = Objective("validation", held_out_side, held=True)
CV = Objective("cv", held_out_side, folded=True)
JOINT = Objective("joint", joint_side, learns_alpha=False, adjoints=False)
GCV = Objective("gcv", gcv_side, curved=True)
OBJECTIVES = {each.name: each for each in (VALIDATION, CV, JOINT, GCV)}


def systems_of(
    sums: GramSums, objective: Objective, scale: float, targets: Targets, fit_intercept: bool, unseen: bool = False
) -> list[System]:
    """The ridge systems of an objective; with `unseen`, the last fold belongs to none of them."""
    folds = len(sums.weight) - unseen

    def make(test: int | None) -> System:
        train = objective.trains(test, folds)
        tested = None if test is None else moments_of(sums, [test], scale, targets)
        trained = moments_of(sums, train, scale, targets)
        if not trained.weight or (tested is not None and not tested.weight):
            if test is None:
                raise Unweighted(
                    "sample_weight=0 for every row, so their sum is zero; give some rows a positive weight"
                )
            raise Unweighted(
                f"{objective.named(test, folds)}, or the others, have no weight; use more rows, or other folds"
            )
        return make_system(trained, tested, float(sums.rows[train].sum()), fit_intercept)

    return [make(test) for test in objective.tests(folds)]
