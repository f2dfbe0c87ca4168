"""Files made to harm: what they declare is bounded by what can be used, and each is refused in one sentence, soon."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr

import dkl
from dkl.features.refusal import Refusal
from dkl.features.sparse import as_csr
from dkl.sources import delimited
from tests.cli.in_process import done
from tests.cli.test_malformed import assert_refused, dkl_in, listing

RNG = np.random.default_rng(0)
DEEP = "[" * 100_000 + "]" * 100_000


def pickled(**arrays: object) -> bytes:
    """An npz whose object arrays are pickles."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


OBJECTS = {
    "X.npy": (None, np.array([[1, 2], [3, "x"]], dtype=object)),
    "X.npz": ("X", {"X": np.array([[1, 2], [3, "x"]], dtype=object), "y": np.arange(2)}),
    "y.npz": ("y", {"X": np.ones((4, 2)), "y": np.array([0, 1, 0, 1], dtype=object)}),
    "z.npz": ("z", {"X": np.ones((4, 2)), "y": np.arange(4) % 2, "z": np.array([None])}),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_object_arrays_are_never_unpickled(tmp_path: Path, name: str) -> None:
    """In the rows, in the labels, or in an array that nobody asked for."""
    inside, value = OBJECTS[name]
    if isinstance(value, dict):
        (tmp_path / name).write_bytes(pickled(**value))
    else:
        np.save(tmp_path / name, value, allow_pickle=True)
    before = listing(tmp_path)
    said = dkl_in(tmp_path, "ingest", name, "d.zarr")
    assert_refused(said, 1, name if inside is None else f"{name}/{inside}", "never unpickled")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, "9" * 5000])
def test_svmlight_index_too_large(tmp_path: Path, index: object) -> None:
    """The line and the largest index that is read are named; pairs that grow are not called unsorted."""
    (tmp_path / "s.svm").write_text(f"1 1:0.5\n0 1:0.5 {index}:2\n1 2:1\n")
    said = dkl_in(tmp_path, "ingest", "s.svm", "d.zarr")
    assert_refused(said, 1, "s.svm", "line 2", str(index)[:40], "index is larger than 2147483646")
    assert len(said.err) < 300


@pytest.mark.parametrize("index", [-1, -(2**63)])
def test_svmlight_index_below_zero(tmp_path: Path, index: int) -> None:
    """No position at all."""
    (tmp_path / "s.svm").write_text(f"1 1:0.5\n0 {index}:2\n")
    assert_refused(dkl_in(tmp_path, "ingest", "s.svm", "d.zarr"), 1, "line 2", f"{index}:2", "increasing")


