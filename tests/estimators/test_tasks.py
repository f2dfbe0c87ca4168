"""Several tasks: weights against solvers that are not dkl's, every way to say the task, and what is refused."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.linear_model import Lasso

import dkl
from dkl.features.refusal import Refusal
from dkl.features.task_column import numbers_of
from dkl.store.checkpoint import Checkpoint
from tests.engine.conftest import cluster_of, embedded

N = 420
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
T = np.repeat([2, 0, 1], [90, 120, 210])
NAMES = np.array(["oslo", "paris", "rome"])[T]
Y = np.cos(2 * X[:, 0]) + (T == 1) * np.sin(X[:, 1]) + 2.0 * T + 0.1 * RNG.normal(size=N)
CODE = (np.cos(2 * X[:, 0]) + (T == 2) * X[:, 1] > 0.3).astype(int)
WIDE = np.column_stack([X[:, 0], 10.0 * T, X[:, 1:]])
OPTIONS = {"max_features": 8, "per_round": 4, "candidates": 20, "alpha": 1.5, "random_state": 0, "verbose": 0}
TIGHT = {"solver_tol": 1e-8, "dtype": "float64"}


def regressor(**options):
    """Of these options."""
    return dkl.InfiniteFeatureRegressor(**(OPTIONS | options))


def classifier(**options):
    """With the squared hinge."""
    return dkl.InfiniteFeatureClassifier(**(OPTIONS | {"loss": "squared_hinge"} | options))


def waves(model, rows=X):
    """cos and sin of the frequencies, by hand."""
    omega = model.features_.sigma[:, None] * model.features_.unit
    return np.hstack([np.cos(rows @ omega), np.sin(rows @ omega)])


def shared_objective(model, loss, y):
    """Value and gradient of the smooth part, in (shared, specific, intercepts), and the penalty's two parts."""
    Psi, tasks = waves(model), np.unique(T)
    d, c = Psi.shape[1], len(tasks)

    def smooth(v):
        s, P, b = v[:d], v[d : d + d * c].reshape(c, d), v[d + d * c :]
        z = np.einsum("nd,nd->n", Psi, (s + P)[T]) + b[T]
        value, slope = loss(z, y)
        g = np.zeros((c, d))
        np.add.at(g, T, slope[:, None] * Psi)
        return value, np.concatenate([g.sum(axis=0), g.ravel(), np.bincount(T, slope, c)])

    def shrink(v, step, ratio):
        s, P = v[:d].reshape(2, -1).copy(), v[d : d + d * c].reshape(c, 2, -1).copy()
        s *= np.maximum(0, 1 - step * ratio / np.maximum(np.linalg.norm(s, axis=0), 1e-300))
        P *= np.maximum(0, 1 - step / np.maximum(np.sqrt((P**2).sum(axis=(0, 1))), 1e-300))
        return np.concatenate([s.ravel(), P.ravel(), v[d + d * c :]])

    def penalty(v, ratio):
        s, P = v[:d].reshape(2, -1), v[d : d + d * c].reshape(c, 2, -1)
        return ratio * np.linalg.norm(s, axis=0).sum() + np.sqrt((P**2).sum(axis=(0, 1))).sum()

    return smooth, shrink, penalty, d + d * c + c


def square(z, y):
    """Half the squared error."""
    return 0.5 * ((z - y) ** 2).sum(), z - y


def hinge(z, y):
    """Half the squared hinge."""
    s = 2.0 * y - 1
    far = np.maximum(0, 1 - s * z)
    return 0.5 * (far**2).sum(), -s * far


