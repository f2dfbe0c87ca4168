"""One kernel against scikit-learn: Ridge and RidgeClassifier on the same features, KernelRidge on the exact kernel."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dkl

MAP = {"n_components": 64, "sigma": 0.6, "random_state": 3}
LABELS = {
    "binary": lambda k: k % 2,
    "multiclass": lambda k: k,
    "strings": lambda k: np.array(["pear", "apple", "fig"])[k],
    "bools": lambda k: k > 0,
    "floats": lambda k: k.astype(float) - 1.0,
}


@pytest.fixture(scope="module")
def rows():
    """300 rows, a smooth target with two outputs, and three unbalanced classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    Y = np.column_stack([np.sin(X[:, 0]) + X[:, 1] ** 2, np.cos(X[:, 2]) * X[:, 3] + 7.0])
    Y += 0.5 * rng.standard_normal(Y.shape)
    code = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(300), [-1.0, 0.7])
    return X, Y, code, rng.uniform(0.2, 3.0, 300)


def features(X, **changes):
    """The explicit features of the map with the same parameters."""
    return dkl.FourierFeatures(**(MAP | changes)).fit(X).transform(X)


def assert_same(model, oracle, X, Psi):
    """Coefficients, intercept and predictions of both are equal."""
    if hasattr(model, "classes_"):  # one row for two classes, as in LogisticRegression; RidgeClassifier flattens it
        assert model.coef_.shape == (len(np.atleast_1d(model.intercept_)), Psi.shape[1])
        np.testing.assert_allclose(model.coef_, np.atleast_2d(oracle.coef_), rtol=1e-8, atol=1e-9)
    else:
        np.testing.assert_allclose(model.coef_, oracle.coef_, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, rtol=1e-8, atol=1e-9)
    got, wanted = model.predict(X), oracle.predict(Psi)
    assert got.shape == wanted.shape
    if wanted.dtype.kind == "f" and not hasattr(model, "classes_"):
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-9)
    else:
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("form", ["paired", "phase"])
def test_values_equal_ridge(rows, outputs, weighted, fit_intercept, form):
    """One column or two, weighted or not, with or without intercept."""
    X, Y, _, w = rows
    y, weight = (Y[:, 0] if outputs == 1 else Y), (w if weighted else None)
    model = dkl.SingleKernelRegressor(**MAP, form=form, alpha=0.3, fit_intercept=fit_intercept).fit(X, y, weight)
    Psi = features(X, form=form)
    oracle = Ridge(alpha=0.3, fit_intercept=fit_intercept, solver="cholesky").fit(Psi, y, sample_weight=weight)
    assert_same(model, oracle, X, Psi)


def test_one_column_keeps_its_shape(rows):
    """y of shape (n, 1) gives predictions of shape (n, 1)."""
    X, Y, _, _ = rows
    model = dkl.SingleKernelRegressor(**MAP).fit(X, Y[:, :1])
    Psi = features(X)
    np.testing.assert_allclose(
        model.predict(X), Ridge(alpha=1.0).fit(Psi, Y[:, :1]).predict(Psi).reshape(-1, 1), rtol=1e-8
    )


def test_odd_number_of_components_equals_ridge(rows):
    """An odd d in the paired form."""
    X, Y, _, _ = rows
    model, Psi = dkl.SingleKernelRegressor(**(MAP | {"n_components": 33})).fit(X, Y), features(X, n_components=33)
    assert Psi.shape == (300, 33)
    assert_same(model, Ridge(alpha=1.0, solver="cholesky").fit(Psi, Y), X, Psi)


def test_alpha_per_output_equals_ridge(rows):
    """One penalty for each output."""
    X, Y, _, _ = rows
    model, Psi = dkl.SingleKernelRegressor(**MAP, alpha=[0.01, 20.0]).fit(X, Y), features(X)
    assert_same(model, Ridge(alpha=np.array([0.01, 20.0]), solver="cholesky").fit(Psi, Y), X, Psi)
    np.testing.assert_array_equal(model.alpha_, [0.01, 20.0])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced", "dict"])
