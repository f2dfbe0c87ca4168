"""The edges of a record: what is replaced, what is believed, and each way in which one can be broken."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
import zarr

from dkl.store import record
from dkl.store.record import DamagedRecord, digest_of, open_attributes, open_record, save_record, sweep

ONE = {"coef": (("a",), np.arange(6.0))}


def edit(path, change, array=None):
    """Change what is said of the record (and seal it again), or of one of its arrays."""
    about = Path(path, *([array] if array else []), "zarr.json")
    data = json.loads(about.read_text())
    if array:
        change(data)
    else:
        change(data["attributes"])
        rest = {key: value for key, value in data["attributes"].items() if key != "digest"}
        data["attributes"]["digest"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    about.write_text(json.dumps(data))


def test_the_digest_of_attributes():
    """The sha256 of their JSON, in whatever order they are, without the digest itself."""
    expected = hashlib.sha256(b'{"a": [1, 2], "b": {"c": null, "d": 1}}').hexdigest()
    assert digest_of({"b": {"d": 1, "c": None}, "a": (1, 2), "digest": "x"}) == expected


def test_folders_above_are_made(tmp_path):
    """All of them."""
    save_record(tmp_path / "p" / "q" / "r", {}, ONE)
    assert open_record(tmp_path / "p" / "q" / "r", 48)[1]["coef"].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save_record(tmp_path / "p" / "q" / "r", {}, ONE)


def test_a_move_that_fails_leaves_the_old_one(tmp_path):
    """And leaves nothing where nothing was."""
    save_record(tmp_path / "r", {}, ONE)
    for final in ("r", "s"):
        with pytest.raises(FileNotFoundError):
            record._swap(tmp_path / "not there", tmp_path / final)
    assert [p.name for p in tmp_path.iterdir()] == ["r"]
    assert list(open_record(tmp_path / "r", 48)[1]) == ["coef"]


def test_what_a_killed_save_leaves_is_what_is_swept(tmp_path, monkeypatch):
    """Both names, killed while it writes, or after the new one stands."""
    save_record(tmp_path / "r", {}, ONE)
    with monkeypatch.context() as patch:
        patch.setattr(record, "shutil", SimpleNamespace(rmtree=lambda path, ignore_errors: None))
        save_record(tmp_path / "r", {}, ONE, overwrite=True)
        patch.setattr(record, "_swap", lambda fresh, final: None)
        save_record(tmp_path / "r", {}, ONE, overwrite=True)
    (tmp_path / "r.old-00000000").write_text("a file, which is no leftover of ours")
    assert len(list(tmp_path.iterdir())) == 4
    sweep(tmp_path / "r")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "r.old-00000000"]


@pytest.mark.parametrize("root", ["local", "memory"])
def test_what_may_be_replaced(tmp_path, root):
    """A record with arrays in groups and hidden files; not one that holds a stranger, nor one of another kind."""
    path = str(tmp_path / "r") if root == "local" else "memory://dkl-edges/r"
    store = fsspec.filesystem("file" if root == "local" else "memory")
    name = path.removeprefix("memory:/")
    nested = {"part/coef": ONE["coef"], "b": ONE["coef"]}
    save_record(path, {}, nested, kind="dkl-checkpoint")
    store.pipe_file(f"{name}/.DS_Store", b"")
    save_record(path, {"n": 2}, nested, kind="dkl-checkpoint", overwrite=True)
    assert open_attributes(path, "dkl-checkpoint")["n"] == 2
    with pytest.raises(FileExistsError, match="exists and is not a dkl model"):
        save_record(path, {}, nested, overwrite=True)
    store.pipe_file(f"{name}/zoo", b"")
    with pytest.raises(FileExistsError, match="also holds 'zoo'"):
        save_record(path, {}, nested, kind="dkl-checkpoint", overwrite=True)
    store.rm(name, recursive=True)


def test_a_record_that_does_not_list_its_arrays_is_not_replaced(tmp_path):
    """What lies in it could be anyone's."""
    save_record(tmp_path / "r", {}, ONE)
    edit(tmp_path / "r", lambda a: a.update(arrays=["coef"]))
    with pytest.raises(FileExistsError, match="also holds 'coef'"):
        save_record(tmp_path / "r", {}, ONE, overwrite=True)


