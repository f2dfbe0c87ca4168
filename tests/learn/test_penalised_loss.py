"""The objective of any loss and its gradient by one pass, against dense sums and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS
from dkl.learn.penalised_loss import PenalisedLoss
from dkl.losses import LOSSES
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.prepare.targets import label_targets, number_targets

N, M, D, ALPHA = 300, 3, 7, 2.5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
NUMBERS = np.column_stack([3 + np.sin(X[:, 0]), 1e3 * X[:, 1]])
CODES = {2: (X[:, 0] > 0).astype(int), 3: np.digitize(X[:, 0], [-0.4, 0.4])}
WEIGHT = 1000 * RNG.integers(0, 3, N).astype(float)
CASES = [(name, 2 + k) for name, loss in LOSSES.items() for k in range(2) if loss.is_class or not k]


def prepared(y: np.ndarray, is_class: bool, centre: bool) -> Prepared:
    """What a fit would start from; the map has an odd feature."""
    tables = [Table("memory", part) for part in (X, y, WEIGHT)]
    target, weight = tables[1:]
    targets = (
        label_targets(target, weight, None, Progress(0))
        if is_class
        else number_targets(target, weight, centre, Progress(0))
    )
    unit = draw_unit(KERNELS["gaussian"], M, (D + 1) // 2, "iid", RNG)
    features = FourierMap(KERNELS["gaussian"], unit, np.full(M, 0.7), RNG.random(1), 1.0, "paired")
    rows = Rows([*tables, None], ["X", "y", "sample_weight", "cv"])
    none = np.empty(0)
    return Prepared(tables[0], rows, targets, features, np.arange(M), 0, np.dtype(float), Split(), none, None)


def dense(data: Prepared, loss: Any, weights: np.ndarray, y: np.ndarray, intercept: bool) -> float:
    """J by its formula, from scores in the units of y."""
    z = data.features.at(np.float64).transform(X) @ weights[:-1] + intercept * weights[-1]
    value = WEIGHT @ loss.value(z, y - data.targets.shift if y.ndim > 1 else y)
    return (value + ALPHA / 2 * (weights[:-1] ** 2).sum()) / WEIGHT.sum()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_value_gradient_and_curvature(name: str, classes: int, intercept: bool) -> None:
    """One pass gives J and dJ of the formula; no two gradients differ by more than the bound times the distance."""
    loss = LOSSES[name]
    y = CODES[classes] if loss.is_class else NUMBERS
    data = prepared(y, loss.is_class, intercept)
    problem, engine = PenalisedLoss.of(data, loss, ALPHA, intercept), Embedded()

    def slope(at: np.ndarray) -> Any:
        sums = engine.sum(problem.program(at), data.rows, Progress(0))
        return engine.solve(problem.slope, sums, weights=at)

    weights = RNG.normal(size=problem.zero.shape)
    weights[-1] *= intercept
    found = slope(weights)
    assert found.value == pytest.approx(dense(data, loss, weights, y, intercept), rel=1e-9)
    right = approx_fprime(
        weights.ravel(), lambda flat: dense(data, loss, flat.reshape(weights.shape), y, intercept), 1e-6
    )
    np.testing.assert_allclose(found.gradient.ravel(), right, atol=1e-4 * max(1.0, np.abs(right).max()))
    other = weights + 0.1 * RNG.normal(size=weights.shape)
    other[-1] *= intercept
    change = np.linalg.norm(slope(other).gradient - found.gradient)
    assert change <= problem.most_curved * np.linalg.norm(other - weights)
    coef, constant = problem.linear(weights)
    np.testing.assert_array_equal(coef, weights[:-1])
    np.testing.assert_array_equal(constant, weights[-1] + (data.targets.shift if y.ndim > 1 else 0.0))


def test_a_loss_of_the_other_kind_is_refused() -> None:
    """A loss of classes has no use for numbers."""
    problem = PenalisedLoss.of(prepared(NUMBERS, False, True), LOSSES["squared_hinge"], ALPHA, True)
    with pytest.raises(ValueError, match=r"SquaredHinge.* is for classes, but y are values"):
        problem.program(problem.zero)
