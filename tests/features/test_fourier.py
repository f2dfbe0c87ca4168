"""Random Fourier features against exact kernels, numpy's trigonometry, and themselves in another precision."""

import pickle
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from dkl.features.fourier import FORMS
from dkl.features.frequencies import SCHEMES
from dkl.features.rows import Refusal
from dkl.features.trigonometry import cos_sin, cosine
from dkl.kernels import KERNELS, exact_kernel, skew
from dkl.prepare.draw import build_map

SKEW = 0.3
INVARIANT = [name for name in KERNELS if KERNELS[name].additive is None]
"""Kernels that need no look at the rows; the others are in tests/estimators/test_exp_chi2.py."""
SIGMA = np.array([0.4, 0.8, 1.3])
SHAPES = [("paired", 16384), ("paired", 16383), ("phase", 16384)]


def make_map(kernel="gaussian", d=64, form="paired", scheme="iid", sigma=SIGMA, m=3, seed=0):
    params = {"kernel": kernel, "skew": SKEW, "n_terms": 5, "frequencies": scheme, "form": form}
    params |= {"n_components": d, "groups": None, "sigma": sigma}
    return build_map(params, m, {}, np.random.default_rng(seed), None)[0]


def draw_rows(kernel, n, m=3, seed=1):
    X = np.random.default_rng(seed).normal(size=(n, m))
    return np.abs(X) if KERNELS[kernel].skewed else X


def true_values(kernel, X, Y, sigma=SIGMA):
    T, S = (skew(X, SKEW), skew(Y, SKEW)) if KERNELS[kernel].skewed else (X, Y)
    return exact_kernel(KERNELS[kernel], sigma, T, S)


def unscaled(features, X, dtype):
    """Cosines and sines alone, for errors that a small scale would hide."""
    blocks = features.at(dtype)
    return blocks.transform(X) / dtype(features.scale)


def maps():
    """Every kernel x form x scheme; what is no more than a repetition is long."""
    for kernel, (form, d), scheme in product(INVARIANT, SHAPES, SCHEMES):
        soon = kernel in ("gaussian", "isotropic_matern32") or (form, d, scheme) == ("paired", 16384, "orthogonal")
        yield pytest.param(kernel, form, d, scheme, marks=() if soon else pytest.mark.long)


@pytest.mark.parametrize(("kernel", "form", "d", "scheme"), maps())
def test_products_approach_the_kernel(kernel, form, d, scheme):
    """psi(x)'psi(y) at d = 16384 is within 1.5e-2 rms of k(x, y)."""
    X = draw_rows(kernel, 24)
    Psi = make_map(kernel, d, form, scheme).at(np.float64).transform(X)
    assert Psi.shape == (24, d)
    error = Psi @ Psi.T - true_values(kernel, X, X)
    assert np.sqrt(np.mean(error**2)) < 1.5e-2


@pytest.mark.parametrize(("form", "d"), [("paired", 8), ("paired", 7), ("phase", 8)])
@pytest.mark.parametrize("kernel", INVARIANT)
def test_orthogonal_frequencies_are_unbiased(kernel, form, d):
    """The mean of 300 draws with few features is within four standard errors of the kernel."""
    X, Y = np.split(draw_rows(kernel, 12), 2)
    draws = []
    for seed in range(300):
        blocks = make_map(kernel, d, form, "orthogonal", seed=seed).at(np.float64)
        draws.append((blocks.transform(X) * blocks.transform(Y)).sum(1))
    standard_error = np.std(draws, axis=0, ddof=1) / np.sqrt(len(draws))
    gap = np.abs(np.mean(draws, axis=0) - np.diag(true_values(kernel, X, Y)))
    assert (gap < 4 * standard_error).all()
    assert standard_error.max() < 0.05


@pytest.mark.parametrize(("scheme", "m"), [("orthogonal", 16), ("quasi", 2)])
def test_better_frequencies_err_less_than_iid(scheme, m):
    """Averaged over seeds, gaussian kernel: the reason these schemes exist."""
    X, sigma = draw_rows("gaussian", 30, m) / np.sqrt(m), np.full(m, 1.0)
    K = true_values("gaussian", X, X, sigma)

    def mean_square(frequencies):
        errors = []
        for seed in range(30):
            Psi = make_map("gaussian", 256, "paired", frequencies, sigma, m, seed).at(np.float64).transform(X)
            errors.append(np.mean((Psi @ Psi.T - K) ** 2))
        return np.mean(errors)

    assert mean_square(scheme) < 0.8 * mean_square("iid")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kernel", INVARIANT)
