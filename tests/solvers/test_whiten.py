"""Whitening against its definition, and the ridge of an effective dimension."""

from __future__ import annotations

import numpy as np
import pytest

from dkl.solvers.whiten import ridge_for, whitening


def test_whitening_gives_the_matrix_back():
    """(K V)(K V)' = K, with a direction that is rounding left out."""
    A = np.random.default_rng(1).standard_normal((30, 12))
    K = A @ A.T
    V = whitening(K, False)
    assert V.shape == (30, 12)
    np.testing.assert_allclose((K @ V) @ (K @ V).T, K, atol=1e-10 * np.abs(K).max())
    np.testing.assert_allclose(V.T @ K @ V, np.eye(12), atol=1e-8)


def test_float32_keeps_less():
    """Eigenvalues below a millionth are what float32 rounds away."""
    K = np.diag([1.0, 1e-3, 1e-7, 1e-11, 1e-14])
    assert whitening(K, True).shape == (5, 2)
    assert whitening(K, False).shape == (5, 4)


@pytest.mark.parametrize("count", [0.5, 3.0, 20.0])
def test_effective_dimension(count):
    """sum D / (D + lam) is what was asked for."""
    values = np.logspace(2, -6, 50)
    lam = ridge_for(values, count)
    assert (values / (values + lam)).sum() == pytest.approx(count, rel=1e-9)


def test_no_more_than_half():
    """All directions cannot matter: lam would be zero."""
    lam = ridge_for(np.ones(10), 50.0)
    assert lam == pytest.approx(1.0)
