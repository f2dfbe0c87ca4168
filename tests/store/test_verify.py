"""Every file of a Zarr read once: which there are, how many bytes they hold, what is damaged or lost, by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

from dkl.sources.damage import ALL_WRITTEN
from dkl.store import dataset
from dkl.store.record import save_record
from dkl.store.verify import Piece, _read, verify
from tests.store.made import ingest


class Meter:
    """What is said of progress."""

    def __init__(self):
        self.bytes = self.done = self.ended = 0

    def name(self, what):
        """Of the pass."""
        return self

    def begin(self, total, unit):
        """So much is to be done."""
        self.bytes = total
        assert unit == "bytes"

    def advance(self, size):
        """So much is done."""
        self.done += size

    def end(self):
        """Nothing is left."""
        self.ended += 1


def verified(path, most=10**9):
    """What is found, after looking that all bytes were counted."""
    meter = Meter()
    found = verify(str(path), most, 2, meter)
    assert meter.bytes == meter.done
    return found, meter


def spoil(path):
    """Change the middle of a file."""
    data = bytearray(Path(path).read_bytes())
    data[len(data) // 2] ^= 255
    Path(path).write_bytes(data)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A data set of 50 rows of 3 float32 in chunks of 5 rows, shards of 40, whose narrow arrays are cut at 40."""
    monkeypatch.setattr(dataset, "SMALLEST", 8 * 60)
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    np.savez(tmp_path / "t.npz", X=X, y=np.arange(50) % 2)
    ingest(tmp_path / "t.npz", tmp_path / "d.zarr")
    return tmp_path


def test_a_whole_data_set(made):
    """Two files of X, y and row, one of channel; all bytes of them."""
    found, meter = verified(made / "d.zarr")
    path = str(made / "d.zarr")
    assert found == {"path": path, "chunks": 7, "damaged": [], "absent": [], "sure": True}
    assert meter.bytes == 50 * 3 * 4 + 50 * 8 + 50 * 8 + 3 * 4
    assert meter.ended == 1


def test_damaged_and_lost_files(made):
    """Each with its array, its chunk, its rows, and why."""
    root = made / "d.zarr"
    spoil(root / "X/c/1/0")
    (root / "y/c/0").unlink()
    damaged = verified(root)[0]["damaged"]
    assert [(d["array"], d["chunk"], d["entries"]) for d in damaged] == [
        ("X", "c/1/0", [40, 50]),
        ("y", "c/0", [0, 40]),
    ]
    assert "chunk c/1/0" in damaged[0]["why"]
    assert "d.zarr/X" in damaged[0]["why"]
    assert "missing" in damaged[1]["why"]


def test_damage_in_a_split(made):
    """Its name goes before that of the array; what is said of another split stays whole."""
    ingest(made / "t.npz", made / "s.zarr", split={"test": 0.5})
    whole, _ = verified(made / "s.zarr")
    assert whole["damaged"] == []
    spoil(made / "s.zarr/test/y/c/0")
    group = zarr.open_group(str(made / "s.zarr/train"), mode="r+")
    group.attrs["task"] = "other"
    found, _ = verified(f"{made}/s.zarr/")
    assert [(d["array"], d["chunk"]) for d in found["damaged"]] == [("train", ""), ("test/y", "c/0")]
    assert found["damaged"][0]["entries"] == []
    assert f"{made}/s.zarr/train" in found["damaged"][0]["why"]
    train = sum(p.is_file() and p.name != "zarr.json" for p in (made / "s.zarr/train").rglob("*"))
    assert found["chunks"] == whole["chunks"] - train


def test_damage_of_the_whole_description(made):
    """Of a data set without splits it has no name before it, and nothing is read."""
    zarr.open_group(str(made / "d.zarr"), mode="r+").attrs["task"] = "other"
    found, _ = verified(made / "d.zarr")
    assert [(d["array"], d["chunk"], d["entries"]) for d in found["damaged"]] == [("", "", [])]
    assert found["chunks"] == 0


def test_an_incomplete_data_set_is_refused(made):
    """As by everything that reads one."""
    zarr.open_group(str(made / "d.zarr"), mode="r+").attrs["complete"] = False
    with pytest.raises(ValueError, match="not ingested completely"):
        verified(made / "d.zarr")


