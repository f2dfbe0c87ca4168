"""The record: plain arrays with digests, attributes written last."""

from __future__ import annotations

import json

import fsspec
import numpy as np
import pytest
import zarr

from dkl.store.record import open_attributes, open_record, save_record, sweep

ARRAYS = {
    "floats": (("a", "b"), np.arange(6.0).reshape(2, 3) / 7),
    "narrow": (("a",), np.array([1.5, -0.0, np.nan, np.inf], np.float32)),
    "whole": (("a",), np.array([-(2**62), 3], np.int64)),
    "flags": (("a",), np.array([True, False])),
    "scalar": ((), np.array(2.5)),
    "empty": (("a", "b"), np.empty((0, 3))),
    "zeros": (("a",), np.zeros(5)),
    "fortran": (("a", "b"), np.asfortranarray(np.arange(6).reshape(2, 3))),
    "strided": (("a",), np.arange(10)[::3]),
    "big": (("a", "b"), np.random.default_rng(0).standard_normal((2000, 700))),
}


@pytest.mark.parametrize("name", sorted(ARRAYS))
def test_round_trip_keeps_bits_shape_and_dtype(name, tmp_path):
    """Also NaN, minus zero, nothing, and a number of no dimension."""
    save_record(tmp_path / "r", {"note": {"a": [1, None, "ü"]}}, {name: ARRAYS[name]})
    attributes, arrays = open_record(tmp_path / "r", 10**9)
    wanted = ARRAYS[name][1]
    assert list(arrays) == [name]
    assert arrays[name].shape == wanted.shape
    assert arrays[name].dtype == wanted.dtype
    assert arrays[name].tobytes() == wanted.tobytes()
    assert attributes["note"] == {"a": [1, None, "ü"]}


def test_attributes_alone(tmp_path):
    """Readable without the arrays; format and version are there."""
    save_record(tmp_path / "r", {"kind": "test"}, ARRAYS)
    attributes = open_attributes(tmp_path / "r")
    assert attributes["format"] == "dkl-model"
    assert attributes["version"] == 1
    assert sorted(attributes["arrays"]) == sorted(ARRAYS)
    assert json.loads((tmp_path / "r" / "zarr.json").read_text())["attributes"]["kind"] == "test"


def test_more_bytes_than_allowed(tmp_path):
    """Both numbers are named."""
    save_record(tmp_path / "r", {}, {"big": ARRAYS["big"]})
    with pytest.raises(ValueError, match=r"11,200,000 bytes, but 1,000 are free"):
        open_record(tmp_path / "r", 1000)
    assert open_record(tmp_path / "r", 11_200_000)[1]["big"].shape == (2000, 700)


def test_overwrite_forgets_older_arrays(tmp_path):
    """The second record has nothing of the first, and no leftovers lie beside it."""
    save_record(tmp_path / "r", {}, ARRAYS)
    save_record(tmp_path / "r", {}, {"zeros": ARRAYS["zeros"]}, overwrite=True)
    assert list(open_record(tmp_path / "r", 10**9)[1]) == ["zeros"]
    assert [p.name for p in tmp_path.iterdir()] == ["r"]
    assert not (tmp_path / "r" / "big").exists()
    save_record("memory://dkl-store/r", {}, ARRAYS)
    save_record("memory://dkl-store/r", {}, {"zeros": ARRAYS["zeros"]}, overwrite=True)
    assert list(open_record("memory://dkl-store/r", 10**9)[1]) == ["zeros"]


def test_a_record_without_its_end_is_refused(tmp_path):
    """Attributes come last: a group that has arrays but no attributes is not a record."""
    save_record(tmp_path / "r", {}, ARRAYS)
    path = tmp_path / "r" / "zarr.json"
    data = json.loads(path.read_text())
    data["attributes"] = {}
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="or it is incomplete"):
        open_record(tmp_path / "r", 10**9)


def test_refuses_a_foreign_directory(tmp_path):
    """Nothing of it is touched."""
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "keep").write_text("me")
    with pytest.raises(FileExistsError, match="not a dkl model"):
        save_record(tmp_path / "r", {}, ARRAYS)
    assert [p.name for p in tmp_path.rglob("*")] == ["r", "keep"]


def test_only_our_own_leftovers_are_swept(tmp_path):
    """What a killed save of this path left goes; a neighbour's, and files of other names, stay."""
    ours = ["a.zarr.old-0123abcd", "a.zarr.writing-ffffffff"]
    others = ["a.zarr", "b.zarr.old-0123abcd", "a.zarr.old-012", "a_zarr.old-0123abcd", "a.zarr.old-0123abcde"]
    for name in ours + others:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    sweep(tmp_path / "a.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


@pytest.mark.parametrize("whole", [False, True])
def test_a_save_that_was_killed_on_an_object_store(whole):
    """What has no attributes yet, be it a group or not, is removed; a whole record stays."""
    store = fsspec.filesystem("memory")
    for kind in ("group", "garbage"):
        path = f"/swept-{whole}-{kind}/a.zarr"
        if kind == "group":
            group = zarr.open_group(f"memory:/{path}", mode="w")
            if whole:
                group.attrs["format"] = "dkl-model"
        else:
            store.pipe(f"{path}/zarr.json", b"{")
        sweep(f"memory:/{path}")
        store.invalidate_cache()
        assert store.exists(path) == (whole and kind == "group")