@pytest.mark.parametrize("kind", ["square", "hinge"])
def test_shared_weights_are_those_of_a_plain_proximal_method(kind):
    """FISTA in the shared and the specific weights, on the features that were selected."""
    ratio, y, loss = 1.4, Y if kind == "square" else CODE, square if kind == "square" else hinge
    model = (regressor if kind == "square" else classifier)(penalty=f"shared:ratio={ratio}", **TIGHT)
    model.fit(X, y, tasks=NAMES)
    smooth, shrink, penalty, size = shared_objective(model, loss, y)
    L, alpha = 1.02 * 4 * N, OPTIONS["alpha"]
    v = np.zeros(size)
    u, t = v, 1.0
    for _ in range(3000):
        after = shrink(u - smooth(u)[1] / L, alpha / L, ratio)
        if (u - after) @ (after - v) > 0:
            u, t = after, 1.0
        else:
            later = (1 + np.sqrt(1 + 4 * t * t)) / 2
            u, t = after + (t - 1) / later * (after - v), later
        v = after
    ours = np.concatenate([model.shared_coef_, model.task_coef_.ravel(), model.intercept_])
    best, found = (smooth(one)[0] + alpha * penalty(one, ratio) for one in (v, ours))
    assert abs(found - best) < 1e-6 * best
    d = waves(model).shape[1]
    theirs = v[:d] + v[d:-3].reshape(3, d)
    np.testing.assert_allclose(model.coef_, theirs, atol=2e-3 * np.abs(theirs).max())
    np.testing.assert_allclose(model.coef_, model.shared_coef_ + model.task_coef_, atol=1e-12)
    assert np.linalg.norm(model.shared_coef_) > 0


def test_without_shared_weights_each_task_is_a_lasso():
    """penalty="l1": scikit-learn's Lasso of the rows of each task alone."""
    model = regressor(penalty="l1", **TIGHT).fit(X, Y, tasks=NAMES)
    Psi = waves(model)
    for t in range(3):
        own = t == T
        alone = Lasso(alpha=OPTIONS["alpha"] / own.sum(), tol=1e-10, max_iter=100_000).fit(Psi[own], Y[own])
        np.testing.assert_allclose(model.coef_[t], alone.coef_, atol=1e-5)
        np.testing.assert_allclose(model.predict(X[own], tasks=NAMES[own]), alone.predict(Psi[own]), atol=1e-5)


def test_groups_of_tasks_against_scipy():
    """penalty="l21", logistic: the gradient of the log loss balances the penalty at every group that has weights."""
    model = classifier(loss="log_loss", **TIGHT).fit(X, CODE, tasks=NAMES)
    Psi, s, alpha = waves(model), 2.0 * CODE - 1, OPTIONS["alpha"]
    c, d = model.coef_.shape

    def objective(v):
        W, b = v[: c * d].reshape(c, d), v[c * d :]
        t = s * (np.einsum("nd,nd->n", Psi, W[T]) + b[T])
        slope, g = -s / (1 + np.exp(t)), np.zeros((c, d))
        np.add.at(g, T, slope[:, None] * Psi)
        length = np.sqrt((W.reshape(c, 2, -1) ** 2).sum(axis=(0, 1)) + 1e-14)
        pull = alpha * W / np.tile(length, 2)
        value = np.logaddexp(0, -t).sum() + alpha * length.sum()
        return value, np.concatenate([(g + pull).ravel(), np.bincount(T, slope, c)])

    start = np.concatenate([model.coef_.ravel(), model.intercept_])
    best = minimize(objective, 0.9 * start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14})
    assert objective(start)[0] <= best.fun * (1 + 1e-7)
    np.testing.assert_allclose(start, best.x, atol=1e-3 * np.abs(start).max())
    proba = model.predict_proba(X, tasks=NAMES)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-model.decision_function(X, tasks=NAMES))))