@pytest.mark.parametrize("labels", sorted(LABELS))
def test_classes_equal_ridge_classifier(rows, labels, class_weight, weighted, fit_intercept):
    """Every label type, class weight and sample weight."""
    X, _, code, w = rows
    y, weight = LABELS[labels](code), (w if weighted else None)
    if class_weight == "dict":
        class_weight = {label: 0.5 + i for i, label in enumerate(np.unique(y).tolist())}
    options = {"alpha": 0.7, "class_weight": class_weight, "fit_intercept": fit_intercept}
    model = dkl.SingleKernelClassifier(**MAP, **options).fit(X, y, weight)
    Psi = features(X)
    if class_weight == "balanced" and weighted:  # sklearn counts rows where dkl counts weight: spell the weights out
        total = {k: w[y == k].sum() for k in np.unique(y)}
        options["class_weight"], weight = None, w * [w.sum() / (len(total) * total[k]) for k in y]
    oracle = RidgeClassifier(solver="cholesky", **options).fit(Psi, y, sample_weight=weight)
    assert_same(model, oracle, X, Psi)
    np.testing.assert_array_equal(model.classes_, oracle.classes_)
    assert model.classes_.dtype == oracle.classes_.dtype
    np.testing.assert_allclose(model.decision_function(X), oracle.decision_function(Psi), rtol=1e-8, atol=1e-9)
    assert model.score(X, y) == np.mean(oracle.predict(Psi) == y)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
def test_sparse_rows_equal_dense_rows(rows, kind):
    """Sparse X against Ridge on the dense features."""
    X, Y, _, _ = rows
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    model, Psi = dkl.SingleKernelRegressor(**MAP).fit(kind(X), Y), features(X)
    assert_same(model, Ridge(alpha=1.0, solver="cholesky").fit(Psi, Y), kind(X), Psi)


def test_a_weight_is_a_repetition(rows):
    """Integer weights equal repeated rows, and weight zero a missing row."""
    X, Y, _, _ = rows
    times = np.arange(300) % 3
    weighted = dkl.SingleKernelRegressor(**MAP).fit(X, Y, sample_weight=times)
    Psi = features(X)[np.repeat(np.arange(300), times)]
    oracle = Ridge(alpha=1.0, solver="cholesky").fit(Psi, np.repeat(Y, times, axis=0))
    np.testing.assert_allclose(weighted.coef_, oracle.coef_, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "exact"),
    [
        ("gaussian", lambda X: rbf_kernel(X, gamma=0.6**2 / 2)),
        ("laplacian", lambda X: laplacian_kernel(X, gamma=0.6)),
    ],
)
def test_approaches_exact_kernel_ridge(rows, kernel, exact):
    """The distance to KernelRidge with the exact kernel falls as n_components grows."""
    X, Y, _, _ = rows
    y, K = Y[:, 0], exact(X)
    wanted = KernelRidge(alpha=1.0, kernel="precomputed").fit(K, y).predict(K)
    distance = []
    for d in (64, 400, 2400):
        model = dkl.SingleKernelRegressor(kernel, d, sigma=0.6, fit_intercept=False, random_state=0).fit(X, y)
        distance.append(np.sqrt(np.mean((model.predict(X) - wanted) ** 2)) / wanted.std())
    assert distance[1] < 0.7 * distance[0]
    assert distance[2] < 0.7 * distance[1]
    assert distance[2] < 0.1


def sklearn_scores(X, y, alphas, splits):
    """Minus the mean squared error of Ridge for each alpha and split, by an explicit loop."""
    Psi, scores = features(X), np.empty((len(alphas), len(splits)))
    for (i, alpha), (k, (train, test)) in itertools.product(enumerate(alphas), enumerate(splits)):
        predicted = Ridge(alpha=alpha, solver="cholesky").fit(Psi[train], y[train]).predict(Psi[test])
        scores[i, k] = -np.mean((predicted - y[test]) ** 2)
    return scores