def test_paired_rows_have_norm_one(kernel, scheme):
    """cos^2 + sin^2 = 1 for every frequency."""
    Psi = make_map(kernel, 100, "paired", scheme).at(np.float64).transform(draw_rows(kernel, 50))
    np.testing.assert_allclose(np.linalg.norm(Psi, axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 16, 17])
@pytest.mark.parametrize("form", FORMS)
def test_features_are_the_formula(form, d):
    """cos and sin of X (sigma * H), the phase times 2 pi, and sqrt2 for the frequency without a sine."""
    features, X = make_map("matern32", d, form), draw_rows("matern32", 9)
    theta = X @ (SIGMA[:, None] * features.unit)
    if form == "phase":
        expected = np.sqrt(2 / d) * np.cos(theta + 2 * np.pi * features.phase)
    else:
        pairs = d // 2
        last = np.sqrt(2) * np.cos(theta[:, pairs:] + 2 * np.pi * features.phase)
        expected = np.hstack([np.cos(theta[:, :pairs]), last, np.sin(theta[:, :pairs])]) / np.sqrt((d + 1) // 2)
    assert features.n_features == d
    np.testing.assert_allclose(features.at(np.float64).transform(X), expected, atol=1e-13)


def test_orthogonal_columns_are_orthogonal():
    """Gaussian columns in groups of m have no inner product."""
    unit = make_map("gaussian", 40, "phase", "orthogonal", sigma=1.0, m=8).unit
    for start in range(0, 40, 8):
        group = unit[:, start : start + 8]
        product = group.T @ group
        np.testing.assert_allclose(product, np.diag(np.diag(product)), atol=1e-12)


def wide_angles():
    rng = np.random.default_rng(3)
    near_poles = np.pi * np.arange(-50, 50) + rng.normal(size=100) * 1e-9
    spread = rng.normal(size=1900) * np.geomspace(1e-8, 1e6, 1900)
    return np.concatenate([near_poles, spread]).reshape(200, 10)


def test_cos_sin_in_float64():
    """The tangent formula is as good as numpy's cosine and sine at every angle; cos may replace theta."""
    theta = wide_angles()
    cos, sin = np.empty_like(theta), np.empty_like(theta)
    cos_sin(theta, cos, sin)
    assert np.abs(cos - np.cos(theta)).max() < 4e-15
    assert np.abs(sin - np.sin(theta)).max() < 4e-15
    again = theta.copy()
    cos_sin(again, again, sin)
    np.testing.assert_array_equal(again, cos)


def test_cosine_in_float64():
    """In place, over more rows than are worked on together."""
    theta = wide_angles()
    expected = np.cos(theta)
    cosine(theta)
    assert np.abs(theta - expected).max() < 4e-15


def test_trigonometry_in_float32():
    """cos, sin and the cosine in place, to float32 rounding of the result."""
    theta = wide_angles().astype(np.float32)
    expected = theta.astype(np.float64)
    cos, sin, replaced = np.empty_like(theta), np.empty_like(theta), theta.copy()
    cos_sin(theta, cos, sin)
    cosine(replaced)
    np.testing.assert_allclose(cos, np.cos(expected), atol=3e-7)
    np.testing.assert_allclose(sin, np.sin(expected), atol=3e-7)
    np.testing.assert_allclose(replaced, np.cos(expected), atol=3e-7)


def test_cosine_of_nothing():
    """No columns, no work, no error."""
    empty = np.empty((5, 0))
    cosine(empty)
    assert empty.shape == (5, 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", INVARIANT)
def test_float32_follows_float64(kernel, form):
    """Heavy tails make large phases, and the cosines still agree to 1e-3."""
    features = make_map(kernel, 4096, form, sigma=1.0)
    X = draw_rows(kernel, 50).astype(np.float32)
    narrow, wide = unscaled(features, X, np.float32), unscaled(features, X, np.float64)
    assert np.abs(narrow - wide).max() < 1e-3


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_huge_rows_in_float32(kind):
    """Rows whose phase is beyond float32 are projected in float64, dense or sparse."""
    features = make_map("laplacian", 512, "paired", sigma=1.0)
    assert np.abs(features.unit).max() > 100
    X = (draw_rows("laplacian", 40) * np.geomspace(1, 1e6, 40)[:, None]).astype(np.float32)
    wide = unscaled(features, X, np.float64)
    assert np.abs(unscaled(features, kind(X), np.float32) - wide).max() < 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_absurd_rows_stay_bounded(dtype):
    """An input of 1e30 gives some cosine, never NaN, and spoils no other row."""
    features = make_map("laplacian", 64, "paired")
    X = draw_rows("laplacian", 5).astype(dtype)
    expected = features.at(dtype).transform(X)
    X[2] = 1e30
    Psi = features.at(dtype).transform(X)
    assert np.abs(Psi).max() <= features.scale * (1 + 1e-6)
    np.testing.assert_allclose(np.delete(Psi, 2, 0), np.delete(expected, 2, 0), atol=1e-6)


def test_row_does_not_depend_on_its_neighbours():
    """Precision is chosen for each row: a row just below the float64 limit keeps its features beside a far one."""
    features = make_map("laplacian", 256, "paired", sigma=1.0, m=1)
    largest = np.abs(features.unit).max()
    phases = np.array([1.0, 2.0**10, 2.0**12, 0.9 * 2**13, 1.1 * 2**13, 2.0**16, 2.0**24])
    X = (phases / largest)[:, None].astype(np.float32)
    together = unscaled(features, X, np.float32)
    for i in range(len(X)):
        np.testing.assert_allclose(unscaled(features, X[i : i + 1], np.float32)[0], together[i], atol=1e-6)
    error = np.abs(together - unscaled(features, X, np.float64)).max(1)
    assert error[3] > 1e-5, "this row should be in float32, or the comparison above shows nothing"
    assert error[4:].max() < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("kernel", INVARIANT)
def test_sparse_block_is_the_dense_block(kernel, kind, dtype):
    """Sparse rows, whose zeros stay unstored through log(1 + x / c), give the dense features."""
    X = draw_rows(kernel, 40).astype(dtype)
    X[np.random.default_rng(4).random(X.shape) < 0.6] = 0
    X[7] = 0
    blocks = make_map(kernel, 65).at(dtype)
    atol = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(blocks.transform(kind(X)), blocks.transform(X), atol=atol)


@pytest.mark.parametrize("kernel", ["gaussian", "skewed_chi2"])
def test_repeated_sparse_entries_are_added_first(kernel):
    """A csr block may hold an entry in several pieces; t(x) is of their sum."""
    split = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]), np.array([0, 3])), shape=(1, 3))
    blocks = make_map(kernel, 64).at(np.float64)
    np.testing.assert_allclose(blocks.transform(split), blocks.transform(np.array([[3.0, 0, 4]])), atol=1e-13)


