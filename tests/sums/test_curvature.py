"""The sums of a Newton step and of trials along a line, against dense float64 sums and differences."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.learn.quadratic import quadratic_of
from dkl.losses import LOSSES
from dkl.solvers.fista import product
from dkl.sums.curvature import is_joint
from dkl.sums.line_search import LENGTHS
from dkl.sums.symmetric import unpack
from tests.learn.test_penalised_loss import CASES, CODES, NUMBERS, WEIGHT, X, prepared


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_sums_are_the_dense_ones(name: str, classes: int, floor: float) -> None:
    """Weighted grams by output, slopes, curvatures and the value."""
    loss = LOSSES[name]
    y = CODES[classes] if loss.is_class else NUMBERS
    data = prepared(y, loss.is_class, True)
    problem, engine = PenalisedLoss.of(data, loss, 1.0, True), Embedded()
    unit, scale = problem.gram.targets.weight_unit, data.features.scale
    w, Psi = WEIGHT / unit, data.features.at(np.float64).transform(X)
    seen = y if loss.is_class else y - data.targets.shift
    weights, step = np.random.default_rng(7).normal(size=(2, *problem.zero.shape))
    z, dz = (Psi @ one[:-1] + one[-1] for one in (weights, step))
    sums = engine.fetch(engine.sum(problem.curvature(weights, floor), data.rows, Progress(0)))
    slope, c = loss.slope(z, seen) * w[:, None], z.shape[1]
    curved, least = loss.curvature(z, seen), floor * loss.most_curved(c)
    assert problem.is_joint == (name == "log_loss" and classes == 3)
    if problem.is_joint:
        pairs = [(np.eye(c)[j], np.eye(c)[k]) for j in range(c) for k in range(j + 1, c)]
        beside = [-(loss.curved(z, seen, np.tile(left, (len(z), 1))) @ right) for left, right in pairs]
        curved, least = np.stack(beside, axis=1), least / c
    curved = np.maximum(curved, least) * w[:, None]
    near = {"rtol": 1e-9, "atol": 1e-9 * w.sum() * np.abs(slope).max()}
    np.testing.assert_allclose(sums.loss, [w @ loss.value(z, seen)], rtol=1e-10)
    np.testing.assert_allclose(scale * sums.slope, slope.T @ Psi, **near)
    np.testing.assert_allclose(sums.slope_sum, slope.sum(axis=0), **near)
    np.testing.assert_allclose(sums.slope_size, np.abs(slope).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(scale * sums.curved, curved.T @ Psi, atol=1e-9 * w.sum())
    bound = w.sum() * loss.most_curved(z.shape[1])  # sums lie on a grid, whose width is a share of their bound
    np.testing.assert_allclose(sums.curvature_sum, curved.sum(axis=0), rtol=1e-10, atol=1e-12 * bound)
    for j in range(curved.shape[1]):
        right = Psi.T @ (curved[:, j, None] * Psi)
        np.testing.assert_allclose(scale**2 * unpack(sums.gram[j], Psi.shape[1]), right, atol=1e-9 * w.sum())
    line = engine.fetch(engine.sum(problem.along(weights, step), data.rows, Progress(0)))
    np.testing.assert_allclose(line.loss, [w @ loss.value(z + t * dz, seen) for t in LENGTHS], rtol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [3, 2])
def test_the_quadratic_is_the_one_without_intercepts(classes: int, intercept: bool) -> None:
    """The dense second derivative and its Schur complement; a step gives back the best intercepts."""
    loss, y = LOSSES["log_loss"], CODES[classes]
    data = prepared(y, True, True)
    problem, engine = PenalisedLoss.of(data, loss, 1.0, intercept), Embedded()
    Psi, w = data.features.at(np.float64).transform(X), WEIGHT / WEIGHT.sum()
    weights = np.random.default_rng(3).normal(size=problem.zero.shape)
    z, (d, c) = Psi @ weights[:-1] + weights[-1], weights[:-1].shape
    sums = engine.fetch(engine.sum(problem.curvature(weights, 0.0), data.rows, Progress(0)))
    found = quadratic_of(sums, problem)
    ones = np.column_stack([Psi, np.ones(len(X))])
    bent = [loss.curved(z, y, np.tile(e, (len(X), 1))) * w[:, None] for e in np.eye(c)]
    H = np.block([[ones.T @ (bent[j][:, [k]] * ones) for k in range(c)] for j in range(c)])
    g = ones.T @ (loss.slope(z, y) * w[:, None])
    inner = np.tile(np.append(np.ones(d, bool), False), c)
    G, A, S = H[np.ix_(inner, inner)], H[np.ix_(inner, ~inner)], np.linalg.pinv(H[np.ix_(~inner, ~inner)], 1e-10)
    D = np.random.default_rng(4).normal(size=(d, c))
    S *= intercept
    for step in (D, 0 * D):
        flat = step.T.ravel()
        back = found.intercept(step)
        np.testing.assert_allclose(back, -S @ (g[-1] + A.T @ flat), atol=1e-9)
        np.testing.assert_allclose(product(found.grams, step).T.ravel(), (G - A @ S @ A.T) @ flat, atol=1e-9)
    np.testing.assert_allclose(found.reduced.T.ravel(), g[:-1].T.ravel() - A @ S @ g[-1], atol=1e-9)


def test_at_a_floor_of_one_the_pairs_lie_above_the_loss() -> None:
    """The second derivative of the quadratic is at least that of the loss at any scores."""
    loss, rng = LOSSES["log_loss"], np.random.default_rng(0)
    for c in (3, 6):
        above = loss.most_curved(c) / c * (c * np.eye(c) - 1)
        for z in rng.normal(size=(50, 1, c)) * rng.choice([0.1, 1, 10], (50, 1, 1)):
            own = np.vstack([loss.curved(z, np.zeros(1, int), e[None]) for e in np.eye(c)])
            assert np.linalg.eigvalsh(above - own).min() >= -1e-12


def test_many_weights_have_a_gram_for_each_output() -> None:
    """The pairs of a softmax, as long as their matrix is small; no other loss."""
    log_loss = LOSSES["log_loss"]
    assert is_joint(log_loss, 400, 10)
    assert not is_joint(log_loss, 500, 10)
    assert not is_joint(log_loss, 10, 100)
    assert not is_joint(log_loss, 10, 1)
    assert not is_joint(LOSSES["logistic"], 10, 3)


def test_refusals() -> None:
    """A loss of the other kind, and a floor that is no share."""
    problem = PenalisedLoss.of(prepared(NUMBERS, False, True), LOSSES["squared_hinge"], 1.0, True)
    for make in (lambda at: problem.curvature(at, 0.0), lambda at: problem.along(at, at)):
        with pytest.raises(ValueError, match=r"is for classes, but y are values"):
            make(problem.zero)
    with pytest.raises(ValueError, match=r"floor=2 must be a share"):
        PenalisedLoss.of(prepared(NUMBERS, False, True), LOSSES["huber"], 1.0, True).curvature(problem.zero, 2)
