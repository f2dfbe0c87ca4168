"""Estimators that learn their kernel: against scipy on dense definitions, and every parameter seen to act."""

from __future__ import annotations

import warnings

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import dkl
from dkl.learn import parameters, stages
from dkl.sums.folds import fold_of, held_out
from tests import oracles

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # tests stop early on purpose

N, M = 600, 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
SCORE = np.sin(2 * X[:, 0]) + np.tanh(2 * X[:, 1]) + 2 * np.exp(-(X[:, 2] ** 2))
Y = SCORE + 0.2 * RNG.normal(size=N)
CODE = np.digitize(SCORE, [0.5, 1.7])
WEIGHT = RNG.integers(1, 4, N)
OPTIONS = {"n_components": 60, "groups": "each", "random_state": 0, "verbose": 0, "starts": 1}


def regress(rows=X, y=Y, weight=None, **options):
    """A fitted regressor."""
    return dkl.SingleKernelRegressor(**(OPTIONS | {"learn": "validation"} | options)).fit(rows, y, weight)


def classify(rows=X, y=CODE, weight=None, **options):
    """A fitted classifier."""
    return dkl.SingleKernelClassifier(**(OPTIONS | {"learn": "validation"} | options)).fit(rows, y, weight)


def many(n=3000):
    """More rows of the same kind, for what 120 held-out rows cannot tell."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(n, M))
    score = np.sin(2 * rows[:, 0]) + np.tanh(2 * rows[:, 1]) + 2 * np.exp(-(rows[:, 2] ** 2))
    return rows, score + 0.2 * rng.normal(size=n)


def seed_of(model, rows=X):
    """The seed of the folds: drawn after the frequencies, so the same whatever is learned."""
    from dkl.estimators.fourier import draw_generator
    from dkl.prepare.draw import draw

    class Moments:
        weight, mean, m2 = 1.0, np.zeros(M), np.ones(M)
        variance = np.ones(M)

        def __iter__(self):
            return iter((self.weight, self.mean, self.m2))

    params = model.get_params() | {"sigma": 1.0}
    return draw(params, M, {}, draw_generator(0), lambda program: Moments(), False)[2]


def dense(model, objective, y=Y, weight=None):
    """J(log sigma) by definition, with the map and the alpha of the model."""
    w = np.ones(N) if weight is None else weight
    seed, features = seed_of(model), model.features_
    fold = held_out(0, N, (1, 5), seed) if objective == "validation" else fold_of(0, N, 5, seed)

    def J(x):
        omega = np.exp(x)[:, None] * features.unit
        Psi = oracles.features(X, omega, features.phase, features.form)
        return oracles.OBJECTIVES[objective](Psi, y[:, None], w, model.alpha_, True, fold)

    return J


@pytest.mark.parametrize("objective", ["validation", *(pytest.param(o, marks=pytest.mark.long) for o in ("cv", "gcv"))])
def test_reaches_the_minimum_that_scipy_reaches(objective):
    """From the learned point scipy's L-BFGS finds next to nothing to gain, and from the start it gets no further."""
    model = regress(learn=objective, tol=1e-6, max_iter=300, alpha=0.1)
    J, here = dense(model, objective), np.log(model.sigma_)
    value = float(np.real(J(here.astype(complex))))
    np.testing.assert_allclose(model.history_.objective[-1], value, rtol=1e-6)

    def both(x):
        return float(np.real(J(x.astype(complex)))), oracles.complex_step(J, x)

    start = np.full(M, np.log(1 / np.sqrt(X.var(axis=0).sum())))
    box = [(at - np.log(1e4), at + np.log(1e4)) for at in start]
    better = minimize(both, here, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 15})
    assert better.fun > value * (1 - 1e-3)
    afresh = minimize(both, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 60})
    assert value < afresh.fun * 1.1  # there are several minima
    assert value < 0.5 * both(start)[0]


def test_weights_are_those_of_ridge_at_the_learned_kernel():
    """All rows, the learned sigma and alpha: scikit-learn's Ridge."""
    model = regress()
    Psi = model.features_.at(np.float64).transform(X)
    ridge = Ridge(model.alpha_).fit(Psi, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-6)
    assert model.score(X, Y) > regress(learn="none", cv=5).score(X, Y)


