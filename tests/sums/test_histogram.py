"""Histograms of entries against numpy, weights against rows that are there more than once."""

import numpy as np
import pytest
from scipy import sparse

from dkl.sums.histogram import BINS, LOWEST, PER_OCTAVE, HistogramProgram, log_histogram

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


def test_bins():
    """bin floor(8 log2 x) + 1280: one, just below it, an octave and an eighth above; the ends hold what is beyond."""
    assert (PER_OCTAVE, LOWEST, BINS) == (8, -160, 2560)
    values = np.array([1.0, np.nextafter(1.0, 0.0), 2.0, 2.0**0.125 * 1.0001, 1e-60, 1e60, 0.0])
    found = log_histogram(values, 9.0)
    assert sorted(np.flatnonzero(found.counts)) == [0, 1279, 1280, 1281, 1288, 2559]
    assert (found.entries, found.largest, found.counts.sum(), len(found.counts)) == (9.0, 1e60, 6, 2560)
    assert found.counts.dtype == np.float64
    one = log_histogram(np.array([1.0, 1.0, 8.0]), 12.0)
    np.testing.assert_allclose(one.middles, [2 ** (1 / 16), 8 * 2 ** (1 / 16)], rtol=1e-14)
    np.testing.assert_allclose(one.shares, [2 / 12, 1 / 12], rtol=1e-14)


def test_nothing_positive():
    """No bin, and zero is the largest."""
    found = log_histogram(np.zeros(3), 3.0)
    assert (found.counts.sum(), found.largest, found.entries) == (0, 0.0, 3.0)
    assert found.middles.size == found.shares.size == 0


def test_weights_of_entries():
    """An entry counts as its weight says; without weight it is not seen, however large."""
    found = log_histogram(np.array([1.0, 4.0, 64.0, 0.0]), 7.0, np.array([2.0, 0.5, 0.0, 3.0]))
    assert found.counts[[1280, 1296]].tolist() == [2.0, 0.5]
    assert (found.counts.sum(), found.largest) == (2.5, 4.0)


def test_histograms_add_up():
    """Counts, entries, and the larger of the largest."""
    a, b = log_histogram(np.array([1.0, 2.0]), 5.0), log_histogram(np.array([2.0, 0.5]), 6.0)
    for both in (a + b, b + a):
        assert both.counts[[1272, 1280, 1288]].tolist() == [1, 1, 2]
        assert (both.entries, both.largest) == (11.0, 2.0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_blocks_without_a_column_of_weights(kind):
    """Data of one column, and a weight that is None, are rows of weight one."""
    program = HistogramProgram("test", "X_new")
    for data in ((kind(X),), (kind(X), None)):
        found = program.value(data)
        assert (found.entries, found.counts.sum()) == (X.size, (X > 0).sum())
    assert (program.who, program.name, HistogramProgram("a").name) == ("test", "X_new", "X")
    sums = program.start()
    program.add(sums, None, 0, 10, (kind(-X), None))
    assert sums.refusal is not None
    assert sums.refusal[0] == 10 + np.flatnonzero((X > 0).any(axis=1))[0]
    assert "X_new" in sums.refusal[1]
