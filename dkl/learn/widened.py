"""Learn with few features, fit with many: the learned sigma in a wider map, times one number that the folds choose.

    sigma_wide = factor sigma_learned,     factor, alpha = argmin of the held-out loss

With few features the learned kernel is too smooth: more features pay for a narrower one. Factors are tried upwards from
1 by steps of two while the held-out loss falls, else downwards, and last half a step to both sides of the best. One
fold in five is held out, and at most max(50,000, 2 features) rows take part: what is chosen is two numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.progress import tell
from dkl.engine.tables import Table
from dkl.features.fourier import FourierMap
from dkl.features.map import KernelMap
from dkl.learn.run import Run
from dkl.learn.solver_choice import find_solver
from dkl.learn.weight_solvers import FoundWeights, WeightTask
from dkl.prepare.draw import build_map
from dkl.prepare.folds import Folds, Share, Split
from dkl.prepare.landmarks import draw_landmarks
from dkl.prepare.prepared import Prepared
from dkl.prepare.targets import sum_small
from dkl.sums.tree import TreeProgram

FOLDS, HELD = 5, (4, 5)
"""Folds of the choice, if the fit has none; and the share of fold 1 of two, if it is enough to hold out the other."""
ROWS, ROWS_PER_FEATURE = 50_000, 2
"""Rows that take part in the choice, at least, and for each feature; the weights take all."""
FAR = 6
"""Steps at most, to either side."""
NEIGHBOURS = np.array([0.1, 1.0, 10.0])
"""alphas that are tried at all factors but the first, in units of the best one so far."""


class Tried(NamedTuple):
    """One factor, its best alpha, and the held-out loss there."""

    factor: float
    alpha: float
    loss: float


class Widened(NamedTuple):
    """The data with the wide map at the best factor, the alpha there, and all that was tried."""

    data: Prepared
    alpha: float
    tried: tuple[Tried, ...]


def wide_map(run: Run, data: Prepared, params: Mapping[str, Any], weight: Table | None) -> Callable[[float], KernelMap]:
    """The wide map by its factor; frequencies are drawn once, landmarks for each factor from the same seed."""
    sigma, coords, seed = data.features.sigma, data.X.input_coords, [data.seed, 1]

    def moments(program: TreeProgram[Any]) -> Any:
        return sum_small(program, [data.X, weight], ["X", "sample_weight"], run.progress)

    if params["landmarks"] is None:
        wide, _ = build_map(dict(params), len(data.groups), coords, np.random.default_rng(seed), moments)
        return lambda factor: replace(wide, sigma=factor * sigma)

    def with_landmarks(factor: float) -> KernelMap:
        own = {**params, "sigma": factor * sigma, "groups": None}
        return draw_landmarks(own, data.X, weight, data.dtype, np.random.default_rng(seed), run.progress)[0]

    return with_landmarks


def widen(
    run: Run, data: Prepared, params: Mapping[str, Any], weight: Table | None, task: WeightTask, keep: bool
) -> Widened:  # fmt: skip
    """The wide map whose factor and alpha have the least held-out loss; params are those of the wide map.

    task.alpha are the first alphas to try; keep: the one alpha is the user's, and factors are compared at it.
    """
    assert isinstance(data.features, FourierMap)
    at, tried = wide_map(run, data, params, weight), list[Tried]()

    def attempt(factor: float) -> Tried:
        known = next((one for one in tried if one.factor == factor), None)
        if known is not None:
            return known
        own = replace(task, choose=True, own=not keep, tested=1, only_choice=True)
        if keep:
            own = replace(own, alpha=task.alpha * NEIGHBOURS)
        elif tried:
            own = replace(own, own=False, alpha=min(tried, key=lambda one: one.loss).alpha * NEIGHBOURS)
        wide = data.with_map(at(factor))
        found = _fitted(replace(run, record=f"scale{len(tried)}"), wide, own, params)
        assert found.scores is not None
        assert found.tried is not None
        losses = -found.scores.mean(axis=1)
        best = int(np.argmin(np.abs(np.log(found.tried / task.alpha)) if keep else losses))
        tried.append(Tried(factor, float(found.tried[best]), float(losses[best])))
        tell(event="scale", factor=factor, alpha=tried[-1].alpha, held_out=tried[-1].loss)
        run.progress.say(f"sigma times {factor:g}: held-out loss {tried[-1].loss:.5g}, alpha {tried[-1].alpha:g}")
        return tried[-1]

    best = _searched(attempt)
    return Widened(data.with_map(at(best.factor)), float(task.alpha[0]) if keep else best.alpha, tuple(tried))


def _searched(attempt: Callable[[float], Tried]) -> Tried:
    """The best factor."""
    best, step = attempt(1.0), 2.0
    for direction in (step, 1 / step):
        for _ in range(FAR):
            following = attempt(best.factor * direction)
            if following.loss >= best.loss:
                break
            best = following
        if best.factor != 1.0:
            break
    half = float(np.sqrt(step))
    return min([best, attempt(best.factor * half), attempt(best.factor / half)], key=lambda one: one.loss)


def _fitted(run: Run, data: Prepared, task: WeightTask, params: Mapping[str, Any]) -> FoundWeights:
    """The choice of alpha with one map, on some of the rows."""
    split = Split(Folds(2, None), HELD, taken=_taken(data))
    sums, part = data.gram(split), 1.0 if split.taken is None else split.taken[0] / split.taken[1]
    sizes = replace(sums.sizes, rows=int(part * sums.sizes.rows))
    solver = find_solver(params["solver"], task, sizes, sums.map_cost, split.n_folds).solver
    if data.split.folds.labels is not None:  # those of the user
        split = Split(data.split.folds, taken=split.taken)
    elif not solver.tests_some:
        split = Split(Folds(FOLDS, None), taken=split.taken)
    return solver.fit(run, data, split, task, None)


def _taken(data: Prepared) -> Share | None:
    """The share of the rows that is enough for the choice; None: all."""
    share = Fraction(max(ROWS, ROWS_PER_FEATURE * data.features.n_features), data.rows.n_rows)
    if share >= 1:
        return None
    part = max(share.limit_denominator(100), Fraction(1, 100))
    return part.numerator, part.denominator
