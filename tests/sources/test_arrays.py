"""NumPy's files against np.load."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from dkl.sources import raw, sparse
from dkl.sources.arrays import open_npy, open_npz
from dkl.sources.batch import Column, Reading, SourceError
from tests.sources.whole import read_whole

KEPT = {"u1": "u1", "i1": "i1", "u2": "u2", "i2": "i2", "f4": "f4", "f8": "f8", ">f4": "f4", ">i2": "i2"}
CHANGED = {"?": "u1", "f2": "f4", "i4": "f8", "u4": "f8", "i8": "f8", "u8": "f8", "g": "f8", ">i4": "f8"}


@pytest.fixture(autouse=True, params=[1, 200, 2**23])
def small(request, monkeypatch):
    """Segments of a row, some rows, all rows."""
    monkeypatch.setattr(raw, "SEGMENT", request.param)
    monkeypatch.setattr(sparse, "SEGMENT", request.param)
    return request.param


@pytest.fixture
def numbers():
    """Forty rows of five small numbers."""
    return np.random.default_rng(0).integers(0, 90, (40, 5))


def save(path, array, pack=bytes):
    """An .npy file, compressed or not."""
    np.save(path, array)
    path.write_bytes(pack(path.read_bytes()))
    return str(path)


@pytest.mark.parametrize("dtype", [*KEPT, *CHANGED])
def test_dtypes(tmp_path, numbers, dtype):
    """Small ones are kept, the others become the float that holds them."""
    path = save(tmp_path / "a.npy", numbers.astype(dtype))
    source = open_npy(path, Reading())
    X, y, _, _ = read_whole(source)
    assert y is None
    assert X.dtype == np.dtype({**KEPT, **CHANGED}[dtype])
    np.testing.assert_array_equal(X, np.load(path))
    assert source.columns == [Column(str(i)) for i in range(5)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compressed(tmp_path, numbers, pack):
    """By content, whatever the name."""
    X, _, _, segments = read_whole(open_npy(save(tmp_path / "a.npy", numbers, pack), Reading()))
    np.testing.assert_array_equal(X, numbers)
    assert segments in (40, 8, 1)


def test_fortran_order(tmp_path, numbers, monkeypatch):
    """Mapped where it is a local file, turned in memory where it is not, refused where that is too large."""
    path = save(tmp_path / "a.npy", np.asfortranarray(numbers.astype("f4")))
    X, y, _, _ = read_whole(open_npy(path, Reading(target="1")))
    np.testing.assert_array_equal(X, numbers[:, [0, 2, 3, 4]])
    np.testing.assert_array_equal(y, numbers[:, 1])
    packed = save(tmp_path / "b.npy", np.asfortranarray(numbers), gzip.compress)
    np.testing.assert_array_equal(read_whole(open_npy(packed, Reading()))[0], numbers)
    monkeypatch.setattr(raw, "MOST_TRANSPOSED", numbers.nbytes - 1)
    with pytest.raises(SourceError, match=r"is in Fortran order .* save np.ascontiguousarray"):
        open_npy(packed, Reading())
    with open(path, "r+b") as file:
        file.truncate(300)
    with pytest.raises(SourceError, match="cannot be mapped"):
        open_npy(path, Reading())


def test_target_is_a_column(tmp_path, numbers):
    """By position; others may be dropped."""
    path = save(tmp_path / "a.npy", numbers.astype("f4"))
    source = open_npy(path, Reading(target="-1", drop=("0",)))
    X, y, _, _ = read_whole(source)
    np.testing.assert_array_equal(X, numbers[:, 1:4])
    np.testing.assert_array_equal(y, numbers[:, 4])
    assert source.columns == [Column("1"), Column("2"), Column("3")]
    how = Reading(target="-1", inputs=tuple(map(Column, "01234")))
    assert not open_npy(path, how).has_target
    with pytest.raises(SourceError, match="has 5 columns; the data set was made from 7"):
        open_npy(path, Reading(inputs=tuple(map(Column, "0123456"))))


def test_target_is_a_file(tmp_path, numbers):
    """npy, IDX or text, compressed or not; numbers or names."""
    path, y = save(tmp_path / "a.npy", numbers), np.arange(40) % 7
    idx = tmp_path / "y.idx"
    idx.write_bytes(gzip.compress(b"\0\0\x08\x01\0\0\0\x28" + bytes(y.tolist())))
    lines = tmp_path / "y.txt"
    lines.write_text("\n".join(map(str, y)) + "\n\n")
    for target in (
        save(tmp_path / "y.npy", y, lzma.compress),
        save(tmp_path / "z.npy", y[:, None]),
        str(idx),
        str(lines),
    ):
        np.testing.assert_array_equal(read_whole(open_npy(path, Reading(target=target)))[1], y)
    names = [f"class {i}" for i in y]
    lines.write_text("\r\n".join(names))
    assert read_whole(open_npy(path, Reading(target=str(lines))))[1] == names
    assert read_whole(open_npy(path, Reading(target=save(tmp_path / "n.npy", np.array(names)))))[1] == names
    assert read_whole(open_npy(path, Reading(target=save(tmp_path / "n.npy", np.array(names, "S")))))[1] == names


def test_labels_that_do_not_fit(tmp_path, numbers):
    """Too few, too many, or no labels at all."""
    path, lines = save(tmp_path / "a.npy", numbers), tmp_path / "y.txt"
    with pytest.raises(SourceError, match=r"has 40 rows but .* has 39 labels"):
        open_npy(path, Reading(target=save(tmp_path / "y.npy", np.arange(39))))
    with pytest.raises(SourceError, match=r"has shape .40, 2.; give one label per row"):
        open_npy(path, Reading(target=save(tmp_path / "y.npy", numbers[:, :2])))
    with pytest.raises(SourceError, match=r"target='no\.npy' is not a file; give a column's position"):
        open_npy(path, Reading(target="no.npy"))
    for content, sentence in {
        "1\n" * 39: "has 39 labels, fewer than rows",
        "1\n" * 41: "has labels after line 40",
        "1\n\n" + "1\n" * 39: "line 2 holds ''",
        "1\n" * 33000 + "x\n" * 9: "has labels after line 40",
    }.items():
        lines.write_text(content)
        with pytest.raises(SourceError, match=sentence):
            read_whole(open_npy(path, Reading(target=str(lines))))


def test_missing_and_infinite(tmp_path, numbers):
    """With the row in the file, whatever the segment."""
    array = numbers.astype("f4")
    array[31, 2] = np.nan
    path = save(tmp_path / "a.npy", array)
    with pytest.raises(SourceError, match="missing value in row 31, column '2'; use --missing"):
        read_whole(open_npy(path, Reading()))
    np.testing.assert_array_equal(read_whole(open_npy(path, Reading(missing="zero")))[0], array)
    with pytest.raises(SourceError, match="missing value in row 31, column '2'"):
        read_whole(open_npy(path, Reading(missing="zero", target="2")))
    assert np.isnan(read_whole(open_npy(path, Reading(missing="drop", target="2")))[1][31])
    array[33, 4] = -np.inf
    array[35, 4] = np.inf
    with pytest.raises(SourceError, match="row 33, column '4' holds -inf, which is not a finite number"):
        read_whole(open_npy(save(tmp_path / "a.npy", array), Reading(missing="zero")))
    labels = save(tmp_path / "y.npy", np.where(np.arange(40) == 5, np.nan, 1.0))
    with pytest.raises(SourceError, match="no label in row 5; use --missing drop"):
        read_whole(open_npy(save(tmp_path / "a.npy", numbers), Reading(target=labels)))


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.arange(5), r"is 1-D, of shape \(5,\)"),
        (np.zeros((2, 3, 4)), "is 3-D"),
        (np.zeros((2, 2), complex), "complex numbers"),
        (np.array([["a"]]), "text or dates"),
        (np.zeros((0, 3)), "give at least one "),
        (np.zeros((3, 0)), "give at least one "),
        (np.zeros(3, "i4,f4"), "holds records"),
        (np.array([[None]]), "Python objects, which are never unpickled"),
    ],
)
def test_other_arrays_are_refused(tmp_path, array, sentence):
    """By the header alone."""
    with pytest.raises(SourceError, match=sentence):
        open_npy(save(tmp_path / "a.npy", array), Reading())


def test_truncated_and_too_long(tmp_path, numbers):
    """The rows that are there are counted."""
    path = tmp_path / "a.npy"
    whole = Path(save(path, numbers.astype("f4"))).read_bytes()
    for pack in (bytes, gzip.compress):
        path.write_bytes(pack(whole[:-50]))
        with pytest.raises(SourceError, match="is truncated: it holds 37 of its 40 rows"):
            read_whole(open_npy(str(path), Reading()))
    path.write_bytes(whole + b"\0")
    with pytest.raises(SourceError, match="has bytes after the 40 rows"):
        read_whole(open_npy(str(path), Reading()))
    for cut in (3, 30):
        path.write_bytes(whole[:cut])
        with pytest.raises(SourceError, match="is not an npy file, or is damaged"):
            open_npy(str(path), Reading())
    path.write_bytes(whole)
    with pytest.raises(SourceError, match="--categorical 0 does not apply"):
        open_npy(str(path), Reading(categorical=("0",)))


@pytest.mark.parametrize("savez", [np.savez, np.savez_compressed])
def test_npz(tmp_path, numbers, savez):
    """X and y by their usual names, or as they are named."""
    path, y = str(tmp_path / "a.npz"), np.arange(40) % 3
    for names in (("X", "y"), ("x", "target"), ("data", "labels"), ("matrix", "y")):
        savez(path, **dict(zip(names, (numbers, y), strict=True)))
        X, target, _, _ = read_whole(open_npz(path, Reading()))
        np.testing.assert_array_equal(X, numbers)
        np.testing.assert_array_equal(target, y)
        assert read_whole(open_npz(path, Reading(target="none")))[1] is None
    savez(path, X=numbers, other=y.astype(str))
    assert read_whole(open_npz(path, Reading()))[1] is None
    assert read_whole(open_npz(path, Reading(target="other")))[1] == y.astype(str).tolist()
    np.testing.assert_array_equal(read_whole(open_npz(path, Reading(target="0")))[1], numbers[:, 0])


def test_npz_refusals(tmp_path, numbers):
    """What holds no inputs, or not only those."""
    path = str(tmp_path / "a.npz")
    np.savez(path, a=numbers, b=numbers)
    with pytest.raises(SourceError, match=r"holds a \(40, 5\), b \(40, 5\); save the inputs as the member X"):
        open_npz(path, Reading())
    np.savez(path, X=numbers, y=np.arange(3))
    with pytest.raises(SourceError, match=r"has 40 rows but .*/y' has 3 labels"):
        open_npz(path, Reading())
    np.savez(path, X=np.asfortranarray(numbers))
    np.testing.assert_array_equal(read_whole(open_npz(path, Reading()))[0], numbers)
    np.savez(path, X=np.arange(3))
    with pytest.raises(SourceError, match=r"member 'X' of .* has the shape \(3,\)"):
        open_npz(path, Reading())
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "1,2\n")
    with pytest.raises(SourceError, match=r"is a zip of 'a.csv', not of arrays; unpack it"):
        open_npz(path, Reading())


def test_damaged_npz(tmp_path, numbers):
    """A wrong byte, and an end in the middle."""
    path = tmp_path / "a.npz"
    np.savez(path, X=numbers)
    whole = bytearray(path.read_bytes())
    path.write_bytes(whole[:500])
    with pytest.raises(SourceError, match="is damaged"):
        open_npz(str(path), Reading())
    whole[400] ^= 255
    path.write_bytes(whole)
    with pytest.raises(SourceError, match="is damaged: Bad CRC"):
        read_whole(open_npz(str(path), Reading()))


def test_sparse_npz(tmp_path):
    """csr as it is, empty rows and columns and all."""
    full = scipy.sparse.random(60, 30, 0.1, "csr", np.float32, rng=np.random.default_rng(0)).toarray()
    full[:, 29], full[10:20] = 0, 0
    X = scipy.sparse.csr_matrix(full)
    path, y = str(tmp_path / "a.npz"), np.arange(60.0)
    scipy.sparse.save_npz(path, X)
    source = open_npz(path, Reading(target=save(tmp_path / "y.npy", y)))
    got, labels, _, segments = read_whole(source)
    np.testing.assert_array_equal(got, X.toarray())
    np.testing.assert_array_equal(labels, y)
    assert got.dtype == np.float32
    assert len(source.columns) == 30
    assert segments >= 1
    assert hasattr(source.parse(next(source.segments())).X, "tocsr")


def test_sparse_npz_refusals(tmp_path):
    """Other formats, damage, values that may not be, with their row."""
    path = str(tmp_path / "a.npz")
    X = scipy.sparse.random(20, 6, 0.5, "csr", rng=np.random.default_rng(0))
    for kind in ("csc", "coo"):
        scipy.sparse.save_npz(path, X.asformat(kind))
        with pytest.raises(SourceError, match=f"a sparse matrix in {kind} format; save X.tocsr"):
            open_npz(path, Reading())
    scipy.sparse.save_npz(path, X)
    with pytest.raises(SourceError, match=r"target='-1': .* is sparse"):
        open_npz(path, Reading(target="-1"))
    with pytest.raises(SourceError, match="--drop 1 does not apply"):
        open_npz(path, Reading(drop=("1",)))
    for value, sentence in ((np.nan, "missing value in row {}, column"), (np.inf, "row {}, column .* holds inf")):
        broken = X.copy()
        broken.data[-1] = value
        scipy.sparse.save_npz(path, broken)
        with pytest.raises(SourceError, match=sentence.format(19)):
            read_whole(open_npz(path, Reading()))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "format": np.array(b"csr")}
    for change, sentence in (
        ({"indices": X.indices + 3}, "but declares 6 columns"),
        ({"indptr": X.indptr[:-1]}, "indptr does not match 20 rows"),
        ({"data": X.data[:-1]}, "indptr does not match"),
        ({"shape": np.array([20])}, "give a matrix of rows and columns"),
        ({"indices": np.zeros_like(X.indices)}, r"has column 0 twice in row 0; call X.sum_duplicates"),
    ):
        np.savez(path, **{**parts, **change})
        with pytest.raises(SourceError, match=sentence):
            read_whole(open_npz(path, Reading()))