def fold_choices():
    """cv as a user may give it, with the splits it means for 300 rows."""
    fold = np.random.default_rng(1).integers(0, 4, 300)
    groups = np.random.default_rng(2).integers(0, 12, 300)
    group_splits = list(GroupKFold(3).split(np.zeros(300), groups=groups))
    kfold = KFold(5, shuffle=True, random_state=0)
    predefined = PredefinedSplit(fold)
    return {
        "fold array": (fold, list(predefined.split())),
        "fold list of strings": ([f"f{k}" for k in fold], list(predefined.split())),
        "PredefinedSplit": (predefined, list(predefined.split())),
        "GroupKFold pairs": (group_splits, group_splits),
        "KFold": (kfold, list(kfold.split(np.zeros(300)))),
    }


@pytest.mark.parametrize("name", sorted(fold_choices()))
@pytest.mark.parametrize("outputs", [1, 2])
def test_cv_chooses_what_an_explicit_loop_chooses(rows, name, outputs):
    """Scores of all folds and alphas, the chosen alpha and the refitted model."""
    X, Y, _, _ = rows
    y, alphas = (Y[:, 0] if outputs == 1 else Y), [1e-3, 0.03, 0.3, 3.0, 1000.0]
    cv, splits = fold_choices()[name]
    model = dkl.SingleKernelRegressor(**MAP, alpha=alphas, cv=cv).fit(X, y)
    wanted = sklearn_scores(X, y, alphas, splits)
    table = model.cv_results_
    got = np.column_stack([table[f"split{k}_test_score"] for k in range(len(splits))])
    np.testing.assert_allclose(got, wanted, rtol=1e-7)
    np.testing.assert_allclose(table["mean_test_score"], wanted.mean(1), rtol=1e-7)
    np.testing.assert_allclose(table["std_test_score"], wanted.std(1), rtol=1e-6)
    np.testing.assert_array_equal(table["param_alpha"], alphas)
    np.testing.assert_array_equal(table["rank_test_score"], (-wanted.mean(1)).argsort().argsort() + 1)
    assert f"split{len(splits)}_test_score" not in table
    best = alphas[int(wanted.mean(1).argmax())]
    assert model.alpha_ == best
    assert 0 < alphas.index(best) < len(alphas) - 1, "the choice must not be at an end of the list"
    Psi = features(X)
    assert_same(model, Ridge(alpha=best, solver="cholesky").fit(Psi, y), X, Psi)


def test_cv_of_classes_equals_an_explicit_loop(rows):
    """Squared error of the targets -1 and +1."""
    X, _, code, _ = rows
    fold, alphas = np.arange(300) % 3, [0.1, 10.0]
    model = dkl.SingleKernelClassifier(**MAP, alpha=alphas, cv=fold).fit(X, code)
    targets = 2.0 * (code[:, None] == np.arange(3)) - 1
    wanted = sklearn_scores(X, targets, alphas, list(PredefinedSplit(fold).split()))
    np.testing.assert_allclose(model.cv_results_["split1_test_score"], wanted[:, 1], rtol=1e-7)
    assert model.alpha_ == alphas[int(wanted.mean(1).argmax())]


def test_a_number_of_folds_fills_the_table_and_follows_the_seed(rows):
    """cv=5: five columns of scores; the same seed gives the same folds, another seed others."""
    X, Y, _, _ = rows
    tables = [
        dkl.SingleKernelRegressor(**(MAP | {"random_state": seed}), alpha=[0.1, 1.0], cv=5).fit(X, Y[:, 0]).cv_results_
        for seed in (3, 3, 4)
    ]
    assert sorted(tables[0]) == sorted(
        [
            "param_alpha",
            "mean_test_score",
            "std_test_score",
            "rank_test_score",
            *(f"split{k}_test_score" for k in range(5)),
        ]
    )
    np.testing.assert_array_equal(tables[0]["split0_test_score"], tables[1]["split0_test_score"])
    assert np.all(tables[0]["split0_test_score"] != tables[2]["split0_test_score"])


