"""Learning with infinitely many features: weights of those that are worth one, found a few at a time.

    least over W, b of sum_i w_i l(W' psi(x_i) + b, y_i) + alpha sum_j eta_j |W_j|,   j over infinitely many groups

A round draws fresh candidates, prices them in one pass (learn/prices.py), adds the best ones that are worth a weight
and no near copies of each other, and solves for the weights of all groups that there are (learn/masters.py). A group
whose weight was zero for three rounds is dropped. So the objective never rises at one alpha. Without a violation in
`empty` rounds in a row nothing is left to gain, as far as 59 candidates can tell: the best of so many is among the best
5 % with a probability of 95 %.

Along a path of alphas each but the last has a few rounds at most, and goes on to the next after one without a
violation. With rows held out, the round of their least mean loss counts. The weights of its groups are solved for once
more at its alpha, on all rows, to solver_tol.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.features.groups import carried, join, take
from dkl.learn.columns_state import Growth, PathPoint, Point, Problem, Settings
from dkl.learn.history import Column, History
from dkl.learn.prices import distinct, improved, priced
from dkl.learn.run import Method, Row, Run, Step
from dkl.sums.gram import gram_cost
from dkl.sums.pricing import pricing_cost

IDLE = 3
"""Rounds without a weight after which a group is dropped."""
SHORTLIST = 3
"""Candidates that are compared, for each that may be added."""
ROUGH = 0.01
"""KKT residual of the weights of a round, over lam: small beside a violation that counts."""
ALONE = 1e300
"""A lam at which intercepts alone are not zero."""
FULL, EARLY = "max_features", "early_stopping"
"""The reasons of a model that has all the groups it may have, and of a held-out loss that falls no more."""


@dataclass(frozen=True)
class Columns(Method[Growth, Growth]):
    """Rounds until nothing is worth a weight, or a limit."""

    problem: Problem
    state: ClassVar[type] = Growth
    history: ClassVar[Mapping[str, Column]] = {
        "objective": Column("mean loss of the rows that train, and penalty"),
        "certificate": Column("KKT residual of the weights, over the largest violation of the first round"),
        "violation": Column("largest violation of the candidates of the round, over alpha", optional=True),
        "alpha": Column("penalty"),
        "added": Column("groups that the round added", whole=True),
        "features": Column("groups after the round", whole=True),
        "used": Column("groups that have a weight", whole=True),
        "held_out": Column("mean loss of the rows that are held out", optional=True),
    }

    @property
    def settings(self) -> Settings:
        """What was asked for."""
        return self.problem.settings

    def begin(self, run: Run) -> Growth:
        """Nothing yet."""
        return self.problem.nothing()

    def reopened(self, run: Run, state: Growth) -> Growth:
        """The rounds go on where they had ended."""
        return state._replace(final=None, ending="", empty=0)

    def step(self, run: Run, state: Growth) -> Step[Growth]:
        """One round; or, once there is no further one, the last weights."""
        if state.ending:
            return self._last(run, state)
        state = state if state.number else self._alone(run, state)
        state, largest, added = self._grown(run, state._replace(number=state.number + 1))
        if len(state.point.eta):
            state = self._weighed(run, state)
        row = self._row(run, state, state.point, f"round {state.number}", largest, added)
        return Step(self._next(run, state), row)

    def end(self, run: Run, state: Growth, history: History) -> Growth:
        """As it stands."""
        return state

    def _alone(self, run: Run, state: Growth) -> Growth:
        """The intercepts of a model without features."""
        features, point = self.problem.placeholder, state.point
        zero = np.zeros((features.n_features + 1, point.weights.shape[1]))
        problem = self.problem.restricted(features, np.ones(1), self.problem.tests)
        found = self.settings.master.solve(run, problem, zero, ALONE, self.settings.solver_tol, {})
        alone = point._replace(
            weights=found.weights[-1:], value=found.value, objective=found.value, error=found.error, residual=0.0
        )  # fmt: skip
        return state._replace(point=alone, best=alone if self.problem.tests >= 0 else None)

    def _grown(self, run: Run, state: Growth) -> tuple[Growth, float, int]:
        """The groups of a round added, their weights zero; the largest violation over lam, and how many they are."""
        s, have = self.settings, len(state.point.eta)
        room = min(s.per_round, s.budget - have)
        if room <= 0:
            return state, float("nan"), 0
        candidates = s.source.draw(np.random.default_rng([s.seed, state.number]), s.candidates)
        prices = priced(run, self.problem, state.point, candidates, f"round {state.number}: prices")
        if state.lams is None:
            size = float(prices.violation.max(initial=0.0))
            state = state._replace(lams=self.problem.lams(size), size=size if size > 0 else 1.0)
        assert state.lams is not None
        lam = float(state.lams[state.point.place])
        order = np.argsort(-prices.violation, kind="stable")
        largest = float(prices.violation[order[0]]) / lam
        worth = order[prices.violation[order] > (1 + run.limits.tol) * lam][: SHORTLIST * room]
        if not len(worth):
            return state._replace(empty=state.empty + 1), largest, 0
        some, eta, violation = take(candidates, worth), prices.eta[worth], prices.violation[worth]
        if s.improve:
            some, better = improved(run, self.problem, state, some, s.improve)
            eta, violation = better.eta, better.violation
            largest = float(violation.max()) / lam
        keep = distinct(run, self.problem, some, np.argsort(-violation, kind="stable"), room)
        chosen, point = take(some, keep), state.point
        before = self.problem.map_of(point.parameters) if have else None
        after = chosen if before is None else join(before, chosen)
        origin = np.concatenate([np.arange(have), np.full(len(keep), -1)])
        weights = carried(point.weights, before, after, origin)
        point = point._replace(
            parameters=dict(after.parameters), eta=np.concatenate([point.eta, eta[keep]]), weights=weights
        )  # fmt: skip
        idle = np.concatenate([state.idle, np.zeros(len(keep))])
        return state._replace(point=point, idle=idle, empty=0), largest, len(keep)

    def _weighed(self, run: Run, state: Growth) -> Growth:
        """New weights, and without groups that have been idle for long."""
        assert state.lams is not None
        s, point = self.settings, state.point
        lam, features = float(state.lams[point.place]), self.problem.map_of(point.parameters)
        problem = self.problem.restricted(features, point.eta, self.problem.tests)
        tol = max(s.solver_tol * state.size, ROUGH * lam)
        found = s.master.solve(run, problem, point.weights, lam, tol, state.carry)
        objective = found.value + lam * problem.norm.penalty.value(found.weights[:-1])
        if not np.isfinite(objective):
            raise ValueError(
                f"the objective of round {state.number} is {objective!r}: the weights diverged at "
                f"alpha={self.problem.alpha(state, point.place):g}; raise alpha, or use dtype='float64'"
            )
        point = point._replace(
            weights=found.weights, value=found.value, objective=objective, error=found.error,
            residual=found.residual / state.size, number=state.number,
        )  # fmt: skip
        idle = np.where(used(features.column_group, found.weights), 0, state.idle + 1)
        keep = np.flatnonzero(idle < IDLE)
        keep = keep if len(keep) else np.zeros(1, int)
        point = self._kept(point, keep)
        better = state.best is not None and point.error < state.best.error
        return state._replace(
            point=point, idle=idle[keep], carry=found.carry, best=point if better else state.best
        )  # fmt: skip

    def _kept(self, point: Point, keep: np.ndarray) -> Point:
        """A model of some of its groups."""
        if len(keep) == len(point.eta):
            return point
        before = self.problem.map_of(point.parameters)
        after = take(before, keep)
        weights = carried(point.weights, before, after, keep)
        return point._replace(parameters=dict(after.parameters), eta=point.eta[keep], weights=weights)

    def _next(self, run: Run, state: Growth) -> Growth:
        """Where the next round begins: at the same alpha, at the next one, or nowhere."""
        assert state.lams is not None
        s, point = self.settings, state.point
        full, at_last = len(point.eta) >= s.budget, point.place == len(state.lams) - 1
        done = state.empty >= (s.empty if at_last else 1)
        own = PathPoint(point.place, point.objective, point.error, point.residual, self._count(point))
        state = state._replace(path=(*(one for one in state.path if one.place != own.place), own))
        if self._falls_no_more(state):
            return state._replace(ending=EARLY)
        if at_last and (done or full):
            return state._replace(ending="converged" if done else FULL)
        if state.number >= run.limits.max_iter:
            return state._replace(ending="max_iter")
        if at_last or not (done or full or state.number - state.since >= s.rounds):
            return state
        return state._replace(point=point._replace(place=point.place + 1), empty=0, since=state.number)

    def _falls_no_more(self, state: Growth) -> bool:
        """Whether the held-out loss has not fallen for long; a path may begin with alphas of no feature at all."""
        if state.best is None or state.lams is None:
            return False
        begun = state.best.number if len(state.best.eta) else min(len(state.lams), state.number)
        return state.number - begun >= self.settings.patience

    def _count(self, point: Point) -> int:
        """Groups that have a weight."""
        if not len(point.eta):
            return 0
        return int(used(self.problem.map_of(point.parameters).column_group, point.weights).sum())

    def _last(self, run: Run, state: Growth) -> Step[Growth]:
        """The best model's weights on all rows, as near to their best as was asked."""
        assert state.lams is not None
        s, point = self.settings, state.point if state.best is None else state.best
        if not len(point.eta):
            return Step(state._replace(final=point), None, state.ending)
        features, lam = self.problem.map_of(point.parameters), float(state.lams[point.place])
        problem = self.problem.restricted(features, point.eta, -1)
        found = s.master.solve(run, problem, point.weights, lam, s.solver_tol * state.size, state.carry)
        objective = found.value + lam * problem.norm.penalty.value(found.weights[:-1])
        final = point._replace(
            weights=found.weights, value=found.value, objective=objective, residual=found.residual / state.size
        )  # fmt: skip
        on = np.flatnonzero(used(features.column_group, found.weights))
        final = self._kept(final, on if len(on) else np.zeros(1, int))
        row = self._row(run, state, final, "last weights", float("nan"), 0)
        return Step(state._replace(final=final), row, state.ending)

    def _row(self, run: Run, state: Growth, point: Point, where: str, largest: float, added: int) -> Row:
        """The row of a round."""
        assert state.lams is not None
        values: dict[str, float | np.ndarray] = {
            "objective": point.objective, "certificate": point.residual if len(point.eta) else 0.0,
            "violation": largest, "alpha": self.problem.alpha(state, point.place), "added": float(added),
            "features": float(len(point.eta)), "used": float(self._count(point)), "held_out": point.error,
        }  # fmt: skip
        return Row(where, run.rows.n_rows, values, self.settings.solver_tol)


def used(groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(groups,), whether a group has a weight."""
    return np.asarray(np.bincount(groups, weights[:-1].any(axis=1)) > 0)


def columns_costs(
    sizes: Sizes, like: MapCost, candidates: MapCost, short: MapCost, folds: int, settings: Settings
) -> list[Cost]:  # fmt: skip
    """The passes of a round with all the groups that a model may have: weights, prices, comparisons, steps uphill."""
    passes = settings.master.costs(sizes, like, folds, settings.loss)
    passes += [pricing_cost(sizes, like, candidates).again(), gram_cost(sizes, short).again()]
    if settings.improve:
        outputs = 1 if sizes.is_class and sizes.outputs == 2 else max(1, sizes.outputs)
        own = replace(sizes, outputs=outputs)
        pulls = 2 * outputs + 1
        passes.append(replace(pricing_cost(own, like, short, pulls).again(), count=settings.improve + 1.0))
    return passes
