"""Zarr arrays and groups against what was written into them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import zarr

from dkl.sources import sparse, zarr_rows
from dkl.sources.batch import Column, Reading, SourceError
from dkl.sources.zarr_rows import open_zarr
from tests.sources.whole import read_whole

X = np.random.default_rng(0).standard_normal((50, 6)).astype("f4")
Y = np.arange(50) % 3


@pytest.fixture(autouse=True, params=[1, 300, 2**23])
def small(request, monkeypatch):
    """Segments of a chunk, some chunks, all rows."""
    monkeypatch.setattr(zarr_rows, "SEGMENT", request.param)
    monkeypatch.setattr(sparse, "SEGMENT", request.param)
    return request.param


def group(path, zarr_format=3, **arrays):
    """A group of arrays."""
    made = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
    for name, array in arrays.items():
        made.create_array(name, data=np.asarray(array), chunks=(7, *np.shape(array)[1:]))
    return made


def sparse_group(path, matrix, **changes):
    """The csr layout."""
    made = zarr.open_group(str(path), mode="w")
    inner = made.create_group("X", attributes={"encoding-type": "csr_matrix", "shape": list(matrix.shape)})
    for name in ("data", "indices", "indptr"):
        inner.create_array(name, data=changes.get(name, getattr(matrix, name)))
    return made


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array(tmp_path, small, zarr_format):
    """Without labels, with one of its columns, or with a file."""
    path = str(tmp_path / "a.zarr")
    zarr.create_array(path, data=X, chunks=(7, 4), zarr_format=zarr_format)
    got, y, _, segments = read_whole(open_zarr(path, Reading()))
    np.testing.assert_array_equal(got, X)
    assert (y, got.dtype, segments) == (None, np.float32, {1: 8, 300: 8, 2**23: 1}[small])
    got, y, _, _ = read_whole(open_zarr(path, Reading(target="0", drop=("3",))))
    np.testing.assert_array_equal(got, X[:, [1, 2, 4, 5]])
    np.testing.assert_array_equal(y, X[:, 0])
    np.save(tmp_path / "y.npy", Y)
    np.testing.assert_array_equal(read_whole(open_zarr(path, Reading(target=str(tmp_path / "y.npy"))))[1], Y)


def test_shards(tmp_path, small):
    """Segments are whole shards."""
    path = str(tmp_path / "a.zarr")
    zarr.create_array(path, data=X, chunks=(5, 6), shards=(10, 6))
    source = open_zarr(path, Reading())
    np.testing.assert_array_equal(read_whole(source)[0], X)
    assert source.step % 10 == 0


def test_a_group(tmp_path):
    """X and y; codes with classes become names; texts are names."""
    made = group(tmp_path / "g", X=X, y=Y, words=np.array(["a", "bc"] * 25, np.dtypes.StringDType()))
    got, y, _, _ = read_whole(open_zarr(str(tmp_path / "g"), Reading()))
    np.testing.assert_array_equal(got, X)
    np.testing.assert_array_equal(y, Y)
    made["y"].attrs["classes"] = ["u", "v", "w"]
    assert read_whole(open_zarr(str(tmp_path / "g"), Reading()))[1] == ["uvw"[i] for i in Y]
    assert read_whole(open_zarr(str(tmp_path / "g"), Reading(target="words")))[1] == ["a", "bc"] * 25
    assert read_whole(open_zarr(str(tmp_path / "g"), Reading(target="none")))[1] is None
    made["y"].attrs["classes"] = ["u", "v"]
    with pytest.raises(SourceError, match="has the code 2 in row 2, but lists 2 classes"):
        read_whole(open_zarr(str(tmp_path / "g"), Reading()))


def test_the_only_matrix(tmp_path):
    """Needs no name; two do."""
    group(tmp_path / "g", features=X, y=Y)
    np.testing.assert_array_equal(read_whole(open_zarr(str(tmp_path / "g"), Reading()))[0], X)
    group(tmp_path / "g", a=X, b=X)
    with pytest.raises(SourceError, match="has no array X, and its 2-D arrays are: a, b; give one of them"):
        open_zarr(str(tmp_path / "g"), Reading())
    np.testing.assert_array_equal(read_whole(open_zarr(str(tmp_path / "g" / "a"), Reading()))[0], X)


def test_from_memory():
    """Over fsspec."""
    group("memory://rows.zarr", X=X, y=Y)
    np.testing.assert_array_equal(read_whole(open_zarr("memory://rows.zarr", Reading()))[0], X)


def test_csr(tmp_path):
    """Row ranges of three arrays."""
    matrix = scipy.sparse.random(50, 20, 0.2, "csr", rng=np.random.default_rng(0))
    made = sparse_group(tmp_path / "g", matrix)
    made.create_array("y", data=Y)
    source = open_zarr(str(tmp_path / "g"), Reading())
    got, y, _, _ = read_whole(source)
    np.testing.assert_array_equal(got, matrix.toarray())
    np.testing.assert_array_equal(y, Y)
    assert source.columns == [Column(str(i)) for i in range(20)]
    np.testing.assert_array_equal(read_whole(open_zarr(str(tmp_path / "g" / "X"), Reading()))[0], matrix.toarray())
    assert hasattr(source.parse(next(source.segments())).X, "tocsr")


def test_csr_refusals(tmp_path):
    """Damage and other layouts."""
    matrix = scipy.sparse.random(50, 20, 0.2, "csr", rng=np.random.default_rng(0))
    path = str(tmp_path / "g")
    made = sparse_group(path, matrix)
    with pytest.raises(SourceError, match=r"target='3': .* is sparse"):
        open_zarr(path, Reading(target="3"))
    made["X"].attrs["encoding-type"] = "csc_matrix"
    with pytest.raises(SourceError, match=r"encoding-type 'csc_matrix'; save X.tocsr"):
        open_zarr(path, Reading())
    sparse_group(path, matrix, indptr=matrix.indptr[:-2])
    with pytest.raises(SourceError, match="indptr does not match 50 rows"):
        open_zarr(path, Reading())
    values = matrix.data.copy()
    values[-1] = np.nan
    sparse_group(path, matrix, data=values)
    with pytest.raises(SourceError, match="missing value in row 49, column"):
        read_whole(open_zarr(path, Reading()))


def test_data_sets_of_dkl(tmp_path):
    """Only whole ones, and one split at a time."""
    path = str(tmp_path / "d")
    made = group(path, X=X, y=Y)
    made.attrs.update({"format": "dkl-dataset", "complete": False})
    with pytest.raises(SourceError, match=f"was not ingested completely; run dkl resume {path}"):
        open_zarr(path, Reading())
    made.attrs["complete"] = True
    with pytest.warns(UserWarning, match="was ingested by an older dkl without checksums"):
        opened = open_zarr(path, Reading())
    np.testing.assert_array_equal(read_whole(opened)[0], X)
    made = group(path)
    made.attrs.update({"format": "dkl-dataset", "complete": True, "splits": ["train", "test"]})
    group(tmp_path / "d" / "train", X=X, y=Y)
    with pytest.raises(SourceError, match=f"is split into train, test; give one of them, as in {path}/train"):
        open_zarr(path, Reading())
    assert open_zarr(path + "/train", Reading()).has_target


def test_missing_and_infinite(tmp_path):
    """With the row of the array."""
    broken = X.copy()
    broken[33, 1] = np.nan
    group(tmp_path / "g", X=broken, y=Y)
    with pytest.raises(SourceError, match="missing value in row 33, column '1'"):
        read_whole(open_zarr(str(tmp_path / "g"), Reading()))
    assert np.isnan(read_whole(open_zarr(str(tmp_path / "g"), Reading(missing="mean")))[0][33, 1])
    broken[34, 1] = np.inf
    group(tmp_path / "g", X=broken, y=Y)
    with pytest.raises(SourceError, match="row 34, column '1' holds inf"):
        read_whole(open_zarr(str(tmp_path / "g"), Reading(missing="mean")))
    group(tmp_path / "g", X=X, y=np.where(Y == 1, np.nan, 0))
    with pytest.raises(SourceError, match="no label in row 1; use --missing drop"):
        read_whole(open_zarr(str(tmp_path / "g"), Reading(missing="mean")))


def test_other_refusals(tmp_path):
    """Shapes, dtypes, damage, nothing there."""
    path = str(tmp_path / "g")
    for arrays, sentence in (
        ({"X": X[0]}, "holds an array of shape .6,.; give rows and columns"),
        ({"X": X, "y": Y[:9]}, "/y' has shape .9,.; give 50 labels"),
        ({"X": X.astype(complex)}, "complex numbers"),
        ({"z": Y}, "2-D arrays are: none"),
    ):
        group(path, **arrays)
        with pytest.raises(SourceError, match=sentence):
            open_zarr(path, Reading())
    with pytest.raises(SourceError, match="is not a readable Zarr store"):
        open_zarr(str(tmp_path / "nowhere"), Reading())
    group(path, X=X)
    chunk = next(file for file in (tmp_path / "g" / "X" / "c").rglob("*") if file.is_file())
    chunk.write_bytes(b"damage")
    with pytest.raises(SourceError, match=r"chunk c/\d+/0 of .* is damaged"):
        read_whole(open_zarr(path, Reading()))