def test_refit_without_cv_forgets_the_scores(rows):
    """cv_results_ of an older fit does not stay."""
    X, Y, _, _ = rows
    model = dkl.SingleKernelRegressor(**MAP, alpha=[0.1, 1.0], cv=3).fit(X, Y)
    assert model.set_params(cv=None, alpha=1.0).fit(X, Y) is model
    assert not hasattr(model, "cv_results_")
    Psi = features(X)
    assert_same(model, Ridge(alpha=1.0, solver="cholesky").fit(Psi, Y), X, Psi)


CHANGES = {
    "kernel": "matern32",
    "n_components": 65,
    "sigma": 0.9,
    "frequencies": "iid",
    "form": "phase",
    "alpha": 2.0,
    "cv": 3,
    "fit_intercept": False,
    "random_state": 4,
    "dtype": "float32",
    "groups": [0, 0, 1, 1],
    "skew": 2.0,
    "n_terms": 3,
    "landmarks": "uniform",
    "class_weight": "balanced",
    "learn": "joint",
    "validation": 0.4,
    "sigma_l1": 0.5,
    "sigma_l2": 0.5,
    "starts": 4,
    "subsample": 0.5,
    "max_iter": 1,
    "tol": 0.5,
    "max_time": 1e-9,
    "early_stopping": 0.3,
    "reduce": 7,
    "loss": "by the task",
    "penalty": "l1",
    "solver": "cg",
    "solver_tol": 0.5,
    "learn_components": 20,
    "calibrate": 5,
}
LEARNING = {
    "validation",
    "sigma_l1",
    "sigma_l2",
    "starts",
    "subsample",
    "max_iter",
    "tol",
    "max_time",
    "early_stopping",
}
"""Parameters that act while a kernel is learned."""
INERT = {"place": ("scheduler", "client"), "verbose": (0, 1)}
"""Parameters that must not change the answer, and all their values."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", [dkl.SingleKernelRegressor, dkl.SingleKernelClassifier])
def test_every_parameter_changes_the_answer(rows, cls, tmp_path):
    """The sweep covers every constructor parameter; those that only say where or how loudly change nothing."""
    X, Y, code, _ = rows
    X, y = np.abs(X), (Y[:, 0] if cls is dkl.SingleKernelRegressor else code)
    score = "predict" if cls is dkl.SingleKernelRegressor else "decision_function"
    base = {"random_state": 3, "n_components": 64, "alpha": 0.3}
    names = set(cls().get_params())
    inert = INERT | {"checkpoint": [tmp_path / "sums"]}
    assert names <= set(CHANGES) | set(inert)
    for name in names:
        before = dict(base)
        if name == "groups":
            before["sigma"] = [0.5, 1.0]
            after = before | {"groups": [0, 1, 1, 1]}
            before["groups"] = CHANGES["groups"]
        elif name == "skew":
            before["kernel"] = "skewed_chi2"
            after = before | {"skew": 2.0}
        elif name == "n_terms":
            before["kernel"] = "exp_chi2"
            after = before | {"n_terms": 3}
        elif name == "loss":
            after = before | {"loss": "huber:delta=0.1" if cls is dkl.SingleKernelRegressor else "logistic"}
        elif name == "solver_tol":
            before["solver"] = "cg"
            after = before | {"solver_tol": 0.5}
        elif name == "learn_components":
            before |= {"learn": "gcv", "starts": 1}
            after = before | {"learn_components": 20}
        elif name == "cv":
            before["alpha"] = [0.3]
            assert not hasattr(cls(**base).fit(X, y), "cv_results_")
            assert hasattr(cls(**before, cv=3).fit(X, y), "cv_results_")
            continue
        elif name == "subsample":
            continue  # it takes several blocks: test_learning.py
        elif name in LEARNING:
            before |= {"learn": "validation", "groups": "each", "starts": 2, "max_iter": 3, "tol": 1e-9}
            after = before | {name: CHANGES[name]}
        else:
            after = before | {name: CHANGES.get(name)}
        first = getattr(cls(**before).fit(X, y), score)(X)
        if name in inert:
            for value in inert[name]:
                np.testing.assert_array_equal(getattr(cls(**before, **{name: value}).fit(X, y), score)(X), first)
            continue
        second = getattr(cls(**after).fit(X, y), score)(X)
        assert np.abs(second - first).max() > 1e-9, name


def test_pipeline_and_grid_search_find_what_a_loop_finds(rows):
    """GridSearchCV over sigma and alpha in Pipeline(StandardScaler, ...) against explicit Ridge."""
    X, Y, _, _ = rows
    X, y = X * [1, 10, 100, 0.1] + 5, Y[:, 0]
    pipe = make_pipeline(StandardScaler(), dkl.SingleKernelRegressor(n_components=64, random_state=3))
    grid = {"singlekernelregressor__sigma": [0.1, 0.4, 2.0], "singlekernelregressor__alpha": [0.01, 1.0]}
    folds = KFold(3)
    search = GridSearchCV(pipe, grid, cv=folds, scoring="neg_mean_squared_error").fit(X, y)
    wanted = []
    for alpha, sigma in itertools.product([0.01, 1.0], [0.1, 0.4, 2.0]):
        scores = []
        for train, test in folds.split(X):
            scaler = StandardScaler().fit(X[train])
            psi = dkl.FourierFeatures(n_components=64, sigma=sigma, random_state=3).fit(X[train])
            ridge = Ridge(alpha=alpha).fit(psi.transform(scaler.transform(X[train])), y[train])
            scores.append(-np.mean((ridge.predict(psi.transform(scaler.transform(X[test]))) - y[test]) ** 2))
        wanted.append(np.mean(scores))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], wanted, rtol=1e-7)


def test_transformer_in_a_pipeline_equals_the_regressor(rows):
    """FourierFeatures + Ridge is SingleKernelRegressor."""
    X, Y, _, _ = rows
    pipe = make_pipeline(dkl.FourierFeatures(**MAP), Ridge(alpha=1.0)).fit(X, Y)
    np.testing.assert_allclose(dkl.SingleKernelRegressor(**MAP).fit(X, Y).predict(X), pipe.predict(X), rtol=1e-8)
    assert pipe[0].get_feature_names_out().tolist()[-1] == "fourierfeatures63"


def test_kernel_matrix_approximate_and_exact(rows):
    """Exact equals scikit-learn's kernel; approximate is near it with many components; Y is the second set."""
    X = rows[0]
    model = dkl.FourierFeatures(n_components=8000, sigma=0.6, random_state=0).fit(X)
    for other in (None, X[:7]):
        wanted = rbf_kernel(X[:20], X[:20] if other is None else other, gamma=0.18)
        np.testing.assert_allclose(model.kernel_matrix(X[:20], other, exact=True), wanted, atol=1e-12)
        assert 0 < np.abs(model.kernel_matrix(X[:20], other) - wanted).max() < 0.05


