"""GMKL against scipy's optimisers on objectives written here, the group lasso, and scikit-learn."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import check_grad, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from dkl.exact import GMKL, GMKLClassifier
from dkl.learn.kernel_machines import SquareMachine, SupportMachine
from dkl.learn.kernel_weights import KernelSum, largest_alpha

N, R, P = 50, 5, 4
RNG = np.random.default_rng(0)
PHI = [RNG.normal(size=(N, P)) for _ in range(R)]
GRAMS = tuple(phi @ phi.T for phi in PHI)
Y = PHI[0][:, :2] + 0.4 * PHI[2][:, :2] + 0.3 * RNG.normal(size=(N, 2)) + 3
SIGN = np.where(Y > 3, 1.0, -1.0)
WEIGHT = RNG.integers(1, 3, N).astype(float)
X = RNG.uniform(0, 3, (90, 4))
TARGET = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * RNG.normal(size=90)
CODE = np.digitize(TARGET, [0.2, 0.9])
EXACT = {"tol": 1e-10, "max_iter": 3000, "verbose": 0}


def group_lasso(alpha, weight, centred, steps=60_000):
    """W of least sum w |y - Phi W - b|^2 / 2 + alpha sum_j |W_j|_F, by accelerated proximal gradient with restarts."""
    phi, y = np.hstack(PHI), Y.copy()
    if centred:
        phi, y = (z - np.average(z, axis=0, weights=weight) for z in (phi, y))
    gram, pull = phi.T @ (weight[:, None] * phi), phi.T @ (weight[:, None] * y)
    most = np.linalg.eigvalsh(gram)[-1]
    W = V = np.zeros_like(pull)
    t = 1.0
    for _ in range(steps):
        step = (V - (gram @ V - pull) / most).reshape(R, P, -1)
        norm = np.linalg.norm(step, axis=(1, 2), keepdims=True)
        new = (np.maximum(0, 1 - alpha / most / np.maximum(norm, 1e-300)) * step).reshape(W.shape)
        if ((V - new) * (new - W)).sum() > 0:
            t = 1.0
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        moved = np.abs(new - W).max()
        W, V, t = new, new + (t - 1) / after * (new - W), after
        if moved < 1e-15:
            break
    return W.reshape(R, P, -1)


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.01])
def test_weights_are_those_of_the_group_lasso(share, intercept, weight):
    """d_j = |w_j| / sqrt 2 of features whose gram matrices are given, and the same predictions."""
    w = np.ones(N) if weight is None else weight
    alpha = share * largest_alpha(KernelSum(GRAMS, Y, w, SquareMachine(), 1.0, intercept))
    model = GMKL("precomputed", alpha=alpha, fit_intercept=intercept, **EXACT).fit(list(GRAMS), Y, weight)
    W = group_lasso(alpha, w, intercept)
    norms = np.linalg.norm(W, axis=(1, 2))
    np.testing.assert_allclose(model.kernel_weights_, norms / np.sqrt(2), rtol=0, atol=1e-6 * norms.max())
    f = np.hstack(PHI) @ np.vstack(W)
    b = np.average(Y - f, axis=0, weights=w) if intercept else 0.0
    np.testing.assert_allclose(model.predict(np.stack(GRAMS)), f + b, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-5)
    objective = 0.5 * (w[:, None] * (f + b - Y) ** 2).sum() + alpha * norms.sum()
    assert float(model.history_["objective"][-1]) == pytest.approx(objective, rel=1e-8)
    assert model.certificate_["met"]
    assert model.certificate_["gap"] < 1e-8
    assert model.alpha_ == alpha
    if share == 0.5:
        assert 0 < (model.kernel_weights_ > 0).sum() < R
        np.testing.assert_array_equal(model.kernel_weights_ > 0, norms > 1e-9)


def test_no_kernel_is_left_from_the_largest_alpha_on():
    """None just above, one just below; then f is the mean."""
    most = largest_alpha(KernelSum(GRAMS, Y, np.ones(N), SquareMachine(), 1.0, True))
    above, below = (GMKL("precomputed", alpha=c * most, **EXACT).fit(list(GRAMS), Y) for c in (1.001, 0.999))
    assert (above.kernel_weights_ == 0).all()
    assert (below.kernel_weights_ > 0).sum() == 1
    np.testing.assert_allclose(above.predict(list(GRAMS)), np.tile(Y.mean(axis=0), (N, 1)))
    auto = GMKL("precomputed", verbose=0).fit(list(GRAMS), Y)
    assert auto.alpha_ == pytest.approx(0.01 * most)


def reduced(kind, C, weight, target):
    """F(d) and its gradient, by scikit-learn's machines on sum_j d_j K_j."""

    def F(d):
        K = sum(max(share, 0.0) * gram for share, gram in zip(d, GRAMS, strict=True))
        total, q = d.sum(), np.zeros(R)
        for y in target.T:
            a = np.zeros(N)
            if kind == "square":
                bordered = np.block([[K + np.diag(1 / (C * weight)), np.ones((N, 1))], [np.ones((1, N)), 0]])
                a = np.linalg.solve(bordered, np.append(y, 0))[:N]
                value = y @ a - (a * a / (C * weight)).sum() / 2
            else:
                how = {"kernel": "precomputed", "C": C, "tol": 1e-9}
                model = SVC(**how) if kind == "hinge" else SVR(**how, epsilon=0.2)
                model.fit(K, y, sample_weight=weight)
                a[model.support_] = model.dual_coef_.ravel()
                value = y @ a - (0 if kind == "hinge" else 0.2 * np.abs(a).sum())
            total += value - a @ K @ a / 2
            q += [a @ gram @ a for gram in GRAMS]
        return total, 1 - q / 2

    return F


