"""Parquet against pandas reading the whole file at once."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

from dkl.sources import parquet
from dkl.sources.batch import Column, Reading, SourceError
from dkl.sources.parquet import Parquet
from tests.sources.whole import read_whole

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(params=[100, 4000, 2**23])
def small(request, monkeypatch):
    """Segments of a few rows."""
    monkeypatch.setattr(parquet, "SEGMENT", request.param)


@pytest.fixture
def write(tmp_path):
    """A file of some columns, in row groups of 40."""

    def write(**columns):
        path = str(tmp_path / "t.parquet")
        pq.write_table(pa.table(columns), path, row_group_size=40)
        return path

    return write


def made():
    """Columns of every kind that is read."""
    rng = np.random.default_rng(0)
    return {
        "i": pa.array(rng.integers(0, 2**40, 100)),
        "b": pa.array(rng.random(100) < 0.5),
        "f": pa.array(rng.standard_normal(100).astype("f4")),
        "s": pa.array([f"word {i % 7}" for i in range(100)]),
        "d": pa.array([f"kind {i % 3}" for i in range(100)]).dictionary_encode(),
        "a.b": pa.array(rng.random(100)),
        "y": pa.array([i % 2 for i in range(100)]),
    }


def test_like_pandas_whole(write, small):
    """Numbers, booleans and texts, over row groups."""
    path = write(**made())
    source = Parquet(path, Reading(categorical=("auto",)))
    X, y, texts, _ = read_whole(source)
    frame = pd.read_parquet(path)
    np.testing.assert_array_equal(X, frame[["i", "b", "f", "a.b"]].to_numpy(np.float64))
    np.testing.assert_array_equal(y, frame["y"])
    assert texts == {"s": frame["s"].tolist(), "d": frame["d"].tolist()}
    assert source.columns == [Column(name, name in "sd") for name in ("i", "b", "f", "s", "d", "a.b")]


def test_choices(write, small):
    """Target, drop, categorical numbers, a recipe's inputs."""
    path = write(**made())
    X, y, _, _ = read_whole(Parquet(path, Reading(target="d", drop=("s", "i"))))
    frame = pd.read_parquet(path)
    np.testing.assert_array_equal(X, frame[["b", "f", "a.b", "y"]].to_numpy(np.float64))
    assert y == frame["d"].tolist()
    X, y, _, _ = read_whole(Parquet(path, Reading(drop=(*"isd", "a.b"))))
    assert X.dtype == np.float32
    texts = read_whole(Parquet(path, Reading(drop=tuple("sd"), categorical=("i",))))[2]
    assert texts["i"] == frame["i"].astype(str).tolist()
    source = Parquet(path, Reading(target="y", inputs=(Column("s", True), Column("f"))))
    X, y, texts, _ = read_whole(source)
    np.testing.assert_array_equal(X[:, 0], frame["f"])
    assert texts["s"] == frame["s"].tolist()
    assert read_whole(Parquet(path, Reading(target="none", drop=tuple("sd"))))[1] is None


def test_nulls(write, small):
    """They are missing values, refused with their row unless allowed."""
    holes = [None if i == 61 else i for i in range(100)]
    words = ["?" if i == 5 else None if i == 70 else "w" for i in range(100)]
    path = write(a=holes, s=words, y=[bool(i % 2) for i in range(100)])
    with pytest.raises(SourceError, match="missing value in row 61, column 'a'; use --missing"):
        read_whole(Parquet(path, Reading(drop=("s",))))
    X, _, texts, _ = read_whole(Parquet(path, Reading(categorical=("s",), missing="mean", na=("?",))))
    assert np.flatnonzero(np.isnan(X[:, 0])).tolist() == [61]
    assert [i for i in range(100) if texts["s"][i] is None] == [5, 70]
    for target, row in (("a", 61), ("s", 70)):
        how = {"target": target, "drop": ("s",) if target == "a" else ()}
        with pytest.raises(SourceError, match=f"missing value in row {row}, column '{target}'"):
            read_whole(Parquet(path, Reading(missing="mean", **how)))
    assert np.isnan(read_whole(Parquet(path, Reading(target="a", drop=("s",), missing="drop")))[1][61])