@pytest.mark.parametrize("learn", ["validation", "cv", "gcv", "joint"])
def test_relevant_inputs_are_told_from_noise(learn):
    """Inputs 3 and 4 do not enter y."""
    model = regress(*many(), learn=learn)
    assert model.sigma_[:3].min() > 4 * model.sigma_[3:].max()
    assert model.selected_inputs_.all()


def test_l1_leaves_nothing_that_has_all_but_vanished():
    """Five of 20 inputs matter; with 200 features tiny sigmas of others lowered the objective by less than tol."""
    rows, y = make_friedman1(1000, n_features=20, noise=0.5, random_state=0)
    options = {"learn": "cv", "groups": "each", "sigma_l1": 0.01, "random_state": 0, "verbose": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = dkl.SingleKernelRegressor(n_components=200, **options).fit(rows, y)
    np.testing.assert_array_equal(np.flatnonzero(model.selected_inputs_), range(5))
    np.testing.assert_array_equal(model.history_.sigma[-1], model.sigma_)
    assert float(model.history_.objective[-1]) <= 1.001 * float(model.history_.objective[-2])


def test_l1_switches_inputs_off_exactly():
    """Noise inputs get sigma zero, not a small number; more of it switches off more, and predictions ignore them."""
    rows, y = many()
    found = [regress(rows, y, sigma_l1=l1, alpha=0.1) for l1 in (0.003, 3.0)]
    assert found[0].sigma_[3:].tolist() == [0, 0]
    assert found[0].selected_inputs_.tolist() == [True, True, True, False, False]
    assert found[1].selected_inputs_.sum() < 3
    bent = X.copy()
    bent[:, 3:] += 100
    np.testing.assert_array_equal(found[0].predict(bent), found[0].predict(X))
    assert found[0].score(rows, y) > 0.85


def test_l1_switches_nothing_off_that_matters(monkeypatch):
    """With zeros for all sigmas below 1e4 times their start the objective rises, so the end of the descent stays."""
    rows, y = many()
    expected = regress(rows, y, sigma_l1=0.003, alpha=0.1)
    monkeypatch.setattr(parameters, "VANISHED", 1e4)
    found = regress(rows, y, sigma_l1=0.003, alpha=0.1)
    np.testing.assert_array_equal(found.sigma_, expected.sigma_)
    np.testing.assert_array_equal(found.history_.objective, expected.history_.objective)
    assert found.sigma_[:3].min() > 0


def test_l2_pulls_sigma_down():
    """The sum of squares falls with the penalty."""
    sizes = [(regress(sigma_l2=l2).sigma_ ** 2).sum() for l2 in (0.0, 0.01, 0.3)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < 0.5 * sizes[0]


def test_groups_share():
    """One sigma for all, or for each of two groups; a start of different sizes keeps their ratio."""
    assert len(set(regress(groups=None).sigma_)) == 1
    pair = regress(groups=[0, 0, 0, 1, 1]).sigma_
    assert len(set(pair)) == 2
    assert pair[0] > 4 * pair[4]
    ratio = regress(groups=None, sigma=[0.1, 0.2, 0.3, 0.1, 0.1]).sigma_
    np.testing.assert_allclose(ratio / ratio[0], [1, 2, 3, 1, 1])


def test_a_given_alpha_stays():
    """A number is kept; "auto" is learned, to a better objective; joint never touches it."""
    kept, learned = regress(alpha=3.0), regress()
    assert kept.alpha_ == 3.0
    assert learned.alpha_ not in (1.0, 3.0)
    assert float(learned.history_.objective[-1]) < float(kept.history_.objective[-1])
    assert regress(learn="joint").alpha_ == 1.0
    assert regress(learn="joint", alpha=0.5).alpha_ == 0.5


def test_whole_weights_are_repeated_rows():
    """The objective of weighted rows is that of rows given several times (held out together)."""
    mask = np.arange(N) % 4 == 0
    weighted = regress(weight=WEIGHT, validation=mask, max_iter=8, tol=1e-9, sigma=0.4)
    many = regress(
        np.repeat(X, WEIGHT, axis=0), np.repeat(Y, WEIGHT), validation=np.repeat(mask, WEIGHT), max_iter=8, tol=1e-9,
        sigma=0.4,
    )  # fmt: skip
    np.testing.assert_allclose(weighted.history_.objective[:5], many.history_.objective[:5], rtol=1e-5)
    np.testing.assert_allclose(weighted.sigma_[:3], many.sigma_[:3], rtol=0.05)


def test_a_mask_is_the_share_it_names():
    """True for the rows that the hash would hold out: the same bits."""
    by_share = regress(validation=0.2)
    mask = held_out(0, N, (1, 5), seed_of(by_share)).astype(bool)
    assert mask.mean() == 0.2
    by_mask = regress(validation=mask)
    np.testing.assert_array_equal(by_mask.coef_, by_share.coef_)
    np.testing.assert_array_equal(by_mask.sigma_, by_share.sigma_)
    assert not np.array_equal(regress(validation=0.4).sigma_, by_share.sigma_)


def test_classes_are_learned_with_their_error():
    """error_rate is a share that falls; two classes as well as three, strings as well."""
    for y in (CODE, (CODE > 0) * 1, np.array(["a", "b", "c"])[CODE]):
        model = classify(y=y)
        rate = model.history_.error_rate.values
        assert 0 <= rate[-1] < rate[0] <= 1
        assert model.score(X, y) > 0.8
    assert "error_rate" not in regress().history_


@pytest.mark.parametrize("chunk", [7, 64, N])
def test_chunks_do_not_matter(chunk):
    """Up to rounding, which the first iterations do not yet blow up."""
    options = {"max_iter": 5, "tol": 1e-9, "alpha": 1.0}
    lazy = regress(da.from_array(X, chunks=(chunk, -1)), **options)
    np.testing.assert_allclose(lazy.sigma_, regress(**options).sigma_, rtol=1e-5)


def test_sparse_rows_learn_like_dense_ones():
    """csr in memory."""
    rows = np.where(RNG.random(X.shape) < 0.5, X, 0.0)
    options = {"max_iter": 5, "tol": 1e-9, "alpha": 1.0}
    thin, thick = regress(sparse.csr_array(rows), **options), regress(rows, **options)
    np.testing.assert_allclose(thin.sigma_, thick.sigma_, rtol=1e-6)


def test_frequencies_learn_more_than_sigma():
    """Every frequency moves, the error on all folds falls further, sigma stays; phases move too."""
    few = {"n_components": 20, "cv": 3, "max_iter": 40}
    sigma, each = regress(learn="cv", **few), regress(learn="frequencies", **few)
    drawn = regress(learn="none", n_components=20, alpha=1.0).features_
    assert float(each.history_.validation_error[-1]) < float(sigma.history_.validation_error[-1])
    assert (each.features_.unit != drawn.unit).all()
    np.testing.assert_array_equal(each.sigma_, each.history_.sigma[0])
    with pytest.raises(ValueError, match=r"frequencies.*exact=False"):
        each.kernel_matrix(X[:3], exact=True)
    phase = regress(learn="frequencies", form="phase", **few)
    assert (
        phase.features_.phase != regress(learn="none", n_components=20, form="phase", alpha=1.0).features_.phase
    ).all()


@pytest.fixture
def small_stages(monkeypatch):
    """Starts on about a hundred rows, so that 20,000 rows are not needed to see stages."""
    monkeypatch.setattr(stages, "FEW_ROWS", 100)
    monkeypatch.setattr(stages, "ROWS_PER_FEATURE", 1)
    monkeypatch.setattr(stages, "FEW_BLOCKS", 1)


def test_stages_grow_and_starts_compete(small_stages):
    """Rows of the stages, starts of the first; the weights are of all rows, alpha for all rows."""
    rows, y = many(16 * N)
    rows = da.from_array(rows, chunks=(300, -1))
    model = regress(rows, y, starts=3, max_iter=4, tol=1e-2)
    history = model.history_
    assert sorted(set(history.start.values[history.stage == 0])) == [0, 1, 2]
    sizes = [int(history.rows.values[history.stage == s][0]) for s in range(int(history.stage.max()) + 1)]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == 16 * N
    assert sizes[0] < 2000
    half = regress(rows, y, starts=2, max_iter=4, tol=1e-2, subsample=0.25)
    assert int(half.history_.rows.max()) <= 0.3 * 16 * N
    Psi = half.features_.at(np.float64).transform(rows.compute())
    np.testing.assert_allclose(half.coef_, Ridge(half.alpha_).fit(Psi, y).coef_, rtol=1e-4, atol=1e-7)
    assert half.alpha_ != float(half.history_.alpha[-1])


def test_starts_help_from_a_bad_sigma():
    """A sigma ten times too large: more starts, a better end."""
    bad = {"sigma": 30.0, "max_iter": 3, "groups": None}
    one, five = (float(regress(starts=s, **bad).history_.objective[-1]) for s in (1, 7))
    assert five < one


def test_history_tells_every_iteration():
    """Falling objective within a descent, growing passes and seconds, sigma as in the end, labels of the inputs."""
    model = regress(xr.DataArray(X, dims=("row", "input"), coords={"input": list("abcde")}), starts=2)
    history = model.history_
    legs = {(int(stage), int(start)) for stage, start in zip(history.stage, history.start, strict=True)}
    assert model.n_iter_ == len(history.iteration) - len(legs)  # a beginning is no iteration
    assert history.sigma.dims == ("iteration", "input")
    assert history.input.values.tolist() == list("abcde")
    assert history.group.values.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(history.sigma[-1], model.sigma_)
    assert float(history.alpha[-1]) == model.alpha_
    assert (np.diff(history.passes) >= 2).all()
    assert (np.diff(history.seconds) >= 0).all()
    for start in (0, 1):
        own = history.objective.values[(history.stage == 0) & (history.start == start)]
        assert (np.diff(own) < 0).all()
    framed = regress(pd.DataFrame(X, columns=list("vwxyz")))
    assert framed.history_.input.values.tolist() == list("vwxyz")
    assert not hasattr(framed.set_params(learn="none").fit(pd.DataFrame(X, columns=list("vwxyz")), Y), "history_")


def test_stopping_early_says_so():
    """max_iter and max_time warn with what to raise; tol does not."""
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 .* raise max_iter, or tol"):
        model = regress(max_iter=2, tol=1e-9)
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-06 .* raise max_time"):
        quick = regress(max_time=1e-6, starts=3)
    assert quick.n_iter_ == 0
    assert quick.score(X, Y) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loose, tight = regress(tol=0.1), regress(tol=1e-4, max_iter=200)
    assert loose.n_iter_ < tight.n_iter_


REFUSED = {
    "learn": ({"learn": "validate"}, "did you mean 'validation'"),
    "cv with validation": ({"cv": 3}, "learn='validation'"),
    "alphas": ({"alpha": [0.1, 1.0]}, "2 values.*'auto'"),
    "alpha zero": ({"alpha": 0.0}, "above 0"),
    "alpha text": ({"alpha": "best"}, "'auto'"),
    "share of all": ({"validation": 1.0}, "validation=1.0"),
    "share text": ({"validation": "half"}, "validation='half'"),
    "mask of numbers": ({"validation": np.arange(N)}, "True or False"),
    "mask of others": ({"validation": np.ones(3, bool)}, r"shape \(3,\)"),
    "mask of nobody": ({"validation": np.zeros(N, bool)}, "0 of 600"),
    "starts": ({"starts": 0}, "starts=0"),
    "subsample": ({"subsample": 1.5}, "subsample=1.5"),
    "max_iter": ({"max_iter": -1}, "max_iter=-1"),
    "max_time": ({"max_time": 0}, "max_time=0"),
    "tol": ({"tol": 0}, "tol=0"),
    "l1": ({"sigma_l1": -0.5}, "sigma_l1 contains -0.5"),
    "l1 list": ({"sigma_l1": [0.1, 0.2]}, "one number"),
    "l2 of frequencies": ({"learn": "frequencies", "sigma_l2": 1.0}, "sigma_l2"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refusals(name):
    """One line with the value and what to type."""
    options, words = REFUSED[name]
    with pytest.raises(ValueError, match=words) as caught:
        regress(**options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"sigma_l1": 0.1}, "sigma_l1=0.1 .*learn='cv'"), ({"sigma_l2": 0.1}, "sigma_l2=0.1 .*sigma_l2=0")],
)
def test_refusals_of_the_log_loss(options, words):
    """Penalties beside its own prior; numbers."""
    for fit, more, match in (
        (classify, options, words),
        (regress, {}, "learn='log_loss' .*SingleKernelClassifier.*'cv'"),
    ):
        with pytest.raises(ValueError, match=match) as caught:
            fit(learn="log_loss", **more)
        assert "\n" not in str(caught.value)


def relevant(classes, n=1200):
    """Rows of eight inputs, of which two say what class a row has; codes."""
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(n, 8))
    return rows, np.digitize(np.sin(2 * rows[:, 0]) + rows[:, 1], np.linspace(-0.6, 0.6, classes - 1))


