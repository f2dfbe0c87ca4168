"""Where paths by any loss stand: the problem, one walker for each system, and what a pass says of it.

    q(D) = <g, D> + 1/2 <D, H D>,   H_jk = P' diag(w d2l/dz_j dz_k) P / w,   P = Psi[:, columns]

Intercepts are eliminated: with h what is between weights and intercepts, and S what is between intercepts, their step
is -S^+ (g_b + h'D), which leaves H - h S^+ h' and g - h S^+ g_b. The steps are learn/loss_path_steps.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dkl.learn.group_weights import GroupOptions
from dkl.losses import Loss
from dkl.penalties import L2, Penalty
from dkl.solvers.group_norms import GroupNorm
from dkl.sums.gram import GramProgram
from dkl.sums.path_curvature import PathProgram, SystemSums

FIRST = 0.1
"""The floor of curvatures at first."""
SINGULAR = 1e-12
"""Intercepts of classes that share a loss may all rise together: a curvature below this share is that direction."""


@dataclass(frozen=True)
class PathProblem:
    """What does not change. only: the groups that weights may have; None: all. norm: None is l2."""

    gram: GramProgram  # with the folds
    loss: Loss
    norm: GroupNorm | None
    options: GroupOptions
    only: np.ndarray | None = None

    @property
    def penalty(self) -> Penalty:
        """That of all groups."""
        return L2() if self.norm is None else self.norm.penalty

    @property
    def count(self) -> int:
        """How many groups there are."""
        return int(self.options.groups.max()) + 1

    @property
    def allowed(self) -> np.ndarray:
        """(r,), whether a group may have weights."""
        return np.asarray(np.isin(np.arange(self.count), np.arange(self.count) if self.only is None else self.only))

    @property
    def unit(self) -> float:
        """alpha over lam."""
        return self.gram.targets.weight * self.gram.targets.weight_unit

    def program(self, walkers: Sequence[Walker]) -> PathProgram:
        """The pass at the trials of those that walk."""
        some = [one for one in walkers if not one.done]
        trials, scale = np.stack([one.trial for one in some]), self.gram.features.map.scale
        columns = tuple(np.flatnonzero(one.entered[self.options.groups]) for one in some)
        tests, floor = np.array([one.tests for one in some]), np.array([one.floor for one in some])
        gram = self.gram if tests.max() >= 0 else replace(self.gram, folds=1, held=None, unseen=None)
        return PathProgram(gram, self.loss, scale * trials[:, :-1], trials[:, -1], tests, columns, floor)


class Walker(NamedTuple):
    """Where the path of one system stands."""

    tests: int  # the fold that it has not seen; -1: it has seen all
    weights: np.ndarray  # (d + 1, c), as far as they have been accepted
    aim: np.ndarray  # (d + 1, c), where the step leads
    entered: np.ndarray  # (r,), whether a group is in the gram of the next pass
    best: np.ndarray  # (d + 1, c), of the least residual at this lam
    length: float = 0.0  # of the trial; 0 looks at the weights themselves
    place: int = -1  # of the lam in hand; -1 is that of intercepts alone
    value: float = float("inf")  # mean loss
    error: float = float("nan")  # that of the rows that test
    promised: float = 0.0  # decrease of the objective by the whole step, to first order
    floor: float = FIRST
    size: float = float("nan")  # what residuals are measured by: lam_max, in the end
    residual: float = float("inf")
    least: float = float("inf")  # the least residual at this lam
    best_value: float = float("inf")
    best_error: float = float("nan")
    waited: int = 0  # steps, whose gain was but rounding, that did not lower the residual
    passes: int = 0  # at this lam
    done: bool = False

    @property
    def trial(self) -> np.ndarray:
        """The point of the next pass; weights that are zero at both ends are zero between them."""
        if self.length in (0.0, 1.0):
            return self.aim if self.length else self.weights
        return np.asarray(self.weights + self.length * (self.aim - self.weights))


class Point(NamedTuple):
    """One lam of one system: weights of all rows, and held-out losses of folds."""

    tests: int
    place: int
    weights: np.ndarray  # (features that are not zero, c); none of folds
    active: np.ndarray  # their groups
    intercept: np.ndarray  # (c,)
    value: float  # mean loss
    objective: float
    error: float  # mean loss of the rows that test
    residual: float  # over its size


class Advanced(NamedTuple):
    """What a pass came to."""

    lams: np.ndarray | None
    walkers: tuple[Walker, ...]
    found: tuple[Point, ...]


class Quadratic(NamedTuple):
    """What a pass says of one system at its trial; over the sum of weights, features scaled."""

    slope: np.ndarray  # (d, c)
    intercept_slope: np.ndarray  # (c,)
    columns: np.ndarray  # features of the gram
    grams: np.ndarray  # (c, columns, columns), or (1, c columns, c columns) of coupled scores; without the intercept
    reduced: np.ndarray  # (columns, c), slope without the intercept
    curved: np.ndarray  # (c columns, c), between weights, output by output, and intercepts
    inverse: np.ndarray  # (c, c), of what is between intercepts


def begun(problem: PathProblem) -> tuple[Walker, ...]:
    """Weights of zero: one system without each fold, and that of all rows."""
    d, c, folds = problem.gram.features.map.n_features, problem.gram.targets.n_outputs, problem.gram.folds
    zero, none = np.zeros((d + 1, c)), np.zeros(problem.count, bool)
    tests = [*(range(folds) if folds > 1 else ()), -1]
    return tuple(Walker(k, zero, zero, none, zero) for k in tests)


def quadratic_of(problem: PathProblem, program: PathProgram, own: SystemSums, i: int) -> Quadratic:
    """Sums of scaled features, and the intercept eliminated."""
    total, scale, fits = problem.gram.targets.weight, problem.gram.features.map.scale, problem.options.fit_intercept
    c, columns, pairs = own.slope.shape[0], program.columns[i], program.pairs
    width, joint = len(columns), len(pairs) > own.slope.shape[0]
    curved, curvature = np.zeros((c, width, c)), np.zeros((c, c))
    grams = np.zeros((1, c * width, c * width)) if joint else np.empty((c, width, width))
    for p, (j, k) in enumerate(pairs):
        share = 1 / total if j == k else -1 / total
        gram = own.full(p) * (share * scale * scale)
        for a, b in {(j, k), (k, j)}:
            curved[a, :, b], curvature[a, b] = share * scale * own.curved[p], share * own.curvature_sum[p]
            if joint:
                grams[0, a * width : (a + 1) * width, b * width : (b + 1) * width] = gram
        if not joint:
            grams[j] = gram
    inverse = np.linalg.pinv(curvature, rcond=SINGULAR, hermitian=True) * fits
    flat = curved.reshape(c * width, c)
    if joint:
        grams[0] -= flat @ inverse @ flat.T
    elif fits:
        for j in range(c):
            grams[j] -= np.outer(curved[j, :, j], curved[j, :, j] * inverse[j, j])
    slope, intercept_slope = scale * own.slope.T / total, own.slope_sum / total * fits
    reduced = slope[columns] - (flat @ (inverse @ intercept_slope)).reshape(c, width).T
    return Quadratic(slope, intercept_slope, columns, grams, reduced, flat, inverse)