def test_kernel_matrix_exact_per_group(rows):
    """sigma by group scales the inputs; product of Laplacians by numpy."""
    X = rows[0][:30]
    psi = dkl.FourierFeatures("laplacian", 20, sigma=[0.5, 2.0], groups=[slice(0, 1), slice(1, 4)]).fit(X)
    scaled = X * [0.5, 2.0, 2.0, 2.0]
    wanted = np.exp(-np.abs(scaled[:, None] - scaled[None]).sum(2))
    np.testing.assert_allclose(psi.kernel_matrix(X, exact=True), wanted, atol=1e-12)
    np.testing.assert_array_equal(psi.sigma_, [0.5, 2.0, 2.0, 2.0])


def test_scale_follows_the_spread(rows):
    """sigma='scale' is one over the root of the summed variances; a stretched X gives the same model."""
    X, Y, _, _ = rows
    model = dkl.SingleKernelRegressor(n_components=64, random_state=3).fit(X, Y)
    np.testing.assert_allclose(model.sigma_, np.full(4, 1 / np.sqrt(X.var(0).sum())), rtol=1e-10)
    stretched = dkl.SingleKernelRegressor(n_components=64, random_state=3).fit(1000 * X, Y)
    np.testing.assert_allclose(stretched.predict(1000 * X), model.predict(X), rtol=1e-7)