def png(width: int, height: int) -> bytes:
    """A grey image that says it is of this size, with a few of its lines."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = zlib.compress(bytes((width + 1) * 10))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


BOMBS = [(50000, (), "50000"), (50000, ("--resize", "8x8"), "pixels"), (9000, (), "81,000,000 inputs")]


@pytest.mark.parametrize(("size", "how", "said"), BOMBS)
def test_image_bombs(tmp_path: Path, size: int, how: tuple[str, ...], said: str) -> None:
    """Refused by what the image declares, before it is decoded or each pixel gets a name."""
    (tmp_path / "i" / "a").mkdir(parents=True)
    (tmp_path / "i" / "a" / "1.png").write_bytes(png(size, size))
    tracemalloc.start()
    try:
        found = dkl_in(tmp_path, "ingest", "i", "d.zarr", *how)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_refused(found, 1, "1.png", said if size == 9000 else "2500000000 pixels")
    assert peak < 2**26


def test_more_columns_than_a_model_can_have(tmp_path: Path) -> None:
    """Dense rows of npy and of Zarr, before each column gets a name."""
    np.save(tmp_path / "w.npy", np.zeros((2, 2**22 + 1), np.int8))
    X = zarr.create_array(str(tmp_path / "w.zarr"), shape=(2, 2**22 + 1), chunks=(2, 2**22 + 1), dtype="i1")
    X[:] = 1
    for name in ("w.npy", "w.zarr"):
        assert_refused(dkl_in(tmp_path, "ingest", name, "d.zarr"), 1, name, "4,194,305 columns", "4,194,304")


def test_lines_longer_than_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that fills the sample is followed by rows all the same."""
    monkeypatch.setattr(delimited, "SAMPLE", 500)
    X = RNG.normal(size=(30, 300)).round(3)
    names = ",".join(f"input{i}" for i in range(300))
    rows = "".join(",".join(map(str, row)) + f",{i % 2}\n" for i, row in enumerate(X))
    (tmp_path / "w.csv").write_text(f"{names},y\n{rows}")
    done(tmp_path, "ingest", "w.csv", "d.zarr", "--dtype", "float64")
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "d.zarr" / "X"), mode="r")[:], X)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_hundred_thousand_columns(tmp_path: Path, kind: str) -> None:
    """They are read as they are, in time that grows as the columns do."""
    X = RNG.normal(size=(6, 100_000)).round(4)
    names = [f"c{i}" for i in range(X.shape[1])]
    if kind == "csv":
        rows = "".join(",".join(map(str, row)) + f",{i % 2}\n" for i, row in enumerate(X.tolist()))
        (tmp_path / "w.csv").write_text(f"{','.join(names)},y\n{rows}")
    else:
        table = {name: X[:, i] for i, name in enumerate(names)} | {"y": np.arange(6) % 2}
        pq.write_table(pa.table(table), tmp_path / "w.parquet")
    done(tmp_path, "ingest", f"w.{kind}", "d.zarr", "--dtype", "float64")
    np.testing.assert_array_equal(zarr.open(str(tmp_path / "d.zarr" / "X"), mode="r")[:], X)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 1000 classes, and a model of it."""
    folder = tmp_path_factory.mktemp("shared")
    y = np.arange(4000) % 1000
    X = RNG.normal(size=(1000, 30))[y] + 0.01 * RNG.normal(size=(4000, 30))
    np.savez(folder / "t.npz", X=X, y=y)
    done(folder, "ingest", "t.npz", "d.zarr", "--task", "classification")
    done(folder, "fit", "d.zarr", "m.zarr", "--n-components", "200")
    return folder


def test_a_thousand_classes(shared: Path) -> None:
    """They are told apart; the answers are the classes."""
    told = json.loads(done(shared, "evaluate", "m.zarr", "d.zarr", "--json"))
    assert told["accuracy"] > 0.99
    model, data = dkl.load(shared / "m.zarr"), np.load(shared / "t.npz")
    assert model.set_params(verbose=0).score(data["X"].astype(np.float32), data["y"]) == told["accuracy"]


@pytest.mark.parametrize("name", ["m.zarr", "d.zarr"])
def test_deep_json(shared: Path, tmp_path: Path, name: str) -> None:
    """Attributes nested 100000 deep, and just as deep as Python reads, in a model and in a recipe."""
    for depth in (100_000, 5000, 900, 300):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        shutil.copytree(shared / name, tmp_path / name)
        file = tmp_path / name / "zarr.json"
        about = json.loads(file.read_text())
        about["attributes"]["recipe" if name == "d.zarr" else "params"] = "HERE"
        file.write_text(json.dumps(about).replace('"HERE"', "[" * depth + "]" * depth))
        commands = {
            "m.zarr": [("inspect", name), ("predict", name, shared / "d.zarr", "p.csv")],
            "d.zarr": [("inspect", name), ("fit", name, "n.zarr"), ("predict", shared / "m.zarr", name, "p.csv")],
        }
        for words in commands[name]:
            assert_refused(dkl_in(tmp_path, *words), 1, name)
        assert sorted(os.listdir(tmp_path)) == [name]


def test_deep_configuration(shared: Path, tmp_path: Path) -> None:
    """TOML, too."""
    (tmp_path / "c.toml").write_text(f"sigma = {DEEP}\n")
    assert_refused(dkl_in(tmp_path, "fit", shared / "d.zarr", "m.zarr", "--config", "c.toml"), 1, "c.toml", "too deep")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that takes nothing: a mount for root, else a folder without permission."""
    folder = tmp_path / "ro"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        folder.chmod(0o555)
    yield folder
    if not mounted.returncode:
        subprocess.run(["umount", folder], check=True)
    folder.chmod(0o755)