LOSSES = {"square": SquareMachine(), "epsilon_insensitive:epsilon=0.2": SupportMachine(0.2), "hinge": SupportMachine()}


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_where_scipy_ends(loss):
    """L-BFGS-B and SLSQP on the reduced objective, whose gradient agrees with differences, several outputs."""
    C, kind = 0.3, loss.partition(":")[0]
    F = reduced(kind, C, WEIGHT, SIGN if kind == "hinge" else Y)
    start = np.array([0.2, 0.1, 0.15, 0.05, 0.1])
    assert check_grad(lambda d: F(d)[0], lambda d: F(d)[1], start, epsilon=1e-5) < 1e-3
    problem = KernelSum(GRAMS, SIGN if kind == "hinge" else Y, WEIGHT, LOSSES[loss], C, True)
    here = problem.at(start)
    assert here.value == pytest.approx(F(start)[0], rel=1e-6)
    np.testing.assert_allclose(here.gradient, F(start)[1], atol=1e-4)
    slopes = [(problem.at(start + e).value - problem.at(start - e).value) / 2e-5 for e in 1e-5 * np.eye(R)]
    np.testing.assert_allclose(here.gradient, slopes, atol=1e-5)
    model, target = (GMKL, Y) if kind != "hinge" else (GMKLClassifier, SIGN[:, 0])
    if kind == "hinge":
        F = reduced(kind, C, WEIGHT, SIGN[:, :1])
    fitted = model("precomputed", alpha=np.sqrt(2) / C, loss=loss, **EXACT | {"tol": 1e-7})
    fitted.fit(list(GRAMS), target, WEIGHT)
    for method, end in (("L-BFGS-B", {"ftol": 1e-15, "gtol": 1e-10}), ("SLSQP", {"ftol": 1e-14})):
        found = minimize(F, start, jac=True, bounds=[(0, None)] * R, method=method, options={"maxiter": 500, **end})
        assert F(fitted.kernel_weights_)[0] <= found.fun + 1e-6 * abs(found.fun)
        np.testing.assert_allclose(fitted.kernel_weights_, found.x, atol=2e-3 * found.x.max())
    assert fitted.certificate_["met"]
    assert fitted.certificate_["gap"] < 1e-5


