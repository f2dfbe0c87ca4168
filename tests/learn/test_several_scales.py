"""Sigmas of several kernels as one vector: what moves, what it does to the map, and gradients by differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dkl.features.additive import Chebyshev
from dkl.features.additive_rows import AdditiveRows
from dkl.features.channel import Channel
from dkl.features.side_by_side import SideBySide
from dkl.learn.parameters import REACH
from dkl.learn.several_scales import SeveralScales
from dkl.sums.pullback import PullbackSums
from tests.learn.several_data import NUMBERS, SIGMAS, SPLITS, WEIGHT, X, at_start, options_of, prepared, side_by_side

FIXED = Channel(AdditiveRows(Chebyshev(1.0, 3), 2, 5.0), np.array([0, 1]))
MIXED = SideBySide((side_by_side().channels[0], FIXED, *side_by_side().channels[1:]))


@pytest.mark.parametrize(("by", "count"), [("kernel", 3), ("input", 5)])
def test_a_kernel_without_a_sigma_stays_as_it_is(by: str, count: int) -> None:
    """The others have one factor each, or one for each input, in their order."""
    scales = SeveralScales(MIXED, by)
    assert scales.wanted == ("channel0_sigma", "channel2_sigma", "channel3_sigma")
    assert scales.count == count
    x = np.log(np.arange(1.0, count + 1))
    factors = [np.exp(x[[0, 0]]), np.exp(x[[1]]), np.exp(x[[2, 2]])] if by == "kernel" else np.split(np.exp(x), [2, 3])
    found = scales.map(x)
    assert found.channels[1].of is FIXED.of  # type: ignore[attr-defined]
    for i, sigma, factor in zip((0, 2, 3), SIGMAS, factors, strict=True):
        np.testing.assert_allclose(found.parameters[f"channel{i}_sigma"], sigma * factor)
    np.testing.assert_allclose(scales.sigma(x), np.concatenate(SIGMAS) * np.concatenate(list(factors)))
    np.testing.assert_array_equal(scales.map(scales.begin(1.0)).parameters["channel0_sigma"], SIGMAS[0])
    np.testing.assert_allclose(scales.sigma(scales.begin(3.0)), 3 * np.concatenate(SIGMAS))
    low, high = scales.box()
    assert (len(low), low[0], high[-1]) == (count, -np.log(REACH), np.log(REACH))


@pytest.mark.parametrize("by", ["kernel", "input"])
def test_gradients(by: str) -> None:
    """Of the penalty, and of a linear function of sigma, by differences."""
    scales, rng = SeveralScales(MIXED, by, 0.7), np.random.default_rng(0)
    slopes = {name: rng.normal(size=MIXED.parameters[name].shape) for name in scales.wanted}
    x, h = rng.normal(size=scales.count) / 3, 1e-6

    def linear(x: np.ndarray) -> float:
        return sum(float(slopes[name] @ scales.map(x).parameters[name]) for name in slopes)

    def difference(f: object) -> np.ndarray:
        assert callable(f)
        return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])

    found = scales.gradient(x, PullbackSums(slopes, np.zeros(1)))
    np.testing.assert_allclose(found, difference(linear), rtol=1e-7)
    np.testing.assert_allclose(scales.penalty(x)[1], difference(lambda x: scales.penalty(x)[0]), rtol=1e-7)
    assert scales.penalty(x)[0] == pytest.approx(0.35 * (np.exp(x) ** 2).sum())
    assert (scales.switched_off(x), scales.without_l1(x)) == (None, scales)


def test_gradients_beside_a_kernel_that_stays() -> None:
    """Of a whole trial, by differences of its objective at other sigmas."""
    data = prepared(NUMBERS, WEIGHT, SPLITS["validation"], np.abs(X), MIXED)

    def at(x: np.ndarray) -> tuple[float, np.ndarray]:
        features, options = SeveralScales(MIXED).map(x), options_of("validation", alpha=3.0)
        method, step = at_start(replace(data, features=features), options)
        return float(step.row.values["objective"]), step.state.search.descent.gradient * method.problem.unit

    found, h = at(np.zeros(3))[1], 1e-4
    right = np.array([(at(h * e)[0] - at(-h * e)[0]) / (2 * h) for e in np.eye(3)])
    np.testing.assert_allclose(found, right, atol=1e-6 * np.abs(right).max())


def test_refusals() -> None:
    """Nothing that can be learned, and an unknown word."""
    with pytest.raises(ValueError, match="none of the 1 kernels has a sigma"):
        SeveralScales(SideBySide((FIXED,)))
    with pytest.raises(ValueError, match="by='channel'"):
        SeveralScales(MIXED, "channel")
    assert replace(SeveralScales(MIXED), l2=1.0).l2 == 1.0
