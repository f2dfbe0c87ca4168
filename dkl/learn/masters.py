"""The restricted master problem: the best weights of the features that a model has so far.

    least over W, b of 1/w [sum_i w_i l(W' psi_i + b, y_i) + alpha penalty(W)]

A master takes the weights of the last round, and gives better ones with their KKT residual: zero at the least point
alone. `MASTERS` is the table. SquareMaster makes one pass for the gram and solves from there; NewtonMaster makes one
pass for each step, which judges the last one and gives the quadratic of the next (learn/loss_path_steps.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.learn.group_weights import GroupOptions
from dkl.learn.loss_path_state import FIRST, PathProblem, Walker
from dkl.learn.loss_path_steps import LOOSER, advance
from dkl.learn.moments import moments_of
from dkl.learn.run import Run
from dkl.losses import Loss
from dkl.solvers.fista import kkt_residual, norm_and_ridge
from dkl.solvers.group_norms import GroupNorm
from dkl.solvers.group_quadratic import group_quadratic, group_quadratic_cost
from dkl.solvers.ridge import centred, residual_energy
from dkl.sums.gram import GramProgram, GramSums, gram_cost
from dkl.sums.path_curvature import pairs_of, path_curvature_cost

STEPS = 4.0
"""Newton steps of a round, about."""
PASSES, PRODUCTS = 50, 20_000
"""Most passes of one solve, and most products of one gram."""
NARROW = {"float32": 1e-6, "float64": 1e-13}
"""What is added to a gram, in units of its mean diagonal: rounding must not leave it indefinite."""


@dataclass(frozen=True)
class Restricted:
    """The problem. With tests >= 0 that fold of `gram` does not train; its mean loss is what a solve reports."""

    gram: GramProgram  # with the map of the features, and the folds
    loss: Loss
    norm: GroupNorm
    fit_intercept: bool
    tests: int = -1

    @property
    def total(self) -> float:
        """w: of all rows, those that test too."""
        return self.gram.targets.weight

    def program(self) -> GramProgram:
        """The pass of sums; without folds, if no row is held out."""
        return self.gram if self.tests >= 0 else whole(self.gram)


def whole(gram: GramProgram) -> GramProgram:
    """The same pass over all rows as one fold."""
    return replace(gram, folds=1, held=None, unseen=None)


class Solved(NamedTuple):
    """Weights, and what is known of them; losses are means."""

    weights: np.ndarray  # (d + 1, c), the intercept last
    value: float  # sum of losses of rows that train, over w
    error: float  # mean loss of rows that test, or nan
    residual: float  # KKT residual, in the units of lam
    passes: int
    carry: dict[str, np.ndarray] = {}


class Master(Protocol):
    """A way to solve it."""

    def solve(
        self, run: Run, problem: Restricted, start: np.ndarray, lam: float, tol: float, carry: dict[str, np.ndarray]
    ) -> Solved:  # fmt: skip
        """From weights `start` to a KKT residual of at most tol, which has the units of lam = alpha / w."""

    def costs(self, sizes: Sizes, of: MapCost, folds: int, loss: Loss) -> list[Cost]:
        """The passes of a round, and their solves."""


@dataclass(frozen=True)
class NewtonMaster:
    """Prox-Newton steps, for any loss."""

    def solve(
        self, run: Run, problem: Restricted, start: np.ndarray, lam: float, tol: float, carry: dict[str, np.ndarray]
    ) -> Solved:  # fmt: skip
        """A pass for each step; groups whose weights are zero join a gram when their slopes ask for it."""
        held, norm, unit = problem.tests >= 0, problem.norm, problem.total * problem.gram.targets.weight_unit
        options = GroupOptions(
            norm.groups, problem.fit_intercept, eta=norm.factor, alphas=np.array([lam * unit]), ridge=norm.ridge,
            by_output=norm.by_output, tol=tol / LOOSER if held else tol, max_iter=PASSES, penalty=norm.kind,
        )  # fmt: skip
        path = PathProblem(problem.gram, problem.loss, norm, options)
        everything = np.ones(norm.count, bool)
        walker = Walker(problem.tests, start, start, everything, start, place=0, size=1.0)
        walker = walker._replace(floor=float(carry.get("floor", np.array(FIRST))))
        lams, passes = np.array([lam]), 0
        while not walker.done:
            program = path.program((walker,))
            passes += 1
            sums = run.sum(program, run.rows.blocks(program.rows_wanted), f"weights: step {passes}")
            after = run.engine.solve(
                advance, sums, problem=path, program=program, lams=lams, walkers=(walker,)
            )  # fmt: skip
            walker = after.walkers[0]
        floor = {"floor": np.array(walker.floor)}
        return Solved(walker.best, walker.best_value, walker.best_error, walker.least, passes, floor)

    def costs(self, sizes: Sizes, of: MapCost, folds: int, loss: Loss) -> list[Cost]:
        """A gram for each output, or pair of them."""
        c = 1 if sizes.is_class and sizes.outputs == 2 else max(1, sizes.outputs)
        pairs = len(pairs_of(loss, c))
        width, grams = (c * of.features, 1) if pairs > c else (of.features, c)
        solve = group_quadratic_cost(width, grams)
        held = replace(solve, bytes=solve.bytes + 8 * (3 * grams * width * width + of.features**2))
        passes = path_curvature_cost(sizes, of, folds, 1, pairs).then(held).again()
        return [replace(passes, count=STEPS)]


@dataclass(frozen=True)
class SquareMaster:
    """Squared errors: one pass for the gram, and the weights from its sums."""

    def solve(
        self, run: Run, problem: Restricted, start: np.ndarray, lam: float, tol: float, carry: dict[str, np.ndarray]
    ) -> Solved:  # fmt: skip
        """One pass and one solve."""
        program = problem.program()
        sums = run.sum(program, run.rows.blocks(program.rows_wanted), "gram")
        return run.engine.solve(solve_squares, sums, problem=problem, start=start, lam=lam, tol=tol)

    def costs(self, sizes: Sizes, of: MapCost, folds: int, loss: Loss) -> list[Cost]:
        """The gram, and a solve."""
        solve = group_quadratic_cost(of.features, max(1, sizes.outputs))
        held = replace(solve, bytes=solve.bytes + 8 * 4 * of.features**2)
        return [gram_cost(sizes, of, folds).then(held).again()]


def solve_squares(sums: GramSums, *, problem: Restricted, start: np.ndarray, lam: float, tol: float) -> Solved:
    """The least point, from the sums of the rows that train."""
    targets, scale, w = problem.gram.targets, problem.gram.features.map.scale, problem.total
    trains = [k for k in range(len(sums.weight)) if k != problem.tests]
    S = moments_of(sums, trains, scale, targets)
    gram, cross = (part / w for part in centred(S, problem.fit_intercept))
    jitter = NARROW[problem.gram.features.dtype.name] * float(np.trace(gram)) / len(gram)
    gram[np.diag_indices_from(gram)] += jitter
    c = cross.shape[1]
    grams = np.broadcast_to(gram, (c, *gram.shape))
    found = group_quadratic(
        grams, cross, lam, problem.norm, start=start[:-1], tol=tol / lam, max_iter=PRODUCTS
    )  # fmt: skip
    B = found.coef
    b = (S.target_sum - S.feature_sum @ B) / S.weight * problem.fit_intercept
    value = float(residual_energy(S, B, b).sum()) / 2 / w
    error = float("nan")
    if problem.tests >= 0:
        test = moments_of(sums, [problem.tests], scale, targets)
        error = float(residual_energy(test, B, b).sum()) / 2 / test.weight
    norm, ridge = norm_and_ridge(problem.norm.penalty)
    residual = kkt_residual(cross - gram @ B - lam * ridge * B, B, lam, norm)
    return Solved(np.vstack([B, b]), value, error, residual, 1)


MASTERS: dict[str, Callable[[], Master]] = {"newton": NewtonMaster, "square": SquareMaster}
"""By name."""