def test_every_way_to_say_the_task_is_the_same():
    """Labels, a column by name or number, data sets, sparse rows and Dask; predictions and scores too."""
    right = regressor(penalty="shared").fit(X, Y, tasks=NAMES)
    answer = right.predict(X, tasks=NAMES)
    frame = pd.DataFrame(WIDE, columns=["a", "site", "b", "c"])
    lazy = da.from_array(WIDE, chunks=(100, -1))
    for rows, y, place in (
        (frame, Y, "site"), (WIDE, Y, 1), (WIDE, Y, -3), (csr_array(WIDE), Y, 1),
        (lazy, da.from_array(Y, chunks=90), 1),
    ):  # fmt: skip
        model = regressor(penalty="shared", tasks=place).fit(rows, y)
        assert model.tasks_.tolist() == [0.0, 10.0, 20.0]
        np.testing.assert_allclose(np.asarray(model.predict(rows)), answer, atol=1e-4)
        assert model.score(rows, y) == pytest.approx(right.score(X, Y, tasks=NAMES), abs=1e-6)
        assert model.evaluate(rows, y)["r2"] == pytest.approx(model.score(rows, y), abs=1e-9)
    theirs = right.task_scores(X, Y, tasks=NAMES)
    some = [np.flatnonzero(t == T) for t in range(3)]
    sets = regressor(penalty="shared").fit([X[i] for i in some], [Y[i] for i in some], tasks=["oslo", "paris", "rome"])
    for own, i in zip(sets.predict([X[i] for i in some], tasks=list(theirs)), some, strict=True):
        np.testing.assert_allclose(own, answer[i], atol=1e-4)
    assert list(theirs) == ["oslo", "paris", "rome"]
    found = sets.task_scores([X[i] for i in some], [Y[i] for i in some], tasks=list(theirs))
    assert found == pytest.approx(theirs, abs=1e-6)
    for t, name in enumerate(theirs):
        rest = 1 - ((Y[some[t]] - answer[some[t]]) ** 2).sum() / ((Y[some[t]] - Y[some[t]].mean()) ** 2).sum()
        assert theirs[name] == pytest.approx(rest, abs=1e-9)
        plain = right.to_ridge(name).predict(X[some[t]])
        np.testing.assert_allclose(plain, answer[some[t]], atol=1e-9)
    np.testing.assert_array_equal(right.predict(X[:5], tasks="rome"), right.predict(X[:5], tasks=["rome"] * 5))


def test_data_sets_and_their_names():
    """Names are asked for again, as the order of the fit may be another; a set is answered by the task it is given."""
    some = [np.flatnonzero(t == T) for t in range(3)]
    rows, y = [X[i] for i in some], [Y[i] for i in some]
    numbered, named = regressor().fit(rows, y), regressor().fit(rows, y, tasks=["rome", "paris", "oslo"])
    answers = named.predict(rows, tasks=np.array(["rome", "paris", "oslo"]))
    for mine, theirs in zip(numbered.predict(rows), answers, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)
    for ask in (lambda: named.predict(rows), lambda: named.score(rows, y), lambda: named.task_scores(rows, y)):
        with pytest.raises(ValueError, match="which data set is which of the tasks"):
            ask()
    with pytest.raises(ValueError, match="a label of its own"):
        regressor().fit(rows, y, tasks=[1, "1", "b"])
    inside = regressor(tasks=1).fit(WIDE, Y)
    assert inside.task_scores(WIDE.tolist(), Y) == inside.task_scores(WIDE, Y)


def test_y_and_weights_of_other_rows():
    """The same labels of rows in another order are refused in scores, and in each of several data sets."""
    frame, y, weight = pd.DataFrame(X), pd.Series(Y), pd.Series(np.ones(N))
    model = regressor().fit(frame, y, tasks=T)
    some = [np.flatnonzero(t == T) for t in range(3)]
    rows, parts, weights = ([of.iloc[i] for i in some] for of in (frame, y, weight))
    for ask, name in (
        (lambda: model.score(frame, y[::-1], tasks=T), "y"),
        (lambda: model.task_scores(frame, y[::-1], tasks=T), "y"),
        (lambda: model.score(frame, y, weight[::-1], tasks=T), "sample_weight"),
        (lambda: model.score(rows, [parts[0], parts[1][::-1], parts[2]]), "y[1]"),
        (lambda: regressor().fit(rows, [parts[0], parts[1][::-1], parts[2]]), "y[1]"),
        (lambda: regressor().fit(rows, parts, [None, None, weights[2][::-1]]), "sample_weight[2]"),
    ):
        with pytest.raises(ValueError) as caught:
            ask()
        assert f"and {name} have the same index labels in another order" in str(caught.value)
    assert model.score(rows, parts) == pytest.approx(model.score(frame, y, weight, tasks=T))


@pytest.mark.parametrize("dtype", [int, np.uint64, float])
def test_long_numbers_are_tasks_of_their_own(dtype):
    """Numbers of shops and times differ in their last digit; none stands for another."""
    long = np.array([2**53 - 3, 2**53 - 2, 2**53 - 1] if dtype is float else [2**60, 2**60 + 1, 2**60 + 3], dtype)
    assert numbers_of(long[T], long).tolist() == T.tolist()
    with pytest.raises(Refusal, match="was not in the fit"):
        numbers_of(long[:1] - dtype(1), long)
    with pytest.raises(Refusal, match="was not in the fit"):
        numbers_of(np.array([1_000_003.0]), np.array([1_000_001, 1_000_002]))
    assert numbers_of(np.array([0.7], np.float32), np.array([0.1, 0.7])).tolist() == [1]


