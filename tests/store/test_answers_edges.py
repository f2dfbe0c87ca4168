"""Predictions on an object store and on the edges: what is there while they are written, and after a failure."""

from __future__ import annotations

import io
import sys
import uuid

import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr

from dkl.store.answers import KINDS, may_begin, open_answers

FS = fsspec.filesystem("memory")


@pytest.fixture
def url():
    """A folder of the store."""
    return f"memory://answers-{uuid.uuid4().hex}"


def write(path, predicted, scores=None, names=(), overwrite=False):
    """In two blocks, after one without rows."""
    with open_answers(path, list(names), overwrite) as out:
        for rows in (slice(0, 0), slice(0, 2), slice(2, None)):
            out.add(np.arange(len(predicted))[rows], predicted[rows], None if scores is None else scores[rows])


def test_the_exact_text(tmp_path):
    """One head, one line for each row; a single score has one column."""
    write(str(tmp_path / "a.csv"), np.array([0.1, 2.0, -3.0]), np.array([1.0, 0.5, 0.25]), ["score"])
    assert (tmp_path / "a.csv").read_text() == "row,prediction,score\n0,0.1,1.0\n1,2.0,0.5\n2,-3.0,0.25\n"
    write(str(tmp_path / "c.csv"), np.array([1, 2, 3]), np.arange(12.0).reshape(3, 2, 2), ["p", "q", "r", "s"])
    assert (tmp_path / "c.csv").read_text().splitlines()[2] == "1,2,4.0,5.0,6.0,7.0"
    write(str(tmp_path / "b.csv"), np.array([[1, 2], [3, 4], [5, 6]]))
    assert (tmp_path / "b.csv").read_text() == "row,prediction 0,prediction 1\n0,1,2\n1,3,4\n2,5,6\n"


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_store(url, kind):
    """Under its own name; replaced only if that is said, and only what is a file of answers."""
    path = f"{url}/a{kind}"
    for predicted in (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])):
        write(path, predicted, overwrite=True)
        with pytest.raises(FileExistsError, match="exists; choose another name or use --overwrite"):
            write(path, predicted)
        if kind == ".zarr":
            found = zarr.open_group(path, mode="r")["prediction"][:]
        else:
            reader = pd.read_csv if kind == ".csv" else pd.read_parquet
            found = reader(io.BytesIO(FS.cat_file(path[8:])))["prediction"].to_numpy()
        assert found.tolist() == predicted.tolist()
    names = {name.rsplit("/", 1)[-1] for name in FS.ls(url[8:], detail=False)}
    assert names == {f"a{kind}"}


def fail(path):
    """One block, then an error."""
    with open_answers(path, [], False) as out:
        out.add(np.arange(3), np.ones(3), None)
        raise ValueError("mine")


def test_a_failure_on_a_store_leaves_no_group(url):
    """Objects that were written are removed."""
    with pytest.raises(ValueError, match="mine"):
        fail(f"{url}/a.zarr")
    assert not FS.exists(f"{url[8:]}/a.zarr")


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_a_folder_is_not_overwritten(tmp_path, kind):
    """Whatever is said; and a folder that is not there is not made."""
    (tmp_path / f"a{kind}").mkdir()
    with pytest.raises(FileExistsError, match="is not overwritten"):
        write(str(tmp_path / f"a{kind}"), np.ones(3), overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == [f"a{kind}"]


def test_groups_that_are_no_answers(tmp_path):
    """Before and after them in the alphabet, or without a format."""
    for number, attributes in enumerate(({"format": "dkl"}, {"format": "zoo"}, {})):
        path = str(tmp_path / f"{number}.zarr")
        zarr.open_group(path, mode="w").attrs.put(attributes)
        with pytest.raises(FileExistsError, match="is not overwritten"):
            write(path, np.ones(3), overwrite=True)


def test_a_group_says_what_it_holds(tmp_path):
    """It is not complete until it is; names of scores, dimensions, and classes in the order they came."""
    path = str(tmp_path / "a.zarr")
    with open_answers(path, ["p", "q"], False) as out:
        [begun] = tmp_path.iterdir()
        assert dict(zarr.open_group(str(begun), mode="r").attrs) == {"format": "dkl-answers", "complete": False}
        out.add(np.arange(2), np.array(["z", "b"]), np.ones((2, 2)))
        out.add(np.arange(2, 5), np.array(["a", "z", "b"]), np.zeros((3, 2)))
    group = zarr.open_group(path, mode="r")
    assert dict(group.attrs) == {"format": "dkl-answers", "complete": True}
    classes = group["prediction"].attrs["classes"]
    assert [classes[code] for code in group["prediction"][:]] == ["z", "b", "a", "z", "b"]
    assert group["score"].attrs["names"] == ["p", "q"]
    assert group["score"].shape == (5, 2)
    assert group["score"].chunks == (2, 2)
    assert [group[n].metadata.dimension_names for n in ("row", "score")] == [("row",), ("row", "score")]
    write(str(tmp_path / "b.zarr"), np.ones((3, 2)))
    plain = zarr.open_group(str(tmp_path / "b.zarr"), mode="r")["prediction"]
    assert plain.metadata.dimension_names == ("row", "output")
    assert "classes" not in plain.attrs


def test_no_rows_at_all(tmp_path):
    """An empty file, which is whole."""
    for kind in (".csv", ".parquet"):
        with open_answers(str(tmp_path / f"a{kind}"), [], False):
            pass
        assert (tmp_path / f"a{kind}").exists()


def test_parquet_without_its_library(tmp_path, monkeypatch):
    """What to install, and nothing is left."""
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with (
        pytest.raises(ValueError, match=r"a\.parquet': writing Parquet needs pyarrow; pip install"),
        open_answers(str(tmp_path / "a.parquet"), [], False),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_remote_folder_of_other_parquet_is_not_replaced(url):
    """What workers wrote may be; tables of another program stay."""
    path = f"{url}/a.parquet"
    for name in ("part-000000000000.parquet", "_SUCCESS"):
        FS.pipe_file(f"{path[8:]}/{name}", b"x")
    may_begin(path, ".parquet", True)
    with pytest.raises(FileExistsError, match="exists; choose another name or use --overwrite"):
        may_begin(path, ".parquet", False)
    FS.pipe_file(f"{path[8:]}/part-00000-8f1c.snappy.parquet", b"x")
    with pytest.raises(FileExistsError, match=r"is not a .parquet file of predictions and is not overwritten"):
        write(path, np.array([1.0, 2.0, 3.0]), overwrite=True)
    assert len(FS.find(path[8:])) == 3
