"""Exponentiated kernels of histograms wherever a kernel is taken: values, learning, rows of every kind, disk, shell."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.svm import SVC

import dkl

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(2)
CENTRES = RNG.dirichlet(np.full(32, 0.3), 4)
CODE = np.arange(600) % 4
NAMES = ["exp_chi2", "exp_intersection", "exp_jensen_shannon"]


def draw(concentration=6.0):
    """Histograms around four centres, with empty bins."""
    X = np.stack([RNG.dirichlet(concentration * CENTRES[code] + 1e-3) for code in CODE])
    X[X < 1e-4] = 0
    return X / X.sum(axis=1, keepdims=True)


X = draw()
TRAIN, TEST = slice(0, 400), slice(400, None)
OPTIONS = {"n_components": 300, "random_state": 0, "verbose": 0}


@pytest.mark.parametrize(("name", "terms"), [("exp_chi2", 9), ("exp_jensen_shannon", 9), ("exp_intersection", 121)])
@pytest.mark.parametrize("form", ["paired", "phase"])
def test_products_approach_the_kernel(name, terms, form):
    """Within 1.5e-2 rms of the exact kernel at d = 8192, which for chi2 is scikit-learn's; four bins."""
    few = X[:, :4] + X[:, 4:8]
    options = {"n_terms": terms, "form": form, "frequencies": "iid", "random_state": 0, "verbose": 0}
    model = dkl.FourierFeatures(name, 8192, **options).fit(few)
    A, B = few[:80], few[80:160]
    exact = model.kernel_matrix(A, B, exact=True)
    if name == "exp_chi2":
        np.testing.assert_allclose(exact, chi2_kernel(A, B, gamma=model.sigma_[0] ** 2 / 2), rtol=1e-10)
    error = model.transform(A) @ model.transform(B).T - exact
    assert np.sqrt(np.mean(error**2)) < 1.5e-2


def test_scale_is_one_over_the_mean_distance():
    """beta = sigma^2 = 1 / mean chi2 over all pairs, which no pass over pairs has computed."""
    distances = -np.log(chi2_kernel(X, gamma=0.5))
    model = dkl.FourierFeatures("exp_chi2", 10, verbose=0).fit(X)
    assert model.sigma_[0] ** 2 == pytest.approx(1 / distances.mean(), rel=2e-3)


def test_every_kind_of_rows_gives_the_same(tmp_path):
    """Dask of any chunks and csr draw the same map and fit the same weights."""
    model = dkl.SingleKernelClassifier("exp_chi2", **OPTIONS).fit(X, CODE)
    expected = model.decision_function(X)
    for rows in (da.from_array(X, (111, -1)), da.from_array(X, (600, -1)), sp.csr_array(X)):
        again = dkl.SingleKernelClassifier("exp_chi2", **OPTIONS).fit(rows, CODE)
        np.testing.assert_allclose(again.sigma_, model.sigma_, rtol=1e-12)
        np.testing.assert_allclose(again.decision_function(X), expected, rtol=0, atol=1e-8)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(dkl.load(tmp_path / "m").decision_function(X), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("groups", [None, "each", [0] * 16 + [1] * 16])
def test_sigma_is_learned(name, groups):
    """One sigma for each input, not for each term; the objective falls, and exact kernels judge the model alike."""
    model = dkl.SingleKernelClassifier(name, learn="cv", groups=groups, max_iter=8, starts=1, **OPTIONS)
    model.fit(X[TRAIN], CODE[TRAIN])
    assert model.sigma_.shape == (32,)
    assert len(np.unique(model.sigma_)) == {None: 1, "each": 32}.get(groups if groups != [0] * 16 + [1] * 16 else 0, 2)
    assert model.history_.sizes["input"] == 32
    assert model.history_.objective[-1] < model.history_.objective[0]
    exact = model.kernel_matrix(X, X[TRAIN], exact=True)
    judge = SVC(kernel="precomputed", C=10).fit(exact[TRAIN], CODE[TRAIN])
    assert model.score(X[TEST], CODE[TEST]) > judge.score(exact[TEST], CODE[TEST]) - 0.05


def test_frequencies_are_learned():
    """Every frequency of every term."""
    model = dkl.SingleKernelClassifier("exp_chi2", learn="frequencies", max_iter=3, tol=1e-9, **OPTIONS)
    model.fit(X[TRAIN], CODE[TRAIN])
    assert model.features_.unit.shape == (5 * 32, 150)
    assert model.history_.objective[-1] < model.history_.objective[0]


def test_exact_counterpart():
    """The same kernel with as many weights as rows: the Fourier model comes close."""
    exact = dkl.exact.KernelRidgeGDClassifier("exp_chi2", starts=1, random_state=0, verbose=0)
    exact.fit(X[TRAIN], CODE[TRAIN])
    fourier = dkl.SingleKernelClassifier("exp_chi2", learn="validation", starts=1, **(OPTIONS | {"n_components": 1000}))
    fourier.fit(X[TRAIN], CODE[TRAIN])
    assert fourier.score(X[TEST], CODE[TEST]) > exact.score(X[TEST], CODE[TEST]) - 0.03
    assert np.log(fourier.sigma_[0] / exact.sigma_[0]) == pytest.approx(0, abs=0.4)


def test_resumes_with_the_same_bits(tmp_path):
    """A checkpoint keeps the additive map too."""
    make = lambda: dkl.SingleKernelClassifier(  # noqa: E731
        "exp_chi2", learn="validation", starts=1, max_iter=3, tol=1e-9, checkpoint=tmp_path / "c", **OPTIONS
    )
    whole = make().set_params(checkpoint=None).fit(X, CODE)
    make().fit(X, CODE)
    again = make().fit(X, CODE, resume=True)
    np.testing.assert_array_equal(again.coef_, whole.coef_)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_terms": 0}, "n_terms=0"),
        ({"kernel": "exp_intersection", "n_terms": 4}, "n_terms=4 .*use n_terms=5"),
        ({"kernel": "exp_chi"}, "did you mean 'exp_chi2'"),
    ],
)
def test_options_that_are_refused(options, said):
    """One line that says what to type."""
    with pytest.raises(ValueError, match=said):
        dkl.SingleKernelClassifier(**({"kernel": "exp_chi2"} | OPTIONS | options)).fit(X, CODE)


