"""Data sets of --scale gcn,zca: constants of the training rows, the same bits everywhere, and damage that is seen."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from sklearn.datasets import dump_svmlight_file
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, scale

import dkl
from dkl.engine.progress import Progress
from dkl.store import dataset
from dkl.store.ingest import begin_ingest, open_ingest, run_ingest
from dkl.store.request import Request, request_like
from tests.store.made import ingest, small_segments, tree

BYTES = np.random.default_rng(7).integers(0, 256, (500, 24)).astype(np.uint8)
BYTES[11] = 9  # a constant image
Y = np.arange(500) % 3
SPLIT = {"test": 0.3}


def white(train, rows, eps=0.1):
    """Rows whitened by scikit-learn's principal axes of the training rows."""
    pca = PCA(svd_solver="full").fit(train)
    variance = pca.explained_variance_ * (len(train) - 1) / len(train)
    root = np.sqrt(variance + eps * variance.sum() / train.shape[1])
    return pca.transform(rows) / root @ pca.components_


@pytest.fixture
def source(tmp_path):
    """Bytes and classes in one file."""
    np.savez(tmp_path / "s.npz", X=BYTES, y=Y)
    return tmp_path / "s.npz"


CHAINS = {
    "gcn": lambda rows, train: scale(rows, axis=1),
    "zca:0.5": lambda rows, train: white(train, rows, 0.5),
    "gcn,zca": lambda rows, train: white(scale(train, axis=1), scale(rows, axis=1)),
    "standard,zca:1e-6": lambda rows, train: white(
        *[StandardScaler().fit(train).transform(r) for r in (train, rows)], 1e-6
    ),
    "gcn,standard": lambda rows, train: StandardScaler().fit(scale(train, axis=1)).transform(scale(rows, axis=1)),
    "zca,gcn": lambda rows, train: scale(white(train, rows), axis=1),
}


