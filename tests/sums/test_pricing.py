"""Prices of candidates against dense numpy, and their derivatives against differences of those sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkl.features.frequencies import draw_unit
from dkl.features.waves import WaveMap
from dkl.kernels import KERNELS
from dkl.losses import Huber, Softmax, SquaredHinge
from dkl.sums.gram import GramProgram
from dkl.sums.pricing import PricingProgram, Uphill
from dkl.sums.targets import Targets

N, M = 700, 3
RNG = np.random.default_rng(0)
X, WEIGHT = RNG.normal(size=(N, M)), RNG.uniform(0.5, 2, N)
CODES, VALUES = RNG.integers(0, 3, N), RNG.normal(size=(N, 2))
FOLD = RNG.integers(0, 2, N)
CLASSES = Targets(float(WEIGHT.sum()), 3, classes=np.arange(3))
NUMBERS = Targets(
    float(WEIGHT.sum()), 2, shift=np.zeros(2), unit=np.ones(2), absolute=np.full(2, 9.0 * N), square=np.full(2, 9.0 * N)
)  # fmt: skip
CASES = {"softmax": (Softmax(), CLASSES, CODES), "hinge": (SquaredHinge(), CLASSES, CODES),
         "huber": (Huber(), NUMBERS, VALUES)}  # fmt: skip


def waves(count, form):
    """Some frequencies."""
    phase = RNG.random(count if form == "phase" else 0)
    unit = draw_unit(KERNELS["gaussian"], M, count, "iid", RNG)
    return WaveMap(KERNELS["gaussian"], unit, np.array([0.5, 1.0, 1.5]), phase, 1.0, form)


def dense(features, rows=X):
    """Features by their formula."""
    theta = rows @ (features.sigma[:, None] * features.unit)
    if features.form == "phase":
        return np.cos(theta + 2 * np.pi * features.phase)
    return np.hstack([np.cos(theta), np.sin(theta)])


def summed(program, y, cuts=(250, 251)):
    """The pass over blocks."""
    sums, space = program.start(), program.workspace()
    for i, rows in enumerate(np.split(np.arange(N), cuts)):
        program.add(sums, space, i, int(rows[0]), (X[rows], y[rows], WEIGHT[rows], FOLD[rows]))
    return sums


@pytest.mark.parametrize("tests", [-1, 1])
@pytest.mark.parametrize("form", ["paired", "phase"])
@pytest.mark.parametrize("case", CASES)
def test_sums_are_those_of_dense_features(case, form, tests):
    """Slopes of a model with features of its own and squares, over the rows that train."""
    loss, targets, y = CASES[case]
    model, candidates = waves(4, form), waves(7, form)
    coef, intercept = RNG.normal(size=(model.n_features, targets.n_outputs)), RNG.normal(size=targets.n_outputs)
    gram = GramProgram(candidates.at(float), targets, N, 2)
    sums = summed(PricingProgram(gram, model.at(float), coef, intercept, loss, tests), y)
    z = dense(model) @ coef + intercept
    w = WEIGHT * (tests != FOLD)
    Phi = dense(candidates)
    np.testing.assert_allclose(sums.slope, (loss.slope(z, y) * w[:, None]).T @ Phi, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sums.weight, w.sum())
    if form == "phase":
        np.testing.assert_allclose(sums.square, w @ Phi**2, rtol=1e-9)
    else:
        assert not sums.square.any()
        np.testing.assert_allclose(np.square(Phi).reshape(N, 2, 7).sum(axis=1), 1.0)


@pytest.mark.parametrize("form", ["paired", "phase"])
def test_derivatives_are_those_of_the_sums(form):
    """By central differences, in every parameter."""
    loss, targets, y = CASES["softmax"]
    features, c = waves(3, form), 3
    uphill = Uphill(tuple(features.parameters), np.sqrt(WEIGHT @ X**2), float(WEIGHT.sum()))

    def program(of, up=None):
        return PricingProgram(GramProgram(of.at(float), targets, N), None, np.zeros((0, c)), np.ones(c), loss, -1, up)

    pulled = summed(program(features, uphill), y).pulled
    assert len(pulled["unit"]) == (2 * c if form == "paired" else c + 1)
    for name, values in features.parameters.items():
        for at in np.ndindex(values.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = values.copy()
                moved[at] += step
                ends.append(summed(program(replace(features, **{name: moved})), y))
            slope = (ends[0].slope - ends[1].slope) / 2e-5
            j = at[-1]
            for i, part in enumerate(pulled[name]):
                found = features.gradients({name: part})[name][at]
                q, t = divmod(i, c)
                if q < (2 if form == "paired" else 1):
                    expected = slope[t, j + 3 * q]
                else:
                    expected = (ends[0].square[j] - ends[1].square[j]) / 4e-5
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
