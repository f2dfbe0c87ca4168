"""Additive maps against identities, quadrature and the kernels themselves; nodes against scipy and a brute search."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import integrate, optimize
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.metrics.pairwise import additive_chi2_kernel

from dkl.features.additive import Chebyshev, Direct, Homogeneous, as_plain, from_plain, lift
from dkl.kernels.additive import ADDITIVE, additive_kernel
from dkl.solvers import nodes as solvers
from dkl.sums.histogram import log_histogram

RNG = np.random.default_rng(3)
HISTOGRAMS = RNG.dirichlet(np.full(64, 0.25), 400)
A, B = HISTOGRAMS[:200], HISTOGRAMS[200:]
FOUND = log_histogram(HISTOGRAMS.ravel(), HISTOGRAMS.size)
MAPS = {
    "direct": Direct(np.array([0.5, 0.03, 0.2, 0.004])),
    "chebyshev": Chebyshev(0.2, 7),
    "homogeneous": Homogeneous(np.array([0.7, 0.2, 0.05]), 0.6),
}


def shannon(x, y):
    """Jensen-Shannon by its definition through entropies."""
    return 0.5 * (x * np.log2((x + y) / x) + y * np.log2((x + y) / y))


def test_kernels_are_what_they_are_called():
    """Against scikit-learn's distance, a minimum, and entropies."""
    chi2 = A.sum(1)[:, None] / 2 + B.sum(1) / 2 + additive_chi2_kernel(A, B) / 2
    np.testing.assert_allclose(additive_kernel(ADDITIVE["chi2"], A, B), chi2, atol=1e-12)
    least = np.minimum(A[:, None], B[None]).sum(axis=2)
    np.testing.assert_allclose(additive_kernel(ADDITIVE["intersection"], A, B), least, atol=1e-12)
    x, y = RNG.uniform(1e-6, 2, (2, 50))
    np.testing.assert_allclose(ADDITIVE["jensen_shannon"].pairs(x, y), shannon(x, y), rtol=1e-12)


@pytest.mark.parametrize("name", ADDITIVE)
def test_spectrum_is_the_transform_of_the_signature(name):
    """kap(w) = 1/2pi int K(D) cos(w D) dD."""
    kernel = ADDITIVE[name]
    for w in (0.0, 0.3, 1.1):
        half = integrate.quad(lambda D: kernel.signature(np.float64(D)) * np.cos(w * D), 0, 120, limit=500)[0]  # noqa: B023
        assert kernel.spectrum(np.float64(w)) == pytest.approx(half / np.pi, rel=1e-6)


def test_remainder_of_the_direct_series():
    """k0 - sum c_q(x) c_q(y) = r(x) r(y) k0 exactly, so the map is exact at its nodes."""
    nodes = MAPS["direct"].nodes
    x = np.concatenate([RNG.uniform(0, 1, 60), nodes])
    k0 = ADDITIVE["chi2"].pairs(x[:, None], x)
    r = np.prod((x[:, None] - nodes) / (x[:, None] + nodes), axis=1)
    Phi = lift(x[:, None], MAPS["direct"])
    np.testing.assert_allclose(k0 - Phi @ Phi.T, np.outer(r, r) * k0, atol=1e-14)


def test_chebyshev_coefficients_are_their_integrals():
    """sqrt(x) 2/pi int cos or sin (w log x) cos(q z) dz with z = 2 atan(e^(pi w)), by quadrature."""
    w, step = np.linspace(-14, 14, 4001, retstep=True)
    z, dz = 2 * np.arctan(np.exp(np.pi * w)), step * np.pi / np.cosh(np.pi * w)
    for x in (1e-4, 0.02, 0.3, 1.0, 1.7):
        wave = [np.cos, np.sin]
        a = [2 / np.pi * (dz * wave[q % 2](w * np.log(x)) * np.cos(q * z)).sum() for q in range(9)]
        expected = np.sqrt(x) * np.array([a[0] / 2, *(value / np.sqrt(2) for value in a[1:])])
        np.testing.assert_allclose(lift(np.array([[x]]), Chebyshev(1.0, 9))[0], expected, atol=1e-11)