@pytest.mark.parametrize(("values", "plain"), [(8, False), (9, True)])
def test_large_even_arrays_are_not_compressed(tmp_path, monkeypatch, values, plain):
    """From a sixteenth of what is believed without looking, here 64 bytes; uneven ones always are."""
    monkeypatch.setattr(record, "UNCHECKED_BYTES", 16 * 64)
    save_record(tmp_path / "r", {}, {"e": (("a",), np.full(values, 7.0)), "u": (("a",), np.arange(values * 1.0))})
    codecs = {
        name: [c["name"] for c in json.loads((tmp_path / "r" / name / "zarr.json").read_text())["codecs"]]
        for name in "eu"
    }
    assert codecs == {"e": ["bytes"] if plain else ["bytes", "zstd"], "u": ["bytes", "zstd"]}
    assert open_record(tmp_path / "r", 10**6)[1]["e"].tolist() == [7.0] * values
    zeros = {"z": (("a",), np.zeros(values))}
    save_record(tmp_path / "z", {}, zeros)
    assert (tmp_path / "z" / "z" / "c" / "0").exists() == plain


@pytest.mark.parametrize("root", ["local", "memory"])
@pytest.mark.parametrize(("free", "ratio", "held"), [(48, 0, True), (47, 0, False), (38, 1, True), (37, 1, False)])
def test_how_much_a_record_is_believed(tmp_path, monkeypatch, root, free, ratio, held):
    """UNCHECKED_BYTES bytes, and MOST_COMPRESSION for each byte of its files: 48 bytes are declared, and the chunk "
    "is made to hold ten."""
    path = str(tmp_path / "r") if root == "local" else "memory://dkl-believed/r"
    save_record(path, {}, ONE, overwrite=True) if root == "local" else None
    store = fsspec.filesystem("file" if root == "local" else "memory")
    name = path.removeprefix("memory:/")
    if root == "memory":
        if store.exists(name):
            store.rm(name, recursive=True)
        save_record(path, {}, ONE)
    store.pipe_file(f"{name}/coef/c/0", b"0123456789")
    monkeypatch.setattr(record, "UNCHECKED_BYTES", free)
    monkeypatch.setattr(record, "MOST_COMPRESSION", ratio)
    with pytest.raises(ValueError, match="cannot be read" if held else "declares 48 bytes, far more than"):
        open_record(path, 10**6)
    store.rm_file(f"{name}/coef/c/0")
    monkeypatch.setattr(record, "MOST_COMPRESSION", 48)
    with pytest.raises(ValueError, match="has the wrong digest" if free >= 48 else "declares 48 bytes, far more than"):
        open_record(path, 10**6)


def test_limits():
    """64 MiB, and 256 for each byte: zstd of real coefficients is far from that, and a bomb far beyond."""
    assert (record.UNCHECKED_BYTES, record.MOST_COMPRESSION, record.VERSION) == (2**26, 256, 1)


