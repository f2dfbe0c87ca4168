"""Learn the sigmas of several kernels under any smooth loss, together with their weights: the joint objective.

    F(sigma) = min over W, b of 1/w [sum_i w_i l(z_i) + alpha (sum_g eta_g |W_g| + ridge / 2 |W|^2)]

Weights are found by Newton's steps at every trial (learn/newton.py: two passes each), from those of the last point that
was accepted. They minimise F, so its gradient is that of the rows alone (envelope theorem): Psi_bar = w l'(z) W' / w.
On a share of the rows alpha is that share of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.handles import Reply
from dkl.engine.protocol import Ref
from dkl.engine.row_readers import Range
from dkl.learn.bandwidth import Refs
from dkl.learn.newton import Descent, Newton, newton_costs
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.learn.run import Limits, Run
from dkl.learn.search import Inner, Search, Verdict
from dkl.learn.several_bandwidths_steps import GroupLearning
from dkl.learn.several_descents import SeveralBandwidths
from dkl.losses import Loss, Square
from dkl.penalties import Elastic, GroupL21
from dkl.solvers.lbfgs import WORTH, judged
from dkl.sums.gram import GramProgram
from dkl.sums.loss_pullback import LossPullbackProgram, loss_gradient_cost
from dkl.sums.pullback import Adjoint

INNER, LOOSEST, STEPS = 0.01, 1e-4, 500
"""The KKT residual of the weights over that at zero, as a share of tol, and at most; the steps for it at most."""


@dataclass(frozen=True)
class GroupLossLearning(GroupLearning):
    """What stays the same while sigmas are learned under a loss."""

    loss: Loss = field(default_factory=Square, kw_only=True)

    @property
    def inner_tol(self) -> float:
        """Of the weights, to which the error of the gradient is proportional."""
        return min(INNER * self.tol, LOOSEST)

    @property
    def of_weights(self) -> GroupL21 | Elastic:
        """Their penalty."""
        lengths = GroupL21(self.grouping.groups, self.grouping.eta)
        return Elastic(lengths, self.grouping.ridge) if self.grouping.ridge else lengths

    def trained(self, program: GramProgram, part: float) -> PenalisedLoss:
        """The objective of the weights on that part of the rows, over the weight of all."""
        assert self.alpha is not None
        return PenalisedLoss(program, self.loss, part * self.lowered * self.alpha, self.fit_intercept)


def several_loss_costs(sizes: Sizes, of: MapCost, *, sigmas: int) -> list[Cost]:
    """What every iteration adds: passes of Newton's steps, and the gradient."""
    return [*newton_costs(sizes, of), loss_gradient_cost(sizes, of, 1, sigmas, 1, adjoints=False).again()]


@dataclass(frozen=True)
class SeveralLossBandwidths(SeveralBandwidths):
    """Descents of the joint objective of a loss; the client sees weights, as it does of Newton's steps."""

    problem: GroupLossLearning

    def _judged(
        self, run: Run, refs: Refs, blocks: list[Range], where: str, search: Search | Ref[Search],
        inner: Inner | Ref[Inner] | None,
    ) -> Reply[Verdict]:  # fmt: skip
        """The weights of the trial, and whether it is accepted."""
        engine = run.engine
        search = search if isinstance(search, Search) else engine.take(search)
        warm = inner if inner is None or isinstance(inner, Inner) else engine.take(inner)
        problem = engine.take(refs.problem)
        assert isinstance(problem, GroupLossLearning)
        program = self.first.with_map(problem.parameters.map(search.descent.trial))
        part = sum(stop - start for start, stop in blocks) / run.rows.n_rows
        found = self._weights(run, problem.trained(program, part), problem, blocks, warm)
        return _verdict(problem, program, search, found, part)

    def _weights(
        self, run: Run, trained: PenalisedLoss, problem: GroupLossLearning, blocks: list[Range], warm: Inner | None
    ) -> Descent:
        """Newton's steps from the weights of the last accepted point."""
        newton = Newton(trained, problem.of_weights, tuple(blocks))
        state = newton.begin(run)
        if warm is not None:
            state = state._replace(weights=warm.weights[0], before=warm.weights[0], size=float(warm.first[0]))
        inner, ended = replace(run, limits=Limits(STEPS, problem.inner_tol), checkpoint=None), ""
        while not ended:
            step = newton.step(inner, state)
            state, ended = step.state, step.ended
        return state


def _verdict(
    problem: GroupLossLearning, program: GramProgram, search: Search, found: Descent, part: float
) -> Reply[Verdict]:  # fmt: skip
    """Whether the trial is accepted; then the pass of its gradient, or a shorter step."""
    assert problem.alpha is not None
    error = found.objective / part
    value = error + problem.penalty(search.descent.trial)[0]
    value = value if np.isfinite(value) else np.inf
    accepted, descent = judged(search.descent, value, WORTH * problem.tol)
    log_lam = float(np.log(problem.lowered * problem.alpha / problem.alpha_unit))
    verdict, search = Verdict(accepted, descent.stalled, value, log_lam), search._replace(descent=descent)
    if not accepted:
        return Reply(verdict, {"search": search, "program": program.with_map(problem.parameters.map(descent.trial))})
    B, of, weight = found.weights[:-1], problem.grouping, part * problem.targets.weight
    kept = {
        "search": search._replace(log_lam=log_lam, error=error),
        "pullback": _pullback(problem, program, found),
        "accepted": (value, weight, weight),
        "norms": np.sqrt(np.bincount(of.groups, (B * B).sum(axis=1))),
        "inner": Inner(found.weights[None], np.array([found.size])),
    }
    return Reply(verdict, kept)


def _pullback(
    problem: GroupLossLearning, program: GramProgram, found: Descent
) -> LossPullbackProgram:  # fmt: skip
    """The pass of the gradient; |l'| <= sqrt(2 L l) bounds its sums."""
    scale, c = program.features.map.scale, problem.targets.n_outputs
    coef, ones = scale * found.weights[:-1], np.ones((program.folds, c))
    bound = np.linalg.norm(coef, axis=1) * np.sqrt(
        2 * problem.loss.most_curved(c) * found.objective * problem.targets.weight
    )
    none = np.zeros((len(coef), 0))
    adjoint = Adjoint(coef, found.weights[-1], none, none[0], ones, ones, bound=bound, loss=problem.loss)
    return LossPullbackProgram(program, adjoint, problem.input_size, problem.parameters.wanted)
