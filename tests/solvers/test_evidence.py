"""Minka's evidence in d^2 steps against the sum over all pairs, and the rank it speaks for against scikit-learn."""

from math import lgamma, log, pi

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.decomposition import PCA

from dkl.solvers.axes import principal_axes
from dkl.solvers.evidence import evidence, likely_rank

RNG = np.random.default_rng(3)


def by_pairs(s, k, n):
    """log p(k) as the paper writes it, pair by pair."""
    d = len(s)
    v = s[k:].mean()
    t = np.where(np.arange(d) < k, s, v)
    m = d * k - k * (k + 1) / 2
    volume = -k * log(2) + sum(lgamma((d - i + 1) / 2) - log(pi) * (d - i + 1) / 2 for i in range(1, k + 1))
    pairs = sum(log(n * (s[i] - s[j]) * (1 / t[j] - 1 / t[i])) for i in range(k) for j in range(i + 1, d))
    fit = -n / 2 * (np.log(s[:k]).sum() + (d - k) * log(v))
    return volume + fit + (m + k) / 2 * log(2 * pi) - pairs / 2 - k / 2 * log(n)


@pytest.mark.parametrize("d", [2, 3, 17])
def test_every_rank_at_once(d):
    """The same number for every rank, whatever the spectrum."""
    s = np.sort(RNG.gamma(0.5, size=d) + 1e-3)[::-1]
    expected = [by_pairs(s, k, 200) for k in range(1, d)]
    np.testing.assert_allclose(evidence(s, 200, d - 1, 1e-12), expected, rtol=1e-12)


def axes_of(X, narrow=False):
    """How many axes the rows speak for."""
    centred = X - X.mean(axis=0)
    return len(principal_axes(centred.T @ centred, "mle", narrow, len(X), 0.0).energies)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_diabetes, load_breast_cancer])
def test_like_sklearn(load):
    """Data sets that scikit-learn brings, in units of their spread."""
    X = load().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    assert axes_of(X) == PCA("mle").fit(X).n_components_


@pytest.mark.parametrize("rank", [1, 4, 9])
@pytest.mark.parametrize("rows", [40, 1000])
def test_a_known_rank_is_found(rank, rows):
    """Signal on some axes and noise on all: the rank of the signal, as scikit-learn has it, in any unit."""
    X = RNG.standard_normal((rows, rank)) @ RNG.standard_normal((rank, 20)) + 0.01 * RNG.standard_normal((rows, 20))
    assert axes_of(X) == axes_of(1e-9 * X) == PCA("mle").fit(X).n_components_ == rank


def test_fewer_rows_than_features():
    """scikit-learn refuses; the axes that n rows have are enough to see the signal."""
    X = 3 * RNG.standard_normal((30, 4)) @ RNG.standard_normal((4, 100)) + 0.1 * RNG.standard_normal((30, 100))
    assert axes_of(X) == 4


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("rows", [12, 200])
def test_rounding_is_never_chosen(rows, narrow):
    """Data of rank three without noise have three axes, however many rows there are."""
    X = RNG.standard_normal((rows, 3)) @ RNG.standard_normal((3, 40))
    assert axes_of(X, narrow) == 3


def test_corners():
    """One feature, two rows, nothing but zeros, variances that are all the same."""
    assert axes_of(RNG.standard_normal((50, 1))) == 1
    assert axes_of(RNG.standard_normal((2, 7))) == 1
    assert axes_of(np.zeros((20, 5))) == 1
    assert 1 <= likely_rank(np.ones(6), 100, 6, 1e-12) <= 5


@pytest.mark.parametrize("seed", range(6))
def test_n_rows_have_one_axis_less(seed):
    """Of 9 rows in 20 features the first 8 variances speak, one more or one less gives another rank; here by pairs."""
    s, n = np.sort(np.random.default_rng(seed).gamma(0.6, size=20) + 1e-3)[::-1], 9
    ranks = [1 + int(np.argmax([by_pairs(s[:count], k, n) for k in range(1, count)])) for count in (n - 2, n - 1, n)]
    assert likely_rank(s, n, 20, 1e-12) == ranks[1]
    if seed in (0, 3):
        assert len(set(ranks)) == 3


@pytest.mark.parametrize("least", [1e-12, 1e-3, 0.2])
def test_gaps_and_variances_that_are_rounding(least):
    """Equal variances, and a tail of next to nothing, count as the least ones; pair by pair."""
    s, n = np.array([4.0, 4.0, 3.9999, 1.0, 1e-5, 1e-5]), 50

    def gap(above, below):
        return log(max(above - below, least * above))

    def by_hand(k):
        d = len(s)
        v = max(s[k:].mean(), least * s[0])
        t = [*s[:k], *[v] * (d - k)]
        volume = -k * log(2) + sum(lgamma((d - i + 1) / 2) - log(pi) * (d - i + 1) / 2 for i in range(1, k + 1))
        pairs = sum(
            log(n) + gap(s[i], s[j]) + gap(t[i], t[j]) - log(t[i]) - log(t[j])
            for i in range(k)
            for j in range(i + 1, d)
        )
        fit = -n / 2 * (np.log(s[:k]).sum() + (d - k) * log(v))
        m = d * k - k * (k + 1) / 2
        return volume + fit + (m + k) / 2 * log(2 * pi) - pairs / 2 - k / 2 * log(n)

    np.testing.assert_allclose(evidence(s, n, 5, least), [by_hand(k) for k in range(1, 6)], rtol=1e-10)


def test_at_most_as_many_as_are_sound():
    """Few rows and few sound axes leave fewer ranks to choose from."""
    s = np.array([100.0, 90.0, 80.0, 1.0, 0.9])
    assert likely_rank(s, 1000, 5, 1e-12) == 3
    assert likely_rank(s, 1000, 2, 1e-12) == 2
    assert likely_rank(s, 1000, 1, 1e-12) == 1
    assert likely_rank(s, 3, 5, 1e-12) == 1
    assert likely_rank(s[:2], 1000, 2, 1e-12) == 1
