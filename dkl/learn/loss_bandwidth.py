"""Learn sigma under any smooth loss: L-BFGS on log sigma (and log alpha), whose trials find the weights by passes.

    gram -> coordinates -> passes of training -> value (judge)                       learn/loss_bandwidth_steps.py
    -> slopes of the rows held out -> products -> pullback -> gradient, next trial   learn/loss_adjoints.py

Starts, stages, sigma_l1, limits and resuming are those of learn/bandwidth.py. Weights begin from those of the last
point that was accepted. alpha is what is given, or learned with sigma if rows are held out; the joint objective would
always lower it, and keeps the one it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.handles import Reply
from dkl.engine.protocol import Ref
from dkl.engine.row_readers import Range
from dkl.learn.bandwidth import Bandwidth, Descending, Refs, Start
from dkl.learn.history import Column, History
from dkl.learn.learned import HISTORY, Learned
from dkl.learn.loss_adjoints import advance, aim, multiply, pull, score
from dkl.learn.loss_bandwidth_steps import LossLearning, descend, judge, whiten
from dkl.learn.objectives import Objective
from dkl.learn.parameters import Scales, ScalesAndAlpha
from dkl.learn.run import Run
from dkl.learn.search import Inner, Move, Search, Verdict
from dkl.losses import Loss
from dkl.prepare.prepared import Prepared
from dkl.solvers.conjugate_gradients import conjugate_cost
from dkl.solvers.lbfgs import descent_cost
from dkl.solvers.quasi_newton import quasi_newton_cost
from dkl.solvers.whitening import loss_whitening_cost
from dkl.sums.gram import gram_cost
from dkl.sums.loss_products import loss_product_cost
from dkl.sums.loss_pullback import loss_gradient_cost
from dkl.sums.losses import loss_cost
from dkl.sums.training import training_cost

FIRST_ALPHA = 1.0
"""Where alpha begins, if it is learned."""
REACH = 1e-9, 1e4
"""lam over the weight of the rows stays between these."""


def loss_learning_costs(
    sizes: Sizes, of: MapCost, *, folds: int = 1, systems: int = 1, adjoints: bool = True
) -> list[Cost]:  # fmt: skip
    """What every iteration of learning adds: coordinates, weights, and what a gradient of rows held out takes."""
    d, c = of.features, max(1, sizes.outputs)
    weights = loss_whitening_cost(d, c) + quasi_newton_cost((d + 1) * c, systems)
    gradient = loss_gradient_cost(sizes, of, systems, sizes.inputs, folds, adjoints)
    passes = [
        gram_cost(sizes, of).then(weights + descent_cost(sizes.inputs + 1)).again(),
        training_cost(sizes, of, folds, systems).then(weights).again(),
        gradient.again(),
    ]
    if adjoints:
        solve = loss_whitening_cost(d, c) + conjugate_cost((d + 1) * c, systems)
        passes += [
            loss_cost(sizes, of, folds).again(),
            loss_product_cost(sizes, of, folds, systems).then(solve).again(),
        ]
    return passes


@dataclass(frozen=True)
class LossBandwidth(Bandwidth):
    """Descents from every start, as learn/bandwidth.py has them; `first` is a pass of all rows without folds."""

    problem: LossLearning
    history: ClassVar[Mapping[str, Column]] = {
        **HISTORY,
        "validation_error": Column("mean loss of held-out rows (of joint: the objective without penalties on sigma)"),
    }

    def end(self, run: Run, state: Descending, history: History) -> Learned:
        """The best point so far; alpha has its own place."""
        learned = super().end(run, state, history)
        if isinstance(self.problem.parameters, ScalesAndAlpha):
            return replace(learned, x=learned.x[:-1])
        return learned

    def _judged(
        self, run: Run, refs: Refs, blocks: list[Range], where: str, search: Search | Ref[Search],
        inner: Inner | Ref[Inner] | None,
    ) -> Reply[Verdict]:  # fmt: skip
        """The coordinates, the weights, and the verdict."""
        solve, fixed = run.engine.solve, refs._asdict()
        gram = run.sum(refs.program, blocks, f"{where}: adding up X")
        _, kept = solve(whiten, gram, **fixed, search=search, inner=inner)
        done = False
        while not done:
            sums = run.sum(kept["training"], blocks, f"{where}: weights")
            done, kept = solve(descend, sums, **fixed, solving=kept["solving"])
        verdict, judgement = solve(judge, sums, **fixed, search=search, solving=kept["solving"])
        if verdict.accepted:
            gradient = score if self.problem.objective.holds_out else pull
            _, more = solve(gradient, sums, **fixed, found=judgement["found"])
            judgement = {**judgement, **more}
        return Reply(verdict, judgement)

    def _advanced(self, run: Run, refs: Refs, blocks: list[Range], where: str, kept: dict[str, Any]) -> Reply[Move]:
        """The adjoints if rows are held out, the gradient, and the next trial."""
        solve, fixed = run.engine.solve, refs._asdict()
        if "scores" in kept:
            found = kept["found"]
            scored = run.sum(kept["scores"], blocks, f"{where}: rows held out")
            done, after = solve(aim, scored, **fixed, found=found)
            while not done:
                sums = run.sum(after["products"], blocks, f"{where}: adjoints")
                done, after = solve(multiply, sums, **fixed, found=found, adjoints=after["adjoints"])
            kept = {**kept, **after}
        pulled = run.sum(kept["pullback"], blocks, f"{where}: gradient")
        about = {name: kept[name] for name in ("search", "accepted", "bend")}
        return solve(advance, pulled, **fixed, **about)


def loss_bandwidth(
    data: Prepared, loss: Loss, objective: Objective, scales: Scales, *, alpha: float | None, fit_intercept: bool,
    tol: float, starts: tuple[Start, ...], share: float = 1.0,
) -> LossBandwidth:  # fmt: skip
    """The method for prepared data; alpha=None: learned with sigma, which the joint objective cannot."""
    if alpha is None and not objective.learns_alpha:
        raise ValueError(f"alpha=None with the objective {objective.name!r}, which always lowers it; give a number")
    data = data.in_units_of_y()
    targets, gram = data.targets, data.gram(data.split)
    parameters = scales
    if alpha is None:
        low, high = (float(np.log(edge * targets.weight)) for edge in REACH)
        start = float(np.clip(np.log(FIRST_ALPHA / targets.weight_unit), low, high))
        parameters = ScalesAndAlpha(scales.base, scales.groups, scales.l1, scales.l2, None, start, (low, high))
    factor = 1.0 if targets.class_weight is None else float(targets.class_weight.max())
    size = np.sqrt(data.input_squares * (factor / targets.weight_unit))
    folds, held = (gram.folds, gram.held) if objective.holds_out else (1, None)
    problem = LossLearning(
        objective, parameters, targets, fit_intercept, alpha, size, tol, loss, folds, gram.seed, held
    )  # fmt: skip
    return LossBandwidth(problem, replace(gram, folds=1, held=None, unseen=None), starts, share)
