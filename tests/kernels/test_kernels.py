"""Kernels against scipy's distributions, quadrature, and scikit-learn's kernels."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.spatial.distance import jensenshannon
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel

from dkl.kernels import KERNELS, exact_kernel, find_kernel, skew
from dkl.kernels.additive import ADDITIVE
from dkl.kernels.values import kernel_values

SPECTRAL = {
    "gaussian": stats.norm,
    "laplacian": stats.cauchy,
    "matern12": stats.cauchy,
    "matern32": stats.t(3),
    "matern52": stats.t(5),
    "isotropic_matern12": stats.t(1),
    "isotropic_matern32": stats.t(3),
    "isotropic_matern52": stats.t(5),
    "skewed_chi2": stats.hypsecant(scale=2 / np.pi),
    "skewed_intersection": stats.cauchy,
    "exp_chi2": stats.norm,
    "exp_intersection": stats.norm,
    "exp_jensen_shannon": stats.norm,
}
"""The law of one frequency at sigma = 1; hypsecant rescaled has the density 1/2 sech(pi g / 2)."""
PRODUCTS = [name for name in KERNELS if not KERNELS[name].isotropic]
SIGMA = np.array([0.5, 1.0, 1.7])
NU = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


def two_sets(rows=(20, 15), m=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows[0], m)), rng.normal(size=(rows[1], m))


def test_every_kernel_has_an_oracle():
    """A kernel added to the table must be added here."""
    assert set(KERNELS) == set(SPECTRAL)


@pytest.mark.parametrize("name", PRODUCTS)
def test_quantile_inverts_the_distribution(name):
    """CDF(h(u)) = u from 1e-6 to 1 - 1e-6, with the small tail exact on either side."""
    tail = np.geomspace(1e-6, 0.5, 200)
    kernel, law = KERNELS[name], SPECTRAL[name]
    np.testing.assert_allclose(law.cdf(kernel.quantile(tail)), tail, rtol=1e-9)
    np.testing.assert_allclose(law.sf(kernel.quantile(1 - tail)), tail, rtol=1e-9)


@pytest.mark.parametrize("name", PRODUCTS)
def test_quantile_is_finite_at_the_ends(name):
    """u = 0 and u = 1 give finite frequencies of opposite sign, the largest of all."""
    low, inner, high = KERNELS[name].quantile(np.array([0.0, 1e-6, 1.0]))
    assert -np.inf < low < inner < 0
    assert high == -low


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("a", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_profile_is_the_transform_of_the_density(name, a):
    """2 int_0^inf density(g) cos(g a) dg = k1(a)."""
    half, _ = integrate.quad(SPECTRAL[name].pdf, 0, np.inf, weight="cos", wvar=a, epsabs=1e-11)
    assert KERNELS[name].profile(np.array(a)) == pytest.approx(2 * half, abs=1e-8)


def test_gaussian_is_rbf():
    """exp(-|sigma delta|^2 / 2)."""
    X, Y = two_sets()
    expected = rbf_kernel(X * SIGMA, Y * SIGMA, gamma=0.5)
    np.testing.assert_allclose(exact_kernel(KERNELS["gaussian"], SIGMA, X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["laplacian", "matern12"])
def test_laplacian_is_the_product_of_exponentials(name):
    """exp(-|sigma delta|_1)."""
    X, Y = two_sets()
    expected = laplacian_kernel(X * SIGMA, Y * SIGMA, gamma=1.0)
    np.testing.assert_allclose(exact_kernel(KERNELS[name], SIGMA, X, Y), expected, rtol=1e-12)


@pytest.mark.parametrize("name", NU)
def test_isotropic_matern(name):
    """scikit-learn's Matern with length scales 1 / sigma."""
    X, Y = two_sets()
    expected = Matern(1 / SIGMA, nu=NU[name])(X, Y)
    np.testing.assert_allclose(exact_kernel(KERNELS[f"isotropic_{name}"], SIGMA, X, Y), expected, rtol=1e-11)


@pytest.mark.parametrize("name", NU)
def test_product_matern(name):
    """The product over the inputs of scikit-learn's Matern in one variable."""
    X, Y = two_sets()
    columns = [Matern(1 / s, nu=NU[name])(X[:, [j]], Y[:, [j]]) for j, s in enumerate(SIGMA)]
    np.testing.assert_allclose(exact_kernel(KERNELS[name], SIGMA, X, Y), np.prod(columns, axis=0), rtol=1e-12)


def raw_chi2(x, y, s):
    return 2 * x**s * y**s / (x ** (2 * s) + y ** (2 * s))


def raw_intersection(x, y, s):
    return np.minimum((x / y) ** s, (y / x) ** s)