def test_skewed_transform_leaves_the_input_alone():
    """log(1 + x / c) is taken of a copy, sparse or dense."""
    X = draw_rows("skewed_chi2", 10)
    stored = sparse.csr_array(X)
    for block in (X, stored):
        before = block.copy()
        make_map("skewed_chi2").at(np.float64).transform(block)
        assert abs(block - before).max() == 0


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kernel", "value", "sentence"),
    [
        ("gaussian", np.nan, "X contains NaN at row 3, column 1; remove or impute it"),
        ("gaussian", np.inf, "X contains infinity at row 3, column 1; remove or impute it"),
        ("skewed_chi2", -np.inf, "X contains infinity at row 3, column 1; remove or impute it"),
        (
            "skewed_chi2",
            -0.75,
            "Negative values in data: X contains -0.75 at row 3, column 1; "
            "kernel='skewed_chi2' needs entries above -skew = -0.3",
        ),
        (
            "skewed_intersection",
            -0.3,
            "Negative values in data: X contains -0.3 at row 3, column 1; "
            "kernel='skewed_intersection' needs entries above -skew = -0.3",
        ),
    ],
)
def test_refused_row_is_named(kernel, value, sentence, dtype, kind):
    """The first bad entry, row by row, and its place in the whole data; a later one is not mentioned."""
    X = draw_rows(kernel, 6).astype(dtype)
    X[3, 1] = X[4, 0] = value
    with pytest.raises(Refusal) as caught:
        make_map(kernel).at(dtype).prepare(kind(X))
    assert str(caught.value) == sentence
    assert caught.value.row == 3
    assert caught.value.at(1000) == (1003, sentence.replace("row 3", "row 1003"))


def test_refusal_survives_pickling():
    """A worker's refusal arrives with its row."""
    refusal = pickle.loads(pickle.dumps(Refusal(3, "bad at row {row}")))
    assert (str(refusal), refusal.at(10)) == ("bad at row 3", (13, "bad at row 13"))


def test_negative_entry_above_the_skew_is_accepted():
    """Only x <= -c is outside the domain of log(1 + x / c)."""
    X = np.array([[-0.29, 0.0, 1.0]])
    Psi = make_map("skewed_chi2", 64).at(np.float64).transform(X)
    assert np.linalg.norm(Psi) == pytest.approx(1, abs=1e-12)


def test_large_finite_sum_is_not_refused():
    """Entries whose sum overflows are still finite."""
    X = np.full((4, 3), 1e308)
    X[2:] *= -1
    assert make_map().at(np.float64).prepare(X) is X
