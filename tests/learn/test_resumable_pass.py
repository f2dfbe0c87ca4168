"""A fit that is interrupted goes on with the same bits; a checkpoint of another fit is refused."""

from __future__ import annotations

import shutil

import dask.array as da
import numpy as np
import pytest
import zarr

import dkl
from dkl.engine.progress import listening
from dkl.engine.tables import open_table
from dkl.engine.threads import thread_count
from dkl.estimators.checkpoints import open_checkpoint
from dkl.estimators.inputs import read_inputs
from dkl.learn import resumable_pass as legs
from dkl.store.checkpoint import Checkpoint, progress_of
from tests.engine.conftest import assert_same_bits, cluster_of, embedded, learned
from tests.store.made import ingest

RNG = np.random.default_rng(0)
N = 12_000
X = RNG.normal(size=(N, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=N)
CODE = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 1)
WEIGHT = RNG.random(N)
OPTIONS = {"n_components": 24, "sigma": 0.5, "random_state": 0, "verbose": 0}


def regressor(**options):
    """Not fitted yet."""
    return dkl.SingleKernelRegressor(**(OPTIONS | options))


def classifier(**options):
    """Not fitted yet."""
    return dkl.SingleKernelClassifier(**(OPTIONS | options))


FITS = {
    "regressor": (regressor, {}, Y, None),
    "scale": (regressor, {"sigma": "scale"}, Y, None),
    "outputs": (regressor, {}, np.column_stack([Y, X[:, 1]]), None),
    "weights": (regressor, {}, Y, WEIGHT),
    "cv": (regressor, {"cv": 3, "alpha": [0.1, 1.0]}, Y, None),
    "classifier": (classifier, {}, CODE, None),
    "classifier cv weights": (classifier, {"cv": 2, "alpha": [0.1, 1.0], "class_weight": "balanced"}, CODE, WEIGHT),
    "phase": (classifier, {"form": "phase", "kernel": "laplacian"}, CODE, None),
    "float32": (regressor, {"dtype": "float32", "alpha": 100.0}, Y, None),
}


@pytest.fixture
def short(monkeypatch):
    """A checkpoint after every block; copies of all of them are kept."""
    monkeypatch.setattr(legs, "SECONDS", 1e-9)
    monkeypatch.setattr(legs, "SHARE", 1e9)
    counts = []
    keep = Checkpoint.keep_only

    def keep_only(self, done):
        counts.append(done)
        keep(self, done)

    monkeypatch.setattr(Checkpoint, "keep_only", keep_only)
    return counts


class Stop(Exception):
    """An interruption."""


@pytest.mark.parametrize("name", sorted(FITS))
def test_same_bits_with_a_checkpoint(tmp_path, short, name):
    """Many legs or none."""
    make, options, y, weight = FITS[name]
    plain = make(**options).fit(X, y, weight)
    kept = make(**options, checkpoint=tmp_path / "c").fit(X, y, weight)
    assert len(short) > 3, "many checkpoints were written"
    assert short == sorted(set(short))
    assert_same_bits(learned(kept), learned(plain))
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == ["fit.json", "prepared", f"sums-{short[-1]}"]
    done = len(short)
    again = make(**options, checkpoint=str(tmp_path / "c")).fit(X, y, weight)
    assert len(short) == done, "nothing was left to do"
    assert_same_bits(learned(again), learned(plain))


def interrupted(tmp_path, monkeypatch, make, rows, y, after, weight=None, **options):
    """A checkpoint of the fit, dead after so many legs."""
    path = tmp_path / f"c{after}"
    seen = []
    keep = Checkpoint.keep_only

    def keep_only(self, done):
        keep(self, done)
        seen.append(done)
        if len(seen) == after:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "keep_only", keep_only)
        try:
            make(**options, checkpoint=path).fit(rows, y, weight)
        except Stop:
            return path
    return None


@pytest.mark.parametrize("name", ["cv", "classifier cv weights"])
def test_resuming_from_every_prefix(tmp_path, monkeypatch, short, name):
    """Wherever it died, the same bits."""
    make, options, y, weight = FITS[name]
    plain = learned(make(**options).fit(X, y, weight))
    after, blocks = 1, []
    while path := interrupted(tmp_path, monkeypatch, make, X, y, after, weight, **options):
        blocks.append(progress_of(str(path))["blocks"])
        events: list = []
        with listening(events.append):
            assert_same_bits(learned(make(**options, checkpoint=path).fit(X, y, weight)), plain)
        passes = [e for e in events if e["event"] == "pass" and e["name"] == "adding up X"]
        assert [e["rows"] for e in passes] == [N]
        after += 1
    assert after > 4
    assert blocks == sorted(set(blocks))


def test_a_seed_of_chance_is_kept(tmp_path, monkeypatch, short):
    """random_state=None: the map of the first attempt, and its folds."""
    options = {"random_state": None, "cv": 3, "alpha": [0.1, 1.0]}
    path = interrupted(tmp_path, monkeypatch, regressor, X, Y, 2, **options)
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    first, second = (regressor(**options, checkpoint=p).fit(X, Y) for p in (path, copy))
    assert_same_bits(learned(first), learned(second))
    np.testing.assert_array_equal(first.features_.unit, second.features_.unit)
    other = regressor(**options).fit(X, Y)
    assert not np.array_equal(other.features_.unit, first.features_.unit)


