"""Packed halves of symmetric matrices against Psi' Psi."""

import numpy as np
import pytest

from dkl.sums.order_free import rounder
from dkl.sums.symmetric import add_rank_k, half_layout, largest_tile, packed_size, unpack

WIDTHS = [1, 2, 511, 512, 513, 1025, 1500]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", WIDTHS)
def test_packed_sum_is_the_product(d, dtype):
    """Two blocks added to the packed half unpack to the dense sum."""
    rng = np.random.default_rng(d)
    blocks = [rng.uniform(-1, 1, (n, d)).astype(dtype) for n in (3, 40)]
    packed, buffer = np.zeros(packed_size(d)), np.empty(largest_tile(d), dtype)
    for Psi in blocks:
        add_rank_k(packed, Psi, rounder(4.0 * 43), buffer)
    Psi = np.vstack(blocks).astype(np.float64)
    np.testing.assert_allclose(unpack(packed, d), Psi.T @ Psi, atol=2e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("d", WIDTHS)
def test_layout_covers_each_entry_once(d):
    """Tiles and the mirrors of those off the diagonal tile the matrix, and fill the packed vector without a gap."""
    seen, at = np.zeros((d, d), int), 0
    for rows, columns, start, stop in half_layout(d):
        assert start == at
        at = stop
        seen[rows, columns] += 1
        if rows != columns:
            seen[columns, rows] += 1
    assert (seen == 1).all()
    assert at == packed_size(d)


@pytest.mark.parametrize("d", [513, 1025, 4096, 10_000])
def test_packed_half_is_smaller(d):
    """Between the d (d + 1) / 2 entries that are needed and half a matrix plus its diagonal blocks of 512."""
    assert d * (d + 1) // 2 <= packed_size(d) <= d * (d + 512) // 2 < d * d
