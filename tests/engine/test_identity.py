"""What tells rows from others: it stays when nothing changes, and changes when the rows do."""

from __future__ import annotations

import os
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest
import zarr
from dask.base import tokenize

from dkl.engine.identity import _written, identity, zarr_sources
from dkl.engine.tables import Table, open_table

X = np.arange(12.0).reshape(6, 2)


@pytest.fixture
def path(tmp_path):
    """X in a Zarr group, in three chunks; written at a known time."""
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group.attrs["id"] = "seven"
    group.create_array("X", data=X, chunks=(2, 2))
    for folder, _, names in os.walk(tmp_path):
        for name in names:
            os.utime(os.path.join(folder, name), ns=(10**18, 10**18))
    return tmp_path / "g.zarr"


def touch(path, when):
    """Write one chunk again, at that time."""
    chunk = next(path for path in sorted((path / "X" / "c").rglob("*")) if path.is_file())
    os.utime(chunk, ns=(when, when))


def test_nothing_and_memory():
    """No table; the token of rows in memory, which a copy shares and a change does not."""
    assert identity(None) is None
    found = identity(Table("memory", X))
    assert found == [tokenize(X), [6, 2], "float64"]
    assert identity(Table("memory", X.copy())) == found
    other = X.copy()
    other[3, 1] += 1
    assert identity(Table("memory", other)) != found


def test_zarr_on_disk(path):
    """Where it is, its shape and dtype, the id of its data set, how many files and when the last was written."""
    found = identity(open_table(path))
    assert str(path) in found[0]
    assert found[1:] == ["X", [6, 2], "float64", "seven", [4, 10**18]]
    touch(path, 10**18 + 7)
    assert identity(open_table(path))[-1] == [4, 10**18 + 7]
    touch(path, 10**17)
    assert identity(open_table(path))[-1] == [4, 10**18]


def test_dask_over_zarr(path):
    """The graph's name, and when its Zarr arrays were written; sizes that are not known are None."""
    lazy = da.from_zarr(str(path), component="X") + 1
    found = identity(Table("dask", lazy))
    assert found == [lazy.name, [6, 2], "float64", [[4, 10**18]]]
    touch(path, 10**18 + 7)
    assert identity(Table("dask", lazy))[-1] == [[4, 10**18 + 7]]
    unknown = lazy[lazy[:, 0] > 3]
    assert identity(Table("dask", unknown))[1] == [None, 2]


def test_zarr_that_is_no_folder():
    """In memory, or gone, there is no time; a folder without files has none either."""
    array = zarr.create_array(zarr.storage.MemoryStore(), shape=(2,), dtype=float)
    assert _written(array) is None
    gone = SimpleNamespace(root="/nowhere/at/all")
    assert _written(SimpleNamespace(store=gone, path="X")) is None


def test_a_folder_without_files(tmp_path):
    """No file, at no time; a link to nothing is no file; a store may call its folder `path`."""
    for store in (SimpleNamespace(root=str(tmp_path)), SimpleNamespace(path=str(tmp_path))):
        assert _written(SimpleNamespace(store=store, path="X")) == [0, 0]
    (tmp_path / "X").mkdir()
    (tmp_path / "X" / "link").symlink_to(tmp_path / "nowhere")
    assert _written(SimpleNamespace(store=SimpleNamespace(root=str(tmp_path)), path="X")) == [0, 0]


class Stubborn:
    """Cannot be pickled."""

    def __reduce__(self):
        raise TypeError("no")


class Frame(Stubborn):
    """Looks like a data frame."""

    def to_numpy(self):
        """Nothing."""


def graph_of(*values):
    """What a Dask array shows of its graph."""
    tasks = {f"key-{i}": value for i, value in enumerate(values)}
    return SimpleNamespace(__dask_graph__=lambda: tasks)


def test_what_is_looked_into(path):
    """Data are passed over, whatever they are; what cannot be pickled ends the search, and is no error."""
    array = zarr.open_array(str(path / "X"), mode="r")
    assert zarr_sources(graph_of(X, array)) == [array]
    assert zarr_sources(graph_of((len, [array]), array)) == [array, array]
    assert zarr_sources(graph_of(np.array([Stubborn()], object), Frame(), array)) == [array]
    assert zarr_sources(graph_of(array, Stubborn(), array)) == [array]
    assert zarr_sources(graph_of(Frame, array)) == [array]
    assert zarr_sources(graph_of(1, "a")) == []
