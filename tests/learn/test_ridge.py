"""Weights and K-fold scores from one pass against scikit-learn's Ridge refitted on the rows."""

import dataclasses
import re

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress, listening
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.learn.objectives import OBJECTIVES
from dkl.learn.redrawn import least_log_loss
from dkl.learn.ridge import fit_ridge, solve_weights
from dkl.learn.run import Run
from dkl.learn.weights import RidgeOptions, Spectrum, at_edge, doubt
from dkl.prepare.draw import build_map
from dkl.solvers.factor import Factor
from dkl.sums.folds import fold_of
from dkl.sums.gram import GramProgram
from dkl.sums.scatter import ScatterProgram
from dkl.sums.spread import spread_of
from dkl.sums.targets import Targets, ValueMoments, value_targets

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


def fitted(options, kind="values", weighted=True, folds=K, **more):
    X, y, w, Y, targets = draw(kind, weighted, centre=options.fit_intercept)
    return solve(X, y, w, targets, options, folds, **more), FEATURES.at(np.float64).transform(X), Y, w


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_objective_of_the_fit(fit_intercept):
    """(square loss + alpha |coef|^2) / weight, in units of y, summed over the outputs."""
    found, Psi, Y, w = fitted(RidgeOptions(np.array([0.5]), fit_intercept))
    energy = w @ (Psi @ found.coef + found.intercept - Y) ** 2 + 0.5 * (found.coef**2).sum(axis=0)
    assert found.objective == pytest.approx(energy.sum() / w.sum(), rel=1e-9)
    assert found.reduced is None
    assert found.tried.tolist() == [0.5]


@pytest.mark.parametrize("wanted", [3, 0.8])
def test_weights_on_principal_axes(wanted):
    """Ridge on the principal components of the features, as scikit-learn has them, folded back; with folds as well."""
    found, Psi, Y, _ = fitted(RidgeOptions(np.array([2.0]), True, reduce=wanted), weighted=False)
    pca = PCA(wanted).fit(Psi)
    model = Ridge(2.0).fit(pca.transform(Psi), Y)
    np.testing.assert_allclose(
        Psi @ found.coef + found.intercept, model.predict(pca.transform(Psi)).reshape(Y.shape), rtol=1e-8
    )
    assert found.reduced["axes"] == pca.n_components_
    assert found.reduced["share"] == pytest.approx(pca.explained_variance_ratio_.sum(), rel=1e-9)
    assert found.method == "axes"
    chosen, _, _, _ = fitted(RidgeOptions(ALPHAS, True, choose=True, reduce=wanted), weighted=False)
    member = fold_of(0, N, K, SEED)
    for k in range(K):
        train = member != k
        pca = PCA(wanted).fit(Psi[train])
        model = Ridge(ALPHAS[1]).fit(pca.transform(Psi[train]), Y[train])
        error = (model.predict(pca.transform(Psi[~train])) - Y[~train]) ** 2
        assert chosen.scores[1, k] == pytest.approx(-error.mean(), rel=1e-8)


def test_unlabelled_rows_shape_the_axes():
    """Axes of all rows, ridge of those with y."""
    X, y, w, Y, targets = draw("values", weighted=False)
    more = np.random.default_rng(9).normal(size=(80, 3)) * 2
    scatter = ScatterProgram((FEATURES.at(np.float64),), 80, 80, "X")
    unlabelled, space = scatter.start(), scatter.workspace()
    scatter.add(unlabelled, space, 0, 0, (more,))
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=1, seed=SEED)
    sums, space = program.start(), program.workspace()
    program.add(sums, space, 0, 0, (X, y, w, None))
    options = RidgeOptions(np.array([2.0]), True, reduce=4)
    told = {"scale": FEATURES.scale, "targets": targets, "options": options, "narrow": False}
    found = solve_weights(sums, **told, unlabelled=unlabelled)
    Psi = FEATURES.at(np.float64).transform(X)
    pca = PCA(4).fit(np.vstack([Psi, FEATURES.at(np.float64).transform(more)]))
    model = Ridge(2.0).fit(pca.transform(Psi), Y)
    np.testing.assert_allclose(Psi @ found.coef + found.intercept, model.predict(pca.transform(Psi)), rtol=1e-8)
    assert 0 < found.reduced["share"] < 1


