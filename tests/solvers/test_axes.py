"""Principal axes against a singular value decomposition of the rows."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.solvers.axes import LEAST, LEAST_NARROW, Axes, principal_axes

RNG = np.random.default_rng(2)
ENERGIES = np.array([8.0, 4.0, 2.0, 1.0, 0.6, 0.4])
TURN = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
GRAM = TURN @ np.diag(ENERGIES) @ TURN.T


def axes_of(wanted, gram=GRAM, narrow=False, rows=100, removed=0.0, total=None):
    return principal_axes(gram, wanted, narrow, rows, removed, total)


@pytest.mark.parametrize(
    ("wanted", "count"), [(1, 1), (3, 3), (9, 6), (0.5, 1), (0.51, 2), (0.75, 2), (0.76, 3), (0.999, 6), (1.0, 1)]
)
def test_how_many(wanted, count):
    """So many, or as few as have that share of the variance; never more than there are."""
    found = axes_of(wanted, np.diag(ENERGIES))
    np.testing.assert_allclose(found.energies, ENERGIES[:count], rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.vectors), np.eye(6)[:, :count], atol=1e-7)
    assert found.vectors.flags.c_contiguous
    assert found.total == pytest.approx(16, rel=1e-12)
    assert found.share == pytest.approx(ENERGIES[:count].sum() / 16, rel=1e-12)


def test_axes_of_a_turned_gram():
    """Eigenvectors, by what the gram makes of them."""
    found = axes_of(4)
    np.testing.assert_allclose(GRAM @ found.vectors, found.vectors * ENERGIES[:4], atol=1e-12)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(4), atol=1e-12)


def test_a_share_of_something_larger():
    """What was left out before counts as lost: half of 32 is all of the 16 here."""
    assert len(axes_of(0.37, total=32.0).energies) == 2
    assert len(axes_of(0.38, total=32.0).energies) == 3
    assert axes_of(2, total=32.0).share == pytest.approx(12 / 32)


@pytest.mark.parametrize(("narrow", "least"), [(False, 1e-12), (True, 1e-6)])
def test_rounding_is_left_out(narrow, least):
    """Axes below a share of the first one, or of what centring took away."""
    assert (LEAST, LEAST_NARROW) == (1e-12, 1e-6)
    gram = np.diag([1.0, 3 * least, least, 0.3 * least])
    assert len(axes_of(4, gram, narrow).energies) == 2
    assert len(axes_of(4, gram, narrow, removed=10.0).energies) == 1
    assert len(axes_of(4, gram, narrow, removed=0.5).energies) == 2
    assert len(axes_of(4, gram, narrow, removed=1e30).energies) == 1


def test_nothing_varies():
    """One axis of no energy, which has all there is."""
    found = axes_of(3, np.zeros((4, 4)))
    assert found.energies.tolist() == [0]
    assert found.share == 1
    assert axes_of(1, np.diag([2.0, -1e-17])).total == 2


def test_mle_counts_rows():
    """Two strong axes in noise; what is said of few rows is said of those."""
    gram = np.diag([900.0, 400.0, 1.02, 1.0, 0.99, 0.97])
    assert len(axes_of("mle", gram, rows=500).energies) == 2
    assert len(axes_of("mle", gram, rows=2).energies) == 1


def test_turned():
    """Within the same span, along the axes of another gram."""
    found = axes_of(2, np.diag(ENERGIES)).turned(np.diag([1.0, 5.0, 7.0, 0, 0, 0]))
    np.testing.assert_allclose(found.energies, [5, 1], rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.vectors), np.eye(6)[:, [1, 0]], atol=1e-12)
    assert found.total == 13
    other = np.cov(RNG.normal(size=(6, 40)))
    kept = axes_of(3)
    turned = kept.turned(other)
    inner = turned.vectors.T @ other @ turned.vectors
    np.testing.assert_allclose(inner, np.diag(turned.energies), atol=1e-12)
    assert (np.diff(turned.energies) <= 0).all()
    np.testing.assert_allclose(turned.vectors @ turned.vectors.T, kept.vectors @ kept.vectors.T, atol=1e-12)
    assert (axes_of(2).turned(-np.eye(6)).energies == 0).all()


def test_factor_is_the_inverse_on_the_axes():
    """U (D + lam)^-1 U'."""
    found, B = axes_of(6), RNG.normal(size=(6, 2))
    factor = found.factor(0.3)
    assert (factor.method, factor.jitter) == ("axes", 0.0)
    np.testing.assert_allclose(factor.solve(B), np.linalg.solve(GRAM + 0.3 * np.eye(6), B), rtol=1e-10)
    U = axes_of(2).vectors
    np.testing.assert_allclose(axes_of(2).factor(1.0).solve(B), U @ ((U.T @ B) / np.array([[9.0], [5.0]])), rtol=1e-10)


def test_share_of_nothing():
    """0 of 0 is all."""
    assert Axes(np.eye(1), np.ones(1), 4.0).share == 0.25
    assert Axes(np.eye(1), np.zeros(1), 0.0).share == 1.0