@pytest.mark.parametrize("cls", [dkl.FourierFeatures, dkl.SingleKernelRegressor, dkl.SingleKernelClassifier])
def test_clone_copies_parameters_and_no_fit(rows, cls):
    """clone, get_params and set_params."""
    X, _, code, _ = rows
    model = cls(n_components=32, sigma=0.5, groups=[0, 0, 1, 1], form="phase", verbose=0).fit(X, code)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "features_")
    assert copy.set_params(n_components=16).fit(X, code).features_.n_features == 16
    assert model.features_.n_features == 32


def test_a_thousand_classes():
    """3000 rows of 1000 classes equal RidgeClassifier."""
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((3000, 6)), rng.permutation(np.arange(3000) % 1000)
    X += rng.standard_normal((1000, 6))[y] * 3
    model = dkl.SingleKernelClassifier(n_components=100, sigma=0.3, random_state=0).fit(X, y)
    Psi = dkl.FourierFeatures(n_components=100, sigma=0.3, random_state=0).fit(X).transform(X)
    oracle = RidgeClassifier(alpha=1.0, solver="cholesky").fit(Psi, y)
    np.testing.assert_allclose(model.coef_, oracle.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), oracle.predict(Psi))


def test_float32_stays_float32(rows):
    """Features in the input's precision unless dtype says otherwise; predictions near those of float64."""
    X, Y, _, _ = rows
    narrow = X.astype(np.float32)
    assert dkl.FourierFeatures(**MAP).fit(narrow).transform(narrow).dtype == np.float32
    assert dkl.FourierFeatures(**MAP).fit(X).transform(X).dtype == np.float64
    assert dkl.FourierFeatures(**MAP, dtype="float32").fit(X).transform(X).dtype == np.float32
    assert dkl.FourierFeatures(**MAP, dtype="float64").fit(narrow).transform(narrow).dtype == np.float64
    Psi = features(narrow.astype(np.float64))
    wanted = Ridge(alpha=1.0).fit(Psi, Y).predict(Psi)
    error = np.abs(dkl.SingleKernelRegressor(**MAP).fit(narrow, Y).predict(narrow) - wanted).max()
    assert 0 < error < 1e-4


def test_float32_survives_a_large_mean(rows):
    """A target far from zero does not lose its digits in float32 blocks."""
    X, Y, _, _ = rows
    y = Y[:, 0] + 1e6
    model = dkl.SingleKernelRegressor(**MAP).fit(X.astype(np.float32), y)
    Psi = features(X)
    wanted = Ridge(alpha=1.0).fit(Psi, y).predict(Psi)
    np.testing.assert_allclose(model.predict(X), wanted, atol=1e-3)


class Short(dkl.SingleKernelRegressor):
    """A subclass whose constructor names a few parameters only."""

    def __init__(self, n_components=20, random_state=0, verbose=0):
        super().__init__(n_components=n_components, random_state=random_state, verbose=verbose)


def test_a_subclass_with_a_short_constructor(tmp_path):
    """Fits and plans as its base does; save says what is missing, as load could not read it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    plain = dkl.SingleKernelRegressor(n_components=20, random_state=0, verbose=0).fit(X, X[:, 0])
    model = Short().fit(X, X[:, 0])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert dkl.plan(X, Short(), X[:, 0]).worker_bytes > 0
    with pytest.raises(TypeError, match="Short is not registered"):
        model.save(tmp_path / "m.zarr")


@pytest.mark.parametrize("resume", [3, "maybe", 0.0])
def test_what_resume_may_be(resume):
    """Anything else is refused, with the choices."""
    model = dkl.SingleKernelRegressor(n_components=5, sigma=1.0, verbose=0)
    with pytest.raises(ValueError, match=f"resume={resume!r} must be True, False, None or 'finish'"):
        model.fit(np.ones((9, 1)), np.arange(9.0), resume=resume)
