"""Which additive map a method's name stands for."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.features.additive import Chebyshev, Direct, Homogeneous
from dkl.kernels.additive import ADDITIVE
from dkl.prepare.additive import check_additive, make_additive, method_of
from dkl.solvers import nodes
from dkl.sums.histogram import log_histogram

RNG = np.random.default_rng(2)
VALUES = RNG.dirichlet(np.full(8, 0.4), 40).ravel()
FOUND = log_histogram(VALUES, len(VALUES))
EMPTY = log_histogram(np.zeros(4), 4)
X, P = FOUND.middles, FOUND.shares


def made(kernel, method, n_terms=3, window="fitted", found=FOUND):
    """The map, and how often it looked at X."""
    looked = []

    def look():
        looked.append(1)
        return found

    return make_additive(kernel, method, n_terms, window, 8, look), len(looked)


def test_series_of_chi2():
    """Nodes without a look, greedy, refined, and the centre of Chebyshev's."""
    found, looked = made("chi2", "zolotarev")
    np.testing.assert_array_equal(found.nodes, nodes.zolotarev_nodes(1e-5, 1.0, 3))
    assert (type(found), looked) == (Direct, 0)
    found, looked = made("chi2", "greedy")
    np.testing.assert_array_equal(found.nodes, nodes.greedy_nodes(X, P, FOUND.largest, 3))
    assert (type(found), looked) == (Direct, 1)
    found, looked = made("chi2", "direct")
    np.testing.assert_array_equal(found.nodes, nodes.refined_nodes(X, P, FOUND.largest, 3, 8))
    assert (type(found), looked) == (Direct, 1)
    found, looked = made("chi2", "chebyshev")
    assert (found, looked) == (Chebyshev(nodes.central_scale(X, P), 3), 1)


@pytest.mark.parametrize(
    ("kernel", "n_terms", "window", "looks"),
    [
        ("chi2", 3, "fitted", 1), ("chi2", 5, "rectangular", 0), ("chi2", 5, "uniform", 0), ("chi2", 1, "uniform", 1),
        ("intersection", 3, "fitted", 1), ("intersection", 3, "rectangular", 1), ("jensen_shannon", 5, "uniform", 1),
    ],
)  # fmt: skip
def test_homogeneous(kernel, n_terms, window, looks):
    """The period of the formulas for chi2 if asked for, else the fitted one; smooth unless the window is uniform."""
    found, looked = made(kernel, "homogeneous", n_terms, window)
    count, smooth = n_terms // 2, window != "uniform"
    period = (
        nodes.fitted_period(ADDITIVE[kernel], X, P, count, 8, smooth) if looks else nodes.standard_period(count, smooth)
    )
    assert looked == looks
    assert type(found) is Homogeneous
    assert found.step == pytest.approx(2 * np.pi / period, rel=1e-12)
    np.testing.assert_allclose(found.weights, nodes.sampled_weights(ADDITIVE[kernel], count, period, smooth))
    assert found.n_terms == n_terms


def test_nothing_but_zeros():
    """Entries of any size would do: those of one are taken."""
    assert made("chi2", "chebyshev", found=EMPTY)[0] == Chebyshev(1.0, 3)
    np.testing.assert_array_equal(made("chi2", "greedy", 1, found=EMPTY)[0].nodes, [1.0])
    np.testing.assert_allclose(made("chi2", "direct", 1, found=EMPTY)[0].nodes, [1.0], rtol=1e-6)
    period = nodes.fitted_period(ADDITIVE["chi2"], np.ones(1), np.ones(1), 1, 8, True)
    assert made("chi2", "homogeneous", found=EMPTY)[0].step == pytest.approx(2 * np.pi / period)


def test_method_of():
    """A series of chi2, samples of the others."""
    assert [method_of(name) for name in ("chi2", "intersection", "jensen_shannon")] == ["direct", *["homogeneous"] * 2]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("chi", "direct", 3, "fitted"), "kernel='chi' is not known"),
        (("chi2", "directly", 3, "fitted"), "method='directly' is not known"),
        (("chi2", "direct", 3, "fit"), "window='fit' is not known"),
        (("chi2", "direct", 0, "fitted"), "n_terms=0 must be a whole number"),
        (("intersection", "direct", 3, "fitted"), "method='direct' is a series of the chi2 kernel"),
        (("intersection", "homogeneous", 4, "fitted"), r"n_terms=4 of the .* must be odd .*; use n_terms=5"),
        (("chi2", "homogeneous", 2, "fitted"), "n_terms=2 of the .* must be odd"),
    ],
)
def test_refusals(asked, sentence):
    """Before any row is read."""
    with pytest.raises(ValueError, match=sentence):
        check_additive(*asked)


def test_what_is_taken():
    """Odd samples of any kernel, any number of terms of a series."""
    for asked in (("chi2", "homogeneous", 1), ("intersection", "homogeneous", 3), ("chi2", "direct", 4)):
        check_additive(*asked, "fitted")
