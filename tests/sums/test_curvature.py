"""The sums of a Newton step and of trials along a line, against dense float64 sums and differences."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.losses import LOSSES
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
    slope = loss.slope(z, seen) * w[:, None]
    curved = np.maximum(loss.curvature(z, seen), floor * loss.most_curved(z.shape[1])) * w[:, None]
    near = {"rtol": 1e-9, "atol": 1e-9 * w.sum() * np.abs(slope).max()}
    np.testing.assert_allclose(sums.loss, [w @ loss.value(z, seen)], rtol=1e-10)
    np.testing.assert_allclose(scale * sums.slope, slope.T @ Psi, **near)
    np.testing.assert_allclose(sums.slope_sum, slope.sum(axis=0), **near)
    np.testing.assert_allclose(scale * sums.curved, curved.T @ Psi, atol=1e-9 * w.sum())
    bound = w.sum() * loss.most_curved(z.shape[1])  # sums lie on a grid, whose width is a share of their bound
    np.testing.assert_allclose(sums.curvature_sum, curved.sum(axis=0), rtol=1e-10, atol=1e-12 * bound)
    for j in range(z.shape[1]):
        right = Psi.T @ (curved[:, j, None] * Psi)
        np.testing.assert_allclose(scale**2 * unpack(sums.gram[j], Psi.shape[1]), right, atol=1e-9 * w.sum())
    line = engine.fetch(engine.sum(problem.along(weights, step), data.rows, Progress(0)))
    np.testing.assert_allclose(line.loss, [w @ loss.value(z + t * dz, seen) for t in LENGTHS], rtol=1e-10)


def test_refusals() -> None:
    """A loss of the other kind, and a floor that is no share."""
    problem = PenalisedLoss.of(prepared(NUMBERS, False, True), LOSSES["squared_hinge"], 1.0, True)
    for make in (lambda at: problem.curvature(at, 0.0), lambda at: problem.along(at, at)):
        with pytest.raises(ValueError, match=r"is for classes, but y are values"):
            make(problem.zero)
    with pytest.raises(ValueError, match=r"floor=2 must be a share"):
        PenalisedLoss.of(prepared(NUMBERS, False, True), LOSSES["huber"], 1.0, True).curvature(problem.zero, 2)
