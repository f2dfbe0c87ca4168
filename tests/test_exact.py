"""The exact estimators against scikit-learn's KernelRidge, and against the random features they are there to judge."""

from __future__ import annotations

import subprocess
import sys

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import dkl
from dkl.exact import KernelRidgeGD, KernelRidgeGDClassifier
from dkl.learn import exact_problem, parameters

N = 160
RNG = np.random.default_rng(0)
X = RNG.uniform(0, 3, (N, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], np.cos(X[:, 1] * X[:, 0])]) + 0.1 * RNG.standard_normal((N, 2))
Y[:, 1] += 7
y = Y[:, 0]
WEIGHT = RNG.integers(0, 3, N).astype(float)
MASK = np.arange(N) % 4 == 0
FIXED = {"learn": "none", "sigma": 0.7, "alpha": 0.2, "verbose": 0}
LEARNED = {"groups": "each", "starts": 1, "random_state": 3, "verbose": 0}


def skewed_chi2(A, B):
    """The definition in the raw variables, with the constant 1."""
    a, b = (1 + A[:, None]) ** 0.7, (1 + B) ** 0.7
    return (2 * a * b / (a * a + b * b)).prod(-1)


ELSEWHERE = {
    "gaussian": lambda A, B: rbf_kernel(A, B, gamma=0.7**2 / 2),
    "laplacian": lambda A, B: laplacian_kernel(A, B, gamma=0.7),
    "isotropic_matern12": Matern(1 / 0.7, nu=0.5),
    "isotropic_matern32": Matern(1 / 0.7, nu=1.5),
    "isotropic_matern52": Matern(1 / 0.7, nu=2.5),
    "skewed_chi2": skewed_chi2,
}
"""Kernels at sigma = 0.7 as others write them."""


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("kernel", sorted(ELSEWHERE))
def test_predictions_of_kernel_ridge(kernel, weight):
    """Without an intercept, scikit-learn's KernelRidge of the same kernel, one output and two."""
    values, new = ELSEWHERE[kernel], X[:40] + 0.05
    for target in (y, Y):
        model = KernelRidgeGD(kernel, **FIXED, fit_intercept=False).fit(X, target, weight)
        oracle = KernelRidge(alpha=0.2, kernel="precomputed").fit(values(X, X), target, weight)
        np.testing.assert_allclose(model.predict(new), oracle.predict(values(new, X)), rtol=0, atol=1e-9)
        kept = slice(None) if weight is None else weight > 0
        assert model.dual_coef_.shape == target[kept].shape
        np.testing.assert_allclose(model.dual_coef_, oracle.dual_coef_[kept], rtol=0, atol=1e-8)
        np.testing.assert_array_equal(model.X_fit_, X[kept])
        assert (model.sigma_ == 0.7).all()
        assert (model.alpha_, model.n_iter_, model.factorisation_["method"]) == (0.2, 1, "cholesky")
        assert not hasattr(model, "history_")
        assert not hasattr(model, "fold_")


def test_sigma_of_groups_and_inputs():
    """One sigma for each group is a scale of its inputs."""
    model = KernelRidgeGD(**FIXED | {"sigma": [0.5, 2.0]}, groups=["a", "b", "a"], fit_intercept=False).fit(X, y)
    oracle = KernelRidge(alpha=0.2, kernel="rbf", gamma=0.5).fit(X * [0.5, 2.0, 0.5], y)
    np.testing.assert_allclose(model.predict(X), oracle.predict(X * [0.5, 2.0, 0.5]), rtol=0, atol=1e-9)
    assert model.groups_.tolist() == [0, 1, 0]


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_intercept_is_not_penalised(weight):
    """A constant on y moves the predictions and nothing else; a huge alpha leaves the mean."""
    model = KernelRidgeGD(**FIXED).fit(X, Y, weight)
    moved = KernelRidgeGD(**FIXED).fit(X, Y + np.array([1e3, -5]), weight)
    np.testing.assert_allclose(moved.predict(X) - model.predict(X), np.tile([1e3, -5], (N, 1)), atol=1e-8)
    flat = KernelRidgeGD(**FIXED | {"alpha": 1e12}).fit(X, Y, weight)
    np.testing.assert_allclose(flat.predict(X), np.tile(np.average(Y, axis=0, weights=weight), (N, 1)), rtol=1e-8)


