"""Ingest by the workers of a cluster: byte for byte the data set of one process, for any number of workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from distributed import Client, LocalCluster
from sklearn.datasets import dump_svmlight_file

import dkl
from dkl.engine.crew import Crew
from dkl.engine.progress import Progress
from dkl.sources import parquet, raw, text
from dkl.store import dataset, equal_blocks, ingest, spread_staging, spread_writing
from dkl.store.folder import remove

ROWS = 6000


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Workers in this process: they see what the tests set."""
    options: dict = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table in several formats: gaps, quoted texts with line ends, classes; and pictures."""
    folder, rng = tmp_path_factory.mktemp("made"), np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((ROWS, 3)), columns=list("abc"))
    numbers = frame.assign(t=rng.integers(0, 5, ROWS))
    numbers.to_csv(folder / "numbers.csv", index=False)
    frame["a"] = frame["a"].where(rng.random(ROWS) > 0.05)
    frame["color"] = rng.choice(["red", 'green "x" line\nbreak', "blue, sky", "\n"], ROWS)
    frame["label"] = rng.choice(["yes", "no", "maybe"], ROWS)
    frame.to_csv(folder / "mixed.csv", index=False)
    for i in range(4):
        frame[i * 1500 : (i + 1) * 1500].to_parquet(folder / f"part-{i}.parquet", row_group_size=500, index=False)
    np.save(folder / "rows.npy", frame[["b", "c"]].to_numpy(np.float32).repeat(4, axis=1))
    S = sp.random(ROWS // 2, 50, 0.05, format="csr", random_state=0)
    dump_svmlight_file(S, rng.integers(0, 3, ROWS // 2), str(folder / "rows.svm"))
    (folder / "pictures").mkdir()
    skimage = pytest.importorskip("skimage.io")
    for kind in ("cat", "dog"):
        (folder / "pictures" / kind).mkdir()
        for i in range(9):
            picture = rng.integers(0, 255, (8, 8), dtype=np.uint8)
            skimage.imsave(folder / "pictures" / kind / f"{i}.png", picture, check_contrast=False)
    return folder


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments, groups and shards of a few kilobytes."""
    monkeypatch.setattr(text, "SIZE", 2**13)
    for module in (raw, parquet):
        monkeypatch.setattr(module, "SEGMENT", 2**12)
    monkeypatch.setattr(equal_blocks, "BLOCK", 64)
    monkeypatch.setattr(dataset, "SMALLEST", 2**14)
    monkeypatch.setattr(spread_writing, "LARGEST", 2**14)


def tree(path: Path) -> dict[str, str]:
    """A digest of every file."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file())
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def taken(dest: Path) -> dict[str, str]:
    """The tree of a data set, which is removed: one that is complete would not be written again."""
    found = tree(dest)
    remove(str(dest))
    assert not Path(f"{dest}.ingest").exists()
    return found


def both(sources: Any, dest: Path, **how: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The same data set, written here and by the workers."""
    trees = []
    for on in ("here", "cluster"):
        dkl.ingest(sources, dest, on=on, verbose=0, **how)
        trees.append(taken(dest))
    return trees[0], trees[1]