def top_of(Psi, w):
    return float(np.linalg.eigvalsh(Psi.T @ (w[:, None] * Psi))[-1])


@pytest.mark.parametrize("grid", [[1e-3, 1e-2], [1e2, 1e3], [0.1, 1.0, 10.0]], ids=str)
def test_a_grid_of_our_own_grows(grid):
    """By tens, while its best is at an end; alphas are sorted, and every one has its scores."""
    found, _, _, _ = fitted(RidgeOptions(np.array(grid), True, choose=True, own=True))
    inside = found.tried[1:-1]
    assert found.alpha[0] in inside
    np.testing.assert_allclose(found.tried[1:] / found.tried[:-1], 10.0)
    assert set(grid) <= set(found.tried)
    again, _, _, _ = fitted(RidgeOptions(found.tried, True, choose=True))
    np.testing.assert_allclose(again.scores, found.scores, rtol=1e-9)
    assert found.warning is None


def test_how_far_a_grid_of_our_own_grows():
    """Down to a millionth of the largest eigenvalue and up to that eigenvalue; a given list stays as it is."""
    X, _, _, _, targets = draw("values", weighted=False)
    Psi = FEATURES.at(np.float64).transform(X)
    top = top_of(Psi, np.ones(N))
    noise = np.random.default_rng(3).normal(size=(N, 2))  # nothing to learn: the largest alpha is best
    moments = ValueMoments(N, spread_of(noise, np.ones(N)), np.abs(noise).sum(axis=0), (noise**2).sum(axis=0))
    options = RidgeOptions(np.array([1.0]), True, choose=True, own=True)
    found = solve(X, noise, None, value_targets(moments, True), options)
    assert found.tried[0] == 0.1  # one alpha is the least of those given, and the largest
    assert top < found.tried[-1] <= 10 * top * (1 + 1e-3)
    exact = Psi @ np.random.default_rng(4).normal(size=(20, 2))  # nothing but signal: the least alpha is best
    moments = ValueMoments(N, spread_of(exact, np.ones(N)), np.abs(exact).sum(axis=0), (exact**2).sum(axis=0))
    targets = value_targets(moments, True)
    found = solve(X, exact, None, targets, options)
    assert found.alpha[0] == found.tried[0] == pytest.approx(1e-6 * top, rel=1e-2)
    fixed = solve(X, exact, None, targets, RidgeOptions(np.array([1e-12]), True, own=True))
    assert fixed.alpha[0] == pytest.approx(1e-6 * top, rel=1e-2)
    given = solve(X, exact, None, targets, RidgeOptions(np.array([1e-3, 1.0]), True, choose=True))
    assert given.tried.tolist() == [1e-3, 1.0]


@pytest.mark.parametrize("objective", ["gcv", "joint", "cv"])
def test_alpha_is_refined(objective):
    """Near the least of the objective, from the alpha that was given; of cv by the scores of a fine grid."""
    found, _, _, _ = fitted(RidgeOptions(np.array([1.0]), True, refine=OBJECTIVES[objective]))
    if objective != "cv":
        assert found.alpha[0] != 1.0
        return
    grid = found.alpha[0] * np.array([0.7, 0.9, 1.0, 1.1, 1.4])
    scores, _, _, _ = fitted(RidgeOptions(grid, True, choose=True))
    assert np.argmax(scores.scores.mean(axis=1)) in (1, 2, 3)


@pytest.mark.parametrize(
    ("alpha", "tried", "own", "words"),
    [
        (0.1, [0.1, 1.0, 10.0], False, "cv chose alpha=0.1, the least of those given, so .* add 0.01, or use"),
        (10.0, [0.1, 1.0, 10.0], False, "cv chose alpha=10, the largest of those given, so .* add 100, or use"),
        (10.0, [10.0, 1.0, 0.1], False, "the largest of those given"),
        (1.0, [0.1, 1.0, 10.0], False, None),
        (0.1, [0.1, 1.0, 10.0], True, None),
        (0.1, [0.1, 1.0], False, None),
        (0.0, [0.0, 1.0, 10.0], False, None),
    ],
)
def test_a_choice_at_the_edge(alpha, tried, own, words):
    """Said of a list of three or more that the user gave, if there is something beyond."""
    scores = np.zeros((len(tried), 2))
    found = at_edge(np.array([alpha]), np.array(tried), scores, own)
    assert at_edge(np.array([alpha]), np.array(tried), None, own) is None
    if words is None:
        assert found is None
    else:
        assert re.search(words, found)


