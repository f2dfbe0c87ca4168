"""Infinitely many features: the same bits on a cluster, after a kill and a resume; what a fitted model answers."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import dkl
from dkl.cost import Sizes
from dkl.engine.progress import listening
from dkl.prepare.folds import Split
from dkl.store.checkpoint import Checkpoint
from tests.engine.conftest import assert_same_bits, cluster_of, embedded

N = 600
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 4))
Y = np.sin(2 * X[:, 0]) + np.cos(X[:, 1] + X[:, 2]) + 0.1 * RNG.normal(size=N)
CODE = np.digitize(Y, [-0.4, 0.8])
WEIGHT = RNG.random(N)
OPTIONS = {"max_features": 9, "per_round": 3, "candidates": 20, "random_state": 0, "verbose": 0}
KINDS = {
    "numbers": (dkl.InfiniteFeatureRegressor, {"alpha": 2.0, "improve": 2}, np.column_stack([Y, X[:, 0]]), WEIGHT),
    "path": (dkl.InfiniteFeatureRegressor, {"n_alphas": 5, "eps": 0.01, "form": "phase", "improve": 1}, Y, None),
    "classes": (dkl.InfiniteFeatureClassifier, {"alpha": 2.0, "loss": "log_loss"}, CODE, WEIGHT),
    "margin": (dkl.InfiniteFeatureClassifier, {"alpha": [5.0, 1.0], "loss": "squared_hinge"}, CODE > 0, None),
}


def found(model):
    """Everything that a fit found, as arrays."""
    path = {f"path_{name}": np.asarray(column) for name, column in model.path_.variables.items()}
    own = {name: np.asarray(getattr(model, name)) for name in ("coef_", "intercept_", "alpha_", "lengths_")}
    history = model.history_.drop_vars("seconds")
    told = {f"history {name}": np.asarray(history[name].values) for name in history.variables}
    return own | path | told | {"unit": model.features_.unit, "phase": model.features_.phase}


def fitted(kind, rows=X, **options):
    """A model of one kind, in this process."""
    cls, own, y, weight = KINDS[kind]
    with embedded():
        return cls(**(OPTIONS | own | options)).fit(rows, y, weight)


class Stop(Exception):
    """A kill."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_fit_is_resumed(kind, tmp_path, monkeypatch):
    """After two rounds, with the same bits; and from disk it is the same model."""
    plain, save = found(fitted(kind)), Checkpoint.save_step

    def save_step(self, number, *rest):
        save(self, number, *rest)
        if number == 2:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save_step", save_step)
        with pytest.raises(Stop):
            fitted(kind, checkpoint=tmp_path / "c")
    again = fitted(kind, checkpoint=tmp_path / "c")
    assert_same_bits(found(again), plain)
    again.save(tmp_path / "m.zarr")
    assert not (tmp_path / "c").exists()
    loaded = dkl.load(tmp_path / "m.zarr")
    assert_same_bits(found(loaded), plain)
    assert loaded.selected_.identical(again.selected_)
    assert loaded.n_features_used_ == again.n_features_used_


def test_rounds_go_on_where_a_limit_had_ended_them(tmp_path):
    """With more of them: the bits of a fit that had them from the start."""
    with pytest.warns(ConvergenceWarning, match="max_iter=1 before it converged"):
        fitted("numbers", max_iter=1, checkpoint=tmp_path / "c")
    again, right = fitted("numbers", checkpoint=tmp_path / "c"), fitted("numbers")
    for name in ("coef_", "intercept_", "lengths_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(right, name))


@pytest.mark.cluster
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("kind", "joining"), [("margin", [2]), pytest.param("numbers", [1, 1, 1], marks=pytest.mark.long)]
)
def test_any_number_of_workers_finds_the_same_bits(tmp_path, kind, joining):
    """Rows of a Zarr group, summed on workers and solved on the scheduler; a worker that dies is no matter."""
    root = zarr.open_group(str(tmp_path / "d"), mode="w", zarr_format=3)
    root.create_array("X", data=X, chunks=(50, 4))
    lazy = da.from_zarr(str(tmp_path / "d" / "X"))
    cls, own, y, weight = KINDS[kind]
    w = None if weight is None else da.from_array(weight, chunks=50)
    right = found(fitted(kind, rows=da.from_array(X, chunks=(50, -1))))
    dead = []

    def kill(event):
        if event["event"] == "iteration" and not dead:
            dead.append(next(iter(machines.workers)))
            machines.kill(*dead)

    with cluster_of(tmp_path, 0) as machines:
        for count in joining:
            machines.add(count)
            model = cls(**(OPTIONS | own)).fit(lazy, da.from_array(y, chunks=50), w)
            assert_same_bits(found(model), right)
        with listening(kill):
            again = cls(**(OPTIONS | own)).fit(lazy, da.from_array(y, chunks=50), w)
        assert dead
        assert_same_bits(found(again), right)
        answer = model.predict(lazy)
        assert isinstance(answer, da.Array)
        np.testing.assert_array_equal(answer.compute(), fitted(kind).predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_the_pipeline_is_the_model(kind):
    """FourierFeatures and a linear model of scikit-learn give its predictions."""
    model = fitted(kind)
    plain, y = model.to_ridge(), KINDS[kind][2]
    if kind in ("numbers", "path"):
        np.testing.assert_allclose(plain.predict(X), model.predict(X), atol=1e-9)
    else:
        np.testing.assert_allclose(plain.decision_function(X), model.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.score(X, y), model.score(X, y), rtol=1e-9)
    if kind == "classes":
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-9)