@pytest.mark.parametrize(("steps", "interval"), [(2, 0.5), (3, 0.4)])
def test_homogeneous_samples_are_those_of_scikit_learn(steps, interval):
    """The uniform window with scikit-learn's interval is scikit-learn's map."""
    weights = solvers.sampled_weights(ADDITIVE["chi2"], steps - 1, 2 * np.pi / interval, smooth=False)
    theirs = AdditiveChi2Sampler(sample_steps=steps, sample_interval=interval).fit_transform(A)
    np.testing.assert_allclose(lift(A, Homogeneous(weights, interval)), theirs, atol=1e-14)


@pytest.mark.parametrize("name", ADDITIVE)
def test_smooth_weights_are_fourier_coefficients(name):
    """Of K on half a period to either side; what would be negative is left out."""
    weights = solvers.sampled_weights(ADDITIVE[name], 3, 9.0, smooth=True)
    for j, weight in enumerate(weights):
        wave = lambda D: ADDITIVE[name].signature(np.float64(D)) * np.cos(2 * np.pi * j * D / 9)  # noqa: B023, E731
        assert weight == pytest.approx(max(0, 2 * integrate.quad(wave, 0, 4.5)[0] / 9), abs=1e-10)


@pytest.mark.parametrize("name", MAPS)
def test_float32_is_safe_and_zeros_stay_zero(name):
    """From the smallest number to beyond one; no warning, no loss beyond rounding."""
    x = np.array([0.0, 1e-45, 1e-38, 1e-30, 1e-12, 1e-6, 0.5, 1 - 1e-7, 1.0, 3.0, 1e6])[:, None]
    with np.errstate(all="raise", under="ignore"):
        narrow, wide = lift(x.astype(np.float32), MAPS[name]), lift(x, MAPS[name])
    assert narrow.dtype == np.float32
    assert not narrow[0].any()
    assert not wide[0].any()
    size = np.sqrt(np.maximum(x, 1e-37)) * (1 + np.abs(np.log(np.maximum(x, 1e-37)))) ** (name == "chebyshev")
    assert np.max(np.abs(narrow - wide) / size) < 5e-5


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows_give_the_same_sparse_rows(name, kind):
    """As many numbers as terms for each stored entry, in canonical order; empty rows and columns too."""
    X = np.where(RNG.random((50, 12)) < 0.2, RNG.random((50, 12)), 0.0)
    X[7], X[:, 3] = 0, 0
    lifted = lift(kind(X), MAPS[name])
    assert lifted.nnz == MAPS[name].n_terms * np.count_nonzero(X)
    assert lifted.has_sorted_indices
    np.testing.assert_array_equal(lifted.toarray(), lift(X, MAPS[name]))


def test_tiles_do_not_change_the_bits(monkeypatch):
    """One row at a time or all at once."""
    whole = {name: lift(A, to) for name, to in MAPS.items()}
    monkeypatch.setattr("dkl.features.additive.TILE", 65)
    for name, to in MAPS.items():
        np.testing.assert_array_equal(lift(A, to), whole[name])
        np.testing.assert_array_equal(lift(sp.csr_array(A), to).toarray(), whole[name])


@pytest.mark.parametrize("name", MAPS)
def test_plain_form(name):
    """Through JSON and back, the same map; damaged ones are refused."""
    import json

    record = as_plain(MAPS[name])
    again = from_plain(json.loads(json.dumps(record)))
    np.testing.assert_array_equal(lift(A, again), lift(A, MAPS[name]))
    for key, bad in (("series", "sine"), ("nodes", [-1.0]), ("scale", 0.0), ("n_terms", 0), ("step", "x")):
        if key in record:
            with pytest.raises(ValueError, match=key):
                from_plain(record | {key: bad})


def test_refined_nodes_are_a_minimum():
    """scipy's Nelder-Mead finds no better nodes nearby, and the slope that was used is that of f."""
    x, p = FOUND.middles, FOUND.shares
    found = solvers.refined_nodes(x, p, FOUND.largest, 3, 64)

    def f(logs):
        r = np.prod((x[:, None] - np.exp(logs)) / (x[:, None] + np.exp(logs)), axis=1)
        e = np.outer(r, r) * ADDITIVE["chi2"].pairs(x[:, None], x)
        mean = p @ e @ p
        return 64 * (p @ e**2 @ p - mean**2) + (64 * mean) ** 2

    here = f(np.log(found))
    other = optimize.minimize(f, np.log(found), method="Nelder-Mead", options={"fatol": 1e-16, "xatol": 1e-7})
    assert here <= other.fun * (1 + 1e-4)
    assert here < f(np.log(solvers.greedy_nodes(x, p, FOUND.largest, 3))) / 2


