"""How far inputs spread, and how unevenly."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.prepare.input_ranges import UNEVEN, extent_of, unevenness
from dkl.sums.input_moments import InputMoments
from dkl.sums.spread import Spread


def moments(weight, m2, low, high):
    m2 = np.array(m2, float)
    return InputMoments(Spread(weight, np.zeros(len(m2)), m2), np.array(low, float), np.array(high, float))


def test_extent():
    """Standard deviations, several terms of an input together, and the ends."""
    found = extent_of(moments(2.0, [8.0, 18.0], [-1, 0], [3, 9]), 2)
    np.testing.assert_allclose(found.spread, [2.0, 3.0])
    assert found.low.tolist() == [-1, 0]
    assert found.high.tolist() == [3, 9]
    found = extent_of(moments(1.0, [9.0, 0.0, 16.0, 4.0], [0, 0], [1, 1]), 2)
    np.testing.assert_allclose(found.spread, [5.0, 2.0])


def test_no_extent():
    """Without a pass, without weight, or without finite numbers."""
    assert extent_of(None, 2) is None
    assert extent_of(moments(0.0, [0.0], [np.inf], [-np.inf]), 1) is None
    assert extent_of(moments(1.0, [np.inf, 1.0], [0, 0], [1, 1]), 2) is None


@pytest.mark.parametrize(
    ("spread", "groups", "factor"),
    [
        ([1.0, 5.0, 2.0], [0, 0, 0], 5.0),
        ([1.0, 5.0, 2.0], [0, 1, 0], 2.0),
        ([1.0, 0.0, 2.0], [0, 0, 1], 1.0),
        ([3.0, 6.0, 1.0, 7.0], [0, 0, 1, 1], 7.0),
        ([6.0, 60.0, 0.0, 0.0], [0, 0, 1, 1], 10.0),
        ([0.0, 0.0], [0, 1], 1.0),
    ],
)
def test_unevenness(spread, groups, factor):
    """Within a group, among inputs that vary."""
    assert unevenness(np.array(spread), np.array(groups)) == factor
    assert UNEVEN == 10
