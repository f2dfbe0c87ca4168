"""Data sets whose files were lost or changed: refused by name, or the same bits; never other coefficients."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from sklearn.datasets import dump_svmlight_file

import dkl
from dkl.sources.intact import may_be_zeros
from dkl.sources.whole import whole
from tests.cli.in_process import dkl_in
from tests.store.made import ingest, small_segments

RNG = np.random.default_rng(0)
N, M = 3000, 12
DENSE = RNG.normal(size=(N, M)).astype(np.float32)
DENSE[500:1500] = 0.0  # whole chunks of zeros, which Zarr would leave out
LABELS = np.sort((DENSE[:, 0] + RNG.normal(size=N) > 0).astype(int))  # whole chunks of class 0
OPTIONS = {"n_components": 20, "sigma": 0.5, "random_state": 0, "verbose": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A dense data set with shards, a sparse one, and a dense one in two splits."""
    folder = tmp_path_factory.mktemp("made")
    np.savez(folder / "t.npz", X=DENSE, y=LABELS)
    dump_svmlight_file(sp.csr_array(np.where(DENSE > 0.5, DENSE, 0)), LABELS, str(folder / "t.svm"), zero_based=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkl.store.dataset.SMALLEST", 50_000)
        small_segments(patch, 50_000)
        ingest(folder / "t.npz", folder / "dense.zarr")
        ingest(folder / "t.svm", folder / "sparse.zarr", layout="sparse", format="svmlight")
        ingest(folder / "t.npz", folder / "split.zarr", split={"test": 0.3})
    assert zarr.open(str(folder / "dense.zarr"), mode="r")["X"].shards is not None
    return folder


def fitted(path):
    """What a fit to the data set, and its predictions for it, come to."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = dkl.SingleKernelClassifier(**OPTIONS).fit(str(path))
    return model.coef_.tobytes(), model.intercept_, model.classes_.tolist(), model.recipe_


def chunk_files(path):
    """Files of chunks, of all arrays."""
    return sorted(p for p in Path(path).rglob("*") if p.is_file() and p.name != "zarr.json")


def flip(file, position, bit):
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[position] ^= 1 << bit
    file.write_bytes(data)


def test_every_chunk_is_written(made):
    """Zeros too: in files and inside shards; plain Zarr and xarray read them."""
    root = zarr.open(str(made / "dense.zarr"), mode="r")
    np.testing.assert_array_equal(root["X"][:], DENSE)
    for name in ("X", "y", "row", "channel"):
        unit = (root[name].shards or root[name].chunks)[0]
        files = chunk_files(made / "dense.zarr" / name)
        assert len(files) == -(-root[name].shape[0] // unit), name
    for file in chunk_files(made / "dense.zarr" / "X"):
        index = np.frombuffer(file.read_bytes()[-8 * 16 - 4 : -4], "<u8")
        held = index.reshape(8, 2)[:, 0] != 2**64 - 1
        last = file.parent.name == str(len(chunk_files(made / "dense.zarr" / "X")) - 1)
        assert held.all() or (last and held.any())


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_a_lost_file_is_refused_by_name(made, tmp_path, name):
    """Any chunk of any array that fit, predict, evaluate or ingest reads; of `row`, by inspect and predict."""
    path = tmp_path / "d.zarr"
    model = dkl.SingleKernelClassifier(**OPTIONS).fit(str(made / f"{name}.zarr"))
    model.save(tmp_path / "m.zarr")
    for file in chunk_files(made / f"{name}.zarr"):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(made / f"{name}.zarr", path)
        inside = file.relative_to(made / f"{name}.zarr")
        (path / inside).unlink()
        array, _, key = inside.as_posix().partition("/c/")
        wanted = re.escape(f"chunk c/{key} of ") + ".*" + re.escape(f"d.zarr/{array}") + ".* is missing"
        uses = {"ingest": lambda: dkl.ingest(path, tmp_path / "again.zarr", verbose=0)}
        if array != "row":
            uses["fit"] = lambda: fitted(path)
        if array.startswith("X"):
            uses["predict"] = lambda: model.predict(str(path)).compute()
            uses["blocks"] = lambda: list(model.predict_blocks(str(path)))
        if array.startswith(("X", "y")):
            uses["evaluate"] = lambda: model.evaluate(str(path))
        for use, call in uses.items():
            with pytest.raises(ValueError, match=wanted):
                pytest.fail(f"{use} without {inside}: {call()}")
        for words in (("inspect", "d.zarr"), ("inspect", "d.zarr", "--verify")):
            said = dkl_in(tmp_path, *words)
            assert said.code == 1, (inside, said)
            assert re.search(wanted, said.out + said.err), said
        if array == "row":
            said = dkl_in(tmp_path, "predict", "m.zarr", "d.zarr", "a.csv")
            assert said.code == 1
            assert re.fullmatch(f"dkl: {wanted}.*\n", said.err), said
            assert not (tmp_path / "a.csv").exists()


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_a_flipped_bit(made, tmp_path, name):
    """Anywhere in a chunk: a refusal that names the chunk, in fit and by --verify."""
    expected, path = fitted(made / f"{name}.zarr"), tmp_path / "d.zarr"
    shutil.copytree(made / f"{name}.zarr", path)
    seen, read = 0, ("X", "y", "channel")
    for file in chunk_files(path):
        array, _, key = file.relative_to(path).as_posix().partition("/c/")
        size = file.stat().st_size
        for position in {0, size - 1, size - 5, *RNG.integers(0, size, 3).tolist()}:
            bit = int(RNG.integers(8))
            flip(file, position, bit)
            try:
                found = fitted(path)
            except ValueError as error:
                seen += 1
                assert f"chunk c/{key} of " in str(error), error  # noqa: PT017
                assert f"d.zarr/{array} " in str(error), error  # noqa: PT017
            else:
                assert array == "row", (array, key, position, bit)
                assert found == expected
            if position == size - 1:
                said = dkl_in(tmp_path, "inspect", "d.zarr", "--verify")
                assert said.code == 1, (array, key, position, bit, said)
                assert f"chunk c/{key} of " in said.out, said
            flip(file, position, bit)
    assert seen > 30
    assert {file.relative_to(path).parts[0] for file in chunk_files(path)} == {*read, "row"}
    assert fitted(path) == expected
    assert dkl_in(tmp_path, "inspect", "d.zarr", "--verify").code == 0


@pytest.mark.parametrize("name", ["dense", "sparse"])
def test_files_that_were_cut(made, tmp_path, name):
    """At the end, in the middle, or down to nothing."""
    path = tmp_path / "d.zarr"
    shutil.copytree(made / f"{name}.zarr", path)
    for file in chunk_files(path):
        if file.relative_to(path).parts[0] == "row":
            continue
        data = file.read_bytes()
        tail = 8 * 16 + 4
        pieces = [b"", data[:-1], data[:4], data[:10] + data[-tail:], data[-tail:]]
        for piece in pieces:
            if piece == data:
                continue
            file.write_bytes(piece)
            with pytest.raises(ValueError, match=r"chunk c/.* is (truncated|damaged|without)"):
                pytest.fail(f"{file} with {len(piece)} of {len(data)} bytes: {fitted(path)[0][:4]!r}")
        file.write_bytes(data)


def test_a_chunk_that_its_shard_calls_empty(made, tmp_path):
    """Zarr, told to write zeros, removes the chunk from the shard: that is a chunk lost."""
    path = tmp_path / "d.zarr"
    shutil.copytree(made / "dense.zarr", path)
    X = zarr.open_array(str(path / "X"), mode="r+", config={"write_empty_chunks": False})
    chunk = X.chunks[0]
    X[2 * chunk : 3 * chunk] = 0
    for use in (lambda: fitted(path), lambda: whole(zarr.open_array(str(path / "X"), mode="r"))[2 * chunk : 3 * chunk]):
        with pytest.raises(ValueError, match=r"chunk c/0/0 of .* is without its inner chunk 2"):
            use()


def test_metadata_that_changed(made, tmp_path):
    """One bit anywhere in the JSON of a split or of its arrays: refused in a sentence, or the same bits and recipe."""
    expected, path = fitted(made / "split.zarr" / "train"), tmp_path / "d.zarr"
    shutil.copytree(made / "split.zarr", path)
    refused = 0
    for file in sorted((path / "train").rglob("zarr.json")):
        size = file.stat().st_size
        for position in RNG.integers(0, size, 40).tolist():
            bit = int(RNG.integers(7))
            before = file.read_bytes()
            flip(file, position, bit)
            try:
                found = fitted(path / "train")
            except (ValueError, OSError) as error:
                refused += 1
                assert "\n" not in str(error)  # noqa: PT017
            else:
                assert found == expected, (file, before[position - 20 : position + 20])
            file.write_bytes(before)
    assert refused > 60
    attributes = json.loads((path / "train" / "zarr.json").read_text())
    attributes["attributes"]["recipe"]["channels"][0]["scale"] = "l1"
    (path / "train" / "zarr.json").write_text(json.dumps(attributes))
    for words in (
        ("fit", "d.zarr", "m.zarr"),
        ("inspect", "d.zarr"),
        ("ingest", "t.npz", "e.zarr", "--like", "d.zarr/train"),
    ):
        said = dkl_in(tmp_path, *words)
        assert said.code == 1
        assert re.fullmatch(r"dkl: the attributes of '.*d\.zarr/train'.* are not those that ingest wrote.*\n", said.err)


def test_a_users_own_zarr_may_lack_chunks(tmp_path):
    """There a chunk that is not stored is one of fill values."""
    group = zarr.open_group(str(tmp_path / "own.zarr"), mode="w")
    X = group.create_array("X", shape=(400, 3), dtype="f8", chunks=(100, 3))
    X[100:] = RNG.normal(size=(300, 3))
    group.create_array("y", data=np.arange(400) % 2, chunks=(100,))
    stored = dkl.SingleKernelClassifier(**OPTIONS).fit(str(tmp_path / "own.zarr"))
    here = dkl.SingleKernelClassifier(**OPTIONS).fit(X[:], group["y"][:])
    np.testing.assert_allclose(stored.coef_, here.coef_, atol=1e-10)
    assert dkl_in(tmp_path, "inspect", "own.zarr", "--verify").code == 0


def as_older(path):
    """Turn a data set into one as dkl 0.1 wrote it: no checksums, no digest, chunks of zeros left out."""
    for file in sorted(path.rglob("zarr.json")):
        group = file.parent
        about = json.loads(file.read_text())
        if about["node_type"] == "group":
            about["attributes"].pop("digest", None)
            file.write_text(json.dumps(about))
            continue
        old = zarr.open_array(str(group), mode="r")
        values, attributes = old[:], {k: v for k, v in old.attrs.items() if k != "every_chunk_written"}
        made = zarr.create_array(
            str(group), data=values, chunks=old.chunks, shards=old.shards, overwrite=True, attributes=attributes,
            dimension_names=old.metadata.dimension_names, compressors=zarr.codecs.ZstdCodec(level=1),
        )  # fmt: skip
        np.testing.assert_array_equal(made[:], values)


@pytest.fixture
def older(made, tmp_path):
    """A data set as it was written before there were checksums."""
    shutil.copytree(made / "dense.zarr", tmp_path / "old.zarr")
    as_older(tmp_path / "old.zarr")
    return tmp_path / "old.zarr"


def test_older_data_sets_open_and_say_what_they_lack(made, older, tmp_path):
    """The same coefficients, with a warning; chunks of zeros that were left out are told of."""
    assert len(chunk_files(older / "X")) == len(chunk_files(made / "dense.zarr" / "X"))
    with (
        pytest.warns(UserWarning, match="without checksums"),
        pytest.warns(UserWarning, match="chunk c/0 of .*/y .* is missing: it was all zeros"),
    ):
        model = dkl.SingleKernelClassifier(**OPTIONS).fit(str(older))
    assert model.coef_.tobytes() == fitted(made / "dense.zarr")[0]
    said = dkl_in(tmp_path, "inspect", "old.zarr")
    assert said.code == 0
    assert "without checksums" in said.out
    said = dkl_in(tmp_path, "inspect", "old.zarr", "--verify")
    assert said.code == 0
    assert "no checksums" in said.out
    assert not json.loads(dkl_in(tmp_path, "inspect", "old.zarr", "--json").out)["checksums"]


def test_a_chunk_that_an_older_data_set_cannot_lack(older, tmp_path):
    """Refused where it cannot have been zeros; told of where it can."""
    for array, refused in (("row", True), ("X", False), ("y", False)):
        path = tmp_path / f"{array}.zarr"
        shutil.copytree(older, path)
        chunk_files(path / array)[-1].unlink()
        said = dkl_in(tmp_path, "inspect", path.name)
        assert said.code == int(refused), (array, said)
        assert re.search(rf"chunk c/.* of {array}\.zarr/{array} .*(missing|not there)", said.err), said
    zarr.open_group(str(tmp_path / "X.zarr"), mode="r+").attrs["channels"] = [
        {"name": "t", "inputs": M, "low": 1, "high": 2}
    ]
    with pytest.raises(ValueError, match=r"chunk c/.* of .*X\.zarr/X .* is missing"):
        fitted(tmp_path / "X.zarr")


def test_a_models_digests_are_verified(made, tmp_path):
    """--verify of a model."""
    dkl.SingleKernelClassifier(**OPTIONS).fit(str(made / "dense.zarr")).save(tmp_path / "m.zarr")
    said = dkl_in(tmp_path, "inspect", "m.zarr", "--verify")
    assert said.code == 0
    assert "nothing is damaged" in said.out
    chunk_files(tmp_path / "m.zarr" / "coef")[0].unlink()
    said = dkl_in(tmp_path, "inspect", "m.zarr", "--verify", "--json")
    assert said.code == 1
    assert "coef" in json.loads(said.out)["damaged"][0]["why"]


def test_verify_names_what_an_older_data_set_does_not_hold(older, tmp_path):
    """A chunk that may have been zeros is neither read nor passed over in silence."""
    chunk_files(older / "X")[-1].unlink()
    said = dkl_in(tmp_path, "inspect", "old.zarr", "--verify")
    assert said.code == 0
    assert "nothing is damaged or missing" not in said.out
    assert re.search(r"not there, all zeros or lost: .*chunk c/\d+/0 of X", said.out), said.out
    absent = json.loads(dkl_in(tmp_path, "inspect", "old.zarr", "--verify", "--json").out)["absent"]
    assert "X" in [entry["array"] for entry in absent]


def test_an_older_data_set_whose_only_chunk_is_lost(older):
    """A range that is not zero says that not all entries were."""
    about = {"channels": [{"name": "t", "inputs": M, "low": -1, "high": 1}], "target_range": [-1.0, 1.0]}
    X = zarr.open_array(str(older / "X"), mode="r")
    rows = X.shape[0]
    for name in ("X", "y"):
        assert not may_be_zeros(name, about, X, 0, rows)
        assert may_be_zeros(name, about, X, 0, rows - 1)
    zeros = {"channels": [{"name": "t", "inputs": M, "low": 0, "high": 0}], "target_range": [0.0, 0.0]}
    assert may_be_zeros("X", zeros, X, 0, rows)
    assert may_be_zeros("y", zeros, X, 0, rows)


def test_a_warning_is_told_once(older, tmp_path):
    """However often a command opens the data set; in a process of its own, whose filters of warnings change."""
    chunk_files(older / "X")[-1].unlink()
    words = [sys.executable, "-m", "dkl", "fit", "old.zarr", "m.zarr", "--n-components", "20"]
    where = os.environ | {"PYTHONPATH": str(Path(dkl.__file__).parents[1])}
    said = subprocess.run(words, cwd=tmp_path, env=where, capture_output=True, text=True, timeout=100, check=True)
    assert said.stderr.count("/X (entries") == 1, said.stderr
    assert said.stderr.count("without checksums") == 1, said.stderr