@pytest.mark.parametrize("classes", [2, 4])
def test_log_loss_attends_to_the_inputs_that_matter(classes):
    """Their sigma becomes several times that of noise, and rows not seen are told apart better."""
    rows, code = relevant(classes)
    fits = [
        classify(rows[:500], code[:500], learn=learn, n_components=100, cv=5) for learn in ("none", "log_loss")
    ]  # fmt: skip
    before, after = (model.score(rows[500:], code[500:]) for model in fits)
    assert after > before + 0.05
    sigma, history = fits[1].sigma_, fits[1].history_
    assert sigma[:2].min() > 3 * sigma[2:].max()
    assert fits[1].n_iter_ == 50
    assert (history.rows == 500).all()
    assert float(history.validation_error[-5:].mean()) < 0.8 * float(history.validation_error[0])
    assert float(history.error_rate[-5:].mean()) < float(history.error_rate[0])
    assert (history.objective >= history.validation_error).all()
    assert (np.diff(history.passes) == np.where(np.arange(1, 50) % 10, 3, 4)).all()


def test_log_loss_keeps_what_is_given():
    """The frequencies of random_state, a given alpha, one sigma for a group; and it does not warn of max_iter."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = classify(learn="log_loss", alpha=3.0, max_iter=6, groups=[0, 0, 0, 1, 1])
    assert model.alpha_ == 3.0
    assert (model.history_.alpha == 3.0).all()
    assert len(set(model.sigma_)) == 2
    plain = classify(learn="none", sigma=model.sigma_, alpha=3.0)
    np.testing.assert_array_equal(model.features_.unit, plain.features_.unit)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    late = model.history_.sigma.values[3:]
    assert late.min(axis=0)[0] / 2 < model.sigma_[0] < 2 * late.max(axis=0)[0]
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-06 after 1 of 6 iterations; raise max_time"):
        assert classify(learn="log_loss", max_time=1e-6, max_iter=6).n_iter_ == 1


def test_log_loss_in_turns(small_stages):
    """Each iteration sees other blocks; folds that few blocks miss get more; the weights are of all rows."""
    rows, y = many(4000)
    code, lazy = np.digitize(y, [0.5, 1.7]), da.from_array(rows, chunks=(100, -1))
    quick = {"learn": "log_loss", "n_components": 20, "max_iter": 4}
    model = classify(lazy, code, **quick)
    assert model.history_.rows.values.tolist() == [100] * 4
    Psi, Y = model.features_.at(np.float64).transform(rows), 2.0 * np.eye(3)[code] - 1
    np.testing.assert_allclose(model.coef_, Ridge(model.alpha_).fit(Psi, Y).coef_, rtol=1e-4, atol=1e-7)
    half = classify(lazy, code, subsample=0.5, **quick)
    assert half.history_.rows.values.tolist() == [2000] * 4
    folds = np.arange(4000) // 1000
    wide = classify(lazy, code, cv=folds, **quick)
    assert 100 < int(wide.history_.rows.max()) <= 1600


def test_log_loss_threads_do_not_matter():
    """The same bits; and each random_state has its own frequencies, so its own sigma."""
    found = []
    for threads in (1, 3):
        with dask.config.set(num_workers=threads):
            found.append(classify(da.from_array(X, chunks=(50, -1)), learn="log_loss", max_iter=3, n_components=21))
    for name in ("coef_", "intercept_", "sigma_"):
        assert getattr(found[0], name).tobytes() == getattr(found[1], name).tobytes()
    assert found[0].history_.drop_vars("seconds").identical(found[1].history_.drop_vars("seconds"))
    assert (classify(learn="log_loss", max_iter=3, n_components=21, random_state=1).sigma_ != found[0].sigma_).all()


def test_log_loss_weights_are_repeated_rows():
    """Also of classes, with folds that stay together."""
    fold, options = np.arange(N) % 3, {"learn": "log_loss", "max_iter": 4, "sigma": 0.4}
    weighted = classify(weight=WEIGHT, cv=fold, **options)
    many = classify(np.repeat(X, WEIGHT, axis=0), np.repeat(CODE, WEIGHT), cv=np.repeat(fold, WEIGHT), **options)
    np.testing.assert_allclose(weighted.history_.objective, many.history_.objective, rtol=1e-5)
    np.testing.assert_allclose(weighted.sigma_, many.sigma_, rtol=1e-3)


def test_a_row_that_cannot_be_used_is_named():
    """NaN in lazy rows, found by the first pass."""
    bad = X.copy()
    bad[311, 2] = np.nan
    with pytest.raises(ValueError, match="NaN at row 311, column 2"):
        regress(da.from_array(bad, chunks=(100, -1)), sigma=0.5)


def test_folds_without_rows_are_refused():
    """Held-out rows whose weights are all zero."""
    mask = np.arange(N) < 100
    with pytest.raises(ValueError, match="held out"):
        regress(validation=mask, weight=np.where(mask, 0.0, 1.0))


def test_constant_targets_and_inputs():
    """Nothing to learn: no division by zero, no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flat = regress(y=np.full(N, 3.0))
        rows = X.copy()
        rows[:, 1] = 7.0
        still = regress(rows)
    np.testing.assert_allclose(flat.predict(X), 3.0, rtol=1e-6)
    assert np.isfinite(still.sigma_).all()