BROKEN = {
    "version text": (lambda a: a.update(version="1"), "has format version '1', and this dkl reads up to 1"),
    "version later": (lambda a: a.update(version=2), "has format version 2, and this dkl reads up to 1"),
    "format": (lambda a: a.update(format="dkl-zoo"), "is a Zarr group but not a dkl model"),
    "format before": (lambda a: a.update(format="dkl-answers"), "is a Zarr group but not a dkl model"),
    "no list": (lambda a: a.update(arrays=["coef"]), "do not list its arrays"),
    "lacks": (lambda a: a["arrays"].update(more=a["arrays"]["coef"]), "has no array 'more'"),
    "garbled": (lambda a: a["arrays"].update(coef=3), "array 'coef' of .* is damaged"),
    "shorter": (lambda a: a["arrays"]["coef"].update(shape=[5]), "does not match its attributes"),
    "longer": (lambda a: a["arrays"]["coef"].update(shape=[7]), "does not match its attributes"),
    "narrower": (lambda a: a["arrays"]["coef"].update(dtype="<f4"), "does not match its attributes"),
    "wider": (lambda a: a["arrays"]["coef"].update(dtype="<c16"), "does not match its attributes"),
    "digest low": (lambda a: a["arrays"]["coef"].update(sha256="0"), "array 'coef' of .* has the wrong digest"),
    "digest high": (lambda a: a["arrays"]["coef"].update(sha256="g"), "array 'coef' of .* has the wrong digest"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_each_way_to_be_broken(tmp_path, name):
    """One sentence, by its own reason, though the attributes are sealed."""
    change, line = BROKEN[name]
    save_record(tmp_path / "r", {}, ONE)
    edit(tmp_path / "r", change)
    with pytest.raises(ValueError, match=line):
        open_record(tmp_path / "r", 10**6)


@pytest.mark.parametrize("digest", ["", "g"])
def test_a_wrong_digest_of_the_attributes(tmp_path, digest):
    """Below or above the right one; a record of an earlier version has none, and may be of a lower version."""
    save_record(tmp_path / "r", {}, ONE)
    about = tmp_path / "r" / "zarr.json"
    data = json.loads(about.read_text())
    for wrong in (digest, None):
        data["attributes"]["digest"] = wrong
        if wrong is None:
            del data["attributes"]["digest"]
            data["attributes"]["version"] = 0
            about.write_text(json.dumps(data))
            assert open_attributes(tmp_path / "r")["version"] == 0
        else:
            about.write_text(json.dumps(data))
            with pytest.raises(DamagedRecord, match="have the wrong digest"):
                open_attributes(tmp_path / "r")


def test_texts_and_objects_are_not_read(tmp_path):
    """Whatever its attributes say: numbers and truths only."""
    save_record(tmp_path / "r", {}, ONE)
    group = zarr.open_group(tmp_path / "r", mode="r+")
    group.create_array("coef", shape=(6,), dtype="<M8[s]", chunks=(6,), overwrite=True)
    edit(tmp_path / "r", lambda a: a["arrays"]["coef"].update(dtype="<M8[s]"))
    with pytest.raises(ValueError, match="does not match its attributes"):
        open_record(tmp_path / "r", 10**6)


def test_chunks_are_as_large_as_the_array(tmp_path):
    """A larger one is refused; that of an array without entries is one."""
    arrays = {"none": (("a", "b"), np.empty((0, 3))), "some": (("a", "b"), np.ones((2, 3)))}
    save_record(tmp_path / "r", {}, arrays)
    group = zarr.open_group(tmp_path / "r", mode="r")
    assert (group["none"].chunks, group["some"].chunks) == ((1, 3), (2, 3))
    assert open_record(tmp_path / "r", 10**6)[1]["none"].shape == (0, 3)
    for name, chunks in (("some", [2, 4]), ("none", [2, 3])):
        save_record(tmp_path / name, {}, arrays)
        edit(tmp_path / name, lambda d: d["chunk_grid"]["configuration"].update(chunk_shape=chunks), name)  # noqa: B023
        with pytest.raises(ValueError, match=f"array '{name}' of .* does not match its attributes"):
            open_record(tmp_path / name, 10**6)


def test_what_is_no_record(tmp_path):
    """A folder that is not there, a file, and a library that is not installed: each in one sentence."""
    (tmp_path / "file").write_text("x")
    for name in ("nothing", "file"):
        with pytest.raises(ValueError, match=f"{name}' is not a dkl model, or is damaged"):
            open_record(tmp_path / name, 10**6)
    assert record._line(ValueError("first\nsecond")) == "first"
    assert record._line(ValueError("")) == "ValueError"


def test_a_library_that_is_missing(tmp_path, monkeypatch):
    """What to install is said."""

    def missing(*_, **__):
        raise ImportError("install s3fs to access S3")

    monkeypatch.setattr(zarr, "open_group", missing)
    with pytest.raises(ValueError, match=r"cannot be opened: install s3fs to access S3 \(pip install 'dkl\[s3\]'"):
        open_record("s3://bucket/r", 10**6)
