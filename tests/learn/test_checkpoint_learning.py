"""Learning that is interrupted after any iteration goes on with the same bits, from whole records of the same fit only.

Every fit is compared with one that nothing happened to and that had no checkpoint.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dkl
from dkl.learn import stages
from dkl.store.checkpoint import Checkpoint, progress_of
from tests.engine.conftest import assert_same_bits, learned

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
N, INPUTS = 4000, 3
X = RNG.normal(size=(N, INPUTS))
Y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=N)
CODE = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 1)
WEIGHT = RNG.random(N)
MASK = RNG.random(N) < 0.3
OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0, "verbose": 0, "max_iter": 2}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts on few of these few rows, so that there are several stages."""
    monkeypatch.setattr(stages, "FEW_ROWS", 400)
    monkeypatch.setattr(stages, "ROWS_PER_FEATURE", 1)
    monkeypatch.setattr(stages, "FEW_BLOCKS", 1)


def regressor(**options: Any) -> Any:
    """Not fitted yet."""
    return dkl.SingleKernelRegressor(**(OPTIONS | options))


def classifier(**options: Any) -> Any:
    """Not fitted yet."""
    return dkl.SingleKernelClassifier(**(OPTIONS | options))


FITS: dict[str, tuple] = {
    "validation": (regressor, {"learn": "validation", "groups": "each", "starts": 2}, Y, WEIGHT),
    "mask": (regressor, {"learn": "validation", "validation": MASK, "starts": 1}, Y, None),
    "cv": (classifier, {"learn": "cv", "cv": 3, "groups": "each", "starts": 1}, CODE, None),
    "frequencies": (regressor, {"learn": "frequencies", "cv": 2, "n_components": 13}, Y, None),
    "l1": (
        regressor,
        {"learn": "validation", "groups": "each", "sigma_l1": 0.05, "sigma_l2": 0.01, "starts": 1, "max_iter": 5},
        np.column_stack([Y, X[:, 0]]),
        None,
    ),
    "subsample": (classifier, {"learn": "gcv", "groups": "each", "subsample": 0.5, "starts": 3}, CODE, WEIGHT),
    "joint": (regressor, {"learn": "joint", "starts": 1, "alpha": 0.1, "dtype": "float32"}, Y, None),
    "log_loss": (classifier, {"learn": "log_loss", "cv": 3, "groups": "each", "max_iter": 5}, CODE, WEIGHT),
    "no limit but tol": (regressor, {"learn": "gcv", "starts": 2, "max_iter": 50, "tol": 0.01}, Y, None),
}


def everything(model: Any) -> dict[str, np.ndarray]:
    """All that a fit found out, but how long it took."""
    values = learned(model) | {"unit": model.features_.unit, "phase": model.features_.phase}
    values["n_iter"] = np.asarray(model.n_iter_)
    history = model.history_.drop_vars("seconds")
    return values | {f"history {name}": np.asarray(history[name].values) for name in history.variables}


class Stop(Exception):
    """An interruption."""


class Steps:
    """What was written after each iteration, and when to die."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: list[int] = []
        self.iterations: list[int] = []
        self.stop_after = -1
        self.monkeypatch = monkeypatch
        save = Checkpoint.save_step

        def save_step(checkpoint: Checkpoint, number: int, attributes: dict, *rest: Any) -> None:
            save(checkpoint, number, attributes, *rest)
            self.numbers.append(number)
            history = attributes["step"]["tuple"][2]["dict"]
            self.iterations.append(history["objective"]["shape"][0])
            if len(self.numbers) == self.stop_after:
                raise Stop

        monkeypatch.setattr(Checkpoint, "save_step", save_step)

    def interrupted(self, fit: Callable[[], Any], after: int) -> bool:
        """Whether the fit died after so many steps of its own, rather than end before."""
        self.stop_after = len(self.numbers) + after
        try:
            fit()
        except Stop:
            return True
        finally:
            self.stop_after = -1
        return False


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Every step from now on."""
    return Steps(monkeypatch)


