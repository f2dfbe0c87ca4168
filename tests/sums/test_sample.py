"""Samples of rows: the same in any parts, with the chances that they should have."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from dkl.kernels import KERNELS
from dkl.sums.sample import SampleProgram, draw_keys, least
from tests.sums.test_folds import splitmix

X = np.random.default_rng(0).standard_normal((150, 3))


def sample(X, step, most=20, weight=None, seed=5, backwards=False, worth=None):
    """The sample of a pass over blocks of so many rows."""
    program = SampleProgram(KERNELS["gaussian"], 1.0, np.dtype(np.float64), most, seed, 3, worth)
    parts = []
    for i in range(0, X.shape[0], step):
        sums = program.start()
        program.add(sums, None, i, i, (X[i : i + step], None if weight is None else weight[i : i + step]))
        parts.append(sums)
    total = program.start()
    for part in reversed(parts) if backwards else parts:
        total.merge(part)
    assert total.refusal is None
    return total.tree.total()


@pytest.mark.parametrize("step", [1, 7, 64])
@pytest.mark.parametrize("backwards", [False, True])
def test_any_parts_in_any_order(step, backwards):
    """The same rows with the same keys, those of the smallest of all keys."""
    whole, parts = sample(X, 150), sample(X, step, backwards=backwards)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    least = np.argsort(draw_keys(np.arange(150), 5, np.ones(150)))[:20]
    np.testing.assert_array_equal(whole.numbers, least)
    np.testing.assert_array_equal(whole.rows, X[least])
    sparse = sample(sp.csr_array(X), step)
    np.testing.assert_array_equal(sparse.rows, whole.rows)


def test_fewer_rows_than_wanted():
    """All of them; those without weight are none."""
    weight = (np.arange(150) % 2).astype(float)
    found = sample(X, 40, most=1000, weight=weight)
    np.testing.assert_array_equal(np.sort(found.numbers), np.arange(1, 150, 2))


def test_chances_of_the_first():
    """The first of a sample is row i with probability w_i / sum w: a chi2 test over 4000 seeds."""
    worth = np.array([1.0, 2.0, 5.0, 0.5, 0.0, 3.5])
    keys = np.array([draw_keys(np.arange(6), seed, worth) for seed in range(4000)])
    counts = np.bincount(keys.argmin(axis=1), minlength=6)
    assert counts[4] == 0
    kept = worth > 0
    assert stats.chisquare(counts[kept], 4000 * worth[kept] / worth.sum()).pvalue > 1e-3


def test_uniform_samples_are_uniform():
    """Every row is in a sample of 20 of 150 equally often, over 600 seeds."""
    counts = sum(np.bincount(sample(X, 150, seed=seed).numbers, minlength=150) for seed in range(600))
    assert counts.sum() == 600 * 20
    assert stats.chisquare(counts).pvalue > 1e-3


def test_worth_multiplies_weight():
    """Rows that are worth nothing, or weigh nothing, are not drawn."""
    found = sample(X, 50, most=150, weight=(X[:, 1] > 0).astype(float), worth=lambda T: np.maximum(T[:, 0], 0))
    np.testing.assert_array_equal(np.sort(found.numbers), np.flatnonzero((X[:, 0] > 0) & (X[:, 1] > 0)))


def test_a_refused_row_is_named():
    """NaN, negative weights: the first row wins, counted from the start of the data."""
    program = SampleProgram(KERNELS["gaussian"], 1.0, np.dtype(np.float64), 5, 0, 3)
    dirty, sums = X.copy(), program.start()
    dirty[70, 1] = np.nan
    program.add(sums, None, 1, 64, (dirty[64:128], None))
    assert sums.refusal == (70, "X contains NaN at row 70, column 1; remove or impute it")
    other = program.start()
    program.add(other, None, 0, 0, (X[:64], np.where(np.arange(64) == 9, -1.0, 1.0)))
    sums.merge(other)
    assert sums.refusal is not None
    assert sums.refusal[0] == 9


def test_keys_against_the_formula():
    """log(-log(u)) - log(w), u from the upper 53 bits of the hash; infinite without worth."""
    numbers, worth = np.array([0, 3, 10**6, 7]), np.array([1.0, 0.25, 40.0, 0.0])
    found = draw_keys(numbers, 11, worth)
    for number, w, key in zip(numbers[:3], worth[:3], found[:3], strict=True):
        u = ((splitmix(int(number), 11) >> 11) + 0.5) / 2**53
        assert key == pytest.approx(math.log(-math.log(u)) - math.log(w), rel=1e-13)
    assert found[3] == np.inf


def test_the_largest_hash_has_a_key(monkeypatch):
    """u stays below one, where the logarithm would be zero."""
    monkeypatch.setattr("dkl.sums.sample.hash_rows", lambda rows, seed: np.full(len(rows), 2**64 - 1, np.uint64))
    assert draw_keys(np.arange(1), 0, np.ones(1)) == pytest.approx(np.log(2.0**-53), rel=1e-9)


def test_the_least_keys():
    """In order, of equal keys the lower row; infinite ones are left out; rows in float64."""
    keys, numbers = np.array([2.0, -1.0, np.inf, 2.0, 0.5]), np.array([8, 7, 6, 5, 4])
    found = least(3, keys, numbers, np.arange(10, dtype=np.float32).reshape(5, 2))
    assert (found.most, found.numbers.tolist(), found.keys.tolist()) == (3, [7, 4, 5], [-1.0, 0.5, 2.0])
    assert found.rows.tolist() == [[2, 3], [8, 9], [6, 7]]
    assert found.rows.dtype == np.float64
    both = found + least(3, np.array([0.0]), np.array([1]), np.zeros((1, 2)))
    assert both.numbers.tolist() == [7, 1, 4]


def test_an_empty_block_adds_nothing():
    """And needs no kernel."""
    program = SampleProgram(KERNELS["gaussian"], 1.0, np.dtype(np.float64), 5, 0, 3)
    sums = program.start()
    program.add(sums, None, 0, 0, (X[:0], None))
    assert sums.tree.total() is None
    assert program.worth is None
    assert program.rows_wanted == 8192
