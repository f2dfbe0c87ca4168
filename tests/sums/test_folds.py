"""Folds from the row index alone."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from dkl.sums.folds import fold_of, hash_rows, held_out

folds = st.integers(1, 12)
seeds = st.integers(-(2**70), 2**70)


@given(n=st.integers(0, 400), folds=folds, seed=seeds)
def test_folds_are_balanced(n, folds, seed):
    """Sizes differ by at most one row."""
    counts = np.bincount(fold_of(0, n, folds, seed), minlength=folds)
    assert counts.shape == (folds,)
    assert counts.sum() == n
    assert np.ptp(counts) <= 1


@given(cuts=st.lists(st.integers(0, 300), min_size=2, max_size=8).map(sorted), folds=folds, seed=seeds)
def test_cuts_do_not_change_the_folds(cuts, folds, seed):
    """The folds of a range are those of its pieces."""
    pieces = [fold_of(a, b, folds, seed) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(pieces), fold_of(cuts[0], cuts[-1], folds, seed))


@given(group=st.integers(0, 10**12), folds=folds, seed=seeds)
def test_each_fold_once_in_every_k_rows(group, folds, seed):
    """Rows gK .. gK + K - 1 are a permutation of the folds, however far into the data."""
    found = fold_of(group * folds, (group + 1) * folds, folds, seed)
    assert sorted(found) == list(range(folds))


@pytest.mark.parametrize("folds", [2, 3, 5, 10])
def test_folds_do_not_follow_the_position(folds):
    """Each fold is as frequent at every place within K rows."""
    found = fold_of(0, 2000 * folds, folds, seed=0).reshape(-1, folds)
    for place in range(folds):
        assert chisquare(np.bincount(found[:, place], minlength=folds)).pvalue > 1e-4


def test_seed_changes_the_folds():
    """Two seeds agree no more often than chance."""
    agree = np.mean(fold_of(0, 5000, 5, seed=1) == fold_of(0, 5000, 5, seed=2))
    assert agree == pytest.approx(0.2, abs=0.03)


MASK = 2**64 - 1


def splitmix(row, seed):
    """splitmix64 in Python's own integers."""
    z = ((row + 1) * 0x9E3779B97F4A7C15 + seed) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@pytest.mark.parametrize("seed", [0, 1, 12345, -1, 2**64 - 1, 2**70 + 3])
def test_the_hash_is_splitmix64(seed):
    """Every bit; checkpoints and data sets of today must have the same folds tomorrow."""
    rows = np.array([0, 1, 2, 1000, 2**40, 2**63 - 2])
    assert hash_rows(rows, seed).tolist() == [splitmix(int(row), seed & MASK) for row in rows]


@pytest.mark.parametrize(("start", "stop"), [(0, 12), (5, 6), (4, 13), (7, 7)])
@pytest.mark.parametrize("folds", [1, 3, 4])
def test_folds_are_ranks_of_the_hash(start, stop, folds):
    """Among the K rows of its group, the fold of a row is the rank of its hash."""
    wanted = []
    for row in range(start, stop):
        group = range(row // folds * folds, row // folds * folds + folds)
        wanted.append(sum(splitmix(other, 7) < splitmix(row, 7) for other in group))
    assert fold_of(start, stop, folds, 7).tolist() == wanted


@pytest.mark.parametrize(("p", "q"), [(1, 4), (3, 4), (1, 1), (2, 5)])
def test_a_share_is_held_out(p, q):
    """p of every q rows, those of the first p folds."""
    found = held_out(3, 63, (p, q), 9)
    np.testing.assert_array_equal(found, fold_of(3, 63, q, 9) < p)
    assert held_out(0, 20 * q, (p, q), 9).sum() == 20 * p
    assert found.dtype.kind == "i"