def test_row_names_of_pandas_are_no_column(tmp_path):
    """An index would be taken for the target."""
    path = str(tmp_path / "t.parquet")
    pd.DataFrame({"a": [1.0, 2], "y": [3.0, 4]}, index=[7, 9]).to_parquet(path)
    X, y, _, _ = read_whole(Parquet(path, Reading()))
    assert (X.tolist(), y.tolist()) == ([[1], [2]], [3, 4])


@pytest.mark.parametrize(
    ("columns", "how", "sentence"),
    [
        ({"s": ["x"], "y": [1]}, {}, "column 's' of .* holds text; use --categorical 's'"),
        (
            {"t": [datetime.date(2020, 1, 1)], "y": [1]},
            {},
            "column 't' of .* holds date32.*, neither .* use --drop 't'",
        ),
        ({"t": [[1, 2]], "y": [1]}, {}, "column 't' of .* holds list"),
        ({"t": [b"x"], "y": [1]}, {}, "column 't' of .* holds binary"),
        ({"a": [1], "y": [datetime.date(2020, 1, 1)]}, {}, "column 'y' of .* holds date32"),
        ({"a": [1.0, float("inf")], "y": [1, 2]}, {}, "row 1, column 'a' holds inf, which is not a finite number"),
        ({"a": [1], "y": [1]}, {"target": "z"}, "has no column 'z'"),
        ({"a": [1], "y": [1]}, {"drop": ("a",)}, "has no column left for the inputs; drop fewer"),
        ({"a": [1], "y": [1]}, {"inputs": (Column("q"),)}, "has no column 'q', which"),
        ({"a": ["x"], "y": [1]}, {"inputs": (Column("a"),)}, "column 'a' holds text where numbers should be"),
        ({"a": pa.array([], pa.int8())}, {}, "give at least one "),
    ],
)
def test_refusals(write, columns, how, sentence):
    """One sentence each."""
    with pytest.raises(SourceError, match=sentence):
        read_whole(Parquet(write(**columns), Reading(**how)))


def test_dates_may_be_dropped(write):
    """What is not read need not be readable."""
    path = write(t=[datetime.date(2020, 1, 1)], a=[1], y=[2])
    assert read_whole(Parquet(path, Reading(drop=("t",))))[0].tolist() == [[1]]


def test_damage_and_no_pyarrow(write, tmp_path, monkeypatch):
    """Foreign bytes, a lost middle, a package that is not there."""
    path = tmp_path / "t.parquet"
    for content in (b"PAR1 and nothing", b""):
        path.write_bytes(content)
        with pytest.raises(SourceError, match="is not a Parquet file, or is damaged"):
            Parquet(str(path), Reading())
    write(a=np.random.default_rng(0).random(1000), y=np.zeros(1000))
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)
    with pytest.raises(SourceError, match="is not a Parquet file, or is damaged"):
        read_whole(Parquet(str(path), Reading()))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(SourceError, match=r"needs pyarrow; pip install 'dkl\[parquet\]'"):
        Parquet(str(path), Reading())


def test_an_index_is_no_input(tmp_path):
    """As the metadata of pandas and Dask mark it; a named one is told of; one that is asked for is a column."""
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0], "y": [0, 1, 0]}, index=[10, 20, 40])
    dd.from_pandas(frame, npartitions=1).to_parquet(str(tmp_path / "dask"))
    [file] = (tmp_path / "dask").glob("*.parquet")
    assert "__null_dask_index__" in pq.read_schema(file).names
    assert [c.name for c in Parquet(str(file), Reading(target="y")).columns] == ["a", "b"]
    path = str(tmp_path / "named.parquet")
    frame.rename_axis("station").to_parquet(path)
    assert "station" in pq.read_schema(path).names
    with pytest.warns(UserWarning, match=r"'station' is the index .*reset_index"):
        assert [c.name for c in Parquet(path, Reading(target="y")).columns] == ["a", "b"]
    assert Parquet(path, Reading(target="station")).target_name == "station"
    assert [c.name for c in Parquet(path, Reading(target="y", inputs=(Column("station"), Column("a")))).columns] == [
        "station",
        "a",
    ]
