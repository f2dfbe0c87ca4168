"""Records that were made to do harm: they agree with their digests, and are refused before they are decoded."""

from __future__ import annotations

import hashlib
import json
import tracemalloc

import numpy as np
import pytest
import zarr

from dkl.store.record import open_attributes, open_record, save_record

GIB = 2**30
VALUES = np.arange(600.0).reshape(20, 30)


def save(path):
    """A record of one array."""
    save_record(path, {"estimator": "none"}, {"coef": (("a", "b"), VALUES)})
    return path


def edit(path, change, seal=True):
    """Change attributes, and make their digest again."""
    data = json.loads((path / "zarr.json").read_text())
    change(data["attributes"])
    if seal:
        rest = {name: value for name, value in data["attributes"].items() if name != "digest"}
        data["attributes"]["digest"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    (path / "zarr.json").write_text(json.dumps(data))


def refused(path, *words):
    """One sentence, without memory being taken."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            open_record(path, 2**60)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    for word in (str(path), *words):
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["kernel", "version", "arrays", "format"])
def test_every_attribute_is_under_the_digest(tmp_path, name):
    """A changed attribute is noticed, also by who reads the attributes alone."""
    path = tmp_path / "r"
    save_record(path, {"params": {"kernel": "gaussian", "skew": 1.0}}, {"coef": (("a", "b"), VALUES)})
    changes = {
        "kernel": lambda a: a["params"].update(kernel="laplacian"),
        "version": lambda a: a.update(version=0),
        "arrays": lambda a: a["arrays"]["coef"].update(note=1),
        "format": lambda a: a.update(extra=1),
    }
    edit(path, changes[name], seal=False)
    refused(path, "digest")
    with pytest.raises(ValueError, match="wrong digest"):
        open_attributes(path)


def test_a_record_of_an_earlier_version(tmp_path):
    """Without a digest of its attributes it opens as ever."""
    path = save(tmp_path / "r")
    edit(path, lambda a: a.pop("digest"), seal=False)
    np.testing.assert_array_equal(open_record(path, 10**9)[1]["coef"], VALUES)


CODECS = {
    "gzip": lambda: {"compressors": zarr.codecs.GzipCodec()},
    "blosc": lambda: {"compressors": zarr.codecs.BloscCodec()},
    "crc32c": lambda: {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
    "transpose": lambda: {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
    "sharding": lambda: {"shards": (20, 30), "chunks": (10, 30)},
}


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_other_codecs_that_can_be_decoded(tmp_path, codec):
    """The same values, properly written with another codec: only what save writes is read."""
    path = save(tmp_path / "r")
    group = zarr.open_group(path, mode="r+")
    group.create_array("coef", data=VALUES, overwrite=True, **({"chunks": (20, 30)} | CODECS[codec]()))
    np.testing.assert_array_equal(zarr.open_group(path, mode="r")["coef"][:], VALUES)
    refused(path, "coef", "does not match its attributes")


def test_a_chunk_larger_than_the_array(tmp_path):
    """3 GiB that could be allocated, of an array of 4.8 kB."""
    path = save(tmp_path / "r")
    about = path / "coef" / "zarr.json"
    data = json.loads(about.read_text())
    data["chunk_grid"]["configuration"]["chunk_shape"] = [20, 3 * GIB // 160]
    about.write_text(json.dumps(data))
    refused(path, "coef", "does not match its attributes")


def test_fill_values_that_nobody_stored(tmp_path):
    """2 GiB of zeros, and no chunk: refused before they are taken."""
    path = save(tmp_path / "r")
    rows = 2 * GIB // 240
    about = path / "coef" / "zarr.json"
    data = json.loads(about.read_text())
    data["shape"], data["chunk_grid"]["configuration"]["chunk_shape"] = [rows, 30], [rows, 30]
    about.write_text(json.dumps(data))
    (path / "coef" / "c" / "0" / "0").unlink()
    edit(path, lambda a: a["arrays"]["coef"].update(shape=[rows, 30]))
    refused(path, "declares", f"{rows * 240:,}")


def test_zeros_that_compress_well(tmp_path):
    """A quarter of a GiB with the right digest in a few kilobytes is refused, too."""
    path = save(tmp_path / "r")
    group = zarr.open_group(path, mode="r+")
    big = np.zeros((GIB // 256, 8))
    config = {"write_empty_chunks": True}
    group.create_array("coef", data=big, chunks=big.shape, overwrite=True, config=config)
    digest = hashlib.sha256(big).hexdigest()
    edit(path, lambda a: a["arrays"]["coef"].update(shape=list(big.shape), sha256=digest))
    refused(path, "declares")


def test_large_even_arrays_of_ours_come_back(tmp_path):
    """Coefficients of a constant y may all be zero, and groups all one; they are not what a bomb is."""
    arrays = {"zeros": (("a",), np.zeros(2**24)), "ones": (("a",), np.full(2**20, 7, np.int64))}
    save_record(tmp_path / "r", {}, arrays)
    found = open_record(tmp_path / "r", 2**40)[1]
    for name, (_, values) in arrays.items():
        assert found[name].tobytes() == values.tobytes()


def test_overwrite_is_said(tmp_path):
    """A record is replaced when the caller says so; a folder with other files in it never is."""
    path = save(tmp_path / "r")
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file()}
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save(path)
    assert {p: p.read_bytes() for p in path.rglob("*") if p.is_file()} == before
    (path / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"notes\.txt"):
        save_record(path, {}, {"coef": (("a", "b"), VALUES)}, overwrite=True)
    assert (path / "notes.txt").read_text() == "mine"
    (path / "notes.txt").unlink()
    save_record(path, {}, {"coef": (("a", "b"), -VALUES)}, overwrite=True)
    np.testing.assert_array_equal(open_record(path, 10**9)[1]["coef"], -VALUES)
