"""Answers and features that workers write: what one process writes, by tasks whose results are counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr
from distributed import Client, LocalCluster

import dkl
from dkl.engine import stream
from dkl.engine.crew import Crew
from dkl.store.answer_regions import AnswerParts, AnswerRegions
from dkl.store.answers import may_begin, open_answers
from dkl.store.folder import remove
from tests.cli.in_process import dkl_in, done

ROWS, BLOCK = 700, 50
NONE: dict[str, list[str]] = {"score": [], "probability": []}
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Workers in this process: they see what the tests set."""
    options: dict = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows in chunks of 50."""
    path = str(tmp_path_factory.mktemp("rows") / "X.zarr")
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=RNG.standard_normal((ROWS, 4)), chunks=(BLOCK, 4))
    return f"{path}/X"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is a chunk."""
    monkeypatch.setattr(stream, "ROWS", BLOCK)
    monkeypatch.setattr("dkl.estimators.predictor.ROWS", BLOCK)
    monkeypatch.setattr("dkl.estimators.written.ROWS", BLOCK)


def model(kind: str) -> Any:
    """Fitted to names, to numbers, or to two outputs."""
    X = RNG.standard_normal((200, 4))
    if kind == "names":
        y: Any = np.array(["zebra", "ant", "bee"])[np.digitize(X[:, 0], [-0.5, 0.5])]
        return dkl.SingleKernelClassifier(n_components=20, random_state=0, verbose=0).fit(X, y)
    y = X[:, 0] if kind == "numbers" else X[:, :2]
    return dkl.SingleKernelRegressor(n_components=20, random_state=0, verbose=0).fit(X, y)


