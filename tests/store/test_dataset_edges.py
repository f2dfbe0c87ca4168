"""Data sets on their edges: exact cuts, what is one, which split, whose recipe."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import zarr

from dkl.sources import safe_zarr
from dkl.store import dataset
from dkl.store.dataset import (
    Appender,
    check_complete,
    choose_split,
    create_rows,
    cut_rows,
    is_dataset,
    is_ours,
    mark_incomplete,
    open_node,
    recipe_of,
)
from dkl.store.record import save_record

MIB = 2**20


@pytest.mark.parametrize(
    ("rows", "row_bytes", "cut"),
    [
        (10, 100, (10, None)),
        (0, 100, (1, None)),
        (10, 0, (10, None)),
        (8 * MIB, 0, (MIB // 2, 4 * MIB)),
        (4 * MIB, 1, (MIB // 2, None)),
        (4 * MIB + 1, 1, (MIB // 2, 4 * MIB)),
        (8, 10**9, (1, None)),
        (9, 10**9, (1, 8)),
        (128 * 8 * MIB, 1, (MIB, 8 * MIB)),
        (2**40, 1, (4 * MIB, 32 * MIB)),
        (2**40, 3, (4 * MIB // 3, 8 * (4 * MIB // 3))),
        (2**40, 2 * MIB, (2, 16)),
    ],
)
def test_exact_cuts(rows, row_bytes, cut):
    """4 MiB to 32 MiB in a shard, a 128th of the data between, eight chunks each."""
    assert cut_rows(rows, row_bytes) == cut


def test_how_arrays_are_written():
    """With a checksum, every chunk, and the promise of that; the chunk and the shard that are asked for."""
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    plain = create_rows(group, "a", (6, 2), "f4", (2, None), ["row", "input"])
    sharded = create_rows(group, "b", (6, 2), "f4", (1, 4), ["row", "input"])
    assert (plain.chunks, plain.shards, sharded.chunks, sharded.shards) == ((2, 2), None, (1, 2), (4, 2))
    for array in (plain, sharded):
        assert dict(array.attrs) == {dataset.ALL_WRITTEN: True}
        assert array.metadata.dimension_names == ("row", "input")
        assert [type(c).__name__ for c in array.compressors] == ["ZstdCodec", "Crc32cCodec"]
    plain[:] = 0
    assert plain.nchunks_initialized == 3


def test_few_writes_wait_at_a_time():
    """Of many shards in one block at most four are under way; each place is written once, an error is raised."""
    started, lock, go = [], threading.Lock(), threading.Event()
    array = SimpleNamespace(shards=None, chunks=(2, 1), shape=(20, 1), name="X")
    with ThreadPoolExecutor(16) as pool:
        appender = Appender(array, pool)

        def put(start, block):
            with lock:
                started.append((start, block[:, 0].tolist()))
            go.wait(20)

        appender._put = put
        block = np.arange(20.0)[:, None]
        adding = pool.submit(appender.add, block)
        threading.Event().wait(0.3)
        assert sorted(start for start, _ in started) == [0, 2, 4, 6]
        go.set()
        adding.result()
        appender.close()
    assert sorted(started) == [(i, [i, i + 1]) for i in range(0, 20, 2)]


@pytest.mark.parametrize("bad", [0, 18])
def test_a_write_that_fails_is_not_lost(bad):
    """Be it the first of ten, or the last."""
    array = SimpleNamespace(shards=(2, 1), chunks=(1, 1), shape=(20, 1), name="X")

    def put(start, block):
        if start == bad:
            raise OSError("no room")

    with ThreadPoolExecutor(2) as pool:
        appender = Appender(array, pool)
        appender._put = put
        with pytest.raises(OSError, match="no room"):
            appender.add(np.zeros((20, 1))) or appender.close()


@pytest.mark.parametrize(("given", "expected"), [(4, True), (5, False), (6, True)])
def test_too_few_and_too_many_rows(given, expected):
    """Both are noticed."""
    array = SimpleNamespace(shards=None, chunks=(8, 1), shape=(5, 1), name="X")
    with ThreadPoolExecutor(1) as pool:
        appender = Appender(array, pool)
        appender._put = lambda start, block: None
        appender.add(np.zeros((given, 1)))
        try:
            appender.close()
            failed = False
        except RuntimeError as error:
            failed = f"got {given} of 5 rows" in str(error)
    assert failed is expected


def group_at(path, **attributes):
    """A Zarr group that says this of itself."""
    group = zarr.open_group(str(path), mode="w")
    group.attrs.put(attributes)
    return str(path)


WHOLE = {"format": "dkl-dataset", "version": 1, "complete": True}


def test_what_is_a_data_set(tmp_path):
    """By its format, before and after it in the alphabet; a file and nothing are none."""
    (tmp_path / "file").touch()
    ours = group_at(tmp_path / "d", **WHOLE)
    begun = group_at(tmp_path / "b", **WHOLE | {"complete": False})
    others = [group_at(tmp_path / name, format=name) for name in ("dkl-answers", "dkl-model")]
    others += [group_at(tmp_path / "bare"), str(tmp_path / "file"), str(tmp_path / "nothing")]
    assert [is_dataset(path) for path in (ours, *others)] == [True] + [False] * 5
    assert [is_ours(path) for path in (ours, begun, *others)] == [True, True] + [False] * 5
    with pytest.raises(ValueError, match="dkl resume"):
        is_dataset(begun)


def test_what_cannot_be_opened(tmp_path, monkeypatch):
    """A file is told what makes a data set of it; a library that is missing, what to install."""
    (tmp_path / "t.csv").touch()
    with pytest.raises(ValueError, match=r"is a file, not a Zarr store; run dkl ingest to make a data set of it"):
        open_node(str(tmp_path / "t.csv"))
    with pytest.raises(ValueError, match="is not a Zarr array or group"):
        open_node(str(tmp_path / "nothing"))

    def raises(error):
        def opened(path):
            raise error

        monkeypatch.setattr(safe_zarr, "open_node", opened)

    raises(ImportError("install s3fs"))
    with pytest.raises(ValueError, match=r"cannot be opened: install s3fs \(pip install 'dkl\[s3\]' for S3\)"):
        open_node("s3://bucket/d")
    raises(safe_zarr.UnsafeZarr("harmful"))
    with pytest.raises(safe_zarr.UnsafeZarr, match=r"^harmful$"):
        open_node("s3://bucket/d")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({}, None),
        ({"version": 0}, None),
        ({"version": 2}, "has format version 2, and this dkl reads up to 1"),
        ({"version": "1"}, "has format version '1'"),
        ({"complete": False}, "not ingested completely"),
        ({"complete": None}, "not ingested completely"),
        ({"complete": 1}, "not ingested completely"),
    ],
)
def test_complete_and_known(change, line):
    """This version and earlier ones, if they say that they are whole."""
    if line is None:
        check_complete(WHOLE | change, "d")
    else:
        with pytest.raises(ValueError, match=line):
            check_complete(WHOLE | change, "d")


def test_splits(tmp_path):
    """The wanted one, else the preferred one, else the first that was not trained with."""
    path = group_at(tmp_path / "d", **WHOLE, splits=["train", "apple", "zoo"])
    assert choose_split(path, None, "zoo") == f"{path}/zoo"
    assert choose_split(path, "train", "zoo") == f"{path}/train"
    assert choose_split(f"{path}/", None, "test") == f"{path}/apple"
    with pytest.raises(ValueError, match="has no split 'test'; use one of train, apple, zoo"):
        choose_split(path, "test", "zoo")
    plain = group_at(tmp_path / "p", **WHOLE)
    other = group_at(tmp_path / "o", splits=["train"])
    for bare in (plain, other, str(tmp_path / "nothing")):
        assert choose_split(bare, None, "train") == bare
        with pytest.raises(ValueError, match="leave --split test out"):
            choose_split(bare, "test", "train")


def test_marking(tmp_path):
    """The whole and each of its splits."""
    path = group_at(tmp_path / "d", **WHOLE, splits=["train", "test"])
    for name in ("train", "test"):
        zarr.open_group(path, mode="r+").create_group(name).attrs["complete"] = True
    mark_incomplete(path)
    for name in ("", "train", "test"):
        attributes = json.loads((tmp_path / "d" / name / "zarr.json").read_text())["attributes"]
        assert attributes["complete"] is False


def test_recipes(tmp_path):
    """Of a data set, of a model; of anything else there is none, and one that is not whole is refused."""
    assert recipe_of(group_at(tmp_path / "d", **WHOLE, recipe={"a": 1})) == {"a": 1}
    assert recipe_of(group_at(tmp_path / "o", format="dkl-answers", recipe={"a": 1})) is None
    assert recipe_of(group_at(tmp_path / "z", format="zoo", recipe={"a": 1})) is None
    for name, fitted in (("m", {"fitted": {"recipe": {"b": 2}}}), ("n", {"fitted": {}}), ("k", {})):
        save_record(tmp_path / name, fitted, {})
        assert recipe_of(str(tmp_path / name)) == ({"b": 2} if name == "m" else None)
    with pytest.raises(ValueError, match="not ingested completely"):
        recipe_of(group_at(tmp_path / "b", **WHOLE | {"complete": False}, recipe={}))
