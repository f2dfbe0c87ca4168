"""Prices of candidates: one pass over the rows, and what its sums say of each group.

    C_j = sum w dl/dz psi_j / w,   eta_j^2 = sum w psi_j^2 / w,   violation_j = dual(C_j) / eta_j      learn/sparsity.py

A candidate is worth a weight if its violation is above alpha / w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.features.groups import GroupMap
from dkl.learn.columns_state import Growth, Point, Problem
from dkl.learn.masters import whole
from dkl.learn.moments import moments_of
from dkl.learn.run import Run
from dkl.learn.sparsity import Sparsity, lengths_of_groups
from dkl.solvers.ridge import centred
from dkl.sums.gram import GramProgram, GramSums
from dkl.sums.pricing import PricingProgram, PricingSums, Uphill

ALIKE = 0.95
"""Correlation of groups above which one is a near copy of the other."""


class Prices(NamedTuple):
    """Of every group of some candidates."""

    violation: np.ndarray  # (groups,)
    eta: np.ndarray  # (groups,)
    uphill: dict[str, np.ndarray]  # by parameter: what raises log violation most; empty if it was not asked for


def pricing_program(problem: Problem, point: Point, candidates: GroupMap, uphill: Uphill | None) -> PricingProgram:
    """The pass that prices candidates beside a model."""
    model = problem.map_of(point.parameters).at(problem.data.dtype) if len(point.eta) else None
    coef = point.weights[:-1] * (1.0 if model is None else model.map.scale)
    return PricingProgram(
        problem.gram(candidates), model, coef, point.weights[-1], problem.settings.loss, problem.tests, uphill
    )


def priced(run: Run, problem: Problem, point: Point, candidates: GroupMap, name: str, uphill: bool = False) -> Prices:
    """One pass, and prices of the candidates."""
    up = None
    if uphill:
        size = problem.settings.input_size
        assert size is not None
        steep = problem.settings.loss.most_curved(problem.data.targets.n_outputs)
        up = Uphill(tuple(candidates.parameters), size, 2 * steep * max(point.value, 0.0) * problem.total)
    program = pricing_program(problem, point, candidates, up)
    sums = run.sum(program, run.rows.blocks(program.rows_wanted), name)
    return run.engine.solve(
        prices_of, sums, features=candidates, sparsity=problem.settings.sparsity, total=problem.total
    )  # fmt: skip


def prices_of(sums: PricingSums, *, features: GroupMap, sparsity: Sparsity, total: float) -> Prices:
    """Violations of the groups, their lengths, and the way uphill."""
    C, groups = features.scale * sums.slope.T / total, features.column_group
    eta = features.scale * lengths_of_groups(features, sums.square, float(sums.weight[0]))
    violation = sparsity.violations(C, groups, eta)
    if not sums.pulled:
        return Prices(violation, eta, {})
    V = sparsity.uphill(C, groups, features.n_groups)
    return Prices(violation, eta, _uphill(sums, features, V, violation * eta, total))


def _uphill(
    sums: PricingSums, features: GroupMap, V: np.ndarray, size: np.ndarray, total: float
) -> dict[str, np.ndarray]:  # fmt: skip
    """d log violation / dp: <V, dC> / |C| - half of d log eta^2."""
    c = V.shape[1]
    by_group = V[np.argsort(features.column_group, kind="stable")].reshape(features.n_groups, -1, c)
    safe = np.where(size > 0, size, 1.0)
    square = np.bincount(features.column_group, sums.square, minlength=features.n_groups)
    found = {}
    for name, pulled in sums.pulled.items():
        moved = np.zeros(pulled.shape[1:])
        for i, part in enumerate(pulled):
            q, t = divmod(i, c)
            if q < by_group.shape[1]:
                moved += part * (features.scale * by_group[:, q, t] / total / safe)
            else:
                moved -= part / np.where(square > 0, square, 1.0)
        found[name] = moved
    return features.gradients(found)


def distinct(run: Run, problem: Problem, candidates: GroupMap, order: np.ndarray, most: int) -> np.ndarray:
    """The first `most` groups of an order that are not near copies of better ones: one pass for their gram."""
    if len(order) < 2:
        return order[:most]
    program = whole(problem.gram(candidates))
    sums = run.sum(program, run.rows.blocks(program.rows_wanted), "comparing")
    alike = run.engine.solve(
        likeness, sums, program=program, fit_intercept=problem.settings.fit_intercept
    )  # fmt: skip
    chosen: list[int] = []
    for j in order.tolist():
        if len(chosen) < most and not (alike[j, chosen] > ALIKE).any():
            chosen.append(j)
    return np.array(chosen, int)


def likeness(sums: GramSums, *, program: GramProgram, fit_intercept: bool) -> np.ndarray:
    """(groups, groups): |G_jk| / sqrt(|G_jj| |G_kk|) in Frobenius norms, the size of the correlation of single columns.

    That is the root of the RV coefficient: 1 for groups that differ by a rotation.
    """
    features, targets = program.features.map, program.targets
    S = moments_of(sums, range(len(sums.weight)), features.scale, targets)
    gram = centred(S, fit_intercept).gram
    groups = features.column_group
    on = np.equal(groups[:, None], np.arange(groups.max() + 1)).astype(float)
    square = on.T @ np.square(gram) @ on
    length = np.sqrt(np.diagonal(square))
    safe = np.where(length > 0, length, 1.0)
    return np.asarray(np.sqrt(square / np.outer(safe, safe)))


def improved(
    run: Run, problem: Problem, growth: Growth, candidates: GroupMap, steps: int
) -> tuple[GroupMap, Prices]:  # fmt: skip
    """Candidates after so many steps uphill, each of its own length: longer after a gain, shorter after a loss."""
    source, point = problem.settings.source, growth.point
    here, known = candidates, priced(run, problem, point, candidates, "uphill: step 0", uphill=True)
    length = np.full(candidates.n_groups, FIRST)
    for step in range(1, steps + 1):
        there = source.nearest(_moved(here, known.uphill, length))
        tried = priced(run, problem, point, there, f"uphill: step {step}", uphill=step < steps)
        better = tried.violation > known.violation
        length = np.where(better, LONGER, SHORTER) * length
        here, known = _either(better, there, here), _either_prices(better, tried, known)
    return here, known


FIRST, LONGER, SHORTER = 0.2, 1.5, 0.3
"""The length of the first step, in natural lengths of the parameters, and its factors after a gain and a loss."""


def _moved(features: GroupMap, uphill: dict[str, np.ndarray], length: np.ndarray) -> GroupMap:
    """Every group so far along its gradient; parameters are measured by their natural lengths."""
    lengths = features.lengths
    scaled = {name: slope * lengths[name] for name, slope in uphill.items()}
    square = sum(np.square(slope).reshape(-1, slope.shape[-1]).sum(axis=0) for slope in scaled.values())
    size = np.sqrt(square)
    factor = length / np.where(size > 0, size, 1.0)
    now = features.parameters
    return features.with_parameters(
        **{name: now[name] + factor * lengths[name] * slope for name, slope in scaled.items()}
    )


def _either(better: np.ndarray, there: GroupMap, here: GroupMap) -> GroupMap:
    """Group by group."""
    new, old = there.parameters, here.parameters
    return here.with_parameters(**{name: np.where(better, new[name], old[name]) for name in old})


def _either_prices(better: np.ndarray, there: Prices, here: Prices) -> Prices:
    """Those of the groups that were taken."""
    uphill = {name: np.where(better, own, here.uphill[name]) for name, own in there.uphill.items()}
    return Prices(
        np.where(better, there.violation, here.violation), np.where(better, there.eta, here.eta), uphill
    )  # fmt: skip
