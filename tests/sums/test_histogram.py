"""Histograms of entries against numpy, weights against rows that are there more than once."""

import numpy as np
import pytest
from scipy import sparse

from dkl.sums.histogram import HistogramProgram

RNG = np.random.default_rng(0)
X = RNG.gamma(0.5, size=(40, 6)) * (RNG.random((40, 6)) < 0.7)
TIMES = RNG.integers(0, 4, 40)


def histogram_of(kind, rows, weight=None, chunk=40):
    """The total over blocks of `chunk` rows."""
    program = HistogramProgram("test")
    sums, space = program.start(), program.workspace()
    for block, start in enumerate(range(0, len(rows), chunk)):
        part = slice(start, start + chunk)
        program.add(sums, space, block, start, (kind(rows[part]), None if weight is None else weight[part]))
    return sums.tree.total()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("chunk", [1, 7, 40])
def test_shares_against_numpy(kind, chunk):
    """Shares are of all entries, zeros among them; each bin is an eighth of an octave."""
    found = histogram_of(kind, X, chunk=chunk)
    edges = np.r_[np.log2(found.middles) - 1 / 16, np.inf]
    expected = [((np.log2(X[X > 0]) >= low) & (np.log2(X[X > 0]) < low + 1 / 8)).sum() for low in edges[:-1]]
    np.testing.assert_allclose(found.shares, np.array(expected) / X.size, rtol=1e-14)
    assert found.shares.sum() == pytest.approx((X > 0).mean(), rel=1e-14)
    assert (found.entries, found.largest) == (X.size, X.max())


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("chunk", [1, 7, 40])
def test_a_weight_is_a_number_of_rows(kind, chunk):
    """Counts and entries both: a row of weight three is three rows, one of weight zero is none."""
    found = histogram_of(kind, X, TIMES.astype(float), chunk)
    expected = histogram_of(kind, np.repeat(X, TIMES, axis=0))
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert (found.entries, found.largest) == (expected.entries, expected.largest) == (6 * TIMES.sum(), expected.largest)
    assert found.entries != X.size
