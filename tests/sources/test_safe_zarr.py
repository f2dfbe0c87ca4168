"""Zarr of anyone: ordinary codecs are read, all others are refused by name before anything is decoded."""

from __future__ import annotations

import json
import tracemalloc
import warnings

import numcodecs
import numpy as np
import pytest
import zarr

import dkl
from dkl.engine.tables import open_table
from dkl.sources.batch import Reading, SourceError
from dkl.sources.zarr_rows import open_zarr
from dkl.store.dataset import open_node
from tests.sources.whole import read_whole

RNG = np.random.default_rng(0)
X = RNG.integers(0, 50, size=(60, 4)).astype("f4")
Y = np.array([f"k{i % 3}" for i in range(60)])
PLAIN = ["zstd", "zlib", "gzip", "bz2", "lzma", "lz4", "blosc"]


def two(path, compressor, filters=None):
    """A Zarr v2 group of X and y (texts)."""
    group = zarr.open_group(path, mode="w", zarr_format=2)
    group.create_array("X", data=X, chunks=(20, 4), compressors=compressor, filters=filters)
    group.create_array("y", data=np.arange(60) % 3, chunks=(60,), compressors=compressor)
    return str(path)


def three(path, **how):
    """A Zarr v3 group of X and y (texts)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of texts, and of codecs, that Zarr's standard does not have yet
        group = zarr.open_group(path, mode="w", zarr_format=3)
        group.create_array("X", data=X, **({"chunks": (20, 4)} | how))
        group.create_array("y", data=Y.astype("T"))
    return str(path)


@pytest.mark.parametrize("codec", PLAIN)
def test_ordinary_compressors_of_v2(tmp_path, codec):
    """Everything that numcodecs compresses numbers with."""
    path = two(tmp_path / "a.zarr", numcodecs.get_codec({"id": codec}))
    np.testing.assert_array_equal(read_whole(open_zarr(path, Reading()))[0], X)
    np.testing.assert_array_equal(open_table(path).array[:], X)


FILTERS = {
    "shuffle": lambda: numcodecs.Shuffle(4),
    "delta": lambda: numcodecs.Delta("<f4"),
    "fixedscaleoffset": lambda: numcodecs.FixedScaleOffset(offset=0, scale=1, dtype="<f4", astype="<i2"),
    "crc32c": lambda: numcodecs.CRC32(),
}


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_ordinary_filters_of_v2(tmp_path, name):
    """Filters that numbers come through unchanged."""
    path = two(tmp_path / "a.zarr", numcodecs.Zstd(), [FILTERS[name]()])
    np.testing.assert_array_equal(read_whole(open_zarr(path, Reading()))[0], X)


CODECS = {
    "gzip": lambda: {"compressors": zarr.codecs.GzipCodec()},
    "blosc": lambda: {"compressors": zarr.codecs.BloscCodec()},
    "crc32c": lambda: {"compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()]},
    "transpose": lambda: {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
    "sharding": lambda: {"shards": (40, 4), "chunks": (20, 4)},
    "none": lambda: {"compressors": None},
}


@pytest.mark.parametrize("name", sorted(CODECS))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ordinary_codecs_of_v3(tmp_path, name):
    """And texts of any length as labels."""
    path = three(tmp_path / "a.zarr", **CODECS[name]())
    found, labels = read_whole(open_zarr(path, Reading()))[:2]
    np.testing.assert_array_equal(found, X)
    assert list(labels) == Y.tolist()


def spoil(document, change):
    """Change the metadata of an array."""
    data = json.loads(document.read_text())
    change(data)
    document.write_text(json.dumps(data))


def everywhere(path, *words):
    """Refused by the source, the store, the engine and a fit, with the words."""
    for read in (
        lambda: read_whole(open_zarr(path, Reading())),
        lambda: open_node(f"{path}/X"),
        lambda: open_table(path),
        lambda: open_table(f"{path}/X"),
        lambda: dkl.SingleKernelRegressor(n_components=5, verbose=0).fit(path, np.arange(60.0)),
    ):
        with pytest.raises(ValueError) as caught:
            read()
        for word in words:
            assert word in str(caught.value)


@pytest.mark.parametrize("name", ["pickle", "json2", "msgpack2", "vlen-array", "no-such"])
@pytest.mark.parametrize("objects", [False, True])
def test_filters_of_v2_that_are_refused_by_name(tmp_path, name, objects):
    """Of numbers, and of objects."""
    path = two(tmp_path / "a.zarr", numcodecs.Zstd())

    def change(data):
        data["filters"] = [{"id": name}]
        if objects:
            data.update(dtype="|O", fill_value=None)

    spoil(tmp_path / "a.zarr" / "X" / ".zarray", change)
    everywhere(path, f"the codec {name!r}", "X")


@pytest.mark.parametrize("name", ["pickle", "numcodecs.pickle", "no-such"])
@pytest.mark.parametrize("inside", [False, True])
def test_codecs_of_v3_that_are_refused_by_name(tmp_path, name, inside):
    """Also inside a shard."""
    path = three(tmp_path / "a.zarr", **(CODECS["sharding"]() if inside else {}))

    def change(data):
        codecs = data["codecs"][0]["configuration"]["codecs"] if inside else data["codecs"]
        codecs[-1] = {"name": name, "configuration": {}}

    spoil(tmp_path / "a.zarr" / "X" / "zarr.json", change)
    everywhere(path, f"the codec {name.removeprefix('numcodecs.')!r}", "X")


def test_a_codec_that_zarr_knows_and_we_do_not(tmp_path):
    """What numcodecs would decode is refused all the same."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("X", data=X, chunks=(20, 4), compressors=numcodecs.Base64())
    np.testing.assert_array_equal(group["X"][:], X)
    everywhere(str(tmp_path / "a.zarr"), "'base64'")
    with pytest.raises(ValueError, match="base64"):
        open_table(group["X"])


