"""Several kernels on a cluster and after a kill: the same bits, whatever the containers; figures of the memory plan."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import zarr

import dkl
from dkl.engine.progress import listening
from dkl.learn import resumable_pass
from dkl.store.checkpoint import Checkpoint
from tests.engine.conftest import assert_same_bits, cluster_of, embedded

N = 600
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 4))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N)
CODE = np.digitize(Y, [-0.4, 0.4])
WEIGHT = RNG.random(N)
OPTIONS = {
    "kernels": ["gaussian:0.7", "laplacian"], "n_components": 12, "channels": {"a": slice(0, 2), "b": [3]},
    "n_alphas": 6, "cv": 3, "random_state": 0, "verbose": 0,
}  # fmt: skip
KINDS = {
    "numbers": (dkl.MultipleKernelRegressor, {}, Y, None),
    "weights": (dkl.MultipleKernelRegressor, {"debias": True}, np.column_stack([Y, X[:, 1]]), WEIGHT),
    "axes": (dkl.MultipleKernelRegressor, {"per_channel": 5}, Y, None),
    "learned": (dkl.MultipleKernelRegressor, {"learn": "cv", "max_iter": 1, "groups": "each"}, Y, None),
    "wide": (
        dkl.MultipleKernelRegressor,
        {"learn": "joint", "alpha": 2.0, "max_iter": 1, "learn_components": 6, "per_channel": 5},
        Y,
        None,
    ),
    "classes": (dkl.MultipleKernelClassifier, {"by_output": True, "class_weight": "balanced"}, CODE, None),
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:cv chose alpha"),
    pytest.mark.filterwarnings("ignore:learning stopped at max_iter:sklearn.exceptions.ConvergenceWarning"),
]


def found(model):
    """Everything that a fit found, as arrays."""
    path = {f"path_{name}": np.asarray(column) for name, column in model.path_.variables.items()}
    own = {name: np.asarray(getattr(model, name)) for name in ("coef_", "intercept_", "alpha_", "path_coef_")}
    return own | path | {"weights": model.kernel_weights_.values}


def fitted(kind, rows=X, **options):
    """A model of one kind, in this process."""
    cls, own, y, weight = KINDS[kind]
    with embedded():
        return cls(**(OPTIONS | own | options)).fit(rows, y, weight)


@pytest.fixture
def short(monkeypatch):
    """A checkpoint after every block."""
    monkeypatch.setattr(resumable_pass, "SECONDS", 1e-9)
    monkeypatch.setattr(resumable_pass, "SHARE", 1e9)
    monkeypatch.setattr("dkl.sums.gram.tile_rows", lambda *_: 20)


class Stop(Exception):
    """A kill."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_fit_is_resumed(kind, short, tmp_path, monkeypatch):
    """With the same bits, after some of the rows; the maps are those of the checkpoint."""
    plain, seen, keep = found(fitted(kind)), [], Checkpoint.keep_only

    def keep_only(self, done):
        keep(self, done)
        seen.append(done)
        if len(seen) == 2:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "keep_only", keep_only)
        with pytest.raises(Stop):
            fitted(kind, checkpoint=tmp_path / "c")
    events = []
    with listening(events.append):
        again = fitted(kind, checkpoint=tmp_path / "c")
    assert_same_bits(found(again), plain)
    axes = [e["name"] for e in events if e["event"] == "pass" and e["name"] == "adding up each channel"]
    assert len(axes) == (kind == "wide"), "those of learned kernels come after the kill"
    again.save(tmp_path / "m.zarr")
    assert not (tmp_path / "c").exists()
    assert_same_bits(found(dkl.load(tmp_path / "m.zarr")), plain)


def test_a_kill_after_learning(tmp_path, monkeypatch):
    """The sigmas are those of the checkpoint; the map of more features and its axes are made again, bit by bit."""
    plain = found(fitted("wide"))
    with monkeypatch.context() as patch:
        patch.setattr("dkl.estimators.multiple.widened", lambda *_: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            fitted("wide", checkpoint=tmp_path / "c")
    events = []
    with listening(events.append):
        again = fitted("wide", checkpoint=tmp_path / "c")
    assert_same_bits(found(again), plain)
    assert not [e for e in events if e["event"] == "iteration"]


def test_a_checkpoint_of_other_kernels_is_refused(tmp_path):
    """It has other features."""
    fitted("numbers", checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="kernels"):
        fitted("numbers", checkpoint=tmp_path / "c", kernels=["gaussian:0.7"])


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_cluster_finds_the_same_bits(tmp_path):
    """Rows of a Zarr group, summed on workers and solved on the scheduler; predictions are lazy."""
    root = zarr.open_group(str(tmp_path / "d"), mode="w", zarr_format=3)
    root.create_array("X", data=X, chunks=(50, 4))
    with cluster_of(tmp_path, 2):
        for kind, (cls, own, y, weight) in KINDS.items():
            root.create_array(f"y {kind}", data=y, chunks=(50, *y.shape[1:]))
            lazy = da.from_zarr(str(tmp_path / "d" / "X"))
            target = da.from_zarr(str(tmp_path / "d" / f"y {kind}"))
            w = None if weight is None else da.from_array(weight, chunks=50)
            model = cls(**(OPTIONS | own)).fit(lazy, target, w)
            right = fitted(kind, rows=da.from_array(X, chunks=(50, -1)))
            assert_same_bits(found(model), found(right))
            answer = model.predict(lazy)
            assert isinstance(answer, da.Array)
            np.testing.assert_allclose(answer.compute(), right.predict(X), atol=1e-12)


def test_the_plan_grows_with_kernels_and_falls_with_axes():
    """Of the gram of all groups: numbers that add up."""

    def plan(**options):
        return dkl.plan(X, dkl.MultipleKernelRegressor(**(OPTIONS | {"n_components": 200} | options)), Y)

    one, two, few = plan(kernels=["gaussian"]), plan(), plan(per_channel=20)
    assert (one.cost.features, two.cost.features, few.cost.features) == (400, 800, 80)
    assert two.solve_bytes - one.solve_bytes > 8 * (800**2 - 400**2)
    assert few.solve_bytes < one.solve_bytes
    assert "800 components, 1 output, 3 folds" in str(two)
