"""ZCA by itself: mean, covariance and matrix against numpy, scipy and scikit-learn; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.decomposition import PCA

from dkl.store import equal_blocks
from dkl.store.zca import MOST_INPUTS, Covariance, Whitening, check_inputs, digest_of, zca_bytes

RNG = np.random.default_rng(5)
MIXED = RNG.normal(size=(400, 6)) @ RNG.normal(size=(6, 6)) + RNG.normal(size=6) * 10


def learned(X, cuts=()):
    """The sums of rows that come in pieces."""
    sums = Covariance(X.shape[1])
    for piece in np.split(X, cuts):
        sums.add(piece)
    return sums.finish()


def by_definition(X, eps):
    """(mean, (S + eps s I)^(-1/2)) with scipy's matrix root."""
    S = np.cov(X.T, bias=True).reshape(X.shape[1], -1)
    ridge = eps * np.trace(S) / len(S) * np.eye(len(S))
    return X.mean(axis=0), np.linalg.inv(scipy.linalg.sqrtm(S + ridge).real)


@pytest.mark.parametrize("eps", [1e-6, 0.1, 3.0])
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6, 1e-120, 1e120])
def test_matrix_by_its_definition(eps, size):
    """In any unit of the inputs: they change the matrix by their inverse, and the whitened rows not at all."""
    mean, W = by_definition(MIXED, eps)
    found = learned(MIXED * size).whitening(eps)
    np.testing.assert_allclose(found.values[0], mean * size, rtol=1e-12)
    np.testing.assert_allclose(found.values[1:] * size, W, atol=1e-9 * np.abs(W).max())
    np.testing.assert_array_equal(found.values[1:], found.values[1:].T)
    np.testing.assert_allclose(found.rows(MIXED * size), (MIXED - mean) @ W, atol=1e-9)


def test_like_whitened_principal_axes_turned_back():
    """scikit-learn's PCA(whiten=True), which divides by n - 1, with eps that hardly counts."""
    pca = PCA(whiten=True, svd_solver="full").fit(MIXED)
    expected = pca.transform(MIXED) @ pca.components_ * np.sqrt(400 / 399)
    found = learned(MIXED).whitening(1e-13).rows(MIXED)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(found.T @ found / 400, np.eye(6), atol=1e-8)


@pytest.mark.parametrize("block", [1, 3, 64, 8192])
def test_sums_do_not_depend_on_the_cut(monkeypatch, block):
    """Same bits for any pieces; near the covariance for any block, and far from zero too."""
    monkeypatch.setattr(equal_blocks, "BLOCK", block)
    rows = MIXED[:130] + 1e6
    found = [learned(rows, cuts) for cuts in ([], [1], [64, 65], [3, 50, 120], list(range(1, 130, 7)))]
    assert len({(one.mean.tobytes(), one.square.tobytes(), one.count) for one in found}) == 1
    assert found[0].count == 130
    np.testing.assert_allclose(found[0].square / 130, np.cov(rows.T, bias=True), rtol=1e-7, atol=1e-7)


def test_columns_that_do_not_vary():
    """One constant input stays zero beside others; rows that are all the same are only centred."""
    X = MIXED.copy()
    X[:, 2] = 4
    found = learned(X).whitening(0.1).rows(X)
    np.testing.assert_allclose(found[:, 2], 0, atol=1e-12)
    mean, W = by_definition(X, 0.1)
    np.testing.assert_allclose(found, (X - mean) @ W, atol=1e-9)
    same = learned(np.full((5, 3), 7.0)).whitening(0.1)
    np.testing.assert_array_equal(same.values, [[7, 7, 7], *np.eye(3)])
    assert np.isfinite(learned(np.empty((0, 3))).whitening(0.1).values).all()


def test_one_input():
    """Its deviation, with eps in it."""
    X = MIXED[:, :1]
    expected = (X - X.mean()) / np.sqrt(X.var() * 1.1)
    np.testing.assert_allclose(learned(X).whitening(0.1).rows(X), expected, atol=1e-12)


def test_variance_beyond_float64():
    """Refused, with what to put in front of it."""
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="the variance of the inputs is"):
        learned(MIXED * 1e200).whitening(0.1)


def test_a_matrix_is_known_by_its_digest():
    """Another one is refused, and one that is not there cannot whiten."""
    found = learned(MIXED).whitening(0.1)
    known = Whitening(6, found.digest)
    assert known == found
    assert known.with_values(found.values) == found
    assert known.with_values(None) is known
    assert digest_of(found.values) == found.digest
    other = found.values.copy()
    other[3, 2] = np.nextafter(other[3, 2], 9)
    for wrong in (other, found.values[:-1], found.values[:, :-1]):
        with pytest.raises(ValueError, match="is not that of the recipe"):
            known.with_values(wrong)
    with pytest.raises(ValueError, match="lacks its whitening matrix"):
        known.rows(MIXED)


def test_more_inputs_than_there_is_room_for():
    """The bytes of the matrices, against what is free, and against what is sensible."""
    assert zca_bytes(1000) >= 5 * 8 * 1000**2
    check_inputs("x", MOST_INPUTS, None)
    check_inputs("x", 100, zca_bytes(100))
    with pytest.raises(ValueError, match=r"the 100 inputs of 'x' needs 67,588,864 bytes, but 67,588,863 are free"):
        check_inputs("x", 100, zca_bytes(100) - 1)
    with pytest.raises(ValueError, match=r"27,648 x 27,648 \(36,758,880,256 bytes\); it takes at most 8,192"):
        check_inputs("x", 27648, None)
