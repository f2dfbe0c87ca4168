"""The gradient of an objective of any loss at a point that was accepted, where the solve runs.

    H u = dE/d(B, b),   H the second derivative of F in the weights                 held out, by conjugate gradients
    dE/dsigma = dE/dsigma|_(B, b) - u' d2F/d(B, b)dsigma,    dE/dlog lam = -lam <u, B>
    dF/dsigma = dF/dsigma|_(B, b)                                                   joint: B, b minimise F itself

Products with H are passes (sums/loss_products.py), never a d x d array. In the whitened coordinates of the weights
H is at most one, so plain conjugate gradients are quick. The last pass is that of sums/loss_pullback.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.engine.handles import Reply
from dkl.learn.bandwidth_steps import advance as advance_squares
from dkl.learn.loss_bandwidth_steps import Accepted, LossLearning, training
from dkl.learn.search import Move, Search
from dkl.solvers.conjugate_gradients import Conjugate, asked, begin, stepped
from dkl.sums.gram import GramProgram
from dkl.sums.loss_products import LossProductProgram, LossProductSums
from dkl.sums.loss_pullback import LossPullbackProgram
from dkl.sums.losses import LossProgram, LossSums
from dkl.sums.pullback import Adjoint, PullbackSums
from dkl.sums.training import TrainingSums

ADJOINT_STEPS = 200
"""Products that are made for the adjoints at most."""


class Adjoints(NamedTuple):
    """The systems H u = g on their way, in whitened coordinates."""

    conjugate: Conjugate
    products: int = 0


def score(sums: TrainingSums, *, problem: LossLearning, program: GramProgram, found: Accepted) -> Reply[None]:
    """The pass that gives dE/d(B, b): rows are scored by the system which they test."""
    weights, folded = found.solving.weights(), problem.folded(program)
    by_fold = np.zeros((problem.folds, *weights.shape[1:]))
    by_fold[problem.tests] = weights
    coef = program.features.map.scale * by_fold[:, :-1]
    return Reply(None, {"scores": LossProgram(folded, coef, by_fold[:, -1], (problem.loss,))})


def aim(sums: LossSums, *, problem: LossLearning, program: GramProgram, found: Accepted) -> Reply[bool]:
    """g of every system, and the first product; or the last pass, if all g are zero."""
    scale, factor = program.features.map.scale, found.solving.factor
    targets = [
        factor.gradient(np.vstack([scale * sums.slope[k].T, problem.fit_intercept * sums.slope_sum[k]]) / found.weight)
        for k in problem.tests
    ]
    return _next(problem, program, found, Adjoints(begin(np.stack(targets), _unchanged)))


def multiply(
    sums: LossProductSums, *, problem: LossLearning, program: GramProgram, found: Accepted, adjoints: Adjoints
) -> Reply[bool]:  # fmt: skip
    """One step of conjugate gradients; whether all systems have ended, and the next pass."""
    solving, scale, tol = found.solving, program.features.map.scale, problem.adjoint_tol
    systems, vectors = asked(adjoints.conjugate, tol)
    bent = []
    for s, x in zip(systems, vectors, strict=True):
        V = solving.factor.weights(x, solving.outputs)
        V[-1] = 0.0
        pulled = np.vstack([scale * sums.product[s].T, problem.fit_intercept * sums.product_sum[s]])
        bent.append(solving.factor.gradient(pulled / solving.weight + solving.lam * V))
    after = stepped(adjoints.conjugate, np.stack(bent), _unchanged, tol)
    return _next(problem, program, found, Adjoints(after, adjoints.products + 1))


def pull(sums: TrainingSums, *, problem: LossLearning, program: GramProgram, found: Accepted) -> Reply[None]:
    """The last pass of the joint objective, which needs no adjoints."""
    return Reply(None, _pullback(problem, program, found, None))


def advance(
    sums: PullbackSums, *, problem: LossLearning, program: GramProgram, search: Search,
    accepted: tuple[float, float, float], bend: float,
) -> Reply[Move]:  # fmt: skip
    """The search after the gradient was summed, and the pass of the next trial; bend: dE/dlog lam times the weight."""
    pulled = PullbackSums({**sums.gradients, "log_lam": np.array([bend])}, sums.wrong, sums.refusal)
    return advance_squares(pulled, problem=problem, program=program, search=search, accepted=accepted)


def _next(problem: LossLearning, program: GramProgram, found: Accepted, adjoints: Adjoints) -> Reply[bool]:
    """The next product, or if all have ended the last pass."""
    state, tol, solving = adjoints.conjugate, problem.adjoint_tol, found.solving
    if not state.active(tol).any() or adjoints.products >= ADJOINT_STEPS:
        return Reply(True, _pullback(problem, program, found, state))
    points = np.zeros_like(state.x)
    systems, vectors = asked(state, tol)
    points[systems] = vectors
    V = np.stack([solving.factor.weights(x, solving.outputs) for x in points])
    trained = training(problem, program, solving.weights())
    product = LossProductProgram(trained, program.features.map.scale * V[:, :-1], V[:, -1])
    return Reply(False, {"adjoints": adjoints, "products": product})


def _pullback(
    problem: LossLearning, program: GramProgram, found: Accepted, state: Conjugate | None
) -> dict[str, Any]:  # fmt: skip
    """The last pass, and what `advance` needs beside it."""
    solving, scale, tests = found.solving, program.features.map.scale, problem.tests
    B = solving.weights()
    _, rows, c = B.shape
    L, share = problem.loss.most_curved(c), found.weight / solving.weight
    gain = np.stack([np.full(problem.folds, test < 0) | (np.arange(problem.folds) == test) for test in tests], axis=1)
    coef = scale * np.abs(B[:, :-1]).transpose(1, 0, 2)
    size = np.linalg.norm(coef, axis=2)  # (d, S)
    if state is None:
        bound = size @ np.sqrt(2 * L * found.trained)
        A, bend = np.zeros((0, rows, c)), 0.0
    else:
        u = np.stack([solving.factor.weights(x, c) for x in state.x])
        A, bend = share * u, -solving.lam * float((u[:, :-1] * B[:, :-1]).sum()) * found.weight
        energy = solving.weight * np.maximum(0.0, np.einsum("sd,sd->s", state.x, state.target))
        bound = size @ (np.sqrt(2 * L * found.tested) + share * np.sqrt(L * energy))
        bound = bound + np.linalg.norm(scale * A[:, :-1], axis=2).T @ np.sqrt(2 * L * found.trained)
    adjoint = Adjoint(
        coef=_side_by_side(scale * B[:, :-1]),
        intercept=B[:, -1].ravel(),
        adjoint=_side_by_side(scale * A[:, :-1]),
        adjoint_intercept=A[:, -1].ravel(),
        gain=np.repeat(gain.astype(float), c, axis=1),
        train=np.repeat((tests != np.arange(problem.folds)[:, None]).astype(float), c, axis=1),
        bound=bound,
        loss=problem.loss,
    )
    pullback = LossPullbackProgram(problem.folded(program), adjoint, problem.input_size)
    return {"pullback": pullback, "accepted": (found.value, found.weight, found.weight), "bend": bend}


def _side_by_side(weights: np.ndarray) -> np.ndarray:
    """(S, d, c) as (d, S c)."""
    return weights.transpose(1, 0, 2).reshape(weights.shape[1], -1)


def _unchanged(systems: np.ndarray, residuals: np.ndarray) -> np.ndarray:
    """The coordinates are whitened: no other preconditioner."""
    return residuals