def test_where_doubt_begins():
    """A millionth of the largest eigenvalue for float32, 1e-12 of the mean one for float64; in units of weight."""
    spectrum, unit = Spectrum(4.0, 2.0), 16.0
    sound = (Factor("cholesky", 0.0), Factor("axes", 0.0))
    for narrow, edge in ((True, 1e-6 * 4 * unit), (False, 1e-12 * 2 * unit)):
        assert doubt(spectrum, np.array([1.0, edge * 1.001]), unit, sound, narrow) is None
        assert "rounding" in doubt(spectrum, np.array([1.0, edge * 0.999]), unit, sound, narrow)
    helped = (*sound, Factor("jitter", 1e-9))
    assert "solved by jitter, jitter 1.0e-09" in doubt(spectrum, np.array([1.0]), unit, helped, False)


def test_nothing_to_test_or_to_train_with():
    """A fold without weight, and a fold that has all of it."""
    X, y, _, _, targets = draw("values", weighted=False)
    w = (fold_of(0, N, K, SEED) == 0).astype(float)
    with pytest.raises(ValueError, match=r"fold 0 of 3 has no weight"):
        solve(X, y, w, targets, RidgeOptions(ALPHAS, True, choose=True))


def test_an_infinite_solution_is_refused():
    """Targets beyond float64."""
    X, y, _, _, targets = draw("values", weighted=False)
    huge = dataclasses.replace(targets, unit=np.full(2, 1e308))
    program = GramProgram(FEATURES.at(np.float64), targets, N, folds=1, seed=SEED)
    sums, space = program.start(), program.workspace()
    program.add(sums, space, 0, 0, (X, y, None, None))
    told = {"scale": FEATURES.scale, "options": RidgeOptions(np.array([1e-9]), True), "narrow": False}
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="is not finite; rescale X, y and"):
        solve_weights(sums, targets=huge, **told)


def told(options, folds=K, target="values", **more):
    """Weights of a whole pass, and what was told of the solve."""
    X, y, w, _, targets = draw(target, weighted=False)
    tables, events = [Table("memory", X), Table("memory", y), None, None], []
    rows = Rows(tables, ["X", "y", "sample_weight", "folds"])
    with listening(events.append):
        program = GramProgram(FEATURES.at(np.float64), targets, rows.n_rows, folds, SEED)
        found = fit_ridge(Run(engine_for(False), rows, Progress(0)), program, options, **more)
    [solved] = [event for event in events if event["event"] == "solve"]
    return found, solved, (X, y, w, targets)


def test_one_pass_and_one_solve():
    """The same weights as from the sums; how many systems there were, and the least error of the folds."""
    options = RidgeOptions(ALPHAS, True, choose=True)
    found, event, (X, y, w, targets) = told(options)
    expected = solve(X, y, w, targets, options)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-9)
    assert event["systems"] == 1 + K * len(ALPHAS)
    assert event["cv_error"] == pytest.approx(-expected.scores.mean(axis=1).max())
    assert event["alpha"] == expected.alpha.tolist()
    assert event["objective"] == pytest.approx(expected.objective)
    found, event, _ = told(RidgeOptions(ALPHAS[1:2], True))
    assert (event["systems"], event["cv_error"]) == (1, None)
    assert found.alpha.tolist() == [0.1]


def test_alpha_by_the_log_loss():
    """One of the quarter, half, same, double and fourfold alpha; a warning of float32 blocks only for those."""
    found, event, _ = told(RidgeOptions(np.array([1.0]), True), target="three classes", refine=least_log_loss)
    assert np.isclose(found.alpha[0], [0.25, 0.5, 1, 2, 4]).any()
    assert event["systems"] == 1
    assert told(RidgeOptions(np.array([1e-9]), True))[0].warning is None