def test_texts_of_absurd_width(tmp_path):
    """A dtype of 1.6 GB for each value."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("X", data=X)
    group.create_array("y", data=np.array(["a", "b"] * 30), chunks=(60,))
    spoil(tmp_path / "a.zarr" / "y" / ".zarray", lambda data: data.update(dtype="<U400000000"))
    with pytest.raises(SourceError, match="1,600,000,000 bytes each"):
        open_zarr(str(tmp_path / "a.zarr"), Reading())


def small(refuse, *words):
    """Refused in one sentence, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            refuse()
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()
    for word in words:
        assert word in str(caught.value)


def sparse(path, columns=50, rows=10):
    """A csr group of ten stored rows."""
    group = zarr.open_group(path, mode="w")
    inner = group.create_group("X", attributes={"encoding-type": "csr_matrix", "shape": [rows, columns]})
    inner.create_array("data", data=np.ones(20))
    inner.create_array("indices", data=np.arange(20) % 50)
    inner.create_array("indptr", data=np.arange(0, 21, 2))
    return str(path)


def test_a_sparse_matrix_of_2_to_the_40_columns(tmp_path):
    """The columns are what is wrong, and nothing is made for each of them."""
    path = sparse(tmp_path / "a.zarr", columns=2**40)
    small(lambda: open_zarr(path, Reading()), f"{2**40:,} columns", "20 values")
    small(lambda: dkl.ingest(path, tmp_path / "d.zarr", verbose=0), f"{2**40:,} columns")
    assert read_whole(open_zarr(sparse(tmp_path / "b.zarr", columns=2**16), Reading()))[0].shape == (10, 2**16)


def test_a_sparse_file_of_2_to_the_40_columns(tmp_path):
    """The same of what scipy saved."""
    parts = {"data": np.ones(2), "indices": np.array([0, 5]), "indptr": np.array([0, 1, 2])}
    np.savez(tmp_path / "a.npz", format=np.array(b"csr"), shape=np.array([2, 2**40]), **parts)
    small(lambda: dkl.ingest(tmp_path / "a.npz", tmp_path / "d.zarr", verbose=0), f"{2**40:,} columns")


def test_bounds_of_rows_that_nobody_stored(tmp_path):
    """2^28 rows of fill values would take 2 GiB at once."""
    path = sparse(tmp_path / "a.zarr", rows=2**28)

    def change(data):
        data["shape"] = [2**28 + 1]

    spoil(tmp_path / "a.zarr" / "X" / "indptr" / "zarr.json", change)
    small(lambda: open_zarr(path, Reading()), "declares")


@pytest.mark.parametrize("what", ["shape", "chunk"])
def test_an_array_that_declares_far_more_than_it_holds(tmp_path, what):
    """Terabytes of fill values, or a chunk of terabytes around 60 rows."""
    path = three(tmp_path / "a.zarr")

    def change(data):
        if what == "shape":
            data["shape"] = [2**40, 4]
        else:
            data["chunk_grid"]["configuration"]["chunk_shape"] = [2**40, 4]

    spoil(tmp_path / "a.zarr" / "X" / "zarr.json", change)
    for read in (lambda: open_zarr(path, Reading()), lambda: open_table(path), lambda: open_table(f"{path}/X")):
        small(read, "declares", "holds")


@pytest.mark.parametrize("where", ["", "X"])
def test_deep_json(tmp_path, where):
    """A hundred thousand brackets are no traceback."""
    path = three(tmp_path / "a.zarr")
    (tmp_path / "a.zarr" / where / "zarr.json").write_text("[" * 100_000)
    for read in (lambda: open_zarr(path, Reading()), lambda: open_node(f"{path}/{where}"), lambda: open_table(path)):
        with pytest.raises(ValueError) as caught:
            read()
        assert "\n" not in str(caught.value)