@pytest.mark.parametrize("verb", ["ingest", "fit", "predict csv", "predict parquet", "predict zarr"])
def test_destinations_that_take_nothing(shared: Path, tmp_path: Path, read_only: Path, verb: str) -> None:
    """A read-only file system, and a file where the folder should be."""
    (tmp_path / "file").touch()
    name, _, kind = verb.partition(" ")
    made = f"x.{kind or 'zarr'}"
    words = {
        "ingest": ["sklearn:iris"],
        "fit": [shared / "d.zarr"],
        "predict": [shared / "m.zarr", shared / "d.zarr"],
    }[name]
    said = dkl_in(tmp_path, name, *words, f"ro/{made}")
    assert_refused(said, 1, str(read_only))
    assert "begin-" not in said.err
    assert "writing-" not in said.err
    assert_refused(dkl_in(tmp_path, name, *words, f"file/{made}"), 1, str(tmp_path / "file"), "is a file")
    assert sorted(os.listdir(tmp_path)) == ["file", "ro"]
    assert os.listdir(read_only) == []


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("offset", [12, -60, 2**31 - 1, -(2**31)])
def test_diagonals_outside(index: type, offset: int) -> None:
    """scipy leaves them out without a word; here they are refused."""
    X = sp.random_array((60, 12), density=0.3, format="csr", rng=np.random.default_rng(0))
    diagonal = X.todia()
    diagonal.offsets = diagonal.offsets.astype(index)
    np.testing.assert_array_equal(as_csr(diagonal).toarray(), X.toarray())
    diagonal.offsets[0] = offset
    with pytest.raises(Refusal, match=f"offset {offset}"):
        as_csr(diagonal)
    with pytest.raises(ValueError, match=f"X has a diagonal at offset {offset}"):
        dkl.SingleKernelClassifier(n_components=8, verbose=0).fit(diagonal, np.arange(60) % 2)


@pytest.mark.parametrize("rows", [1000, pytest.param(20_000, marks=[pytest.mark.long, pytest.mark.timeout(600)])])
def test_a_chunk_for_each_row(tmp_path: Path, rows: int) -> None:
    """A user's Zarr of one row per chunk: what its rows in memory give, in bounded time."""
    X = RNG.normal(size=(rows, 3))
    group = zarr.open_group(tmp_path / "t.zarr", mode="w", zarr_format=3)
    group.create_array("X", data=X, chunks=(1, 3))
    group.create_array("y", data=X[:, 0])
    options = {"n_components": 20, "sigma": 0.5, "random_state": 0, "verbose": 0}
    found = dkl.SingleKernelRegressor(**options).fit(str(tmp_path / "t.zarr"))
    expected = dkl.SingleKernelRegressor(**options).fit(X, X[:, 0])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7, atol=1e-9)


def test_one_chunk_that_declares_much(tmp_path: Path) -> None:
    """2 GB in one chunk that holds nothing: refused before anything is taken."""
    group = zarr.open_group(tmp_path / "b.zarr", mode="w", zarr_format=3)
    group.create_array("X", shape=(10_000_000, 50), chunks=(10_000_000, 50), dtype="f4")
    group.create_array("y", data=np.zeros(10_000_000, np.int8))
    for words in (("plan", "b.zarr"), ("fit", "b.zarr", "m.zarr"), ("ingest", "b.zarr", "d.zarr")):
        assert_refused(dkl_in(tmp_path, *words), 1, "b.zarr/X", "2,000,000,000", "holds 0")