def held_out_error(model, kernel, fold, k):
    """Mean squared error on one fold by scikit-learn, at the sigma and alpha of the model."""
    train, test = fold != k, fold == k
    A = X * model.sigma_
    values = {"gaussian": lambda A, B: rbf_kernel(A, B, gamma=0.5), "laplacian": lambda A, B: laplacian_kernel(A, B, 1)}
    gram, across = values[kernel](A[train], A[train]), values[kernel](A[test], A[train])
    fitted = KernelRidge(alpha=model.alpha_, kernel="precomputed").fit(gram, Y[train])
    return ((fitted.predict(across) - Y[test]) ** 2).mean()


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_learned_errors_are_those_of_kernel_ridge(kernel):
    """The last row of history_ for "validation" and "cv", recomputed by scikit-learn; both fell on the way."""
    options = LEARNED | {"kernel": kernel, "fit_intercept": False, "tol": 1e-2}
    model = KernelRidgeGD(**options, validation=MASK).fit(X, Y)
    np.testing.assert_array_equal(model.fold_, MASK)
    found = model.history_["validation_error"].values
    np.testing.assert_allclose(found[-1], held_out_error(model, kernel, model.fold_, 1), rtol=1e-7)
    assert found[-1] < 0.7 * found[0]
    model = KernelRidgeGD(**options, learn="cv", cv=3).fit(X, Y)
    assert sorted(np.bincount(model.fold_)) == [53, 53, 54]
    found = model.history_["objective"].values
    np.testing.assert_allclose(found[-1], np.mean([held_out_error(model, kernel, model.fold_, k) for k in range(3)]))
    assert found[-1] < 0.8 * found[0]


def test_learned_point_is_a_minimum():
    """Moving sigma or alpha by a tenth either way is worse; the input that says nothing is nearly switched off."""
    model = KernelRidgeGD(**LEARNED | {"tol": 1e-6}, validation=MASK, fit_intercept=False, max_iter=200).fit(X, Y)
    best = held_out_error(model, "gaussian", model.fold_, 1)
    for factor in (1 / 1.1, 1.1):
        for j in range(2):
            other = clone(model).set_params(sigma=model.sigma_ * np.where(np.arange(3) == j, factor, 1))
            other.set_params(alpha=model.alpha_, learn="none").fit(X, Y)
            assert held_out_error(other, "gaussian", model.fold_, 1) > best
        other = clone(model).set_params(sigma=model.sigma_, alpha=model.alpha_ * factor, learn="none").fit(X, Y)
        assert held_out_error(other, "gaussian", model.fold_, 1) > best
    assert model.sigma_[2] < 0.2 * model.sigma_[0]


def test_joint_objective():
    """The training objective at the learned sigma; alpha stays, 1 if it is "auto"."""
    model = KernelRidgeGD(**LEARNED, learn="joint", fit_intercept=False).fit(X, Y)
    assert model.alpha_ == 1.0
    gram = rbf_kernel(X * model.sigma_, gamma=0.5)
    a = np.linalg.solve(gram + np.eye(N), Y)
    np.testing.assert_allclose(model.history_["objective"][-1], (a * Y).sum() / (2 * N), rtol=1e-8)
    kept = KernelRidgeGD(**LEARNED, learn="joint", alpha=0.5, fit_intercept=False).fit(X, Y)
    assert (kept.history_["alpha"] == 0.5).all()
    assert not hasattr(kept, "fold_")


