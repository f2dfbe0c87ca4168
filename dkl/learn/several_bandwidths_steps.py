"""The objective of several kernels at a trial point and its gradient, where the solve runs: as in bandwidth_steps.py.

What differs is how a system is solved: weights of groups, some of which are zero (solvers/group_adjoint.py), and how
alpha is found: from a path at first, later near the last one. alpha is that of all rows: on a share of them lam is that
share of it, so that few rows do not switch groups off.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from dkl.engine.handles import Reply
from dkl.engine.threads import thread_count
from dkl.learn import bandwidth_steps
from dkl.learn.bandwidth_steps import Problem
from dkl.learn.search import Move, Search, Verdict
from dkl.learn.several_scales import SeveralScales
from dkl.solvers.factor import SOLVE_THREADS
from dkl.solvers.group_adjoint import (
    Grouping,
    GroupSide,
    group_error,
    group_errors,
    held_out_group_side,
    joint_group_side,
    largest_group_lam,
)
from dkl.solvers.hypergradient import System
from dkl.solvers.scalar import Point, minimise_log
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.pullback import PullbackSums
from dkl.sums.targets import Targets

PATH = 16
"""Points of the path on which alpha is sought at first."""
LEAST = 1e-3
"""The least alpha that is sought, over the least one at which all weights are zero."""


@dataclass(frozen=True)
class GroupLearning(Problem):
    """What stays the same while sigmas of several kernels are learned; `lowered` multiplies alpha."""

    parameters: SeveralScales  # type: ignore[assignment]
    grouping: Grouping
    lowered: float = 1.0

    @property
    def alpha_unit(self) -> float:
        """alpha over exp(log lam), in the units of the weights and of y."""
        return self.targets.weight_unit * float(self.targets.unit.max())

    def solved(self, systems: list[System], search: Search, weight: float) -> Point:
        """J at the given alpha, at the best one of this trial, or at the one that is held while it is lowered."""
        part = weight / self.targets.weight
        with ThreadPoolExecutor(min(len(systems), thread_count(), SOLVE_THREADS)) as pool:

            def at(log_lam: float) -> Point:
                lam = part * float(np.exp(log_lam))
                sides = [found.side for found in pool.map(lambda system: self._side(system, lam), systems)]
                slope = lam * sum(side.slope for side in sides) / len(sides)
                return Point(log_lam, sum(side.value for side in sides) / len(sides), slope, sides)

            if self.alpha is not None:
                return at(float(np.log(self.lowered * self.alpha / self.alpha_unit)))
            if self.lowered != 1 and search.log_lam is not None:
                return at(search.log_lam)
            top = max(largest_group_lam(system, self.grouping) for system in systems) / part or 1.0
            low, start = float(np.log(LEAST * top)), search.log_lam
            if start is None:
                lams = np.geomspace(top, LEAST * top, PATH)
                errors = pool.map(lambda system: group_errors(system, part * lams, self.grouping), systems)
                start = float(np.log(lams[int(np.argmin(sum(errors)))]))
            found = minimise_log(at, start, low, float(np.log(top)))
            return found if self.lowered == 1 else at(max(low, found.at + float(np.log(self.lowered))))

    def missed(self, system: System, log_lam: float, weight: float) -> float:
        """The error of a system on the rows that test it."""
        return group_error(system, weight / self.targets.weight * float(np.exp(log_lam)), self.grouping)

    def _side(self, system: System, lam: float) -> GroupSide:
        """One system at one lam."""
        side = held_out_group_side if self.objective.holds_out else joint_group_side
        return side(system, lam, self.grouping)


def in_one_unit(targets: Targets) -> Targets:
    """The same targets over one unit for all outputs, the largest: groups join them."""
    ratio = targets.unit / targets.unit.max()
    return replace(
        targets, unit=targets.unit / ratio, absolute=targets.absolute * ratio, square=targets.square * ratio**2
    )  # fmt: skip


def judge(sums: GramSums, *, problem: GroupLearning, program: GramProgram, search: Search) -> Reply[Verdict]:
    """The trial's value, whether it is accepted, and the next program; of an accepted one also |W_g|."""
    told, kept = bandwidth_steps.judge(sums, problem=problem, program=program, search=search)
    if not told.accepted:
        return Reply(told, kept)
    adjoint, of, c = kept["pullback"].adjoint, problem.grouping, problem.targets.n_outputs
    squares = (adjoint.coef / program.features.map.scale).reshape(len(of.groups), -1, c) ** 2
    each = [np.sqrt(np.bincount(of.groups, by_system)) for by_system in squares.sum(axis=2).T]
    return Reply(told, {**kept, "norms": np.mean(each, axis=0) * float(problem.targets.unit.max())})


def advance(
    sums: PullbackSums, *, problem: GroupLearning, program: GramProgram, search: Search,
    accepted: tuple[float, float, float], norms: np.ndarray,
) -> Reply[Move]:  # fmt: skip
    """The search after its trial was accepted and its gradient summed, and the program of the next trial."""
    told, kept = bandwidth_steps.advance(sums, problem=problem, program=program, search=search, accepted=accepted)
    return Reply(told._replace(norms=norms), kept)
