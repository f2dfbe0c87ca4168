"""Weights and K-fold scores from one pass against scikit-learn's Ridge refitted on the rows."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from dkl.learn.prepare import build_map
from dkl.learn.weights import RidgeOptions, solve_weights
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets

N, K, SEED = 150, 3, 11
ALPHAS = np.array([1e-3, 0.1, 1.0, 30.0])


def make_features(d=20):
    params = {"kernel": "gaussian", "skew": 1.0, "n_terms": 5, "frequencies": "iid", "form": "paired"}
    params |= {"n_components": d, "groups": None, "sigma": 0.6}
    return build_map(params, 3, {}, np.random.default_rng(0), None)[0]


FEATURES = make_features()


def draw(kind, weighted, centre=True):
    """X, y, weights, the dense targets that ridge sees, and their record."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3))
    w = rng.gamma(2, size=N) if weighted else None
    ones = np.ones(N) if w is None else w
    score = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 1.0 * rng.normal(size=(N, 2))
    if kind == "values":
        y = score * [1, 20] + [3, -50]
        shift = np.average(y, axis=0, weights=ones) if centre else np.zeros(2)
        bounds = {"absolute": ones @ (np.abs(y) + np.abs(shift)), "square": 2 * ones @ (y**2 + shift**2)}
        return X, y, w, y, Targets(ones.sum(), 2, shift=shift, **bounds)
    c = 2 if kind == "two classes" else 3
    y = (score[:, 0] > 0) * 1 if c == 2 else np.digitize(score[:, 0], [-0.5, 0.5])
    Y = 2.0 * np.eye(c)[y] - 1
    return X, y, w, Y[:, 1:] if c == 2 else Y, Targets(ones.sum(), c, classes=np.arange(c))


def solve(X, y, w, targets, options, folds=K, dtype=np.float64, features=FEATURES):
    program = GramProgram(features.at(dtype), targets, N, folds=folds, seed=SEED)
    sums, space = program.start(), program.workspace()
    for block, start in enumerate(range(0, N, 64)):
        rows = slice(start, start + 64)
        program.add(sums, space, block, start, (X[rows], y[rows], None if w is None else w[rows], None))
    narrow = dtype == np.float32
    return solve_weights(sums, scale=features.scale, targets=targets, options=options, narrow=narrow)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["values", "two classes", "three classes"])
def test_fold_scores_are_those_of_refits(kind, weighted, fit_intercept):
    """Minus the mean squared error of Ridge fitted without each fold; the best alpha is used on all rows."""
    X, y, w, Y, targets = draw(kind, weighted, centre=fit_intercept)
    found = solve(X, y, w, targets, RidgeOptions(ALPHAS, fit_intercept, choose=True))
    Psi, member = FEATURES.at(np.float64).transform(X), fold_of(0, N, K, SEED)
    ones = np.ones(N) if w is None else w
    expected = np.empty((len(ALPHAS), K))
    for i, alpha in enumerate(ALPHAS):
        for k in range(K):
            train, test = member != k, member == k
            model = Ridge(alpha, fit_intercept=fit_intercept).fit(Psi[train], Y[train], ones[train])
            error = (model.predict(Psi[test]).reshape(-1, Y.shape[1]) - Y[test]) ** 2
            expected[i, k] = -np.average(error.mean(1), weights=ones[test])
    np.testing.assert_allclose(found.scores, expected, rtol=1e-8)
    best = ALPHAS[np.argmax(expected.mean(1))]
    assert found.alpha.tolist() == [best]
    model = Ridge(best, fit_intercept=fit_intercept).fit(Psi, Y, ones)
    np.testing.assert_allclose(found.coef, model.coef_.reshape(Y.shape[1], -1).T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.intercept, np.broadcast_to(model.intercept_, Y.shape[1]), rtol=1e-8, atol=1e-9)


def test_choice_is_not_at_the_edge_of_the_grid():
    """The data above tell the alphas apart, or the choice would not be tested."""
    X, y, w, _, targets = draw("values", weighted=False)
    found = solve(X, y, w, targets, RidgeOptions(ALPHAS, True, choose=True))
    assert ALPHAS[0] < found.alpha[0] < ALPHAS[-1]


@pytest.mark.parametrize("folds", [1, 3])
def test_alpha_of_each_output(folds):
    """Given alphas are used as they are, however many folds the sums have."""
    X, y, w, Y, targets = draw("values", weighted=True)
    alpha = np.array([0.1, 10.0])
    found = solve(X, y, w, targets, RidgeOptions(alpha, True), folds)
    model = Ridge(alpha).fit(FEATURES.at(np.float64).transform(X), Y, w)
    np.testing.assert_allclose(found.coef, model.coef_.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.intercept, model.intercept_, rtol=1e-9)
    assert found.scores is None
    assert (found.method, found.jitter, found.warning) == ("cholesky", 0.0, None)


def test_refused_row_is_raised():
    """The sentence noted in the pass reaches the user."""
    X, y, w, _, targets = draw("values", weighted=False)
    X[130, 2] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 130, column 2"):
        solve(X, y, w, targets, RidgeOptions(ALPHAS[:1], True))


def test_fold_without_weight_is_refused():
    """The sentence names the fold and the parameter to change."""
    X, y, _, _, targets = draw("values", weighted=False)
    w = (fold_of(0, N, K, SEED) != 1).astype(float)
    with pytest.raises(ValueError, match=r"fold 1 of 3 has no weight; use fewer folds \(cv\)"):
        solve(X, y, w, targets, RidgeOptions(ALPHAS, True, choose=True))


def test_singular_system_is_doubted():
    """More features than rows and alpha = 0: solved by a lower rung of the ladder, and said so."""
    X, y, w, _, targets = draw("values", weighted=False)
    found = solve(X, y, w, targets, RidgeOptions(np.array([0.0]), True), features=make_features(400))
    assert found.method in ("jitter", "eigen")
    assert (found.jitter > 0) == (found.method == "jitter")
    assert found.warning.startswith(f"alpha=0 leaves the system singular in float64 (solved by {found.method}")
    assert found.warning.endswith("raise alpha")
    assert np.isfinite(found.coef).all()


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        (np.float32, "rounding of float32 blocks; raise alpha or use dtype='float64'"),
        (np.float64, "rounding of float64"),
    ],
)
def test_alpha_below_rounding_is_doubted(dtype, words):
    """alpha = 1e-14 is lost in the sums of either precision; alpha = 1 is not."""
    X, y, w, _, targets = draw("values", weighted=False)
    lost, kept = (solve(X, y, w, targets, RidgeOptions(np.array([a]), True), dtype=dtype) for a in (1e-14, 1.0))
    assert words in lost.warning
    assert kept.warning is None