def test_l1_leaves_nothing_that_has_all_but_vanished(monkeypatch):
    """Two inputs say nothing; a penalty that only shrinks their sigmas sets them to zero in the end, within tol."""
    rows = np.hstack([X, np.random.default_rng(9).uniform(0, 3, (N, 2))])
    options = LEARNED | {"tol": 0.02, "learn": "cv", "cv": 3, "sigma_l1": 1e-7}
    monkeypatch.setattr(parameters, "VANISHED", 0.0)
    shrunk = KernelRidgeGD(**options).fit(rows, y)
    left = (shrunk.sigma_ / shrunk.history_.sigma[0]).values
    assert (left[3:] > 0).all()
    monkeypatch.setattr(parameters, "VANISHED", 1.01 * left[3:].max())
    model = KernelRidgeGD(**options).fit(rows, y)
    np.testing.assert_array_equal(model.selected_inputs_[3:], False)
    assert model.selected_inputs_[0]
    np.testing.assert_array_equal(model.history_["sigma"][-1], model.sigma_)
    assert float(model.history_["objective"][-1]) <= 1.02 * float(shrunk.history_["objective"][-1])
    assert len(model.history_.iteration) == len(shrunk.history_.iteration) + 1


def gcv(sigma, alpha):
    """Generalised cross-validation by scikit-learn: its fits of the columns of the identity are the hat matrix."""
    gram = rbf_kernel(X * sigma, gamma=0.5)
    machine = KernelRidge(alpha=alpha, kernel="precomputed")
    error = ((machine.fit(gram, Y).predict(gram) - Y) ** 2).mean()
    return error * (N / (N - np.trace(machine.fit(gram, np.eye(N)).predict(gram)))) ** 2


def test_generalised_cross_validation():
    """The objective is scikit-learn's at the learned point, and moving sigma or alpha by a tenth is worse."""
    model = KernelRidgeGD(**LEARNED | {"tol": 1e-6}, learn="gcv", fit_intercept=False, max_iter=200).fit(X, Y)
    best = gcv(model.sigma_, model.alpha_)
    np.testing.assert_allclose(model.history_["objective"][-1], best, rtol=1e-8)
    for factor in (1 / 1.1, 1.1):
        assert gcv(model.sigma_, model.alpha_ * factor) > best
        for j in range(2):
            assert gcv(model.sigma_ * np.where(np.arange(3) == j, factor, 1), model.alpha_) > best
    assert not hasattr(model, "fold_")


@pytest.mark.parametrize("kernel", ["gaussian", pytest.param("matern32", marks=pytest.mark.long)])
def test_agrees_with_random_features(kernel):
    """From the same start and on the same rows, many features learn what the exact kernel learns.

    Over five seeds the errors were 5 % apart at most, and the predictions 3 % of the spread of y; sigma up to 80 %,
    as the objective is flat there.
    """
    noisy = y + 0.3 * np.random.default_rng(1).standard_normal(N)
    options = {
        "kernel": kernel,
        "starts": 1,
        "learn": "validation",
        "validation": MASK,
        "random_state": 0,
        "verbose": 0,
    }
    exact = KernelRidgeGD(**options).fit(X[:, :2], noisy)
    many = dkl.SingleKernelRegressor(n_components=1500, **options).fit(X[:, :2], noisy)
    assert exact.history_["sigma"].values[0, 0] == pytest.approx(many.history_["sigma"].values[0, 0], rel=1e-12)
    errors = [float(model.history_["validation_error"][-1]) for model in (exact, many)]
    assert errors[0] == pytest.approx(errors[1], rel=0.08)
    assert np.abs(exact.predict(X[:, :2]) - many.predict(X[:, :2])).mean() < 0.05 * noisy.std()