def older(path):
    """What a dkl before checksums wrote: no digest, and no promise that every chunk is there."""
    group = zarr.open_group(str(path), mode="r+")
    attributes = dict(group.attrs)
    del attributes["digest"]
    group.attrs.put(attributes)
    for name in ("X", "y", "row", "channel"):
        group[name].attrs.put({key: value for key, value in dict(group[name].attrs).items() if key != ALL_WRITTEN})


def test_an_older_data_set(made):
    """A chunk that may be zeros is absent, one that cannot be is damaged, that of one channel is neither."""
    root = made / "d.zarr"
    older(root)
    whole, _ = verified(root)
    assert (whole["sure"], whole["damaged"], whole["absent"], whole["chunks"]) == (False, [], [], 7)
    for name in ("y/c/1", "row/c/0", "channel/c/0"):
        (root / name).unlink()
    found, meter = verified(root)
    assert found["absent"] == [{"array": "y", "chunk": "c/1", "entries": [40, 50]}]
    why = f"chunk c/0 of {root}/row is missing"
    assert found["damaged"] == [{"array": "row", "chunk": "c/0", "entries": [0, 40], "why": why}]
    assert found["chunks"] == 4
    assert meter.bytes == 50 * 3 * 4 + 40 * 8 + 10 * 8


def test_a_model(tmp_path):
    """Its arrays are counted; damage, and a limit of memory, are one sentence."""
    arrays = {name: (("a",), np.arange(9.0)) for name in ("p", "q", "r")}
    save_record(tmp_path / "m.zarr", {}, arrays)
    path = str(tmp_path / "m.zarr")
    assert verify(path, 10**9, 1, Meter()) == {
        "path": path, "chunks": 3, "damaged": [], "absent": [], "sure": True,
    }  # fmt: skip
    [entry] = verify(path, 10, 1, Meter())["damaged"]
    assert (entry["array"], entry["chunk"], entry["entries"]) == ("", "", [])
    assert "216 bytes, but 10 are free" in entry["why"]


def test_any_other_zarr(tmp_path):
    """A group of groups: arrays by their path, cut by rows; a number of no dimension has no rows to read."""
    root = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    inner = root.create_group("in")
    inner.create_array("a", data=np.arange(35.0).reshape(7, 5), chunks=(3, 2))
    root.create_array("b", data=np.arange(8.0), chunks=(2,), shards=(4,))
    root.create_array("c", data=np.array(3.0))
    root.create_array("e", shape=(0, 2), dtype="f8", chunks=(1, 2))
    found, meter = verified(tmp_path / "g.zarr")
    assert (found["chunks"], found["damaged"], found["sure"]) == (3 + 2, [], True)
    assert meter.bytes == 35 * 8 + 8 * 8
    spoil(tmp_path / "g.zarr/in/a/c/1/1")
    (tmp_path / "g.zarr/in/a/c/1/1").write_bytes(b"no zstd")
    [entry] = verified(tmp_path / "g.zarr")[0]["damaged"]
    assert (entry["array"], entry["chunk"], entry["entries"]) == ("in/a", "1", [3, 6])
    assert "cannot be read" in entry["why"]
    (tmp_path / "g.zarr/b/c/0").write_bytes(b"short")
    named = [(d["array"], d["chunk"], d["entries"]) for d in verified(tmp_path / "g.zarr")[0]["damaged"]]
    assert sorted(named) == [("b", "c/0", [0, 4]), ("in/a", "1", [3, 6])]


def test_an_array_alone(tmp_path):
    """Without a name; the last chunk may be cut off."""
    zarr.create_array(str(tmp_path / "a.zarr"), data=np.ones((5, 2), np.int16), chunks=(2, 2))
    found, meter = verified(tmp_path / "a.zarr")
    assert (found["chunks"], meter.bytes) == (3, 20)
    (tmp_path / "a.zarr/c/2/0").write_bytes(b"no zstd")
    [entry] = verified(tmp_path / "a.zarr")[0]["damaged"]
    assert (entry["array"], entry["chunk"], entry["entries"]) == ("", "c/2/0", [4, 5])


class Denied:
    """An array of a store that may not be read."""

    def __getitem__(self, rows):
        raise PermissionError(13, "no permission")


def test_a_file_that_may_not_be_read():
    """What a store raises that is no damage of bytes is said, too."""
    assert _read(Piece(Denied(), "p", "c/0", 0, 1)) == "p cannot be read: [Errno 13] no permission"