LATER = {"mask", "joint", "no limit but tol"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in LATER else n for n in FITS])
def test_dying_after_every_iteration(tmp_path: Path, steps: Steps, name: str) -> None:
    """Each attempt does one step and dies; together they give the bits of one fit, and repeat nothing."""
    make, options, y, weight = FITS[name]
    plain = make(**options).fit(X, y, weight)
    path = tmp_path / "c"
    while steps.interrupted(lambda: make(**options, checkpoint=path).fit(X, y, weight), 1):
        assert progress_of(str(path))["steps"] == steps.numbers[-1]
        assert len([p for p in path.iterdir() if p.name.startswith("step-")]) == 1, "older ones are removed"
        assert len(steps.numbers) < 60
    done = steps.numbers.copy()
    model = make(**options, checkpoint=path).fit(X, y, weight)
    assert steps.numbers == done, "nothing was left to learn"
    assert done == sorted(set(done)), "no step is written over another"
    missed = {*range(1, model.history_.sizes["iteration"] + 1)} - set(steps.iterations)
    assert len(missed) <= (name == "l1"), "the state after each iteration was kept; vanished sigmas are judged at once"
    assert_same_bits(everything(model), everything(plain))
    seconds = model.history_["seconds"].values
    assert (np.diff(seconds) >= 0).all()
    stages, starts = model.history_["stage"].values, model.history_["start"].values
    rows = model.history_["rows"].values
    assert rows[-1] == rows.max(), "what the most rows said counts, whatever fewer rows said before"
    if name == "log_loss":
        return  # the mean of many points, without stages
    np.testing.assert_array_equal(model.history_["sigma"].values[-1], model.sigma_)
    if name != "mask":
        assert stages.max() >= 1
    if options.get("starts", 1) > 1:
        assert starts.max() == options["starts"] - 1
    if name == "subsample":
        assert model.history_["rows"].values.max() < N


LONG = [pytest.param(name, marks=pytest.mark.long) for name in FITS if name != "cv"]


@pytest.mark.parametrize("name", ["cv", *LONG])
def test_resuming_from_every_iteration(tmp_path: Path, steps: Steps, name: str) -> None:
    """A fit that died once, after any step, and then went on to its end."""
    make, options, y, weight = FITS[name]
    plain = everything(make(**options).fit(X, y, weight))
    path, after = tmp_path / "c", 0
    while steps.interrupted(lambda: make(**options, checkpoint=path).fit(X, y, weight), 1):
        shutil.copytree(path, tmp_path / "copy")
        assert_same_bits(everything(make(**options, checkpoint=tmp_path / "copy").fit(X, y, weight)), plain)
        shutil.rmtree(tmp_path / "copy")
        after += 1
    assert after >= 4


