"""The restricted master problem by the alternating direction method: rows' variables stay in their blocks.

A pass takes the rows' own step (sums/admm.py), a small solve that of the weights (solvers/admm.py), with one factor for
all steps. The same pass judges the sparse weights of the step before, so the certificate is that of all masters: the
KKT residual of what is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.handles import Reply
from dkl.learn.masters import Restricted, Solved, whole
from dkl.learn.moments import moments_of
from dkl.learn.run import Run
from dkl.losses import Loss
from dkl.solvers.admm import Iterate, RowSums, System, advanced, begun, residuals, system_of
from dkl.solvers.factor import factor_cost
from dkl.solvers.fista import kkt_residual, norm_and_ridge
from dkl.solvers.ridge import centred
from dkl.sums.admm import AdmmProgram, AdmmSums, Ahead, Step, admm_cost
from dkl.sums.gram import GramSums, gram_cost
from dkl.sums.tree import TreeTotal

PASSES = 1000
"""Most passes of one solve."""
USUAL = 60.0
"""Passes of one solve, about."""
STILL = 1e-11
"""Residuals of the method that are rounding: it moves no more."""
FIRST = 0.5
"""xi at first, in units of the largest curvature of the loss."""


@dataclass(frozen=True)
class AdmmMaster:
    """Alternating directions, for any loss."""

    def solve(
        self, run: Run, problem: Restricted, start: np.ndarray, lam: float, tol: float, carry: dict[str, np.ndarray]
    ) -> Solved:  # fmt: skip
        """Two passes for the start and the factor, if the start is not good enough, and one for each step."""
        gram = problem.gram if problem.tests >= 0 else whole(problem.gram)
        problem, blocks = replace(problem, gram=gram), run.rows.blocks(gram.rows_wanted)
        walk = run.engine.walk(AdmmProgram(gram, problem.loss, problem.tests), run.rows, blocks)
        xi = float(carry.get("xi", np.array(FIRST * problem.loss.most_curved(gram.targets.n_outputs))))
        steps = [step_of(problem, start, xi)]
        sums = run.walked(walk, ahead_of(problem, steps, start), blocks, "weights: step 0")
        solved, at = run.engine.solve(begin, sums, problem=problem, weights=start, lam=lam, xi=xi)
        best, still = solved, False
        if best.residual > tol:
            gram_sums = run.sum(gram, blocks, "gram")
            system = run.engine.solve(system_from, gram_sums, problem=problem).kept["system"]
        while best.residual > tol and not still and len(steps) < PASSES:
            at, still = run.engine.solve(step, sums, problem=problem, system=system, at=at, lam=lam)
            steps.append(step_of(problem, np.vstack([at.weights, at.intercept]), at.xi))
            sparse = np.vstack([at.sparse, at.intercept])
            sums = run.walked(walk, ahead_of(problem, steps, sparse), blocks, f"weights: step {len(steps) - 1}")
            solved = run.engine.solve(judge, sums, problem=problem, sparse=sparse, lam=lam)
            best = solved if solved.residual < best.residual else best
        return best._replace(passes=len(steps) + (len(steps) > 1), carry={"xi": np.array(at.xi)})

    def costs(self, sizes: Sizes, of: MapCost, folds: int, loss: Loss) -> list[Cost]:
        """The gram and its factor, and the passes of the steps."""
        solve = factor_cost(of.features, max(1, sizes.outputs))
        rows = admm_cost(sizes, of, folds).again()
        return [gram_cost(sizes, of, folds).then(solve).again(), replace(rows, count=USUAL)]


def step_of(problem: Restricted, weights: np.ndarray, xi: float) -> Step:
    """A step of weights (d + 1, c), for rows whose features have no scale."""
    return Step(problem.gram.features.map.scale * weights[:-1], weights[-1], xi)


def ahead_of(problem: Restricted, steps: list[Step], sparse: np.ndarray) -> Ahead:
    """All steps, and the sparse weights that the next pass judges."""
    return Ahead(tuple(steps), problem.gram.features.map.scale * sparse[:-1], sparse[-1])


def system_from(sums: GramSums, *, problem: Restricted) -> Reply[None]:
    """The factor of all steps, which stays where the solve runs."""
    targets, scale = problem.gram.targets, problem.gram.features.map.scale
    trains = [k for k in range(len(sums.weight)) if k != problem.tests]
    S = moments_of(sums, trains, scale, targets)
    gram = centred(S, problem.fit_intercept).gram / problem.total
    system = system_of(gram, S.feature_sum / S.weight, S.weight / problem.total, problem.fit_intercept)
    return Reply(None, {"system": system})


def begin(
    sums: TreeTotal[AdmmSums], *, problem: Restricted, weights: np.ndarray, lam: float, xi: float
) -> tuple[Solved, Iterate]:  # fmt: skip
    """The first weights judged, and the method at these."""
    at = begun(weights[:-1], weights[-1], row_sums(sums, problem), xi)
    return judge(sums, problem=problem, sparse=weights, lam=lam), at


def step(
    sums: TreeTotal[AdmmSums], *, problem: Restricted, system: System, at: Iterate, lam: float
) -> tuple[Iterate, bool]:  # fmt: skip
    """The next step of the weights, and whether the last one has moved by rounding alone."""
    rows = row_sums(sums, problem)
    still = at.number > 0 and max(residuals(system, at, rows)) < STILL
    return advanced(system, at, rows, problem.norm.penalty, lam), still


def row_sums(sums: TreeTotal[AdmmSums], problem: Restricted) -> RowSums:
    """Means over rows, features scaled."""
    w, scale, found = problem.total, problem.gram.features.map.scale, sums.tree.total()
    return RowSums(
        scale * found.scores.T / w, found.score_sum / w, scale * found.slopes.T / w, found.slope_sum / w,
        found.gap / w, max(found.score_size, found.copy_size) / w,
    )  # fmt: skip


def judge(sums: TreeTotal[AdmmSums], *, problem: Restricted, sparse: np.ndarray, lam: float) -> Solved:
    """Loss and KKT residual of the sparse weights."""
    B, w, scale, found = sparse[:-1], problem.total, problem.gram.features.map.scale, sums.tree.total()
    norm, ridge = norm_and_ridge(problem.norm.penalty)
    C = -scale * found.sparse_slopes.T / w
    constant = float(np.abs(found.sparse_slope_sum).max()) / w * problem.fit_intercept
    residual = max(kkt_residual(C - lam * ridge * B, B, lam, norm), constant)
    error = found.tested / found.test_weight if found.test_weight > 0 else float("nan")
    return Solved(sparse, found.loss / w, error, residual, 0)
