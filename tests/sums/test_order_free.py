"""Exact addition against math.fsum, in every order and grouping."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkl.sums.order_free import AT_ONCE, add_exactly, rounder

numbers = st.floats(-1e12, 1e12, allow_subnormal=False)
parts = st.lists(numbers, min_size=1, max_size=40)


def grid(bound):
    """q = 2^(ceil(log2 bound) - 51)."""
    return 2.0 ** (math.ceil(math.log2(bound)) - 51)


def add_all(values, C, shape=()):
    total = np.zeros((1, *shape))
    for value in values:
        add_exactly(total, np.full((1, *shape), value), C)
    return total


@given(values=parts, data=st.data())
def test_order_and_grouping_do_not_change_the_bits(values, data):
    """Values in any order, cut into groups that are summed apart, give the same float64."""
    bound = math.fsum(map(abs, values)) or 1.0
    C = rounder(bound)
    expected = add_all(values, C)
    shuffled = data.draw(st.permutations(values))
    cut = data.draw(st.integers(0, len(values)))
    left, right = add_all(shuffled[:cut], C), add_all(shuffled[cut:], C)
    assert (left + right).tobytes() == (right + left).tobytes() == (expected + 0.0).tobytes()


@given(values=parts)
def test_total_is_close_to_the_true_sum(values):
    """Each part costs at most one rounding at q."""
    bound = math.fsum(map(abs, values))
    total = add_all(values, rounder(bound))[0]
    assert abs(total - math.fsum(values)) <= len(values) * (grid(bound) if bound else 0)


@given(bound=st.floats(1e-300, 1e300), fraction=st.floats(-1, 1))
def test_rounding_is_to_the_grid(bound, fraction):
    """A part as large as the bound is still rounded to a multiple of q, by at most q."""
    part, q = fraction * bound, grid(bound)
    total = add_all([part], rounder(bound))[0]
    assert math.fmod(total, q) == 0
    assert abs(total - part) <= q


def test_rounder_finds_the_lost_bits_of_a_plain_sum():
    """0.1 + 0.2 + 0.3 depends on the order in float64; the exact sum does not."""
    values = [0.1, 0.2, 0.3]
    assert (values[0] + values[1]) + values[2] != values[0] + (values[1] + values[2])
    C = rounder(1.0)
    assert add_all(values, C)[0] == add_all(values[::-1], C)[0]


@given(rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=20), data=st.data())
def test_one_bound_for_each_row(rows, data):
    """A vector of bounds rounds each row of the total to its own grid."""
    values = np.array(rows)
    bounds = np.abs(values).sum(0) + 1e-3
    C = rounder(bounds)[:, None]

    def add_in(order):
        total = np.zeros((3, 2))
        for i in order:
            add_exactly(total, np.repeat(values[i][:, None], 2, axis=1), C)
        return total

    total = add_in(range(len(values)))
    assert total.tobytes() == (add_in(data.draw(st.permutations(range(len(values))))) + 0.0).tobytes()
    for j in range(3):
        assert abs(total[j, 0] - math.fsum(values[:, j])) <= len(values) * grid(bounds[j])
        assert total[j, 0] == total[j, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 2 * AT_ONCE + 5])
def test_long_totals(size, dtype):
    """Totals longer than the buffer, of parts in either precision."""
    pieces = np.random.default_rng(0).normal(size=(5, size)).astype(dtype)
    bound = float(np.abs(pieces).astype(float).sum(0).max())
    total = np.zeros(size)
    for piece in pieces:
        add_exactly(total, piece, rounder(bound))
    np.testing.assert_allclose(total, [math.fsum(column) for column in pieces.T.astype(float)], atol=5 * grid(bound))


def test_bound_of_zero():
    """Nothing but zeros can come: any grid will do."""
    assert add_all([0.0, 0.0], rounder(0.0))[0] == 0
    np.testing.assert_array_equal(rounder(np.array([0.0, 1.0])), rounder(1.0))