CASES = {
    "fills, classes, standard": ("mixed.csv", {"categorical": "auto", "missing": "mean", "scale": "standard"}),
    "dropped rows, three splits": (
        "mixed.csv",
        {"categorical": "auto", "missing": "drop", "scale": "minmax", "split": {"test": 0.2, "val": 0.1}},
    ),
    "numbers alone": ("numbers.csv", {"dtype": "float64"}),
    "one step after the other": ("numbers.csv", {"scale": ("standard", "zca"), "split": {"test": 0.3}}),
    "many files": ("part-*.parquet", {"categorical": "auto", "missing": "zero", "split": {"test": 0.2}}),
    "two channels": (("rows.npy", "numbers.csv"), {"scale": ("standard", "l1"), "split": {"test": 0.5}}),
    "further rows": (("numbers.csv", "numbers.csv"), {"rows": True, "scale": "minmax"}),
    "sparse rows": ("rows.svm", {"scale": "standard", "layout": "sparse", "split": {"test": 0.2}}),
    "pictures": ("pictures", {"split": {"test": 0.3}}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_bytes(client: Client, made: Path, tmp_path: Path, case: str) -> None:
    """Of every file: numbers, texts, gaps, scales, splits, classes, sparse rows, pictures."""
    names, how = CASES[case]
    sources = [str(made / name) for name in ([names] if isinstance(names, str) else names)]
    alone, spread = both(sources, tmp_path / "rows.zarr", **how)
    assert spread == alone
    assert len(alone) > 10


def test_any_number_of_workers(made: Path, tmp_path: Path) -> None:
    """One, and three, write what one process writes."""
    how: dict = {"categorical": "auto", "missing": "mean", "scale": "standard", "split": {"test": 0.2}, "verbose": 0}
    found = []
    for workers in (1, 3):
        options: dict = {"threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster):
            dkl.ingest(made / "mixed.csv", tmp_path / "rows.zarr", on="cluster", **how)
        found.append(taken(tmp_path / "rows.zarr"))
    dkl.ingest(made / "mixed.csv", tmp_path / "rows.zarr", on="here", **how)
    assert found == [taken(tmp_path / "rows.zarr")] * 2


def test_rows_of_a_zarr_with_coordinates(client: Client, tmp_path: Path) -> None:
    """Names of the rows come along, to their splits."""
    xr = pytest.importorskip("xarray")
    rng = np.random.default_rng(1)
    X = xr.DataArray(
        rng.standard_normal((3000, 4)), dims=("row", "input"), coords={"when": ("row", np.arange(3000) * 7)}
    )
    xr.Dataset({"X": X.chunk({"row": 100}), "y": ("row", rng.integers(0, 2, 3000))}).to_zarr(
        tmp_path / "in.zarr", consolidated=False
    )
    alone, spread = both(str(tmp_path / "in.zarr"), tmp_path / "rows.zarr", split={"test": 0.4})
    assert spread == alone
    dkl.ingest(str(tmp_path / "in.zarr"), tmp_path / "rows.zarr", split={"test": 0.4}, on="cluster", verbose=0)
    made = zarr.open_group(tmp_path / "rows.zarr/test", mode="r")
    np.testing.assert_array_equal(made["when"][:], made["row"][:] * 7)


def test_a_bad_line_is_named_by_its_number(client: Client, made: Path, tmp_path: Path) -> None:
    """Also far behind the beginning of the file, where no worker has counted."""
    lines = (made / "numbers.csv").read_text().splitlines(keepends=True)
    lines[5000] = "1,2,zebra,3\n"
    (tmp_path / "bad.csv").write_text("".join(lines))
    for on in ("here", "cluster"):
        with pytest.raises(ValueError, match=r"line 5001, column 'c' holds 'zebra'"):
            dkl.ingest(tmp_path / "bad.csv", tmp_path / "rows.zarr", on=on, verbose=0)
        assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    ("data", "how", "said"),
    [
        ("a,b,y\n1,2,0\n\u00e9,2,1\n1,2,1\n1,2,1\n", {"encoding": "latin-1"}, r"line 3, column 'a'"),
        ("a,b,y\n1,2,0\n1,2\n", {"encoding": "utf-16"}, r"line 3 has 2 fields"),
        ("a,b,y\n1,,0\n2,,1\n3,,1\n", {"missing": "drop", "scale": "standard"}, "none of the 3 rows"),
    ],
)
def test_refused_as_in_one_process(client: Client, tmp_path: Path, data: str, how: dict, said: str) -> None:
    """The same sentence: bad lines of text in another encoding, and rows that are all dropped."""
    (tmp_path / "bad.csv").write_bytes(data.encode(how.get("encoding", "utf-8")))
    found = set()
    for on in ("here", "cluster"):
        with pytest.raises(ValueError, match=said) as caught:
            dkl.ingest(tmp_path / "bad.csv", tmp_path / "rows.zarr", on=on, verbose=0, **how)
        found.add(str(caught.value))
    assert len(found) == 1


def test_quotes_that_no_stretch_begins_in(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that hold whole tables: nearly every stretch begins inside quotes, and is read again."""
    odd, run = list[bool](), Crew.run

    def watched(self: Crew, task: str, function: Any, calls: Any) -> Any:
        odd.extend(call[3].odd for call in calls if task == "parse")
        return run(self, task, function, calls)

    monkeypatch.setattr(Crew, "run", watched)
    cell = "\n".join(f"{i},{i},x" for i in range(500))
    frame = pd.DataFrame({"a": np.arange(40.0), "s": [f'{cell}"{i % 2}' for i in range(40)], "y": np.arange(40) % 3})
    frame.to_csv(tmp_path / "q.csv", index=False)
    alone, spread = both(str(tmp_path / "q.csv"), tmp_path / "rows.zarr", categorical="auto")
    assert spread == alone
    assert sum(odd) > 3


def test_files_that_differ(client: Client, made: Path, tmp_path: Path) -> None:
    """A file with other columns, and a damaged one, are refused, and nothing is left."""
    for i in range(2):
        (tmp_path / f"a{i}.csv").write_text("a,b,y\n" + "1,2,0\n" * 50)
    (tmp_path / "a2.csv").write_text("a,c,y\n" + "1,2,0\n" * 50)
    with pytest.raises(ValueError, match=r"a2.csv' and '.*a0.csv' have different columns"):
        dkl.ingest(tmp_path / "a*.csv", tmp_path / "rows.zarr", on="cluster", verbose=0)
    whole = (made / "part-1.parquet").read_bytes()
    (tmp_path / "b0.parquet").write_bytes((made / "part-0.parquet").read_bytes())
    (tmp_path / "b1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"b1.parquet' is not a Parquet file, or is damaged"):
        dkl.ingest(
            tmp_path / "b*.parquet", tmp_path / "rows.zarr", on="cluster", verbose=0, categorical="auto", missing="mean"
        )
    assert not list(tmp_path.glob("rows.zarr*"))


def test_a_source_that_changes_meanwhile(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused even if every part of it could be read."""
    path = tmp_path / "a.csv"
    path.write_text("a,b,y\n" + "1.5,2,0\n" * 9000)
    stage = spread_staging.Files.stage

    def changing(self: Any, *given: Any) -> Any:
        found = stage(self, *given)
        path.write_text("a,b,y\n" + "1.5,3,0\n" * 9000)
        return found

    monkeypatch.setattr(spread_staging.Files, "stage", changing)
    with pytest.raises(ValueError, match=r"a.csv' changed while it was read"):
        dkl.ingest(path, tmp_path / "rows.zarr", on="cluster", verbose=0)
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_where_it_runs(client: Client, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local files are read here, objects by the workers; a destination that exists is refused first."""
    began: list[str] = []
    monkeypatch.setattr(spread_staging.Files, "_resume", lambda self: began.append("cluster"))
    dkl.ingest(made / "numbers.csv", tmp_path / "rows.zarr", verbose=0)
    assert began == []
    monkeypatch.setattr(text, "SIZE", 2**23)  # objects in memory have one position for all readers
    store = fsspec.filesystem("memory")
    store.pipe("/cluster/numbers.csv", (made / "numbers.csv").read_bytes())
    dkl.ingest(made / "numbers.csv", "memory://cluster/other.zarr", verbose=0)
    assert began == []
    dkl.ingest("memory://cluster/numbers.csv", "memory://cluster/third.zarr", verbose=0)
    store.rm("/cluster", recursive=True)
    assert began == ["cluster"]
    with pytest.raises(FileExistsError, match=r"rows.zarr' exists"):
        dkl.ingest(made / "numbers.csv", tmp_path / "rows.zarr", on="cluster", verbose=0)
    with pytest.raises(ValueError, match="on='clutser'"):
        dkl.ingest(made / "numbers.csv", tmp_path / "d.zarr", on="clutser", verbose=0)


def test_resumed_where_it_was_interrupted(
    client: Client, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stretches that were parsed and regions that were written are not done again; the bytes are the same."""
    how: dict = {"categorical": "auto", "missing": "mean", "split": {"test": 0.2}, "on": "cluster", "verbose": 0}
    dest = tmp_path / "rows.zarr"
    dkl.ingest(made / "mixed.csv", dest, **how)
    expected = tree(dest)
    remove(str(dest))
    run, done = Crew.run, list[str]()

    def dying(self: Crew, task: str, function: Any, calls: Any) -> Any:
        for count, found in enumerate(run(self, task, function, calls)):
            done.append(task)
            yield found
            if count == 2 and task == wanted:
                raise InterruptedError

    def go_on() -> None:
        ingest.run_ingest(*ingest.open_ingest(str(dest))[:2], 1, Progress(0), None, Crew(client))

    for wanted, begin in (  # noqa: B007
        ("parse", lambda: dkl.ingest(made / "mixed.csv", dest, **how)),
        ("write", go_on),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Crew, "run", dying)
            with pytest.raises(InterruptedError):
                begin()
        assert not dest.exists()
    staging = Path(f"{dest}.ingest")
    written = {path.name: path.stat().st_mtime_ns for path in staging.glob("wrote-*")}
    assert len(written) >= 3
    parsed = {path.name: path.stat().st_mtime_ns for path in staging.glob("stretch-*")}
    again = list[str]()
    monkeypatch.setattr(
        Crew, "run", lambda self, task, f, calls: (again.extend([task] * len(calls)), run(self, task, f, calls))[1]
    )
    go_on()
    assert tree(dest) == expected
    assert again.count("parse") == 0 < len(parsed)
    assert again.count("write") > 0