def test_kernels_and_channels():
    """Every kernel on every channel, slices and lists of columns; predictions by scikit-learn's kernels."""
    kernels, channels, new = [("gaussian", 0.7), ("laplacian", [0.5, 0.5])], [slice(0, 2), [1, 3]], X[:20] + 0.1
    model = GMKL(kernels, channels=channels, alpha=0.3, **EXACT).fit(X, TARGET)
    cross = [k(new[:, c], X[:, c]) for c in ([0, 1], [1, 3]) for k in (gaussian, laplacian)]
    grams = [k(X[:, c], X[:, c]) for c in ([0, 1], [1, 3]) for k in (gaussian, laplacian)]
    given = GMKL("precomputed", alpha=0.3, **EXACT).fit(grams, TARGET)
    np.testing.assert_allclose(model.kernel_weights_, given.kernel_weights_, atol=1e-7)
    np.testing.assert_allclose(model.predict(new), given.predict(cross), atol=1e-6)
    K = sum(d * k for d, k in zip(model.kernel_weights_, cross, strict=True))
    np.testing.assert_allclose(model.predict(new), K @ model.dual_coef_ + model.intercept_, atol=1e-9)
    assert [(one.kernel.name, one.inputs.tolist()) for one in model.kernels_[::2]] == [
        ("gaussian", [0, 1]),
        ("gaussian", [1, 3]),
    ]
    assert model.history_["kernel_weights"].shape == (model.n_iter_ + 1, 4)
    assert model.score(X, TARGET) > 0.9


def gaussian(A, B):
    return rbf_kernel(A, B, gamma=0.7**2 / 2)


def laplacian(A, B):
    return laplacian_kernel(A, B, gamma=0.5)


@pytest.mark.parametrize("weight", [None, np.arange(90) % 3 * 1.0])
def test_uniform_weights_are_the_mean_of_the_kernels(weight):
    """Kernel ridge and support vectors of scikit-learn with the averaged kernel; rows of zero weight do not count."""
    K = (gaussian(X, X) + laplacian(X, X)) / 2
    how = {"weights": "uniform", "alpha": 0.5, "verbose": 0}
    kernels = [("gaussian", 0.7), ("laplacian", 0.5)]
    model = GMKL(kernels, fit_intercept=False, **how).fit(X, TARGET, weight)
    right = KernelRidge(alpha=0.5, kernel="precomputed").fit(K, TARGET, weight).predict(K)
    np.testing.assert_allclose(model.predict(X), right, atol=1e-9)
    given = GMKL("precomputed", fit_intercept=False, **how).fit([gaussian(X, X), laplacian(X, X)], TARGET, weight)
    np.testing.assert_allclose(given.predict([gaussian(X, X), laplacian(X, X)]), right, atol=1e-9)
    model = GMKL(kernels, loss="epsilon_insensitive", **how).fit(X, TARGET, weight)
    kept = np.full(90, True) if weight is None else weight > 0  # libsvm does not drop columns of a given kernel
    own, w = K[np.ix_(kept, kept)], None if weight is None else weight[kept]
    right = SVR(kernel="precomputed", C=2.0, tol=1e-8).fit(own, TARGET[kept], w).predict(K[:, kept])
    np.testing.assert_allclose(model.predict(X), right, atol=1e-4)
    model = GMKLClassifier(kernels, loss="hinge", **how).fit(X, CODE, weight)
    for j in range(3):
        one = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(own, np.equal(CODE, j)[kept], w)
        np.testing.assert_allclose(model.decision_function(X)[:, j], one.decision_function(K[:, kept]), atol=1e-4)
    assert (model.kernel_weights_ == 0.5).all()
    assert not hasattr(model, "certificate_")
    assert not hasattr(model, "history_")


