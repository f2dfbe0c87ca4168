"""What is learned as a vector: maps, boxes and penalties by their formulas, gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.features.additive import Direct
from dkl.features.fourier import FourierMap
from dkl.kernels import KERNELS
from dkl.learn.parameters import Frequencies, Scales
from dkl.sums.pullback import PullbackSums

RNG = np.random.default_rng(0)
SIGMA, GROUPS = np.array([0.5, 2.0, 3.0]), np.array([0, 1, 0])
BASE = FourierMap(KERNELS["gaussian"], RNG.normal(size=(3, 4)), SIGMA, RNG.random(4), 1.0, "phase")
LOG, LINEAR = Scales(BASE, GROUPS, l2=0.3), Scales(BASE, GROUPS, l1=0.7, l2=0.3)
FREED = LINEAR.without_l1(np.array([0.0, 1.5]))


def test_kinds():
    """l1 makes zero reachable; nothing else does."""
    assert LOG.count == LINEAR.count == 2
    assert (LOG.linear, LOG.penalised, LOG.frequencies, LOG.wanted) == (False, False, False, ("sigma",))
    assert (LINEAR.linear, LINEAR.penalised, LINEAR.frequencies) == (True, True, False)
    assert (FREED.linear, FREED.l1, FREED.l2) == (False, 0.0, 0.3)
    assert (Scales(BASE, GROUPS).l1, Scales(BASE, GROUPS).l2) == (0.0, 0.0)
    assert Frequencies(BASE).frequencies
    assert Frequencies(BASE).wanted == ("unit", "phase")
    assert not Frequencies(BASE).penalised


def test_sigma_of_a_point():
    """start exp(x), start x, and start size exp(x), each at the inputs of its group."""
    x = np.array([0.2, -0.4])
    np.testing.assert_allclose(LOG.map(x).sigma, SIGMA * np.exp([0.2, -0.4, 0.2]))
    np.testing.assert_allclose(LINEAR.map(np.array([0.0, 4.0])).sigma, SIGMA * [0, 4, 0])
    np.testing.assert_allclose(FREED.map(x).sigma, SIGMA * [0, 1.5 * np.exp(-0.4), 0])
    np.testing.assert_allclose(LOG.factor(x), np.exp(x))
    np.testing.assert_array_equal(LOG.map(x).unit, BASE.unit)


def test_where_it_begins_and_may_go():
    """At a multiple of the start, within ten thousand times either way."""
    np.testing.assert_allclose(LOG.begin(3.0), np.log([3.0, 3.0]))
    np.testing.assert_allclose(LINEAR.begin(3.0), [3.0, 3.0])
    np.testing.assert_allclose(LOG.box(), np.log([[1e-4] * 2, [1e4] * 2]))
    np.testing.assert_allclose(LINEAR.box(), [[0.0] * 2, [1e4] * 2])


def test_what_is_switched_off():
    """Below half a hundredth of the start and not zero yet, if l1 was at work."""
    assert LINEAR.switched_off(np.array([0.005, 1.0])) is None
    assert LINEAR.switched_off(np.array([0.0, 1.0])) is None
    assert LINEAR.switched_off(np.array([0.00499, 1.0])).tolist() == [0.0, 1.0]
    assert LINEAR.switched_off(np.array([1e-9, 0.004])).tolist() == [0.0, 0.0]
    assert LOG.switched_off(np.array([0.004, 0.1])) is None
    assert Frequencies(BASE).switched_off(np.zeros(16)) is None


@pytest.mark.parametrize("parameters", [LOG, LINEAR, FREED], ids=["log", "linear", "freed"])
def test_penalty(parameters):
    """l1 sum u + l2 / 2 sum u^2, and its slope by differences."""
    x, step = np.array([0.4, 0.9]), 1e-6
    u = parameters.factor(x)
    value, gradient = parameters.penalty(x)
    assert value == pytest.approx(parameters.l1 * u.sum() + 0.15 * (u**2).sum(), rel=1e-12)
    moves = np.eye(2) * step
    expected = [(parameters.penalty(x + m)[0] - parameters.penalty(x - m)[0]) / (2 * step) for m in moves]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("parameters", [LOG, LINEAR, FREED], ids=["log", "linear", "freed"])
def test_gradient_of_scales(parameters):
    """Of a linear function of sigma, by differences."""
    slope, x, step = np.array([2.0, -1.0, 0.5]), np.array([0.4, 0.9]), 1e-6
    found = parameters.gradient(x, PullbackSums({"sigma": slope}, np.empty(0)))
    moves = np.eye(2) * step
    ends = [[slope @ parameters.map(x + sign * m).sigma for sign in (1, -1)] for m in moves]
    np.testing.assert_allclose(found, [(a - b) / (2 * step) for a, b in ends], rtol=1e-6, atol=1e-9)


def test_a_group_of_the_last_inputs_alone():
    """Every group has its place in the gradient."""
    sums = PullbackSums({"sigma": np.ones(3)}, np.empty(0))
    found = Scales(BASE, np.array([0, 0, 1])).gradient(np.zeros(2), sums)
    np.testing.assert_allclose(found, [2.5, 3.0])


@pytest.mark.parametrize("form", ["phase", "odd", "paired"])
def test_frequencies(form):
    """x is every frequency and phase; their gradient through omega = sigma H and a shift of 2 pi b."""
    phases = {"phase": 4, "odd": 1, "paired": 0}[form]
    kind = "phase" if form == "phase" else "paired"
    base = FourierMap(KERNELS["gaussian"], BASE.unit, SIGMA, BASE.phase[:phases], 1.0, kind)
    own = Frequencies(base)
    x = own.begin(2.0)
    np.testing.assert_allclose(x, [*(2 * base.unit).ravel(), *base.phase])
    again = own.map(x)
    np.testing.assert_allclose(again.unit, 2 * base.unit)
    np.testing.assert_array_equal(again.phase, base.phase)
    np.testing.assert_array_equal(again.sigma, SIGMA)
    low, high = own.box()
    assert (low == -np.inf).all()
    assert (high == np.inf).all()
    assert len(low) == len(high) == len(x)
    omega, shift = RNG.normal(size=(3, 4)), RNG.normal(size=phases)
    found = own.gradient(x, PullbackSums({"unit": omega, "phase": shift}, np.empty(0)))
    np.testing.assert_allclose(found, [*(SIGMA[:, None] * omega).ravel(), *(2 * np.pi * shift)])
    value, slope = own.penalty(x)
    assert value == 0
    assert slope.tolist() == [0] * len(x)
    assert own.factor(x).tolist() == [1] * len(x)
    assert own.without_l1(x) is own


def test_frequencies_of_an_additive_map():
    """Every term of an input has its sigma."""
    base = FourierMap(KERNELS["exp_chi2"], np.ones((6, 2)), SIGMA, np.empty(0), 1.0, "paired", Direct(np.ones(2)))
    sums = PullbackSums({"unit": np.ones((6, 2)), "phase": np.empty(0)}, np.empty(0))
    found = Frequencies(base).gradient(np.ones(12), sums)
    np.testing.assert_allclose(found, np.repeat([*SIGMA, *SIGMA], 2))