def test_negative_entries_are_named():
    """At fit and at predict."""
    bad = X.copy()
    bad[17, 3] = -1
    with pytest.raises(ValueError, match="-1 at row 17, column 3; kernel='exp_chi2' is for histograms"):
        dkl.SingleKernelClassifier("exp_chi2", **OPTIONS).fit(bad, CODE)
    model = dkl.SingleKernelClassifier("exp_chi2", **OPTIONS).fit(X, CODE)
    with pytest.raises(ValueError, match="-1 at row 17"):
        model.predict(bad)


def test_plan_counts_the_terms():
    """Five columns for each input are projected; the promise knows them."""
    plans = [dkl.plan(X, dkl.SingleKernelClassifier(kernel, 300), CODE) for kernel in ("gaussian", "exp_chi2")]
    extra = 600 * 2 * (5 - 1) * 32 * 150
    assert plans[1].flops - plans[0].flops == pytest.approx(extra)
    assert plans[1].cost.parameter_bytes > plans[0].cost.parameter_bytes + 8 * 4 * 32 * 150


def test_sums_of_terms_as_features():
    """Gaussian features of Chi2Features are exp_chi2 with the same sigma."""
    lifted = dkl.Chi2Features(verbose=0).fit(X).transform(X)
    direct = dkl.FourierFeatures("exp_chi2", 64, sigma=1.5, random_state=3, verbose=0).fit(X).transform(X)
    staged = dkl.FourierFeatures("gaussian", 64, sigma=1.5, random_state=3, verbose=0).fit(lifted).transform(lifted)
    np.testing.assert_allclose(direct, staged, atol=1e-12)


@pytest.mark.parametrize("kernel", ["exp_chi2", "gaussian", "laplacian"])
@pytest.mark.parametrize("cls", [dkl.FourierFeatures, dkl.NystroemFeatures])
def test_every_group_has_the_scale_of_its_own_inputs(cls, kernel):
    """Channels of different size have the same share in the mean exponent over pairs, which is about one.

    The five terms of exp_chi2's waves are fitted to all entries together, so their channels must be of like size.
    """
    rng, size = np.random.default_rng(0), 1e4 if kernel != "exp_chi2" or cls is dkl.NystroemFeatures else 10.0
    rows = np.hstack([rng.dirichlet(np.full(12, 0.3), 400), size * rng.dirichlet(np.full(8, 0.3), 400)])
    groups = [0] * 12 + [1] * 8
    model = cls(kernel, 50, groups=groups, random_state=0, verbose=0).fit(rows)
    assert len(set(model.sigma_)) == 2
    exponents = []
    for own in (slice(0, 12), slice(12, 20)):
        x, y, sigma = rows[::2, None, own], rows[None, 1::2, own], model.sigma_[own]
        if kernel == "exp_chi2":
            apart = sigma**2 * (x - y) ** 2 / np.maximum(2 * (x + y), 1e-300)
        else:
            apart = (sigma * (x - y)) ** 2 / 2 if kernel == "gaussian" else sigma * np.abs(x - y)
        exponents.append(apart.sum(-1).mean())
    assert exponents[0] == pytest.approx(exponents[1], rel=0.15)
    assert sum(exponents) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1e-6, 1e6, 1e12, 1e30])
def test_entries_of_any_size(size):
    """Histograms times a constant: sigma over its root, and features as near to the kernel as before."""
    rows = np.random.default_rng(0).dirichlet(np.full(20, 0.3), 300)
    plain, scaled = (dkl.FourierFeatures("exp_chi2", 20, random_state=0, verbose=0).fit(rows * s) for s in (1.0, size))
    np.testing.assert_allclose(scaled.sigma_ * np.sqrt(size), plain.sigma_, rtol=1e-3)
    for dtype in (np.float64, np.float32):
        series = dkl.Chi2Features(verbose=0).fit((rows * size).astype(dtype))
        Phi = series.transform((rows * size).astype(dtype)).astype(np.float64)
        exact = series.kernel_matrix(rows * size, exact=True)
        assert np.abs(Phi @ Phi.T - exact).mean() < 2e-3 * exact.mean()


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "isotropic_matern32", "skewed_chi2", "exp_chi2"])
@pytest.mark.parametrize("landmarks", [None, "uniform"])
def test_inputs_that_do_not_vary_change_nothing(kernel, landmarks):
    """Constant columns, each a group of its own, neither widen the kernel nor make noise of a last digit."""
    rows = np.random.default_rng(0).uniform(0.1, 3, (400, 2))
    y = np.sin(2 * rows[:, 0]) + rows[:, 1]
    options = {"landmarks": landmarks, "groups": "each", "alpha": 0.1, "random_state": 0, "verbose": 0}
    plain = dkl.SingleKernelRegressor(kernel, 200, **options).fit(rows, y)
    more = np.hstack([rows, np.full((400, 5), 0.1)])
    model = dkl.SingleKernelRegressor(kernel, 200, **options).fit(more, y)
    np.testing.assert_allclose(model.sigma_[:2], plain.sigma_, rtol=0.05 if kernel == "exp_chi2" else 1e-9)
    assert model.score(more + np.repeat([0, 1e-12], [2, 5]), y) > plain.score(rows, y) - 0.05