@pytest.mark.parametrize("c", [0.01, 1.0])
@pytest.mark.parametrize(("name", "raw"), [("skewed_chi2", raw_chi2), ("skewed_intersection", raw_intersection)])
def test_skewed_kernels_in_the_raw_variables(name, raw, c):
    """sigma is the exponent of (x + c) and (y + c)."""
    X, Y = (np.abs(Z) for Z in two_sets())
    X[:, 0] = 0
    expected = np.prod([raw(X[:, None, j] + c, Y[None, :, j] + c, s) for j, s in enumerate(SIGMA)], axis=0)
    np.testing.assert_allclose(exact_kernel(KERNELS[name], SIGMA, skew(X, c), skew(Y, c)), expected, rtol=1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_value_at_zero_distance_is_one(name):
    """k(x, x) = 1."""
    X = np.abs(two_sets()[0])
    np.testing.assert_allclose(np.diag(exact_kernel(KERNELS[name], SIGMA, X, X)), 1, atol=1e-12)


def test_exponentiated_kernels():
    """scikit-learn's chi2 kernel, a laplacian of sigma^2 / 2, and scipy's Jensen-Shannon divergence."""
    X, Y = (np.abs(Z) for Z in two_sets())
    X[:, 0], X[3, 1], Y[2, 1] = 0, 0, 0
    same = np.full(3, 1.3)
    found = {name: exact_kernel(KERNELS[f"exp_{name}"], same, X, Y) for name in ADDITIVE}
    np.testing.assert_allclose(found["chi2"], chi2_kernel(X, Y, gamma=1.3**2 / 2), rtol=1e-12)
    np.testing.assert_allclose(found["intersection"], laplacian_kernel(X, Y, gamma=1.3**2 / 2), rtol=1e-12)
    X, Y = (Z / Z.sum(axis=1, keepdims=True) for Z in (X, Y))
    divergence = [[jensenshannon(x, y, base=2) ** 2 for y in Y] for x in X]
    values = exact_kernel(KERNELS["exp_jensen_shannon"], same, X, Y)
    np.testing.assert_allclose(values, np.exp(-(1.3**2) * np.array(divergence)), rtol=1e-12)
    apart = [exact_kernel(KERNELS["exp_chi2"], s * np.eye(3)[j], X, Y) for j, s in enumerate(SIGMA)]
    np.testing.assert_allclose(exact_kernel(KERNELS["exp_chi2"], SIGMA, X, Y), np.prod(apart, axis=0), rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in KERNELS if KERNELS[name].additive is None])
def test_values_do_not_depend_on_the_origin(name):
    """Inputs far from zero (a year, a coordinate in metres) keep their kernel values."""
    X, Y = (np.round(Z * 1024) / 1024 for Z in two_sets())
    near, far = (exact_kernel(KERNELS[name], SIGMA, X + shift, Y + shift) for shift in (0.0, 2.0**17))
    np.testing.assert_allclose(far, near, atol=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_start_sigma_makes_the_mean_exponent_about_one(name):
    """1 / sqrt(sum of variances), or 1 / sum of deviations for kernels of the absolute distance; 1 without spread."""
    spread = np.array([0.5, 2.0, 3.0])
    absolute = name in ("laplacian", "matern12", "skewed_intersection")
    expected = 1 / 5.5 if absolute else 1 / np.sqrt(0.25 + 4 + 9)
    assert KERNELS[name].start_sigma(spread**2, spread) == pytest.approx(expected, rel=1e-14)
    assert KERNELS[name].start_sigma(np.zeros(3), np.zeros(3)) == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("gausian", "gaussian"), ("laplace", "laplacian"), ("matern_32", "matern32"), ("skewed_chi", "skewed_chi2")],
)
def test_misspelt_kernel_is_corrected(typed, meant):
    """The nearest name is suggested."""
    with pytest.raises(ValueError, match=f"kernel={typed!r} is not known; did you mean {meant!r}\\?"):
        find_kernel(typed)


@pytest.mark.parametrize("name", KERNELS)
def test_find_kernel(name):
    """Every name finds its own kernel."""
    assert find_kernel(name).name == name


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_values_by_tiles(name):
    """The same values in tiles, far from the origin too; float32 rows have float32 values."""
    rng = np.random.default_rng(4)
    T = np.abs(rng.standard_normal((700, 3)))
    A, B = 1e4 + T[:600], 1e4 + T
    expected = exact_kernel(KERNELS[name], SIGMA, A, B)
    np.testing.assert_allclose(kernel_values(KERNELS[name], SIGMA, A, B), expected, rtol=0, atol=1e-11)
    assert (np.diag(kernel_values(KERNELS[name], SIGMA, T, T)) == 1).all()
    narrow = kernel_values(KERNELS[name], SIGMA, T.astype(np.float32), T.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, exact_kernel(KERNELS[name], SIGMA, T, T), rtol=0, atol=3e-5)