def test_cv_chooses_alpha():
    """With learn="none", the best of a list for the folds; scores are those of KernelRidge on each of them."""
    alphas = [1e-3, 0.1, 10.0]
    model = KernelRidgeGD(**FIXED | {"alpha": alphas}, cv=3, fit_intercept=False, random_state=0).fit(X, Y)
    model.sigma_ = np.full(3, 0.7)
    expected = np.empty((3, 3))
    for i, model.alpha_ in enumerate(alphas):
        expected[i] = [-held_out_error(model, "gaussian", model.fold_, k) for k in range(3)]
    got = np.column_stack([model.cv_results_[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(got, expected, rtol=1e-7)
    again = clone(model).fit(X, Y)
    assert again.alpha_ == alphas[expected.mean(axis=1).argmax()]
    assert not hasattr(again, "history_")


def test_two_classes_and_three():
    """Labels of any kind; scores are those of the regression of -1 and +1; error_rate counts held-out rows."""
    code = np.digitize(y, [1.0, 2.0])
    for labels in (np.array(["b", "a", "c"])[code], code > 0):
        model = KernelRidgeGDClassifier(**LEARNED, validation=MASK, tol=0.05).fit(X, labels)
        classes = np.unique(labels)
        np.testing.assert_array_equal(model.classes_, classes)
        target = 2.0 * (labels[:, None] == classes) - 1
        target = target[:, 1:] if len(classes) == 2 else target
        options = FIXED | {"sigma": model.sigma_, "alpha": model.alpha_}
        scores = KernelRidgeGD(**options).fit(X, target).predict(X)
        scores = scores if len(classes) > 2 else scores[:, 0]
        np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
        assert model.score(X, labels) > 0.9
        rest = KernelRidgeGD(**options).fit(X[~MASK], target[~MASK]).predict(X[MASK])
        guess = classes[(rest[:, 0] > 0).astype(int) if len(classes) == 2 else rest.argmax(1)]
        assert model.history_["error_rate"][-1] == pytest.approx(np.mean(guess != labels[MASK]))
    weights = {"a": 1.0, "b": 5.0, "c": 1.0}
    labels = np.array(["b", "a", "c"])[code]
    heavy = KernelRidgeGDClassifier(**FIXED, class_weight=weights).fit(X, labels)
    same = KernelRidgeGDClassifier(**FIXED).fit(X, labels, [weights[label] for label in labels])
    np.testing.assert_allclose(heavy.decision_function(X), same.decision_function(X), atol=1e-9)


def test_weights_while_learning():
    """Rows of weight zero teach and test nothing; weight 2 is the row twice."""
    kept = WEIGHT > 0
    ours = KernelRidgeGD(**LEARNED, validation=MASK, max_iter=3, tol=0.5).fit(X, Y, WEIGHT)
    each = np.repeat(np.arange(N), WEIGHT.astype(int))
    options = LEARNED | {"sigma": ours.history_["sigma"].values[0], "max_iter": 3, "tol": 0.5}
    twice = KernelRidgeGD(**options, validation=MASK[each]).fit(X[each], Y[each])
    np.testing.assert_allclose(ours.sigma_, twice.sigma_, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(X), twice.predict(X), atol=1e-6)
    assert len(ours.X_fit_) == kept.sum()
    assert len(ours.fold_) == N


def test_starts_on_few_rows_then_all(monkeypatch):
    """Every start on the first stage, from 1, 1/3 and 3 times sigma; the best goes on, on all rows."""
    monkeypatch.setattr(exact_problem, "FEW_ROWS", 60)
    model = KernelRidgeGD(**LEARNED | {"starts": 3}, sigma=0.5).fit(X, y)
    history = model.history_
    first = history.where(history["stage"] == 0, drop=True)
    assert set(np.unique(first["rows"])) == {60}
    begun = [first["sigma"].values[first["start"] == start][0, 0] for start in range(3)]
    np.testing.assert_allclose(begun, [0.5, 0.5 / 3, 1.5])
    assert (history["rows"][-1], history["stage"][-1], model.n_iter_) == (N, 1, len(history["iteration"]) - 4)
    ends = {start: first["objective"].values[first["start"] == start][-1] for start in range(3)}
    best = first["sigma"].values[first["start"] == min(ends, key=ends.get)][-1]
    np.testing.assert_allclose(history["sigma"][history["stage"].values == 1][0], best)


def test_penalty_switches_inputs_off():
    """sigma_l1 brings sigma of the third input to zero; sigma_l2 makes sigma smaller."""
    sparse = KernelRidgeGD(**LEARNED, validation=MASK, sigma_l1=0.01).fit(X, y)
    assert sparse.sigma_[2] == 0
    assert sparse.selected_inputs_.tolist() == [True, True, False]
    assert sparse.history_["objective"][-1] > sparse.history_["validation_error"][-1]
    free, held = (KernelRidgeGD(**LEARNED, validation=MASK, sigma_l2=l2).fit(X, y) for l2 in (0.0, 1.0))
    assert held.sigma_.max() < free.sigma_.max()


def test_folds_depend_on_random_state_alone():
    """The same state, the same rows; another, others; and a fitted model's rows can be given to another."""
    folds = [KernelRidgeGD(random_state=s, max_iter=1, tol=9.0, verbose=0).fit(X, y).fold_ for s in (0, 0, 1)]
    assert (folds[0] == folds[1]).all()
    assert (folds[0] != folds[2]).any()
    assert folds[0].sum() == N // 5


@pytest.mark.parametrize("kind", ["pandas", "sparse", "dask", "xarray", "zarr", "float32"])
def test_kinds_of_input(kind, tmp_path):
    """The same predictions from every kind of rows, in the same kind where it is lazy or labelled."""
    expected = KernelRidgeGD(**FIXED).fit(X, y).predict(X)
    if kind == "zarr":
        group = zarr.open_group(tmp_path / "rows.zarr", mode="w")
        for name, values in (("X", X), ("y", y)):
            group.create_array(name, data=values)
        model = KernelRidgeGD(**FIXED).fit(tmp_path / "rows.zarr")
        np.testing.assert_allclose(np.asarray(model.predict(tmp_path / "rows.zarr")), expected)
        return
    rows = {
        "pandas": lambda: pd.DataFrame(X, columns=["a", "b", "c"]),
        "sparse": lambda: sp.csr_array(X),
        "dask": lambda: da.from_array(X, chunks=(50, 3)),
        "xarray": lambda: xr.DataArray(X, dims=("row", "input"), coords={"row": np.arange(N)}),
        "float32": lambda: X.astype(np.float32),
    }[kind]()
    model = KernelRidgeGD(**FIXED).fit(rows, da.from_array(y, chunks=50) if kind == "dask" else y)
    got = model.predict(rows)
    assert type(got) is (type(rows) if kind in ("dask", "xarray") else np.ndarray)
    np.testing.assert_allclose(np.asarray(got), expected, atol=1e-5 if kind == "float32" else 1e-9)
    assert isinstance(model.X_fit_, np.ndarray)
    assert model.score(rows, y) > 0.9


REFUSED = [
    (
        {"max_rows": 100},
        y,
        r"X has 160 rows, KernelRidgeGD takes 100 .*; use dkl.SingleKernelRegressor, or max_rows=160",
    ),
    ({"max_rows": 0}, y, "max_rows=0 must be a whole number of at least 1"),
    (
        {"learn": "frequencies"},
        y,
        "learn='frequencies' is not known; .*one of 'validation', 'cv', 'joint', 'gcv'",
    ),
    ({"cv": 5}, y, "cv=5 does not go with learn='validation'; use learn='cv', or cv=None"),
    ({"alpha": [1.0, 2.0]}, Y, "alpha has 2 values, and learn='validation' takes one; use alpha='auto'"),
    ({"learn": "none", "alpha": [1.0, 2.0]}, Y, "alpha has 2 values; give one, or set cv=5 to choose one of them"),
    ({"learn": "cv", "cv": 500}, y, "cv=500 folds need at least 500 rows, X has 160"),
    ({"learn": "cv", "cv": np.zeros(3)}, y, "fold"),
    ({"kernel": "gausian"}, y, "kernel='gausian' is not known; did you mean 'gaussian'"),
    ({"sigma": [1.0, 2.0]}, y, r"sigma has shape \(2,\)"),
    ({"kernel": "skewed_chi2", "skew": -1}, y, "skew=-1 must be a finite number above 0"),
    ({}, y > 0, None),
    ({}, np.array(["a", "b"])[(y > 1).astype(int)], "y has dtype <U1; use numbers, or KernelRidgeGDClassifier"),
    ({}, y[:-1], "X has 160 rows, y has 159"),
]


@pytest.mark.parametrize(("params", "target", "sentence"), REFUSED)
def test_refusals(params, target, sentence):
    """One line that shows the value and what to type; the estimator is left as it was."""
    model = KernelRidgeGD(**{"verbose": 0, "starts": 1, "max_iter": 2, "tol": 9.0} | params)
    if sentence is None:
        model.fit(X, target)  # numbers of any kind
        return
    with pytest.raises(ValueError, match=sentence) as refusal:
        model.fit(X, target)
    assert "\n" not in str(refusal.value)
    assert not [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]


def test_refusals_of_classes_and_domains():
    """Labels that are none, one class, entries outside the kernel's domain."""
    with pytest.raises(ValueError, match=r"use dkl\.SingleKernelClassifier, or max_rows=160"):
        KernelRidgeGDClassifier(max_rows=10).fit(X, y > 0)
    with pytest.raises(ValueError, match="one class"):
        KernelRidgeGDClassifier(verbose=0).fit(X, np.ones(N))
    with pytest.raises(ValueError, match="Unknown label type"):
        KernelRidgeGDClassifier(verbose=0).fit(X, y)
    with pytest.raises(ValueError, match="Negative values in data: X contains -2 at row 0"):
        KernelRidgeGD("skewed_chi2", **FIXED).fit(X - X[0] - 2, y)


def test_lazy_rows_are_counted_before_they_are_computed():
    """A million rows are refused without reading one."""

    def burst(block):
        raise AssertionError("a block was computed")

    rows = da.zeros((1_000_000, 3), chunks=(100_000, 3)).map_blocks(burst, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match=r"X has 1,000,000 rows, KernelRidgeGD takes 10,000 .* 8,000.0 GB"):
        KernelRidgeGD().fit(rows, np.zeros(1_000_000))


def test_limits_are_named():
    """max_iter and max_time stop learning with a warning; a singular system is told too."""
    with pytest.warns(
        ConvergenceWarning,
        match=r"stopped at max_iter=1 before it converged, after 1 iteration.*tol is 0.10%; raise max_iter",
    ):
        model = KernelRidgeGD(**LEARNED, max_iter=1).fit(X, y)
    assert model.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="stopped at max_time=1e-09"):
        model = KernelRidgeGD(**LEARNED | {"starts": 3}, max_time=1e-9).fit(X, y)
    assert model.n_iter_ == 0
    with pytest.warns(UserWarning, match="alpha=0 leaves the system singular in float64"):
        KernelRidgeGD(**FIXED | {"alpha": 0.0, "sigma": 1e-3}).fit(X, y)


def test_module_is_an_attribute_that_loads_late():
    """`import dkl` is enough, and does not load it."""
    program = "import sys, dkl; assert 'dkl.exact' not in sys.modules; print(dkl.exact.KernelRidgeGD.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "KernelRidgeGD"
    assert "exact" not in dkl.__all__


@parametrize_with_checks(
    [
        KernelRidgeGD(learn="none", verbose=0),
        KernelRidgeGDClassifier(learn="none", verbose=0),
        KernelRidgeGD("skewed_chi2", learn="none", verbose=0),
    ]
)
def test_sklearn_check(estimator, check):
    """Every check scikit-learn has for an estimator of that kind."""
    check(estimator)