def test_weights_and_classes_count_as_rows():
    """A weight of two is a row twice; class_weight multiplies it."""
    twice = np.r_[np.arange(N), np.arange(0, N, 3)]
    weight = np.ones(N)
    weight[::3] = 2
    one = classifier(**TIGHT, sigma=1.0).fit(X, CODE, weight, tasks=T)
    two = classifier(**TIGHT, sigma=1.0).fit(X[twice], CODE[twice], tasks=T[twice])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)
    heavy = classifier(**TIGHT, sigma=1.0, class_weight={0: 1.0, 1: 3.0}).fit(X, CODE, tasks=T)
    same = classifier(**TIGHT, sigma=1.0).fit(X, CODE, 1.0 + 2.0 * CODE, tasks=T)
    np.testing.assert_allclose(heavy.coef_, same.coef_, atol=1e-6)


def test_admm_finds_the_same_weights():
    """With rows' variables in their blocks."""
    newton, admm = (regressor(penalty="shared", solver=s, solver_tol=1e-7).fit(X, Y, tasks=T) for s in ("auto", "admm"))
    np.testing.assert_allclose(admm.coef_, newton.coef_, atol=1e-4)


def test_killed_saved_and_loaded(tmp_path, monkeypatch):
    """Resumed with the same bits; from disk it is the same model."""
    plain, save = classifier(tasks=1, alpha=[3.0, 1.0]).fit(WIDE, CODE), Checkpoint.save_step

    def save_step(self, number, *rest):
        save(self, number, *rest)
        if number == 2:
            raise KeyError("killed")

    again = classifier(tasks=1, alpha=[3.0, 1.0], checkpoint=tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_step", save_step)
        with pytest.raises(KeyError):
            again.fit(WIDE, CODE)
    again.fit(WIDE, CODE, resume=True)
    assert again.coef_.tobytes() == plain.coef_.tobytes()
    again.save(tmp_path / "m.zarr")
    loaded = dkl.load(tmp_path / "m.zarr")
    assert loaded.predict(WIDE).tolist() == plain.predict(WIDE).tolist()
    assert loaded.tasks_.tolist() == plain.tasks_.tolist()
    beside = classifier().fit(X, CODE, tasks=NAMES)
    beside.save(tmp_path / "b.zarr")
    assert (
        dkl.load(tmp_path / "b.zarr").decision_function(X, tasks=NAMES).tobytes()
        == beside.decision_function(X, tasks=NAMES).tobytes()
    )


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_cluster_finds_the_same_bits(tmp_path):
    """Rows and y of a Zarr group, whose input 1 says the task."""
    root = zarr.open_group(str(tmp_path / "d"), mode="w", zarr_format=3)
    root.create_array("X", data=WIDE, chunks=(60, 4))
    root.create_array("y", data=CODE, chunks=(70,))
    with embedded():
        right = classifier(tasks=1, penalty="shared").fit(str(tmp_path / "d"))
    with cluster_of(tmp_path, 2):
        model = classifier(tasks=1, penalty="shared").fit(str(tmp_path / "d"))
        assert model.coef_.tobytes() == right.coef_.tobytes()
        assert (
            np.asarray(model.predict(da.from_zarr(str(tmp_path / "d" / "X")))).tolist() == right.predict(WIDE).tolist()
        )


def test_the_plan_has_a_score_for_each_task():
    """More tasks need more."""
    few = classifier().plan(X, CODE, calibrate=False, tasks=T)
    many = classifier().plan(X, CODE, calibrate=False, tasks=np.arange(N) % 40)
    assert few.fits
    assert many.worker_bytes > few.worker_bytes
    assert classifier(tasks=1).plan(WIDE, CODE, calibrate=False).worker_bytes >= few.worker_bytes


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda: regressor().fit(X, Y, tasks=NAMES[:-1]), "X has 420 rows, tasks has shape (419,)"),
        (lambda: regressor().fit(X, Y, tasks=np.where(T == 0, np.nan, T)), "tasks contains NaN at row 90"),
        (lambda: regressor().fit(X, Y, tasks=[*NAMES[:-1], None]), "tasks is None at row 419"),
        (lambda: regressor().fit(X, Y, tasks="oslo"), "tasks='oslo' is one label for all rows"),
        (lambda: regressor().fit(pd.DataFrame(X), Y, tasks=pd.Series(NAMES)[::-1]), "tasks"),
        (lambda: regressor().fit(X, Y, tasks=["one"] * N), "tasks has one task, 'one'"),
        (lambda: regressor(tasks=0).fit(np.arange(3000.0).reshape(-1, 2), np.ones(1500)), "1,500 different"),
        (lambda: regressor(tasks=1).fit(X, Y, tasks=T), "tasks=1 names an input, and the fit has labels beside X too"),
        (lambda: regressor(tasks=7).fit(X, Y), "tasks=7 is no input of X; they are 0 to 2"),
        (lambda: regressor(tasks="site").fit(X, Y), "tasks='site' names an input, but those of X have no names"),
        (
            lambda: regressor(tasks="s").fit(pd.DataFrame(X, columns=["s=oslo", "s=rome", "c"]), Y),
            "tasks='s' is 2 columns here ('s=oslo' ...); the task takes one column of numbers",
        ),
        (lambda: regressor(tasks="sit").fit(pd.DataFrame(X, columns=["site", "b", "c"]), Y), "did you mean 'site'"),
        (lambda: regressor(tasks=True).fit(X, Y), "tasks=True is no name or number"),
        (lambda: regressor().fit(X, np.column_stack([Y, Y]), tasks=T), "y has 2 columns; tasks take one column"),
        (lambda: classifier().fit(X, T, tasks=T), "y has 3 classes; tasks take one column"),
        (lambda: regressor().fit([X, X[:, :2]], [Y, Y]), "the data sets have [3, 2] columns in X"),
        (lambda: regressor().fit([X, X], [Y]), "X has 2 data sets, y has 1"),
        (lambda: regressor().fit([X, X], [Y, Y[:-1]]), "data set 1 has 420 rows in X and 419 in y"),
        (lambda: regressor().fit([X, X], [Y, Y], tasks=["a", "a"]), "must have a label of its own"),
        (lambda: regressor().fit(X, Y, 1.0 * (T != 1), tasks=NAMES), "task 'paris' has no row of positive weight"),
        (lambda: regressor().fit(X, Y, tasks=T).predict(X), "a prediction needs the task of each row"),
        (lambda: regressor().fit(X, Y, tasks=T).predict(X, tasks=9), "task 9 at row 0 was not in the fit"),
        (lambda: regressor(tasks=1).fit(WIDE, Y).predict(WIDE + 0.5), "task 20.5 at row 0 was not in the fit"),
        (lambda: regressor().fit(X, Y).predict(X, tasks=T), "the model has no tasks; leave tasks out"),
        (lambda: regressor().fit(X, Y, tasks=T).to_ridge(), "task=None: give one of [0, 1, 2]"),
        (
            lambda: classifier(loss="log_loss", penalty="shared").fit(X, T),
            "loss='log_loss' joins the scores of 3 classes, and penalty='shared' needs a loss of each",
        ),
        (lambda: classifier(calibrate=5).fit(X, CODE, tasks=T), "calibrate=5 is for classes without tasks"),
    ],
)  # fmt: skip
def test_what_is_refused(how, said):
    """One sentence that names the value."""
    with pytest.raises(ValueError) as caught:
        how()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lazy_rows_of_small_integers_take_any_number_of_tasks():
    """300 tasks beside rows of one byte: the answers of the same rows in memory."""
    rows, many = RNG.integers(0, 200, size=(600, 3)).astype(np.uint8), np.arange(600) % 300
    y = 1.0 * many + rows[:, 0]
    model = regressor(max_features=2, max_iter=1, alpha=100.0).fit(rows, y, tasks=many)
    lazy = model.predict(da.from_array(rows, chunks=(100, -1)), tasks=many)
    np.testing.assert_allclose(np.asarray(lazy), model.predict(rows, tasks=many))