def test_time_before_the_interruption_counts(tmp_path: Path, steps: Steps) -> None:
    """max_time is that of the whole fit, and the history's seconds go on."""
    options = {"learn": "validation", "groups": "each", "starts": 1, "max_time": 1000.0}
    path = tmp_path / "c"
    assert steps.interrupted(lambda: regressor(**options, checkpoint=path).fit(X, Y), 2)
    [record] = path.glob("step-*")
    before = zarr.open_group(record, mode="r")["float64"][:]
    model = regressor(**options, checkpoint=path).fit(X, Y)
    seconds = model.history_["seconds"].values
    assert set(before.ravel()) >= set(seconds[:2])
    assert seconds[2] > seconds[1] > 0
    assert_same_bits(everything(model), everything(regressor(**options).fit(X, Y)))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Copies of a checkpoint that died after its second step, by the options of the fit."""
    folder = tmp_path_factory.mktemp("begun")
    known: dict[str, Path] = {}

    def copy(weight: Any = None, **options: Any) -> Path:
        key = repr((weight is None, options))
        if key not in known:
            known[key] = folder / f"begun-{len(known)}"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(stages, "FEW_ROWS", 400)
                patch.setattr(stages, "ROWS_PER_FEATURE", 1)
                patch.setattr(stages, "FEW_BLOCKS", 1)
                fit = regressor(**options, checkpoint=known[key])
                assert Steps(patch).interrupted(lambda: fit.fit(X, Y, weight), 2)
        made = folder / "copy"
        shutil.rmtree(made, ignore_errors=True)
        return shutil.copytree(known[key], made)

    return copy


BASE = {"learn": "validation", "starts": 1}
FOLDS = {"learn": "cv", "cv": 3, "starts": 1}
CHANGES: list[tuple[str, dict, Any]] = [
    ("learn", BASE, "gcv"), ("learn", BASE, "none"), ("learn", FOLDS, "frequencies"), ("validation", BASE, 0.25),
    ("validation", BASE, MASK), ("sigma_l1", BASE, 0.1), ("sigma_l2", BASE, 0.1), ("starts", BASE, 2),
    ("subsample", BASE, 0.5), ("groups", BASE, "each"),
    ("groups", BASE, [0, 0, 1]), ("alpha", BASE, 1.0), ("cv", FOLDS, 4), ("cv", FOLDS, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "base", "value"), CHANGES, ids=[f"{n}={str(v)[:9]}" for n, _, v in CHANGES])
def test_a_changed_parameter_is_refused(begun: Any, name: str, base: dict, value: Any) -> None:
    """And named, with nothing else; what was done stays."""
    path = begun(**base)
    before = progress_of(str(path))
    with pytest.raises(ValueError, match=rf"another fit .*\b{name}\b.* differ") as info:
        regressor(**(base | {name: value}), checkpoint=path).fit(X, Y)
    assert "\n" not in str(info.value)
    others = {"rows"} if isinstance(value, np.ndarray) else set()
    named = set(str(info.value).split("(", 1)[1].split(" differ")[0].split(", "))
    assert named == {name, *others}
    assert progress_of(str(path)) == before


def test_changed_rows_are_refused(begun: Any) -> None:
    """One number of X, y or the weights, one row that is held out, fewer rows; another estimator."""
    bent, bent_y, bent_w = X.copy(), Y.copy(), WEIGHT.copy()
    bent[3000, 1] += 1e-9
    bent_y[N - 1] += 1e-9
    bent_w[5] += 1e-9
    path = begun(WEIGHT, **BASE)
    for rows in ((bent, Y, WEIGHT), (X, bent_y, WEIGHT), (X, Y, bent_w), (X, Y, None), (X[:-1], Y[:-1], WEIGHT[:-1])):
        with pytest.raises(ValueError, match=r"another fit \(rows differ\)"):
            regressor(**BASE, checkpoint=path).fit(*rows)
    with pytest.raises(ValueError, match="estimator"):
        classifier(**BASE, checkpoint=path).fit(X, CODE, WEIGHT)
    mask = MASK.copy()
    mask[77] = not mask[77]
    path = begun(**BASE, validation=MASK)
    with pytest.raises(ValueError, match=r"another fit \(rows, validation differ\)"):
        regressor(**BASE, validation=mask, checkpoint=path).fit(X, Y)


def test_files_that_changed_are_refused(tmp_path: Path) -> None:
    """A Dask array over Zarr has the same name, and a data set the same id, after its files were written again."""
    import dask.array as da
    import zarr

    rows, group = tmp_path / "rows.zarr", zarr.open_group(tmp_path / "d.zarr", mode="w", attributes={"id": "one"})
    stored = zarr.create_array(rows, data=X, chunks=(1000, X.shape[1]))
    group.create_array("y", data=Y)
    inside = group.create_array("X", data=X, chunks=(1000, X.shape[1]))
    sources = {"graph": (lambda: da.from_zarr(rows) * 1.0, Y), "set": (lambda: str(tmp_path / "d.zarr"), None)}
    for name, (rows_of, y) in sources.items():
        fit = regressor(**BASE, max_iter=2, checkpoint=tmp_path / name)
        before = everything(fit.fit(rows_of(), y))
        assert_same_bits(everything(fit.fit(rows_of(), y, resume=True)), before)
    stored[17, 0] = inside[17, 0] = 0.5
    for name, (rows_of, y) in sources.items():
        with pytest.raises(ValueError, match=r"another fit \(rows differ\)"):
            regressor(**BASE, max_iter=2, checkpoint=tmp_path / name).fit(rows_of(), y, resume=True)
    with pytest.raises(ValueError, match="checkpoint=3 must be the path or URL of a folder"):
        regressor(**BASE, checkpoint=3).fit(X, Y)


def test_resume_insists_on_a_checkpoint(tmp_path: Path, begun: Any) -> None:
    """fit(resume=True) without one is refused in one line; with one it goes on; resume=False begins anew."""
    for fit, words in (
        (regressor(**BASE), "checkpoint='folder'"),
        (regressor(**BASE, checkpoint=tmp_path / "c"), "no"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=words) as info:
            fit.fit(X, Y, resume=True)
        assert "\n" not in str(info.value)
    assert not (tmp_path / "c").exists()
    plain = everything(regressor(**BASE).fit(X, Y))
    for resume in (True, None, False):
        path = begun(**BASE)
        record = next(path.glob("step-*")) / "float64"
        known = zarr.open_array(record, mode="r")[:]
        model = regressor(**BASE, checkpoint=path).fit(X, Y, resume=resume)
        assert_same_bits(everything(model), plain)
        kept = set(model.history_["seconds"].values[:2]) <= set(known.ravel())
        assert kept == (resume is not False)
    with pytest.raises(ValueError, match="another fit"):
        regressor(**BASE, sigma=0.4, checkpoint=begun(**BASE)).fit(X, Y, resume=True)
    anew = regressor(**BASE, sigma=0.4, checkpoint=begun(**BASE)).fit(X, Y, resume=False)
    assert_same_bits(everything(anew), everything(regressor(**BASE, sigma=0.4).fit(X, Y)))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="is not a checkpoint of dkl"):
        regressor(**BASE, checkpoint=tmp_path / "mine").fit(X, Y, resume=False)
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_a_seed_of_chance_is_kept(tmp_path: Path, steps: Steps) -> None:
    """random_state=None: the map and the held-out rows of the first attempt, whoever goes on."""
    options = {"learn": "validation", "starts": 2, "random_state": None}
    path = tmp_path / "c"
    assert steps.interrupted(lambda: regressor(**options, checkpoint=path).fit(X, Y), 3)
    unit = zarr.open_array(path / "prepared" / "unit", mode="r")[:]
    shutil.copytree(path, tmp_path / "copy")
    first, second = (regressor(**options, checkpoint=tmp_path / name).fit(X, Y) for name in ("c", "copy"))
    assert_same_bits(everything(first), everything(second))
    np.testing.assert_array_equal(first.features_.unit, unit)
    assert not np.array_equal(regressor(**options).fit(X, Y).features_.unit, unit)


def fit_or_refusal(path: Path, options: dict) -> tuple[Any, str]:
    """What a fit from this checkpoint gives, or the sentence with which it is refused."""
    try:
        return everything(regressor(**options, checkpoint=path).fit(X, Y)), ""
    except (ValueError, FileExistsError) as error:
        return None, str(error)


@pytest.mark.parametrize("damage", [pytest.param("empty", marks=pytest.mark.long), "flip", "remove", "truncate"])
def test_a_damaged_step_gives_no_wrong_answer(begun: Any, damage: str) -> None:
    """Each file of the newest step in turn: the right bits, or a refusal in one line."""
    plain = everything(regressor(**BASE).fit(X, Y))
    path = begun(**BASE)
    [record] = path.glob("step-*")
    files = [str(p.relative_to(path)) for p in sorted(record.rglob("*")) if p.is_file()]
    assert len(files) >= 3
    refused = 0
    for file in files:
        victim = begun(**BASE) / file
        data = bytearray(victim.read_bytes())
        middle = len(data) // 2
        if damage == "remove":
            victim.unlink()
        else:
            data[middle] ^= 0x10 * (damage == "flip")
            victim.write_bytes({"truncate": data[:middle], "empty": b"", "flip": data}[damage])
        found, said = fit_or_refusal(path, BASE)
        if said:
            refused += 1
            assert "\n" not in said
            assert str(path) in said
        else:
            assert_same_bits(found, plain)
    assert refused >= len(files) // 2


def altered(value: Any) -> Any:
    """The same with one number or text changed, however deep it lies."""
    if isinstance(value, dict):
        name = sorted(value)[-1]
        return {**value, name: altered(value[name])}
    if isinstance(value, list):
        return [*value[:-1], altered(value[-1])]
    return f"{value}x" if isinstance(value, str) else 1 + (value or 0)


def test_changed_attributes_are_refused(begun: Any) -> None:
    """Where learning stands is in the attributes too: not one of them can change unseen."""
    [record] = begun(**BASE).glob("step-*")
    names = set(json.loads((record / "zarr.json").read_text())["attributes"]) - {"format", "version", "arrays"}
    assert "step" in names
    for where, changed in [("step-*", name) for name in sorted(names)] + [("prepared", "seed")]:
        path = begun(**BASE)
        [record] = path.glob(where)
        about = json.loads((record / "zarr.json").read_text())
        old = about["attributes"][changed]
        about["attributes"][changed] = altered(old)
        (record / "zarr.json").write_text(json.dumps(about))
        found, said = fit_or_refusal(path, BASE)
        assert found is None, changed
        assert "digest" in said
        assert str(path) in said
        assert "\n" not in said


def test_only_whole_records_count(begun: Any) -> None:
    """What a kill leaves of a newer step is no step: not a folder that was to be renamed, nor one without its end."""
    plain = everything(regressor(**BASE).fit(X, Y))
    path = begun(**BASE)
    [record] = path.glob("step-*")
    number = progress_of(str(path))["steps"]
    shutil.copytree(record, path / "step-90.writing-0123abcd")
    (path / "step-91").mkdir()
    zarr.open_group(str(path / "step-92"), mode="w").create_array("history", data=np.ones(3))
    shutil.copytree(record, path / "step-93")
    (path / "step-93" / "zarr.json").unlink()
    (path / "step-94").write_text("a file")
    assert progress_of(str(path))["steps"] == number
    assert_same_bits(everything(regressor(**BASE, checkpoint=path).fit(X, Y)), plain)


def test_a_kill_while_an_object_store_is_written(steps: Steps) -> None:
    """There a record is not renamed into place; what is there of the next one does not count, and is no obstacle."""
    place = "memory://dkl-tests/killed-learning"
    assert steps.interrupted(lambda: regressor(**BASE, checkpoint=place).fit(X, Y), 2)
    for number in (steps.numbers[-1] + 1, steps.numbers[-1] + 7):
        zarr.open_group(f"{place}/step-{number}", mode="w").create_array("history", data=np.ones(3))
    assert progress_of(place)["steps"] == steps.numbers[-1]
    assert_same_bits(everything(regressor(**BASE, checkpoint=place).fit(X, Y)), everything(regressor(**BASE).fit(X, Y)))


def test_sums_without_what_was_learned(tmp_path: Path) -> None:
    """Sums are of the learned map. With that gone, learning anew (max_time!) may end elsewhere: refused."""
    options = BASE | {"max_time": 1e-9}
    path = tmp_path / "c"
    regressor(**options, checkpoint=path).fit(X, Y)
    assert progress_of(str(path))["blocks"]
    [record] = path.glob("step-*")
    shutil.rmtree(record)
    with pytest.raises(ValueError, match="damaged: it has sums but not what was learned") as info:
        regressor(**options, checkpoint=path).fit(X, Y)
    assert "\n" not in str(info.value)


def test_a_bad_row_is_named_after_resuming(tmp_path: Path, steps: Steps) -> None:
    """A fit that fails for its rows fails alike when it goes on, and leaves no attribute."""
    bad = X.copy()
    bad[3900, 1] = np.inf
    zarr.create_array(str(tmp_path / "x.zarr"), data=bad, chunks=(500, INPUTS))
    options = BASE | {"subsample": 0.3, "sigma": 0.5}
    for _ in range(2):
        model = regressor(**options, checkpoint=tmp_path / "c")
        with pytest.raises(ValueError, match="row 3900"):
            model.fit(str(tmp_path / "x.zarr"), Y)
        assert not hasattr(model, "history_")
