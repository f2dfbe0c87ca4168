"""Mean and centred square sum of columns, merged in parts, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.sums.spread import ROUNDING, Spread, spread_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3)) * [1, 20, 0.1] + [5, -3, 0]
W = RNG.gamma(2, size=50)


def check(found, X, w):
    """Against the definitions."""
    mean = np.average(X, axis=0, weights=w)
    assert found.weight == pytest.approx(w.sum(), rel=1e-14)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.m2, w @ (X - mean) ** 2, rtol=1e-11)
    np.testing.assert_allclose(found.variance, w @ (X - mean) ** 2 / w.sum(), rtol=1e-11)


def test_a_block_and_its_parts():
    """Of all rows at once, and of two parts of different weight, in both orders."""
    check(spread_of(X, W), X, W)
    left, right = spread_of(X[:13], W[:13]), spread_of(X[13:], W[13:])
    check(left + right, X, W)
    check(right + left, X, W)


def test_no_weight():
    """Three zeros, which add nothing."""
    nothing = spread_of(X, np.zeros(50))
    assert nothing.weight == 0
    assert nothing.mean.tolist() == nothing.m2.tolist() == nothing.variance.tolist() == [0, 0, 0]
    check(nothing + spread_of(X, W), X, W)
    check(spread_of(X, W) + nothing, X, W)
    assert (nothing + nothing) == nothing


def test_little_weight_is_weight():
    """Weights far below one."""
    check(spread_of(X, W * 1e-30), X, W * 1e-30)
    check(spread_of(X[:9], W[:9] * 1e-30) + spread_of(X[9:], W[9:] * 1e-30), X, W * 1e-30)


def test_what_counts_as_rounding():
    """A deviation of 1e-12 of the mean and less is none, of either sign; more is one."""
    assert ROUNDING == 1e-12
    mean = np.array([1e6, -1e6, 1e6, -1e6, 0.0])
    deviation = np.array([0.9e-6, 0.9e-6, 1.1e-6, 1.1e-6, 1e-200])
    found = Spread(4.0, mean, 4.0 * deviation**2).variance
    np.testing.assert_allclose(found, [0, 0, 1.21e-12, 1.21e-12, 0], rtol=1e-12)
    assert Spread(2.0, np.array([0.0]), np.array([2e-100])).variance[0] == pytest.approx(1e-100)