@pytest.mark.parametrize(("low", "count"), [(1e-2, 3), (1e-4, 6), (1e-4, 9)])
def test_zolotarev_nodes_equioscillate(low, count):
    """The extrema of r on [low, 1] are all the same size, and within the bound of the theory."""
    nodes = solvers.zolotarev_nodes(low, 1.0, count)
    x = np.geomspace(low, 1, 200_001)
    r = np.prod((x[:, None] - nodes) / (x[:, None] + nodes), axis=1)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(np.sign(r))) + 1, [len(x)]])
    peaks = [np.abs(r[a:b]).max() for a, b in pairwise(edges)]
    assert len(peaks) == count + 1
    np.testing.assert_allclose(peaks, peaks[0], rtol=1e-3)
    assert peaks[0] <= 1.001 * 2 * np.exp(-(np.pi**2) * count / (2 * np.log(4 / low)))


@pytest.mark.parametrize("name", ADDITIVE)
def test_fitted_period_is_the_best_one(name):
    """Against f from whole matrices of pairs, for every period of the grid."""
    x, p, kernel = FOUND.middles, FOUND.shares, ADDITIVE[name]
    D = np.log(x)[:, None] - np.log(x)

    def f(period):
        k = solvers.sampled_weights(kernel, 2, period, smooth=True)
        series = k[0] + 2 * k[1] * np.cos(2 * np.pi / period * D) + 2 * k[2] * np.cos(4 * np.pi / period * D)
        e = np.sqrt(x[:, None] * x) * (series - kernel.signature(D))
        mean = p @ e @ p
        return 64 * (p @ e**2 @ p - mean**2) + (64 * mean) ** 2

    assert solvers.fitted_period(kernel, x, p, 2, 64, smooth=True) == min(solvers.PERIODS, key=f)


def test_histogram_adds_up_exactly():
    """Any cut gives the same integers, zeros are counted as entries, the ends are caught."""
    parts = [log_histogram(block.ravel(), block.size) for block in np.array_split(HISTOGRAMS, 11)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    np.testing.assert_array_equal(total.counts, FOUND.counts)
    assert (total.entries, total.largest) == (FOUND.entries, HISTOGRAMS.max())
    twice = log_histogram(A.ravel(), 2 * A.size, np.full(A.size, 2.0))
    whole = log_histogram(np.vstack([A, A]).ravel(), 2 * A.size)
    np.testing.assert_array_equal(twice.counts, whole.counts)
    ends = log_histogram(np.array([0.0, 1e-300, 1.0, 1e30]), 4)
    assert ends.counts[[0, 1280, 1280 + int(np.floor(8 * np.log2(1e30)))]].tolist() == [1, 1, 1]
    np.testing.assert_allclose(log_histogram(np.array([3e-38, 3e38]), 2).middles, [3e-38, 3e38], rtol=0.05)
    assert ends.shares.sum() == pytest.approx(0.75)


@pytest.mark.parametrize("count", range(1, 7))
def test_fewer_terms_are_the_first_of_more(count):
    """A Chebyshev series that is cut earlier has the same terms, down to one."""
    x = RNG.uniform(0.01, 1, (9, 1))
    np.testing.assert_array_equal(lift(x, Chebyshev(0.2, count)), lift(x, MAPS["chebyshev"])[:, :count])


def test_the_centre_is_where_the_mass_lies():
    """The geometric mean of the entries, each weighted by its size and its share; in any unit."""
    x, p = RNG.uniform(0.01, 3, 20), RNG.uniform(0, 1, 20)
    expected = np.exp(np.average(np.log(x), weights=p * x))
    assert solvers.central_scale(x, p) == pytest.approx(expected, rel=1e-12)
    assert solvers.central_scale(7 * x, 2 * p) == pytest.approx(7 * expected, rel=1e-12)