def test_pipelines_and_clones():
    """GridSearchCV over what is learned; clone keeps every parameter."""
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(
        dkl.SingleKernelRegressor(**OPTIONS, max_iter=3, tol=0.5), {"learn": ["none", "gcv"]}, cv=2
    ).fit(X, Y)  # fmt: skip
    assert search.best_params_ == {"learn": "gcv"}
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


def test_auto_alpha_without_learning():
    """One, or those of the list above the rounding, to choose from."""
    assert regress(learn="none").alpha_ == 1.0
    chosen = regress(learn="none", cv=4)
    tried = chosen.cv_results_["param_alpha"].tolist()
    assert tried[-6:] == [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    assert len(tried) > 6
    assert min(tried) < 0.01
    assert chosen.n_iter_ == 1


def test_folds_that_few_blocks_miss():
    """A held-out tail, contiguous folds, weights that begin with zeros, rows sorted by class: over many blocks."""
    from sklearn.model_selection import KFold

    rows, y = many(64_000)
    lazy = da.from_array(rows, chunks=(1000, -1))
    quick = {"n_components": 20, "max_iter": 2, "tol": 0.1}
    late = np.where(np.arange(64_000) < 40_000, 0.0, 1.0)
    found = [
        regress(lazy, y, validation=np.arange(64_000) >= 51_200, **quick),
        regress(lazy, y, learn="cv", cv=KFold(20), **quick),
        regress(lazy, y, late, learn="gcv", **quick),
    ]
    for model in found:
        assert model.score(rows, y) > 0.5
    assert int(found[0].history_.rows[0]) < 64_000
    code = np.sort(np.digitize(y, [0.5, 1.5]))
    order = np.argsort(np.digitize(y, [0.5, 1.5]), kind="stable")
    model = classify(da.from_array(rows[order], chunks=(1000, -1)), code, **quick)
    assert 0.05 < float(model.history_.error_rate[0]) < 0.9


def test_stages_without_weight_are_skipped(small_stages):
    """Only one block in fifty is held out: stages that lack it are left out, in a resumed fit too."""
    rows, y = many(6400)
    lazy, mask = da.from_array(rows, chunks=(100, -1)), (np.arange(6400) // 100) == 37
    model = regress(lazy, y, validation=mask, n_components=10, max_iter=2, tol=0.1, starts=2)
    assert int(model.history_.rows[0]) >= 3200
    assert model.history_.stage.values[0] == 0
    assert sorted(set(model.history_.start.values[model.history_.stage == 0])) == [0, 1]


def test_inputs_of_any_size_are_learned_alike():
    """With sigma="scale" every group starts at its own spread, so units do not matter."""
    units = np.array([1e-4, 1e4, 1.0, 10.0, 1e-2])
    plain, scaled = regress(max_iter=6, tol=1e-9), regress(X * units, max_iter=6, tol=1e-9)
    np.testing.assert_allclose(scaled.history_.objective, plain.history_.objective, rtol=0.2)
    assert scaled.score(X * units, Y) > 0.8


@pytest.mark.parametrize("learn", ["cv", "validation", "gcv", "joint"])
def test_a_large_mean_of_y_changes_nothing(learn):
    """y = 1e8 + something of size one: only the something is summed, so no digit of it is lost."""
    plain, moved = (regress(y=Y + shift, learn=learn, max_iter=5, tol=1e-9) for shift in (0.0, 1e8))
    np.testing.assert_allclose(moved.sigma_, plain.sigma_, rtol=0.02)
    np.testing.assert_allclose(moved.predict(X) - 1e8, plain.predict(X), atol=0.01 * Y.std())


@pytest.mark.parametrize("learn", ["validation", "cv", "log_loss"])
def test_a_share_of_sorted_rows_is_spread_over_them(learn):
    """A tenth of rows that are sorted by class has all of them, in at least eight blocks."""
    rows = np.random.default_rng(1).standard_normal((4000, 3))
    code = (np.sin(2 * rows[:, 0]) > 0).astype(int)
    order = np.argsort(code, kind="stable")
    model = classify(rows[order], code[order], learn=learn, subsample=0.1, max_iter=15, sigma="scale")
    assert 300 <= int(model.history_.rows[-1]) <= 500
    assert model.sigma_[0] > 2 * model.sigma_[1:].max()
    assert model.score(rows, code) > 0.95


@pytest.mark.parametrize("size", [1e-140, 1e-20, 1e20, 1e140])
def test_targets_of_any_size(size):
    """Without warnings, and the same sigma."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = regress(y=Y * size, max_iter=5, tol=1e-9, sigma_l2=1e-3)
    np.testing.assert_allclose(model.sigma_, regress(max_iter=5, tol=1e-9, sigma_l2=1e-3).sigma_, rtol=1e-3)


def test_names_of_inputs_survive(tmp_path):
    """Texts wider than they need be, dates, names that the history has itself, and a group of the user's own."""
    coords = {
        "input": np.array(list("abcde"), "U10"),
        "when": ("input", np.array(["2020-01-01"] * 5, "M8[ns]")),
        "sigma": ("input", np.arange(5.0)),
        "iteration": ("input", list("vwxyz")),
        "group": ("input", ["left", "left", "left", "right", "right"]),
    }
    model = regress(xr.DataArray(X, dims=("row", "input"), coords=coords), groups="group", max_iter=2, tol=0.5)
    assert model.history_.group.values.tolist() == ["left", "left", "left", "right", "right"]
    assert model.history_.input_sigma.values.tolist() == [0, 1, 2, 3, 4]
    assert model.history_.sigma.dims == ("iteration", "input")
    model.save(tmp_path / "m.zarr")
    again = dkl.load(tmp_path / "m.zarr")
    assert again.history_.input.values.tolist() == list("abcde")
    assert again.history_.input_iteration.values.tolist() == list("vwxyz")


def test_a_plateau_is_said_to_be_one():
    """A sigma so large that every start sees noise."""
    with pytest.warns(ConvergenceWarning, match="of the variance of y unexplained"):
        regress(sigma=1e4, groups=None, starts=3)


def test_few_rows_hold_out_what_was_asked():
    """Seven per cent of 20 rows is one of them, whatever the seed; an objective of zero ends in words."""
    for seed in range(8):
        regress(X[:20], Y[:20], validation=0.07, random_state=seed, max_iter=1)
    dkl.SingleKernelRegressor(
        learn="validation", n_components=30, random_state=9, max_iter=1, starts=1, verbose=0
    ).fit(X[:8], Y[:8])  # fmt: skip