def test_lazy_rows(tmp_path, monkeypatch, short):
    """Dask and Zarr, whose blocks are chunks."""
    zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(1000, 3))
    for rows in (da.from_array(X, chunks=(1000, -1), name="rows"), str(tmp_path / "x.zarr")):
        plain = learned(regressor().fit(rows, Y))
        path = interrupted(tmp_path, monkeypatch, regressor, rows, Y, 2)
        assert_same_bits(learned(regressor(checkpoint=path).fit(rows, Y)), plain)
        shutil.rmtree(path)


CHANGES = {
    "kernel": {"kernel": "laplacian"}, "n_components": {"n_components": 26}, "sigma": {"sigma": 0.6},
    "random_state": {"random_state": 1}, "cv": {"cv": 2}, "form": {"form": "phase"}, "dtype": {"dtype": "float32"},
    "frequencies": {"frequencies": "iid"}, "groups": {"groups": "each"}, "skew": {"skew": 2.0},
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_changed_parameter_is_refused(tmp_path, monkeypatch, short, name):
    """And named."""
    path = interrupted(tmp_path, monkeypatch, regressor, X, Y, 1)
    with pytest.raises(ValueError, match=rf"another fit .*{name}"):
        regressor(**CHANGES[name], checkpoint=path).fit(X, Y)


def test_parameters_that_change_nothing(tmp_path, monkeypatch, short):
    """place and verbose."""
    path = interrupted(tmp_path, monkeypatch, regressor, X, Y, 1)
    assert_same_bits(learned(regressor(place="client", checkpoint=path).fit(X, Y)), learned(regressor().fit(X, Y)))


def test_changed_rows_are_refused(tmp_path, monkeypatch, short):
    """One number of X, y or the weights; another estimator; fewer rows."""
    path = interrupted(tmp_path, monkeypatch, regressor, X, Y, 1, WEIGHT)
    bent, bent_y, bent_w = X.copy(), Y.copy(), WEIGHT.copy()
    bent[7000, 1] += 1e-9
    bent_y[11_999] += 1e-9
    bent_w[5] += 1e-9
    for rows in ((bent, Y, WEIGHT), (X, bent_y, WEIGHT), (X, Y, bent_w), (X, Y, None), (X[:-1], Y[:-1], WEIGHT[:-1])):
        with pytest.raises(ValueError, match=r"another fit \(rows"):
            regressor(checkpoint=path).fit(*rows)
    with pytest.raises(ValueError, match="estimator"):
        classifier(checkpoint=path).fit(X, CODE, WEIGHT)


@pytest.mark.parametrize(
    ("size", "step"),
    [
        (3, 0.1),
        pytest.param(3, 1e-10),
        pytest.param(1200, 0.1),
    ],
)
def test_a_changed_array_parameter_is_refused(tmp_path, size, step):
    """Whatever its size, and however small the change."""
    rows = RNG.normal(size=(300, size))
    sigma = np.full(size, 0.1)
    regressor(sigma=sigma, groups="each", checkpoint=tmp_path / "c").fit(rows, rows[:, 0])
    sigma[size // 2] += step
    with pytest.raises(ValueError, match="sigma"):
        regressor(sigma=sigma, groups="each", checkpoint=tmp_path / "c").fit(rows, rows[:, 0])


def test_a_changed_data_set_is_refused(tmp_path, monkeypatch, short):
    """Another data set at the same path has another id."""
    np.savez(tmp_path / "a.npz", X=X, y=Y)
    ingest(tmp_path / "a.npz", tmp_path / "d.zarr", dtype="float64")
    path, rows = tmp_path / "c", str(tmp_path / "d.zarr")
    regressor(checkpoint=path).fit(rows)
    regressor(checkpoint=path).fit(rows)
    np.savez(tmp_path / "a.npz", X=X + 1, y=Y)
    ingest(tmp_path / "a.npz", tmp_path / "d.zarr", dtype="float64", overwrite=True)
    with pytest.raises(ValueError, match=r"another fit \(rows"):
        regressor(checkpoint=path).fit(rows)


def test_a_changed_zarr_array_is_refused(tmp_path, monkeypatch, short):
    """Other values, written to the same place."""
    place = str(tmp_path / "x.zarr")
    zarr.create_array(place, data=X, chunks=(1000, 3))
    path = interrupted(tmp_path, monkeypatch, regressor, place, Y, 2)
    shutil.rmtree(place)
    zarr.create_array(place, data=X + 1, chunks=(1000, 3))
    with pytest.raises(ValueError, match="another fit"):
        regressor(checkpoint=path).fit(place, Y)


@pytest.mark.parametrize("damage", ["truncate", "empty", "flip", "remove", "metadata"])
@pytest.mark.parametrize("where", ["sums", "prepared"])
def test_a_damaged_checkpoint_gives_no_wrong_answer(tmp_path, monkeypatch, short, damage, where):
    """The right bits, or a refusal in one line."""
    plain = learned(regressor(cv=2).fit(X, Y))
    path = interrupted(tmp_path, monkeypatch, regressor, X, Y, 3, cv=2)
    [record] = [p for p in path.iterdir() if p.name.startswith(where)]
    chunks = sorted(p for p in record.rglob("*") if p.is_file() and (p.name == "zarr.json") == (damage == "metadata"))
    assert chunks
    for chunk in chunks:
        copy = tmp_path / "copy"
        shutil.copytree(path, copy)
        victim = copy / chunk.relative_to(path)
        data = bytearray(victim.read_bytes())
        middle = len(data) // 2
        if damage == "remove":
            victim.unlink()
        else:
            if damage == "flip":
                data[middle] ^= 0x10
            cut = data[:middle]
            victim.write_bytes({"truncate": cut, "empty": b"", "flip": data, "metadata": cut}[damage])
        try:
            found, said = learned(regressor(cv=2, checkpoint=copy).fit(X, Y)), ""
        except (ValueError, FileExistsError) as error:
            found, said = plain, str(error)
        assert "\n" not in said
        assert_same_bits(found, plain)
        shutil.rmtree(copy)


@pytest.mark.parametrize("record", ["prepared", f"sums-{2 * thread_count()}"])
def test_a_kill_while_an_object_store_is_written(short, record):
    """There a record is not renamed into place; what is there of it does not count, and does not stand in the way."""
    place = f"memory://dkl-tests/killed-{record}"
    fit = regressor(checkpoint=place)
    table = [read_inputs(fit, X, reset=True), open_table(Y, "y"), None, None]
    open_checkpoint(fit, np.dtype(float), table, None)
    zarr.open_group(f"{place}/{record}", mode="w").create_array("unit", data=np.ones(3))
    assert progress_of(place)["blocks"] == 0
    model = regressor(checkpoint=place).fit(X, Y)
    assert_same_bits(learned(model), learned(regressor().fit(X, Y)))


def test_a_bad_row_is_named_after_resuming(tmp_path, monkeypatch, short):
    """With its number, whether it lies before or after the interruption."""
    for row in (100, 11_000):
        bad = X.copy()
        bad[row, 1] = np.inf
        rows = da.from_array(bad, chunks=(1000, -1), name=f"bad{row}")
        path = interrupted(tmp_path, monkeypatch, regressor, rows, Y, 3)
        with pytest.raises(ValueError, match=f"row {row}"):
            regressor(checkpoint=path).fit(rows, Y)
        shutil.rmtree(path)


def test_events():
    """A pass over all rows, then one solve with its objective."""
    events = []
    with listening(events.append):
        model = regressor(cv=3, alpha=[0.1, 1.0]).fit(X, Y)
    passes = [e for e in events if e["event"] == "pass"]
    assert passes[-1]["name"] == "adding up X"
    assert all(e["rows"] == N and e["seconds"] >= 0 for e in passes)
    [solve] = [e for e in events if e["event"] == "solve"]
    assert solve["systems"] == 7
    assert solve["alpha"] == [model.alpha_]
    assert solve["cv_error"] == pytest.approx(-model.cv_results_["mean_test_score"].max())
    residual = ((Y - model.predict(X)) ** 2).sum() + model.alpha_ * (model.coef_**2).sum()
    assert solve["objective"] == pytest.approx(residual / N, rel=1e-8)
    before = len(events)
    regressor().fit(X, Y)
    assert len(events) == before, "nobody listens any more"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two workers in processes of their own."""
    with cluster_of(tmp_path_factory.mktemp("pair"), 2) as machines:
        yield machines


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_on_a_cluster(tmp_path, monkeypatch, short, pair):
    """Interrupted there and resumed there, or here: the same bits as in one process without a checkpoint."""
    zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(500, 3))
    rows, options = str(tmp_path / "x.zarr"), {"cv": 2, "alpha": [0.1, 1.0]}
    with embedded():
        plain = learned(classifier(**options).fit(rows, CODE))
    assert_same_bits(learned(classifier(**options, checkpoint=tmp_path / "whole").fit(rows, CODE)), plain)
    assert len(short) > 2
    path = interrupted(tmp_path, monkeypatch, classifier, rows, CODE, 2, **options)
    shutil.copytree(path, tmp_path / "copy")
    assert_same_bits(learned(classifier(**options, checkpoint=path).fit(rows, CODE)), plain)
    with embedded():
        assert_same_bits(learned(classifier(**options, checkpoint=tmp_path / "copy").fit(rows, CODE)), plain)


@pytest.mark.cluster
@pytest.mark.timeout(120)
def test_a_checkpoint_that_workers_write_elsewhere(tmp_path, monkeypatch, short, pair):
    """Each process has its own memory:// filesystem: refused with the reason, not resumed from nothing."""
    rows = da.from_array(X, chunks=(500, -1))
    with pytest.raises(FileNotFoundError, match="share"):
        regressor(checkpoint="memory://dkl-tests/legs").fit(rows, Y)
