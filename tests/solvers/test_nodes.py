"""Nodes and periods of additive maps, each against its formula written out or a search of another kind."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize, special

from dkl.kernels.additive import ADDITIVE
from dkl.solvers import nodes
from dkl.sums.histogram import log_histogram

RNG = np.random.default_rng(11)
FOUND = log_histogram(RNG.dirichlet(np.full(16, 0.3), 60).ravel(), 60 * 16)
X, P = FOUND.middles, FOUND.shares


def remainder(x, at):
    """r(x) = prod (x - k) / (x + k)."""
    return np.prod((x[:, None] - at) / (x[:, None] + at), axis=1)


def squared_error(e, p, inputs):
    """m (E e^2 - (E e)^2) + m^2 (E e)^2 of errors of pairs."""
    mean = p @ e @ p
    return inputs * (p @ e**2 @ p - mean**2) + (inputs * mean) ** 2


def test_constants():
    """The grid of periods, and the span of data-free nodes."""
    assert nodes.SPAN == 1e-5
    np.testing.assert_allclose(nodes.PERIODS, 2.0 * 30.0 ** (np.arange(171) / 170), rtol=1e-12)


@pytest.mark.parametrize("largest", [X.max(), 0.3, 5.0])
def test_greedy_nodes(largest):
    """Each where |p r(x) x / (x + largest)| of the nodes before is largest, entry by entry."""
    found = nodes.greedy_nodes(X, P, largest, 5)
    assert found.shape == (5,)
    for q in range(5):
        left = np.abs(P * remainder(X, found[:q]) * X / (X + largest))
        assert found[q] == X[left.argmax()]


def direct_error(logs, inputs):
    """f of the direct series with those nodes."""
    r = remainder(X, np.exp(logs))
    return squared_error(-np.outer(r, r) * ADDITIVE["chi2"].pairs(X[:, None], X), P, inputs)


@pytest.mark.parametrize(("count", "inputs"), [(1, 1), (2, 16), (3, 1), (3, 64)])
def test_refined_nodes_are_a_minimum(count, inputs):
    """Nelder-Mead goes on to nothing better, the slope is none, and the greedy nodes are worse."""
    found = nodes.refined_nodes(X, P, X.max(), count, inputs)
    here = direct_error(np.log(found), inputs)
    other = optimize.minimize(
        direct_error, np.log(found), (inputs,), "Nelder-Mead", options={"fatol": 1e-20, "xatol": 1e-6}
    )
    assert here <= other.fun * (1 + 1e-7)
    slope = optimize.approx_fprime(np.log(found), lambda logs: direct_error(logs, inputs) / here, 1e-6)
    np.testing.assert_allclose(slope, 0, atol=1e-3)
    assert here < direct_error(np.log(nodes.greedy_nodes(X, P, X.max(), count)), inputs)


def test_what_is_minimised(monkeypatch):
    """f in units of its start, with its gradient, from two starts in a box; the better end is taken."""
    seen, minimise = [], optimize.minimize

    def watched(function, start, args, **options):
        value, gradient = function(start, *args)
        numeric = optimize.approx_fprime(start, lambda logs: function(logs, *args)[0], 1e-7)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-5)
        assert value == pytest.approx(1.0, rel=1e-12)
        assert args[0] == pytest.approx(direct_error(start, 7), rel=1e-9)
        end = minimise(function, start, args, **options)
        seen.append((start, options["bounds"], end.x))
        return end

    monkeypatch.setattr(optimize, "minimize", watched)
    found = nodes.refined_nodes(X, P, X.max(), 3, 7)
    starts = nodes.greedy_nodes(X, P, X.max(), 3), nodes.zolotarev_nodes(X.min(), X.max(), 3)
    for (start, bounds, _), expected in zip(seen, starts, strict=True):
        np.testing.assert_allclose(start, np.log(expected), rtol=1e-12)
        np.testing.assert_allclose(bounds, [(np.log(X.min()) - 3, np.log(X.max()) + 3)] * 3)
    best = min((end for _, _, end in seen), key=lambda logs: direct_error(logs, 7))
    np.testing.assert_allclose(found, np.exp(best), rtol=1e-12)


def test_one_entry():
    """All entries are the same: the node is there, and nothing is left to better."""
    one = np.array([0.4])
    np.testing.assert_allclose(nodes.refined_nodes(one, np.ones(1), 0.4, 1, 3), 0.4, rtol=1e-6)


@pytest.mark.parametrize(("low", "high", "count"), [(1e-2, 1.0, 3), (1e-4, 1.0, 6), (1e-3, 7.0, 4), (0.2, 0.9, 1)])
def test_zolotarev_nodes(low, high, count):
    """high dn(...) of the textbook, symmetric about the geometric mean; r has peaks of one size."""
    found = nodes.zolotarev_nodes(low, high, count)
    m = 1 - (low / high) ** 2
    dn = special.ellipj((2 * np.arange(1, count + 1) - 1) * special.ellipk(m) / (2 * count), m)[2]
    np.testing.assert_allclose(found, high * dn, rtol=1e-5)
    np.testing.assert_allclose(found * found[::-1], low * high, rtol=1e-9)
    x = np.geomspace(low, high, 20_001)
    r = remainder(x, found)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(np.sign(r))) + 1, [len(x)]])
    peaks = [np.abs(r[a:b]).max() for a, b in pairwise(edges)]
    assert len(peaks) == count + 1
    np.testing.assert_allclose(peaks, peaks[0], rtol=1e-3)


def test_central_scale():
    """The geometric mean of entries weighted by size and share."""
    expected = np.exp(sum(p * x * np.log(x) for x, p in zip(X, P, strict=True)) / (P @ X))
    assert nodes.central_scale(X, P) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ADDITIVE)
def test_sampled_weights(name):
    """L kap(j L) of the spectrum, or the Fourier coefficients of K on a period; L = 2 pi / period."""
    kernel, period = ADDITIVE[name], 9.0
    step = 2 * np.pi / period
    plain = nodes.sampled_weights(kernel, 3, period, smooth=False)
    np.testing.assert_allclose(plain, [step * kernel.spectrum(np.float64(j * step)) for j in range(4)], rtol=1e-12)
    cut = nodes.sampled_weights(kernel, 3, period, smooth=True)
    wave = lambda D, j: kernel.signature(np.float64(D)) * np.cos(step * j * D)  # noqa: E731
    halves = [integrate.quad(wave, 0, period / 2, args=(j,), epsabs=1e-13)[0] for j in range(4)]
    np.testing.assert_allclose(cut, np.maximum(0, 2 / period * np.array(halves)), atol=1e-10)
    assert cut.shape == plain.shape == (4,)


def test_weights_are_never_negative():
    """A coefficient of K, cut off early, may be below zero: that term is left out."""
    kernel = ADDITIVE["chi2"]
    wave = lambda D, j: kernel.signature(np.float64(D)) * np.cos(np.pi * j * D)  # noqa: E731
    negative = [integrate.quad(wave, 0, 1, args=(j,))[0] for j in (1, 2)]
    assert min(negative) < 0 < max(negative)
    found = nodes.sampled_weights(kernel, 2, 2.0, smooth=True)
    np.testing.assert_allclose(found[1:], np.maximum(negative, 0), atol=1e-10)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_standard_period(count):
    """The two formulas of Vedaldi and Zisserman."""
    assert nodes.standard_period(count, False) == pytest.approx(5.86 * count**0.5 + 3.65, rel=1e-12)
    assert nodes.standard_period(count, True) == pytest.approx(8.80 * (count + 4.44) ** 0.5 - 12.6, rel=1e-12)


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize(("name", "count", "inputs"), [("chi2", 1, 1), ("chi2", 2, 40), ("intersection", 2, 3)])
def test_fitted_period(name, count, inputs, smooth):
    """The best of the grid, by f from whole matrices of pairs."""
    kernel, D = ADDITIVE[name], np.log(X)[:, None] - np.log(X)

    def f(period):
        k = nodes.sampled_weights(kernel, count, period, smooth)
        series = k[0] + sum(2 * k[j] * np.cos(2 * np.pi / period * j * D) for j in range(1, count + 1))
        return squared_error(np.sqrt(X[:, None] * X) * (series - kernel.signature(D)), P, inputs)

    assert nodes.fitted_period(kernel, X, P, count, inputs, smooth) == min(nodes.PERIODS, key=f)
