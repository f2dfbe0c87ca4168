"""Products of whole numbers: the bits of a row are its own, and near those of exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dkl.sums.exact_product import digits_of, exact_product

RNG = np.random.default_rng(0)


def product(X, W):
    """X W of this module."""
    return exact_product(X, digits_of(W, len(W), 0))


def by_fractions(X, W):
    """X W without any rounding but the last."""
    rows, columns = [[list(map(Fraction, line)) for line in M.tolist()] for M in (X, W.T)]
    return np.array([[float(sum(map(Fraction.__mul__, a, b))) for b in columns] for a in rows])


@pytest.mark.parametrize("m", [1, 2, 3, 17, 64])
@pytest.mark.parametrize("size", [1.0, 1e-12, 1e150, 1e-250])
def test_like_exact_arithmetic(m, size):
    """Within m 2^-2b of the largest row entry times the largest column entry."""
    X, W = RNG.normal(size=(5, m)) * size, RNG.normal(size=(m, 4)) * 10.0 ** RNG.integers(-6, 6, 4)
    bits = digits_of(W, m, 0).bits
    bound = m * 4.0**-bits * np.abs(X).max(axis=1)[:, None] * np.abs(W).max(axis=0)
    assert (np.abs(product(X, W) - by_fractions(X, W)) <= 2 * bound).all()


@given(st.integers(1, 300), st.lists(st.integers(0, 300), max_size=6), st.integers(1, 90))
@settings(max_examples=40, deadline=None)
def test_a_row_has_its_own_bits(n, cuts, m):
    """Alone, or in any block."""
    rng = np.random.default_rng(n * m)
    X, W = rng.normal(size=(n, m)), rng.normal(size=(m, m))
    whole = product(X, W)
    parts = [product(part, W) for part in np.split(X, sorted(c % n for c in cuts))]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert product(X[::-1].copy(), W)[::-1].tobytes() == whole.tobytes()


def test_whole_numbers_are_exact():
    """No digit of what fits is lost; zeros, and rows that hold nothing else."""
    X, W = RNG.integers(-999, 999, (6, 40)).astype(float), RNG.integers(-999, 999, (40, 5)).astype(float)
    X[2], W[:, 1] = 0, 0
    np.testing.assert_array_equal(product(X, W), X.astype(int) @ W.astype(int))
    assert product(np.empty((0, 40)), W).shape == (0, 5)


@pytest.mark.parametrize("terms", [1, 2, 3, 784, 1024, 1025, 8192])
def test_sums_stay_exact(terms):
    """The largest sum of digits has a float64 of its own, and digits are whole."""
    digits = digits_of(RNG.normal(size=(7, 9)), terms, 1)
    assert terms * 4**digits.bits <= 2**53
    for part in (digits.high, digits.low):
        assert (np.abs(part) <= 2**digits.bits).all()
        np.testing.assert_array_equal(part, np.rint(part))


def test_a_row_with_nan_spoils_no_other():
    """Rows that will be dropped are beside those that stay."""
    X, W = RNG.normal(size=(3, 8)), RNG.normal(size=(8, 8))
    clean = product(X, W)
    X[1, 4] = np.nan
    with np.errstate(invalid="ignore"):
        found = product(X, W)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], clean[[0, 2]])
