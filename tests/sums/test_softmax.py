"""Log loss of scores against scipy's log_softmax, its slope against a difference quotient."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

from dkl.sums.softmax import is_wrong, log_loss, log_loss_slope, steepest

RNG = np.random.default_rng(0)
SCORES = {1: RNG.normal(size=(40, 1)) * 3, 2: RNG.normal(size=(40, 2)), 5: RNG.normal(size=(40, 5)) * 2}
CODES = {c: RNG.integers(0, max(2, c), 40) for c in SCORES}


def expected(scores, codes, k):
    """-log softmax(k z)_y; one score z stands for the pair (-z, z)."""
    pair = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
    return -log_softmax(k * pair, axis=1)[np.arange(len(codes)), codes]


@pytest.mark.parametrize("c", SCORES)
@pytest.mark.parametrize("k", [0.3, 1.0, 7.0])
def test_loss_and_slope(c, k):
    """Of one, two and five scores, for every sharpness."""
    scores, codes = SCORES[c], CODES[c]
    np.testing.assert_allclose(log_loss(scores, codes, k), expected(scores, codes, k), rtol=1e-12, atol=1e-14)
    slope = log_loss_slope(scores, codes, k)
    assert slope.shape == scores.shape
    for j in range(c):
        step = 1e-5 * (np.arange(c) == j)
        quotient = (expected(scores + step, codes, k) - expected(scores - step, codes, k)) / 2e-5
        np.testing.assert_allclose(slope[:, j], quotient, atol=1e-7)
    assert np.abs(slope).max() <= steepest(k, c)


@pytest.mark.parametrize(("c", "most"), [(1, 5.0), (2, 2.5), (5, 2.5)])
def test_the_steepest_slope(c, most):
    """A score that is wrong beyond doubt reaches the bound."""
    assert steepest(2.5, c) == most
    scores = np.zeros((1, c))
    scores[0, 0] = 400.0
    codes = np.array([0 if c == 1 else 1])
    assert np.abs(log_loss_slope(scores, codes, 2.5)).max() == pytest.approx(most, rel=1e-12)


@pytest.mark.parametrize("c", SCORES)
def test_far_scores_do_not_overflow(c):
    """The loss of a score 10^4 times too low is that distance; of the right one it is zero."""
    scores = np.zeros((2, c))
    scores[:, -1] = 1e4
    codes = np.array([0, max(c - 1, 1)])
    gap = 2e4 if c == 1 else 1e4
    np.testing.assert_allclose(log_loss(scores, codes, 2.0), [2 * gap, 0.0], atol=1e-12)
    assert np.isfinite(log_loss_slope(scores, codes, 2.0)).all()


def test_the_wrong_class():
    """The class of the highest score; of one score the second class if it is above zero, of equal ones the first."""
    one = np.array([[0.5], [0.5], [-0.5], [-0.5], [0.0], [0.0]])
    assert is_wrong(one, np.array([1, 0, 1, 0, 1, 0])).tolist() == [False, True, True, False, True, False]
    many = np.array([[1.0, 3.0, 2.0], [4.0, 3.0, 2.0], [2.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    assert is_wrong(many, np.array([1, 2, 0, 2])).tolist() == [False, True, False, False]