def test_what_is_selected_is_labelled():
    """Frequencies by input, the largest weight first; names are those of X."""
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = fitted("margin", rows=frame)
    chosen = model.selected_
    assert chosen["input"].values.tolist() == list("abcd")
    weight, omega = np.asarray(chosen["weight"]), np.asarray(chosen["frequency"])
    assert (np.diff(weight) <= 0).all()
    assert len(weight) == model.n_features_used_ <= 9
    np.testing.assert_allclose(np.linalg.norm(omega, axis=0), chosen["length"])
    z = np.zeros(N)
    D = model.features_.n_groups
    for k in range(D):
        theta = X @ (model.features_.sigma * model.features_.unit[:, k])
        z += model.coef_[0, k] * np.cos(theta) + model.coef_[0, k + D] * np.sin(theta)
    np.testing.assert_allclose(model.decision_function(frame), z + model.intercept_[0], atol=1e-9)


def test_sparse_rows_are_taken_as_they_are():
    """The same model as of dense ones."""
    some = np.where(RNG.random((N, 4)) < 0.4, X, 0.0)
    dense, sparse = (fitted("numbers", rows=rows) for rows in (some, csr_array(some)))
    np.testing.assert_allclose(sparse.predict(csr_array(some)), dense.predict(some), atol=1e-6)


def test_no_feature_is_worth_a_weight():
    """With a large alpha, or a constant y: the intercept is all, and the model can be saved."""
    for y, alpha in ((Y, 1e6), (np.full(N, 3.0), 1.0), (np.full(N, 3.0), "auto")):
        model = dkl.InfiniteFeatureRegressor(alpha=alpha, random_state=0, verbose=0).fit(X, y)
        assert model.n_features_used_ == 0
        np.testing.assert_allclose(model.predict(X), y.mean())
        assert model.selected_.sizes["feature"] == 0


def test_the_plan_names_every_pass():
    """It grows with the features that may be kept."""

    def plan(**options):
        return dkl.plan(X, dkl.InfiniteFeatureClassifier(**(OPTIONS | options)), CODE)

    few, many = plan(max_features=10), plan(max_features=1000)
    assert few.fits
    assert many.solve_bytes - few.solve_bytes > 8 * 2000**2
    assert "for each iteration" in str(few)
    model = dkl.InfiniteFeatureRegressor(**OPTIONS, improve=4)
    model.n_features_in_ = 4
    costs = {one.name: one for one in model._costs(Sizes(N, 4, np.dtype(float), 1), Split())}
    assert set(costs) == {"gram", "prices"}
    assert all(one.repeated for one in costs.values())
    assert costs["prices"].count == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_features": 0}, "max_features=0"),
        ({"bandwidths": "3:1"}, "bandwidths='3:1' must be factors of sigma"),
        ({"alpha": 0.0}, "alpha=0.0 must be above 0"),
        ({"alpha": "best"}, "alpha='best'"),
        ({"loss": "log_loss"}, "loss='log_loss' is for classes"),
        ({"penalty": "l2"}, "penalty='l2' is not known"),
        ({"penalty": "l21:ridge=-1"}, "penalty='l21:ridge=-1': behind the colon stands ridge"),
        ({"per_round": "all"}, "per_round='all'"),
        ({"improve": -1}, "improve=-1"),
        ({"validation": 1.5}, "validation=1.5"),
        ({"validation": "half"}, "validation='half'"),
        ({"kernel": "gausian"}, "did you mean 'gaussian'"),
    ],
)
def test_bad_parameters(options, said):
    """One sentence, before any row is read."""
    with pytest.raises(ValueError) as caught:
        dkl.InfiniteFeatureRegressor(**options).fit(X, Y)
    assert said in str(caught.value)


def test_bad_rows_are_named():
    """NaN in X, and in y."""
    wrong = X.copy()
    wrong[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 17, column 2"):
        dkl.InfiniteFeatureRegressor(sigma=1.0, alpha=1.0, verbose=0).fit(wrong, Y)
    with pytest.raises(ValueError, match="row 17"):
        dkl.InfiniteFeatureRegressor(sigma=1.0, alpha=1.0, verbose=0).fit(X, wrong[:, 2])
