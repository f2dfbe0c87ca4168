"""Frequencies and landmarks against scipy's distributions and plain numpy, number by number."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.stats import qmc

from dkl.features.frequencies import SOBOL_LIMIT, draw_unit
from dkl.features.landmark_weights import Far, Leverage
from dkl.features.nystroem import NystroemMap
from dkl.kernels import KERNELS, exact_kernel

LAWS = {"gaussian": stats.norm, "laplacian": stats.cauchy, "matern32": stats.t(3), "matern52": stats.t(5)}
ISOTROPIC = {"isotropic_matern12": 1, "isotropic_matern32": 3, "isotropic_matern52": 5}
RNG = np.random.default_rng(5)


def uniform(scheme, m, D, seed):
    """The points that a draw begins with."""
    rng = np.random.default_rng(seed)
    if scheme == "iid":
        return rng.random((m, D))
    return qmc.Sobol(m, scramble=True, rng=rng).random_base2(4)[:D].T


@pytest.mark.parametrize("scheme", ["iid", "quasi"])
@pytest.mark.parametrize(("m", "D"), [(3, 1), (3, 2), (2, 5), (1, 16)])
def test_frequencies_of_products(scheme, m, D):
    """Quantiles of each number by itself, cut at 1000 m."""
    for name, law in LAWS.items():
        found = draw_unit(KERNELS[name], m, D, scheme, np.random.default_rng(D))
        expected = np.clip(law.ppf(uniform(scheme, m, D, D)), -1000.0 * m, 1000.0 * m)
        assert found.shape == (m, D)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("scheme", ["iid", "quasi"])
@pytest.mark.parametrize("name", ISOTROPIC)
def test_frequencies_of_the_norm(scheme, name):
    """Normal vectors, each over one radius: the last of its numbers."""
    m, D, degrees = 3, 9, ISOTROPIC[name]
    u = uniform(scheme, m + 1, D, 1)
    radius = np.sqrt(stats.chi2(degrees).ppf(u[m]) / degrees)
    found = draw_unit(KERNELS[name], m, D, scheme, np.random.default_rng(1))
    np.testing.assert_allclose(found, np.clip(stats.norm.ppf(u[:m]) / radius, -3000.0, 3000.0), rtol=1e-9)


@pytest.mark.parametrize("name", [*LAWS, *ISOTROPIC])
def test_orthogonal_frequencies(name):
    """The normal columns, as for the gaussian; then quantiles of each number, or one radius for each column."""
    m, D = 3, 7
    rng = np.random.default_rng(2)
    normal = draw_unit(KERNELS["gaussian"], m, D, "orthogonal", rng)
    found = draw_unit(KERNELS[name], m, D, "orthogonal", np.random.default_rng(2))
    if name in ISOTROPIC:
        degrees = ISOTROPIC[name]
        expected = normal / np.sqrt(stats.chi2(degrees).ppf(rng.random(D)) / degrees)
    else:
        expected = LAWS[name].ppf(stats.norm.cdf(normal))
    np.testing.assert_allclose(found, np.clip(expected, -3000.0, 3000.0), rtol=1e-6)


@pytest.mark.parametrize(("name", "m"), [("gaussian", 21202), ("isotropic_matern32", 21201)])
def test_more_inputs_than_sobol_points_have(name, m):
    """Refused, with what to use instead; a radius counts as one of them."""
    assert SOBOL_LIMIT == qmc.Sobol.MAXDIM == 21201
    with pytest.raises(ValueError, match="reaches 21201 inputs, X has 21202; use frequencies='orthogonal'"):
        draw_unit(KERNELS[name], m, 2, "quasi", np.random.default_rng(0))


SIGMA = np.array([0.7, 1.1])
ROWS = RNG.normal(size=(1100, 2))
CENTRES = ROWS[[3, 700]] + 0.01


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["gaussian", "laplacian"])
def test_far(wrap, name):
    """1 - max k, over several tiles of rows; never below zero, and zero at a centre."""
    rows = np.vstack([ROWS, CENTRES])
    found = Far(KERNELS[name], SIGMA, CENTRES)(wrap(rows))
    expected = 1 - exact_kernel(KERNELS[name], SIGMA, rows, CENTRES).max(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found[-2:].tolist() == [0, 0]
    assert found.min() == 0


def test_leverage():
    """phi (G + lam I)^-1 phi' and what the pilot misses, over lam; over several tiles."""
    kernel, lam = KERNELS["gaussian"], 0.25
    landmarks = ROWS[:6]
    values, vectors = np.linalg.eigh(exact_kernel(kernel, SIGMA, landmarks, landmarks))
    whitening = vectors[:, -4:] / np.sqrt(values[-4:])
    pilot = NystroemMap(kernel, SIGMA, landmarks, whitening, np.arange(6), 1.0, True)
    assert (pilot.n_features, pilot.scale) == (4, 1.0)
    phi = exact_kernel(kernel, SIGMA, ROWS, landmarks) @ whitening
    inverse = np.linalg.inv(phi.T @ phi / 1100 + lam * np.eye(4))
    found = Leverage(pilot.at(np.float64), np.linalg.cholesky(inverse), lam)(ROWS)
    missed = np.maximum(1 - (phi**2).sum(axis=1), 0)
    assert missed.max() > 0.1
    expected = np.einsum("ij,jk,ik->i", phi, inverse, phi) + missed / lam
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(pilot.at(np.float64).transform(ROWS), phi, atol=1e-12)
    assert pilot.at(np.float32).whitening.dtype == np.float64
    narrow = NystroemMap(kernel, SIGMA, landmarks, whitening, np.arange(6), 1.0, False).at(np.float32)
    assert (narrow.whitening.dtype, narrow.landmarks.dtype, narrow.dtype) == ("float32", "float32", "float32")
    assert pilot.at(np.float32).transform(ROWS).dtype == np.float32