@pytest.mark.parametrize("loss", ["square", "hinge"])
def test_classes_share_the_weights(loss):
    """Of the inputs that tell the classes apart; two classes have one score, whose sign decides."""
    model = GMKLClassifier(["gaussian"], channels="each", loss=loss, alpha=3.0, verbose=0).fit(X, CODE)
    assert model.decision_function(X).shape == (90, 3)
    assert model.kernel_weights_.shape == (4,)
    assert model.kernel_weights_.argmax() == 0
    assert model.score(X, CODE) > 0.8
    two = GMKLClassifier(["gaussian"], channels="each", loss=loss, verbose=0).fit(X, np.array(["a", "b"])[CODE // 2])
    assert two.decision_function(X).shape == (90,)
    np.testing.assert_array_equal(two.predict(X) == "b", two.decision_function(X) > 0)


@pytest.mark.parametrize("kind", ["sparse", "dask", "float32"])
def test_kinds_of_input(kind):
    """The same predictions from every kind of rows."""
    rows = {"sparse": sp.csr_array, "dask": lambda x: da.from_array(x, chunks=(40, 4)), "float32": np.float32}[kind](X)
    how = {"kernels": [("gaussian", 0.5), ("laplacian", 0.5)], "channels": "each", "alpha": 1.0, "verbose": 0}
    expected = GMKL(**how).fit(X, TARGET).predict(X)
    got = GMKL(**how).fit(rows, TARGET).predict(rows)
    assert isinstance(got, da.Array if kind == "dask" else np.ndarray)
    np.testing.assert_allclose(np.asarray(got), expected, atol=1e-4)


REFUSED = [
    ({"max_rows": 50}, r"X has 90 rows, GMKL takes 50 .*; use dkl.SingleKernelRegressor, or max_rows=90"),
    ({"kernels": ["gausian"]}, "kernel='gausian' is not known; did you mean 'gaussian'"),
    ({"kernels": "gaussian"}, "kernels='gaussian' must be a list of kernels"),
    ({"kernels": [("gaussian", 1, 2)]}, r"kernels has \('gaussian', 1, 2\); give a name or a pair"),
    ({"kernels": [("gaussian", "scale*x")]}, r"sigma='scale\*x' is not known; give numbers"),
    ({"kernels": [("gaussian", -1.0)]}, "sigma contains -1.0"),
    ({"kernels": [("skewed_chi2", 1.0)], "channels": [[2]], "skew": 1e-9}, None),
    ({"kernels": "precomputed"}, "X has 90 rows and 4 columns; kernels='precomputed' needs gram matrices of 90 x 90"),
    ({"kernels": "precomputed", "channels": "each"}, "channels='each' does not go with kernels='precomputed'"),
    ({"channels": [[0], [7]]}, r"channels has \[7\], which is empty or names no input; X has inputs 0 to 3"),
    ({"weights": "learn"}, "weights='learn' is not known; did you mean 'learned'"),
    ({"loss": "huber"}, "loss='huber' is not known; use one of 'square', 'epsilon_insensitive'"),
    ({"loss": "epsilon_insensitive:epsilon=-1"}, "epsilon='-1' must be a number above 0"),
    ({"loss": "epsilon_insensitive", "fit_intercept": False}, "always has an intercept; use fit_intercept=True"),
    ({"alpha": 0}, "alpha=0 must be a finite number above 0"),
]


@pytest.mark.parametrize(("params", "sentence"), REFUSED)
def test_refusals(params, sentence):
    """One line that shows the value and what to type; the estimator is left as it was."""
    model = GMKL(**{"verbose": 0} | params)
    if sentence is None:
        with pytest.raises(ValueError, match="Negative values in data: X contains -1 at row 4, column 2"):
            model.fit(np.where((np.arange(90) == 4)[:, None], -1.0, X), TARGET)
        return
    with pytest.raises(ValueError, match=sentence) as refusal:
        model.fit(X, TARGET)
    assert "\n" not in str(refusal.value)
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]


def test_refusals_of_grams_and_rows():
    """Matrices that are no gram matrices, of other shapes; rows are counted before they are computed."""
    wrong = GRAMS[0].copy()
    wrong[1, 2] += 1
    with pytest.raises(ValueError, match=r"gram matrix 1 is not symmetric: its entries \(1, 2\) and \(2, 1\)"):
        GMKL("precomputed").fit([GRAMS[0], wrong], Y)
    with pytest.raises(ValueError, match="gram matrix 0 has -"):
        GMKL("precomputed").fit([-GRAMS[0]], Y)
    with pytest.raises(ValueError, match="X has gram matrices of shapes"):
        GMKL("precomputed").fit([GRAMS[0], GRAMS[1][:9]], Y)
    with pytest.raises(ValueError, match=r"X has 20,000 rows, GMKLClassifier takes 10,000"):
        GMKLClassifier().fit(da.zeros((20_000, 2), chunks=(5000, 2)), np.arange(20_000) % 2)


def test_limits_are_named():
    """max_iter stops learning with a warning that tells the residual."""
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=1 before it converged.*KKT residual is .*tol is"):
        model = GMKL("precomputed", max_iter=1, tol=1e-12, verbose=0).fit(list(GRAMS), Y)
    assert not model.certificate_["met"]
    assert model.n_iter_ == 1


@parametrize_with_checks([GMKL(verbose=0), GMKLClassifier(verbose=0), GMKL(weights="uniform", verbose=0)])
def test_sklearn_check(estimator, check):
    """Every check scikit-learn has for an estimator of that kind."""
    check(estimator)
