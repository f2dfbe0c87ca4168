"""Answers that workers write: the group that one process writes, by tasks whose results are counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import dkl
from dkl.engine import stream
from dkl.engine.crew import Crew
from dkl.store.answer_regions import AnswerRegions
from dkl.store.answers import open_answers
from dkl.store.folder import remove
from tests.cli.in_process import dkl_in, done

ROWS, BLOCK = 700, 50
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


def test_interrupted(client: Client, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent until complete; asked again it goes on, another request starts over."""
    fitted, out, none = model("numbers"), tmp_path / "out.zarr", {"score": [], "probability": []}
    expected = alone(fitted, rows, tmp_path / "here.zarr", none)
    run, wanted, deaths = Crew.run, list[int](), [1, 1]

    def dying(self: Crew, task: str, function: Any, calls: Any) -> Any:
        wanted.append(len(calls))
        for count, found in enumerate(run(self, task, function, calls)):
            yield found
            if count == 4 and deaths:
                raise InterruptedError(deaths.pop())

    monkeypatch.setattr(Crew, "run", dying)
    with pytest.raises(InterruptedError):
        fitted.predict_to(rows, str(out), none)
    assert not out.exists()
    with pytest.raises(InterruptedError):
        model("outputs").predict_to(rows, str(out), none)
    fitted.predict_to(rows, str(out), none)
    assert wanted == [ROWS // BLOCK] * 3
    assert tree(out) == expected
    remove(str(out))
    wanted.clear()
    deaths.append(1)
    with pytest.raises(InterruptedError):
        fitted.predict_to(rows, str(out), none)
    fitted.predict_to(rows, str(out), none)
    assert wanted[1] <= ROWS // BLOCK - 5
    assert tree(out) == expected


def dies(monkeypatch: pytest.MonkeyPatch, after: int = 4) -> None:
    """The next run ends after so many blocks."""
    run, deaths = Crew.run, [1]

    def dying(self: Crew, task: str, function: Any, calls: Any) -> Any:
        for count, found in enumerate(run(self, task, function, calls)):
            yield found
            if count == after and deaths:
                raise InterruptedError(deaths.pop())

    monkeypatch.setattr(Crew, "run", dying)


NONE: dict[str, list[str]] = {"score": [], "probability": []}


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
    made, rows = (zarr.open_group(tmp_path / name, mode="r") for name in ("there.zarr", "rows.zarr/test"))
    np.testing.assert_array_equal(made["row"][:], rows["row"][:])
    assert said.out.startswith(f"{len(made['row'][:]):,} predictions are in there.zarr")


def test_a_worker_that_does_not_see_the_notes(tmp_path: Path) -> None:
    """It refuses, and writes nothing."""
    fitted = model("numbers")
    regions = AnswerRegions(str(tmp_path / "a.zarr"), "x", 4, 4, None, {"score": []}, fitted._answered(False, False)[1])
    with pytest.raises(ValueError, match="a worker does not find"):
        regions.write(0, np.zeros((4, 1)))
    assert list(tmp_path.iterdir()) == []