@pytest.mark.parametrize("chain", list(CHAINS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_like_scikit_learn(source, tmp_path, chain, dtype):
    """The steps in their order; whatever is learned comes from the rows that are trained with."""
    made = ingest(source, tmp_path / "d.zarr", scale=chain.split(","), split=SPLIT, dtype=dtype)
    train = made["train/row"][:]
    assert 300 < len(train) < 400
    expected = CHAINS[chain](BYTES.astype(float), BYTES[train].astype(float))
    for name in ("train", "test"):
        found, rows = made[f"{name}/X"], made[f"{name}/row"][:]
        assert found.dtype == dtype
        atol = (1e-5 if dtype == "float32" else 1e-10) * max(1, np.abs(expected).max())
        np.testing.assert_allclose(found[:], expected[rows], atol=atol)


def test_contrast_of_a_constant_image(source, tmp_path):
    """Zero."""
    made = ingest(source, tmp_path / "d.zarr", scale="gcn")
    np.testing.assert_array_equal(made["X"][11], 0)


def test_rows_to_test_with_do_not_leak(source, tmp_path):
    """Other rows there, the same constants and the same rows to train with, bit for bit."""
    first = ingest(source, tmp_path / "a.zarr", scale=["gcn", "zca"], split=SPLIT)
    other = BYTES.copy()
    other[first["test/row"][:]] = 255 - other[first["test/row"][:]] // 3
    (tmp_path / "other").mkdir()
    np.savez(tmp_path / "other" / "s.npz", X=other, y=Y)
    second = ingest(tmp_path / "other" / "s.npz", tmp_path / "b.zarr", scale=["gcn", "zca"], split=SPLIT)
    assert second.attrs["recipe"] == first.attrs["recipe"]
    np.testing.assert_array_equal(second["train/X"][:], first["train/X"][:])
    assert (second["test/X"][:] != first["test/X"][:]).any()


@pytest.mark.parametrize("chain", ["gcn,zca", "standard,zca"])
def test_same_bits_for_any_segments_and_threads(source, tmp_path, monkeypatch, chain):
    """Byte for byte the same Zarr tree."""
    trees = []
    for i, (size, threads) in enumerate([(2**23, 1), (100, 3), (1000, 2)]):
        small_segments(monkeypatch, size)
        ingest(source, tmp_path / f"{i}.zarr", scale=chain.split(","), split=SPLIT, threads=threads)
        trees.append(tree(tmp_path / f"{i}.zarr"))
    assert any("recipe/whitening0/c" in name for name in trees[0])
    assert trees[0] == trees[1] == trees[2]


def test_missing_values_are_filled_first(tmp_path):
    """By means of the known values; rows that are dropped count nowhere."""
    X = BYTES[:, :5].astype(float)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=Y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    how = {"scale": ["gcn", "zca"], "dtype": "float64"}
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    made = ingest(tmp_path / "t.csv", tmp_path / "m.zarr", missing="mean", **how)
    np.testing.assert_allclose(made["X"][:], CHAINS["gcn,zca"](filled, filled), atol=1e-9)
    known = X[~np.isnan(X).any(axis=1)]
    made = ingest(tmp_path / "t.csv", tmp_path / "k.zarr", missing="drop", **how)
    np.testing.assert_allclose(made["X"][:], CHAINS["gcn,zca"](known, known), atol=1e-9)


@pytest.mark.parametrize("base", [0, 1])
def test_sparse_sources(tmp_path, base):
    """Dense if that is said; refused otherwise, as are stored rows that cannot stay sparse."""
    X = np.where(BYTES > 215, BYTES, 0).astype(float)
    X[0, [0, -1]] = 1  # the first and the last index are there
    dump_svmlight_file(X, Y, str(tmp_path / "s.svm"), zero_based=not base)
    made = ingest(tmp_path / "s.svm", tmp_path / "d.zarr", scale=["gcn", "zca"], layout="dense", dtype="float64")
    np.testing.assert_allclose(made["X"][:], CHAINS["gcn,zca"](X, X), atol=1e-9)
    for layout in ("auto", "sparse"):
        with pytest.raises(ValueError, match=r"'gcn:0' leaves no zeros.*use --layout dense \(24 numbers in a row\)"):
            ingest(tmp_path / "s.svm", tmp_path / "e.zarr", scale="gcn", layout=layout)
    sp.save_npz(tmp_path / "wide.npz", sp.csr_array(np.ones((3, 40))))
    with pytest.raises(ValueError, match="has index"):
        ingest(tmp_path / "wide.npz", tmp_path / "e.zarr", like=tmp_path / "d.zarr", target="none")


def test_texts_are_refused(tmp_path):
    """Before any row is read; a single scale of each column may have them beside it."""
    pd.DataFrame({"a": [1.0, 2, 3], "t": list("uvu"), "y": [0, 1, 0]}).to_csv(tmp_path / "t.csv", index=False)
    for chain in ("gcn", "zca", "standard+l1"):
        with pytest.raises(ValueError, match=r"takes numbers only.* has the text column 't'; use one of"):
            ingest(tmp_path / "t.csv", tmp_path / "d.zarr", scale=chain, categorical="auto")
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
    assert ingest(tmp_path / "t.csv", tmp_path / "d.zarr", scale="l1", categorical="auto")["X"].shape == (3, 3)


def test_more_inputs_than_a_matrix_can_have(tmp_path, monkeypatch):
    """With the bytes that it would take; also where they are not free."""
    np.save(tmp_path / "wide.npy", np.ones((2, 8193), np.uint8))
    with pytest.raises(ValueError, match=r"zca of the 8,193 inputs of 'wide' needs matrices of 8,193 x 8,193"):
        ingest(tmp_path / "wide.npy", tmp_path / "d.zarr", scale="zca", target="none")
    monkeypatch.setattr("dkl.prepare.ingest.available_bytes", lambda: 2**20)
    np.save(tmp_path / "wide.npy", np.ones((2, 400), np.uint8))
    with pytest.raises(ValueError, match=r"needs 74,788,864 bytes, but 1,048,576 are free"):
        ingest(tmp_path / "wide.npy", tmp_path / "d.zarr", scale="zca", target="none")
    assert [p.name for p in tmp_path.iterdir()] == ["wide.npy"]


def test_fewer_rows_than_inputs(tmp_path):
    """Said, and whitened by eps."""
    np.save(tmp_path / "few.npy", BYTES[:10])
    with pytest.warns(UserWarning, match=r"zca of the 24 inputs of 'few' is learned from 10 training rows.*most 9"):
        made = ingest(tmp_path / "few.npy", tmp_path / "d.zarr", scale="zca", target="none", dtype="float64")
    rows = BYTES[:10].astype(float)
    C = np.cov(rows.T, bias=True)
    values, vectors = np.linalg.eigh(C + 0.1 * np.trace(C) / 24 * np.eye(24))
    expected = (rows - rows.mean(axis=0)) @ (vectors / np.sqrt(values)) @ vectors.T
    np.testing.assert_allclose(made["X"][:], expected, atol=1e-10)


def test_channels_each_with_its_steps(tmp_path):
    """Two matrices beside a channel without one."""
    np.savez(tmp_path / "a.npz", X=BYTES[:, :7], y=Y)
    np.savez(tmp_path / "b.npz", X=BYTES[:, 7:12], y=Y)
    np.savez(tmp_path / "c.npz", X=BYTES[:, 12:], y=Y)
    sources = [tmp_path / f"{name}.npz" for name in "abc"]
    made = ingest(sources, tmp_path / "d.zarr", scale=["zca", "l1", "gcn+zca"], dtype="float64")
    assert sorted(made["recipe"].array_keys()) == ["whitening0", "whitening2"]
    a, c = BYTES[:, :7].astype(float), BYTES[:, 12:].astype(float)
    np.testing.assert_allclose(made["X"][:, :7], white(a, a), atol=1e-10)
    np.testing.assert_allclose(made["X"][:, 12:], CHAINS["gcn,zca"](c, c), atol=1e-10)
    again = ingest(sources, tmp_path / "e.zarr", like=tmp_path / "d.zarr")
    np.testing.assert_array_equal(again["X"][:], made["X"][:])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A whitened data set in two splits, and a saved model of it."""
    place = tmp_path_factory.mktemp("whitened")
    np.savez(place / "s.npz", X=BYTES, y=Y)
    ingest(place / "s.npz", place / "d.zarr", scale=["gcn", "zca"], split=SPLIT)
    model = dkl.SingleKernelClassifier(n_components=30, random_state=0, verbose=0).fit(str(place / "d.zarr" / "train"))
    model.save(place / "m.zarr")
    return place


@pytest.mark.parametrize("like", ["d.zarr", "d.zarr/train", "d.zarr/test", "m.zarr"])
def test_new_rows_like_the_old(fitted, tmp_path, like):
    """By the data set, one split of it, or the model: bit for bit the same inputs, in another order and alone too."""
    made = zarr.open(str(fitted / "d.zarr"), mode="r")
    rows = made["test/row"][:][::-1]
    np.save(tmp_path / "new.npy", BYTES[rows])
    found = ingest(tmp_path / "new.npy", tmp_path / "e.zarr", like=fitted / like, target="none")
    np.testing.assert_array_equal(found["X"][:], made["test/X"][:][::-1])
    np.save(tmp_path / "one.npy", BYTES[rows[:1]])
    found = ingest(tmp_path / "one.npy", tmp_path / "f.zarr", like=fitted / like, target="none")
    np.testing.assert_array_equal(found["X"][0], made["test/X"][-1])


def test_the_model_keeps_the_matrix(fitted):
    """Saved, loaded, and saved again; a fit to other rows drops it."""
    model = dkl.load(fitted / "m.zarr")
    stored = zarr.open(str(fitted / "d.zarr"), mode="r")["train/recipe/whitening0"][:]
    np.testing.assert_array_equal(model.recipe_matrices_["whitening0"], stored)
    assert stored.shape == (25, 24)
    model.fit(BYTES[:50], Y[:50])
    assert not hasattr(model, "recipe_matrices_")


def test_the_plan_counts_the_matrix(fitted, monkeypatch):
    """As bytes that the process of the solve keeps."""
    rows, model = str(fitted / "d.zarr" / "train"), dkl.SingleKernelClassifier(n_components=30, random_state=0)
    seen = []
    monkeypatch.setattr("dkl.engine.embedded.memory_here", lambda: (0, 2**40))
    for without in (False, True):
        if without:
            monkeypatch.setattr("dkl.engine.tables.matrices_in", lambda group, place: {})
        seen.append(model.plan(rows, rows, calibrate=False).solve_bytes)
    assert seen[0] - seen[1] == 8 * 25 * 24


def test_an_ingest_like_a_model_resumes_without_it(fitted, tmp_path, monkeypatch):
    """The matrix is staged with the request."""
    model = shutil.copytree(fitted / "m.zarr", tmp_path / "m.zarr")
    np.savez(tmp_path / "n.npz", X=BYTES, y=Y)
    recipe, matrices = dataset.recipe_of(str(model)), dataset.matrices_of(str(model), 2**30)
    request = request_like(recipe, (str(tmp_path / "n.npz"),), str(tmp_path / "e.zarr"), {}, matrices)
    begin_ingest(request)
    shutil.rmtree(model)
    again, folder, _ = open_ingest(str(tmp_path / "e.zarr"))
    assert again == request
    run_ingest(again, folder, 1, Progress(0))
    made, first = (zarr.open(str(p / n), mode="r") for p, n in ((tmp_path, "e.zarr"), (fitted, "d.zarr")))
    np.testing.assert_array_equal(made["X"][:][first["train/row"][:]], first["train/X"][:])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.zarr", "n.npz"]


def test_killed_while_rows_are_written(source, tmp_path, monkeypatch):
    """Resumed with the same bits."""
    whole = ingest(source, tmp_path / "a.zarr", scale=["gcn", "zca"], split=SPLIT)
    request = Request((str(source),), str(tmp_path / "b.zarr"), scale=("gcn", "zca"), split=tuple(SPLIT.items()))

    def killed(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dkl.store.here.assemble", killed)
        with pytest.raises(KeyboardInterrupt):
            run_ingest(request, begin_ingest(request), 1, Progress(0))
    run_ingest(*open_ingest(request.dest)[:2], 1, Progress(0))
    assert tree(tmp_path / "b.zarr") == tree(tmp_path / "a.zarr")
    assert whole["train/X"].shape[1] == 24


def chunks(path):
    """The files of the matrix of the training rows."""
    return sorted(p for p in (path / "train" / "recipe" / "whitening0" / "c").rglob("*") if p.is_file())


def flip(path):
    """One bit of a chunk."""
    data = bytearray(chunks(path)[0].read_bytes())
    data[len(data) // 2] ^= 4
    chunks(path)[0].write_bytes(bytes(data))


def lose(path):
    """A chunk."""
    chunks(path)[0].unlink()


def drop(path):
    """The whole array."""
    shutil.rmtree(path / "train" / "recipe" / "whitening0")


def exchange(path):
    """Another matrix of the same shape, with good checksums."""
    array = zarr.open(str(path / "train" / "recipe" / "whitening0"), mode="r+")
    array[3, 4] += 1.0


@pytest.mark.parametrize("damage", [flip, lose, drop, exchange])
def test_a_damaged_matrix(fitted, tmp_path, monkeypatch, damage):
    """Refused in one line by whoever needs it, a fit before its first pass; nothing is left behind."""
    shutil.copytree(fitted / "d.zarr", tmp_path / "d.zarr")
    damage(tmp_path / "d.zarr")
    np.savez(tmp_path / "n.npz", X=BYTES, y=Y)
    with pytest.raises(ValueError, match="whitening") as caught:
        ingest(tmp_path / "n.npz", tmp_path / "e.zarr", like=tmp_path / "d.zarr")
    assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.zarr", "n.npz"]
    monkeypatch.setattr("dkl.sums.gram.GramProgram.add", lambda *args: pytest.fail("a pass was made"))
    with pytest.raises(ValueError, match=r"whitening|shapes of its arrays, are not those that ingest wrote"):
        dkl.SingleKernelClassifier(n_components=30, verbose=0).fit(str(tmp_path / "d.zarr" / "train"))


def test_xarray_reads_it(fitted):
    """The matrix lies in a group of its own."""
    xarray = pytest.importorskip("xarray")
    rows = xarray.open_zarr(str(fitted / "d.zarr" / "train"), consolidated=False)
    assert rows["X"].dims == ("row", "input")
    matrix = xarray.open_zarr(str(fitted / "d.zarr" / "train" / "recipe"), consolidated=False)["whitening0"]
    assert matrix.shape == (25, 24)


PEAK = """
import sys, dkl
dkl.ingest(sys.argv[1], sys.argv[2], scale=sys.argv[3].split(","), target="none", threads=1, verbose=0)
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_peak_is_what_the_check_counts(tmp_path):
    """The matrices of 2,000 inputs, beside what gcn alone takes."""
    from dkl.store.zca import zca_bytes

    np.save(tmp_path / "s.npy", np.random.default_rng(0).integers(0, 256, (4000, 2000)).astype(np.uint8))
    root = str(Path(dkl.__file__).parents[1])
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=True, cwd=root)
    peaks = [
        1024 * int(run([sys.executable, "-c", PEAK, str(tmp_path / "s.npy"), str(tmp_path / f"{i}.zarr"), s]).stdout)
        for i, s in enumerate(["gcn", "gcn,zca"])
    ]
    assert 2 * 8 * 2000**2 < peaks[1] - peaks[0] < zca_bytes(2000)