def tree(path: Path) -> dict[str, bytes]:
    """Every file."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def alone(fitted: Any, rows: str, path: Path, names: dict[str, list[str]]) -> dict[str, bytes]:
    """What one process writes."""
    classes = [str(name) for name in fitted.classes_] if hasattr(fitted, "classes_") else []
    with open_answers(str(path), names["score"], False, names["probability"], classes) as answers:
        for block in fitted.predict_blocks(rows, bool(names["score"]), bool(names["probability"])):
            answers.add(*block)
    return tree(path)


@pytest.mark.parametrize("kind", ["names", "numbers", "outputs"])
def test_the_same_bytes(client: Client, rows: str, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every file; what comes back from the workers is how many rows each block has."""
    came, take = list[Any](), Crew._result
    monkeypatch.setattr(Crew, "_result", lambda self, future: (came.append(take(self, future)), came[-1])[1])
    fitted = model(kind)
    names = {"score": [f"score {c}" for c in fitted.classes_] if kind == "names" else [], "probability": []}
    expected = alone(fitted, rows, tmp_path / "here.zarr", names)
    assert came == []
    assert fitted.predict_to(rows, str(tmp_path / "there.zarr"), names) == ROWS
    assert tree(tmp_path / "there.zarr") == expected
    assert came == [BLOCK] * (ROWS // BLOCK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.zarr", "there.zarr"]
    with pytest.raises(FileExistsError, match=r"there.zarr' exists"):
        fitted.predict_to(rows, str(tmp_path / "there.zarr"), names)
    if kind == "numbers":
        group = zarr.open_group(tmp_path / "there.zarr", mode="r")
        np.testing.assert_allclose(group["prediction"][:], fitted.predict(zarr.open_array(rows)[:]), rtol=1e-12)


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """Numbers of tasks; the next run dies after five of them if `dies` was called."""
    run, counts = Crew.run, Counts()

    def counted(self: Crew, task: str, function: Any, calls: Any) -> Any:
        counts.append(len(calls))
        for count, found in enumerate(run(self, task, function, calls)):
            yield found
            if count == 4 and counts.deaths:
                raise InterruptedError(counts.deaths.pop())

    monkeypatch.setattr(Crew, "run", counted)
    return counts


class Counts(list):
    """Of tasks, run by run."""

    def __init__(self) -> None:
        self.deaths = list[int]()


def made(path: Path) -> Any:
    """What is there, for a comparison: bytes of a group, rows of a file or of parts."""
    return tree(path) if path.suffix == ".zarr" else pd.read_parquet(path).to_dict("list")


@pytest.mark.parametrize("kind", [".zarr", ".parquet"])
def test_interrupted(client: Client, rows: str, tmp_path: Path, wanted: Counts, kind: str) -> None:
    """Absent until complete; asked again it goes on, another request starts over."""
    fitted, out = model("numbers"), tmp_path / f"out{kind}"
    alone(fitted, rows, tmp_path / f"here{kind}", NONE)
    expected = made(tmp_path / f"here{kind}")
    wanted.deaths += [1, 1]
    with pytest.raises(InterruptedError):
        fitted.predict_to(rows, str(out), NONE)
    assert not out.exists()
    with pytest.raises(InterruptedError):
        model("outputs").predict_to(rows, str(out), NONE)
    fitted.predict_to(rows, str(out), NONE)
    assert wanted == [ROWS // BLOCK] * 3
    assert made(out) == expected
    remove(str(out))
    wanted.clear()
    wanted.deaths.append(1)
    with pytest.raises(InterruptedError):
        fitted.predict_to(rows, str(out), NONE)
    fitted.predict_to(rows, str(out), NONE)
    assert wanted[1] <= ROWS // BLOCK - 5
    assert made(out) == expected


@pytest.mark.parametrize("kind", ["names", "numbers", "outputs"])
def test_parts(client: Client, rows: str, tmp_path: Path, kind: str) -> None:
    """A folder reads back as the one file does: columns, types, values and order; only such a folder is replaced."""
    fitted, names = model(kind), NONE
    if kind == "names":
        names = {**NONE, "score": [f"score {c}" for c in fitted.classes_]}
    alone(fitted, rows, tmp_path / "here.parquet", names)
    out = tmp_path / "there.parquet"
    assert fitted.predict_to(rows, str(out), names) == ROWS
    expected, found = pd.read_parquet(tmp_path / "here.parquet"), pd.read_parquet(out)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    np.testing.assert_array_equal(found["row"], np.arange(ROWS))
    assert sorted(path.name for path in out.iterdir()) == [f"part-{i:012d}.parquet" for i in range(0, ROWS, BLOCK)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.parquet", "there.parquet"]
    with pytest.raises(FileExistsError, match=r"there.parquet' exists"):
        fitted.predict_to(rows, str(out), names)
    fitted.predict_to(rows, str(out), names, overwrite=True)
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)
    (out / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is not overwritten"):
        fitted.predict_to(rows, str(out), names, overwrite=True)


def interrupted(path: str) -> None:
    """A process that is killed before the notes are gone."""
    raise InterruptedError(path)


def test_parts_on_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing under the name until all parts are there, `_SUCCESS` last; one file takes the place of the parts."""
    store, out = fsspec.filesystem("memory"), "memory://parts-test/a.parquet"
    answered = model("numbers")._answered(False, False)[1]
    parts = AnswerParts(out, "x", 12, 4, None, NONE, answered)
    assert parts.begin(False) == set()
    for start in (8, 0, 4):
        assert not store.exists(out)
        parts.write(start, np.arange(start, start + 4.0)[:, None])
    store.pipe_file(out, b"came meanwhile")
    with pytest.raises(FileExistsError, match="exists"):
        parts.begin(False)
    store.rm_file(out)
    assert parts.begin(False) == {0, 4, 8}
    with monkeypatch.context() as patch:
        patch.setattr("dkl.store.regions.remove", interrupted)
        with pytest.raises(InterruptedError):
            parts.end()
    assert store.exists(out)
    assert parts.begin(False) == {0, 4, 8}
    parts.end()
    assert {name.rsplit("/", 1)[-1] for name in store.find("/parts-test")} == {
        "_SUCCESS", *(f"part-{start:012d}.parquet" for start in (0, 4, 8)),
    }  # fmt: skip
    frame = pd.read_parquet(out)
    assert frame["row"].tolist() == list(range(12))
    assert frame["prediction"].tolist() == list(range(12))
    with pytest.raises(FileExistsError, match="exists"):
        parts.begin(False)
    with open_answers(out, [], True) as answers:
        answers.add(np.arange(2), np.ones(2), None)
    assert store.find("/parts-test") == ["/parts-test/a.parquet"]


def transformers() -> list[Any]:
    """Fitted, one of each way to transform."""
    X = np.abs(RNG.standard_normal((100, 4)))
    y = RNG.standard_normal(100)
    found = (
        dkl.FourierFeatures(n_components=30, random_state=0),
        dkl.NystroemFeatures(n_components=20, random_state=0),
        dkl.FeaturePCA(dkl.FourierFeatures(n_components=30, random_state=0), n_components=3, verbose=0),
        dkl.Chi2Features(n_terms=2),
    )
    return [one.fit(X, y) for one in found]


@pytest.mark.parametrize("which", range(4), ids=["fourier", "nystroem", "pca", "chi2"])
def test_features(client: Client, tmp_path: Path, which: int, wanted: Counts) -> None:
    """By workers and in this process the same bytes, the values of transform; complete or absent, and it goes on."""
    one, path = transformers()[which], str(tmp_path / "X.zarr")
    X = np.abs(RNG.standard_normal((ROWS, 4)))
    zarr.create_array(path, data=X, chunks=(BLOCK, 4))
    there, here = tmp_path / "there.zarr", tmp_path / "here.zarr"
    wanted.deaths.append(1)
    with pytest.raises(InterruptedError):
        one.transform_to(path, there)
    assert not there.exists()
    assert one.transform_to(path, there) == ROWS
    assert wanted[0] == ROWS // BLOCK
    assert wanted[1] <= wanted[0] - 5
    with client.as_current(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkl.engine.reduce.active_client", lambda: None)
        assert one.transform_to(path, here) == ROWS
    assert len(wanted) == 2
    assert tree(there) == tree(here)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["X.zarr", "here.zarr", "there.zarr"]
    group = zarr.open_group(there, mode="r")
    assert dict(group.attrs) == {"format": "dkl-features", "complete": True}
    np.testing.assert_allclose(group["X"][:], one.transform(X), rtol=1e-9, atol=1e-12)
    with pytest.raises(FileExistsError, match="exists"):
        one.transform_to(path, there)


def test_features_are_rows(client: Client, rows: str, tmp_path: Path) -> None:
    """A fit takes them, from memory too, unless they are not complete; what workers cannot read is refused."""
    import dask.array as da

    one, out = transformers()[0], tmp_path / "F.zarr"
    X = zarr.open_array(rows, mode="r")[:]
    one.transform_to(X, out)
    plain = dkl.SingleKernelRegressor(n_components=20, random_state=0, verbose=0)
    ours, theirs = plain.fit(str(out), X[:, 0]).coef_, plain.fit(one.transform(X), X[:, 0]).coef_
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    zarr.open_group(out, mode="r+").attrs["complete"] = False
    with pytest.raises(ValueError, match="was not written completely; call transform_to again"):
        plain.fit(str(out), X[:, 0])
    with pytest.raises(ValueError, match=r"to_zarr\('b.zarr'\)"):
        one.transform_to(da.from_array(X, chunks=(100, 4)), "b.zarr")
    with pytest.raises(ValueError, match=r"'b.csv' must end in .zarr"):
        one.transform_to(X, "b.csv")


def dies(monkeypatch: pytest.MonkeyPatch, after: int = 4) -> None:
    """The next run ends after so many blocks."""
    run, deaths = Crew.run, [1]

    def dying(self: Crew, task: str, function: Any, calls: Any) -> Any:
        for count, found in enumerate(run(self, task, function, calls)):
            yield found
            if count == after and deaths:
                raise InterruptedError(deaths.pop())

    monkeypatch.setattr(Crew, "run", dying)


def test_rows_that_change_before_it_goes_on(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other rows at the same path, and the same weights with other names of classes, are another request."""
    fitted, out, path = model("names"), tmp_path / "out.zarr", tmp_path / "X.zarr"
    zarr.open_group(path, mode="w").create_array("X", data=RNG.standard_normal((ROWS, 4)), chunks=(BLOCK, 4))
    dies(monkeypatch)
    with pytest.raises(InterruptedError):
        fitted.predict_to(f"{path}/X", str(out), NONE)
    X = RNG.standard_normal((ROWS, 4))
    zarr.open_group(path, mode="w").create_array("X", data=X, chunks=(BLOCK, 4))
    dies(monkeypatch)
    with pytest.raises(InterruptedError):
        fitted.predict_to(f"{path}/X", str(out), NONE)
    fitted.classes_ = np.array(["x", "y", "z"])
    fitted.predict_to(f"{path}/X", str(out), NONE)
    found = zarr.open_group(out, mode="r")["prediction"]
    assert found.attrs["classes"] == ["x", "y", "z"]
    np.testing.assert_array_equal(np.array(["x", "y", "z"])[found[:]], fitted.predict(X))


def test_what_is_there_meanwhile_is_not_replaced(
    client: Client, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something came to OUT after the interruption: without overwrite it stays, and what is no answer stays always."""
    fitted, out = model("numbers"), tmp_path / "out.zarr"
    dies(monkeypatch)
    with pytest.raises(InterruptedError):
        fitted.predict_to(rows, str(out), NONE)
    zarr.open_group(out, mode="w").create_array("mine", data=np.arange(3))
    for overwrite in (False, True):
        with pytest.raises(FileExistsError):
            fitted.predict_to(rows, str(out), NONE, overwrite)
    np.testing.assert_array_equal(zarr.open_group(out, mode="r")["mine"][:], [0, 1, 2])


def test_the_command(client: Client, tmp_path: Path) -> None:
    """`dkl predict --scheduler` of a split: the numbers of the rows in the source come along."""
    X, y = RNG.standard_normal((ROWS, 3)), RNG.integers(0, 2, ROWS)
    np.savetxt(tmp_path / "a.csv", np.column_stack([X, y]), delimiter=",")
    dkl.ingest(tmp_path / "a.csv", tmp_path / "rows.zarr", split={"test": 0.4}, verbose=0, on="here")
    fitted = dkl.SingleKernelClassifier(n_components=20, random_state=0, verbose=0)
    fitted.fit(str(tmp_path / "rows.zarr/train")).save(tmp_path / "model.zarr")
    words = ("predict", "model.zarr", "rows.zarr")
    done(tmp_path, *words, "here.zarr", "--scores")
    said = dkl_in(tmp_path, *words, "there.zarr", "--scores", "--scheduler", client.scheduler.address)
    assert said.code == 0, said
    assert tree(tmp_path / "there.zarr") == tree(tmp_path / "here.zarr")
    group, rows = (zarr.open_group(tmp_path / name, mode="r") for name in ("there.zarr", "rows.zarr/test"))
    np.testing.assert_array_equal(group["row"][:], rows["row"][:])
    assert said.out.startswith(f"{len(group['row'][:]):,} predictions are in there.zarr")
    done(tmp_path, *words, "here.parquet", "--scores")
    said = dkl_in(tmp_path, *words, "there.parquet", "--scores", "--scheduler", client.scheduler.address)
    assert said.code == 0, said
    found, expected = pd.read_parquet(tmp_path / "there.parquet"), pd.read_parquet(tmp_path / "here.parquet")
    assert (tmp_path / "there.parquet").is_dir()
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    np.testing.assert_array_equal(found["row"], rows["row"][:])


def test_a_worker_that_does_not_see_the_notes(tmp_path: Path) -> None:
    """It refuses, and writes nothing."""
    fitted = model("numbers")
    regions = AnswerRegions(str(tmp_path / "a.zarr"), "x", 4, 4, None, {"score": []}, fitted._answered(False, False)[1])
    with pytest.raises(ValueError, match="a worker does not find"):
        regions.write(0, np.zeros((4, 1)))
    assert list(tmp_path.iterdir()) == []


def test_features_replace_features_alone(tmp_path: Path) -> None:
    """With overwrite: not answers, nor a group of another kind, nor the rows that are read."""
    X, path = RNG.standard_normal((30, 4)), str(tmp_path / "f.zarr")
    for seed in (0, 1):
        made = dkl.FourierFeatures(n_components=6, random_state=seed, verbose=0).fit(X)
        made.transform_to(X, path, overwrite=True)
        np.testing.assert_array_equal(zarr.open_group(path, mode="r")["X"][:], made.transform(X))
    with pytest.raises(FileExistsError, match=r"f.zarr' exists"):
        made.transform_to(X, path)
    with pytest.raises(ValueError, match=r"X is in '.*f.zarr', which would be replaced"):
        dkl.FourierFeatures(n_components=6, verbose=0).fit(path).transform_to(path, path, overwrite=True)
    for form in ("dkl-answers", "mine"):
        zarr.open_group(tmp_path / "a.zarr", mode="w").attrs.put({"format": form})
        with pytest.raises(FileExistsError, match=r"is not a .zarr file of features and is not overwritten"):
            made.transform_to(X, str(tmp_path / "a.zarr"), overwrite=True)
    with pytest.raises(FileExistsError, match=r"is not a .zarr file of predictions and is not overwritten"):
        may_begin(path, ".zarr", True)
