"""Sparse rows in Zarr, one by one: what a group must hold, what it says of itself, and which row is damaged."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from dkl.engine.sparse import SparseRows, is_sparse_group
from dkl.sources.damage import Damaged

DENSE = np.zeros((7, 3))
DENSE[[0, 0, 1, 3, 4, 4, 6], [0, 2, 1, 0, 1, 2, 2]] = np.arange(1.0, 8.0)
MATRIX = sp.csr_array(DENSE)  # indptr 0 2 3 3 4 6 6 7


def write(path, **changes):
    """The group of the matrix, with arrays or attributes in place of its own."""
    inner = zarr.open_group(str(path), mode="w").create_group("X")
    about = {"encoding-type": "csr_matrix", "shape": [7, 3], "block_rows": changes.pop("block_rows", None)}
    inner.attrs.put({k: v for k, v in (about | {"shape": changes.pop("shape", [7, 3])}).items() if v is not None})
    for name in ("data", "indices", "indptr"):
        values = np.asarray(changes.pop(name, getattr(MATRIX, name)))
        inner.create_array(name, data=values, chunks=(max(1, min(4, len(values))),))
    assert not changes
    return inner


def test_which_groups_hold_sparse_rows(tmp_path):
    """csr by its name, with row bounds."""
    group = write(tmp_path / "a")
    assert is_sparse_group(group)
    group.attrs["encoding-type"] = "csc_matrix"
    assert not is_sparse_group(group)
    del group.attrs["encoding-type"]
    assert not is_sparse_group(group)
    bare = zarr.open_group(str(tmp_path / "b"), mode="w")
    bare.attrs["encoding-type"] = "csr_matrix"
    assert not is_sparse_group(bare)


def test_what_the_rows_say_of_themselves(tmp_path):
    """Shape, dtype, chunks by `block_rows` or by the chunks of the bounds; bytes of a row with its bound."""
    rows = SparseRows(write(tmp_path / "a", indices=MATRIX.indices.astype(np.int32)))
    assert (rows.shape, rows.ndim, rows.shards, rows.dtype) == ((7, 3), 2, None, np.float64)
    assert rows.chunks == (4, 3)
    assert rows.row_bytes == 12 + 8  # 7 entries of 8 + 4 bytes in 7 rows
    assert SparseRows(write(tmp_path / "b", block_rows=2)).chunks == (2, 3)
    assert SparseRows(write(tmp_path / "c", block_rows=100)).chunks == (7, 3)
    small = {"data": [1.0, 2.0], "indices": np.array([0, 1], np.int64), "indptr": [0, 1, 1, 2], "shape": [3, 4]}
    assert SparseRows(write(tmp_path / "d", **small)).row_bytes == -(-2 * 16 // 3) + 8
    empty = {"data": np.zeros(0), "indices": np.zeros(0, int), "indptr": [0], "shape": [0, 3]}
    none = SparseRows(write(tmp_path / "e", **empty))
    assert (none.chunks, none.row_bytes) == ((1, 3), 8)
    one = SparseRows(write(tmp_path / "f", data=[1.0, 2.0], indices=[0, 1], indptr=[0, 2], shape=[1, 3]))
    assert one.row_bytes == 2 * 16 + 8


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [6, 3]},
        {"shape": [8, 3]},
        {"shape": [7]},
        {"shape": [7, 3, 1]},
        {"shape": []},
        {"data": MATRIX.data[:-1]},
        {"indices": MATRIX.indices[:-1]},
        {"indptr": MATRIX.indptr[:-1]},
    ],
)
def test_arrays_that_do_not_agree(tmp_path, changes):
    """Refused when they are opened."""
    group = write(tmp_path / "a", **changes)
    with pytest.raises(ValueError, match=r"the sparse group 'X' of .* is damaged: its arrays do not match"):
        SparseRows(group)


@pytest.mark.parametrize("name", ["indices", "indptr"])
def test_indices_must_be_integers(tmp_path, name):
    """Signed or not; each of both arrays."""
    SparseRows(write(tmp_path / "a", **{name: getattr(MATRIX, name).astype(np.uint32)}))
    with pytest.raises(ValueError, match=r"has indices of dtype .* and indptr of dtype .*; store integers"):
        SparseRows(write(tmp_path / "b", **{name: getattr(MATRIX, name).astype(float)}))


def test_every_range(tmp_path):
    """As scipy has it, also by a pair of slices; a step, and a single row, are not ranges."""
    rows = SparseRows(write(tmp_path / "a"))
    for start in range(8):
        for stop in range(8):
            found = rows[start:stop]
            assert found.format == "csr"
            assert found.shape == (max(0, stop - start), 3)
            np.testing.assert_array_equal(found.toarray(), DENSE[start:stop])
    np.testing.assert_array_equal(rows[2:5, :].toarray(), DENSE[2:5])
    np.testing.assert_array_equal(rows[::1].toarray(), DENSE)
    for step in (2, -1):
        with pytest.raises(IndexError, match="sliced with step 1, not "):
            rows[::step]


def spoil(**entries):
    """Row bounds of the matrix with some changed, by position."""
    bounds = MATRIX.indptr.copy()
    for place, value in entries.items():
        bounds[int(place[1:])] = value
    return {"indptr": bounds}


@pytest.mark.parametrize(
    ("changes", "part", "said"),
    [
        (spoil(p3=9), slice(2, 3), "row 2 reaches outside its 7 entries; write it again"),
        (spoil(p3=9, p4=9, p5=9), slice(1, 5), "row 2 reaches outside"),
        (spoil(p4=9, p5=9), slice(1, 5), "row 3 reaches outside"),
        (spoil(p2=-1), slice(2, 4), "row 2 reaches outside"),
        (spoil(p3=-4), slice(1, 3), "row 2 reaches outside"),
        (spoil(p5=1), slice(3, 5), "row 4 reaches outside"),
        (spoil(p4=1, p5=1), slice(3, 5), "row 3 reaches outside"),
        (spoil(p0=1), slice(0, 2), "its rows hold entries 1 to 3, but 7 are stored"),
        (spoil(p7=6), slice(5, 7), "its rows hold entries 6 to 6, but 7 are stored"),
        (spoil(p3=1), slice(1, 5), "row 2 of X ends before it begins"),
        ({"indices": [0, 2, 1, 3, 1, 2, 2]}, slice(2, 6), "row 3 of X has column 3, but there are 3 columns"),
        ({"indices": [0, 2, 1, 0, 1, -1, 2]}, slice(1, 6), "row 4 of X has column -1"),
    ],
)
def test_a_damaged_row_is_named(tmp_path, changes, part, said):
    """With its number among all rows; other ranges can be read."""
    rows = SparseRows(write(tmp_path / "a", **changes))
    with pytest.raises(Damaged, match=f"is damaged: {said}"):
        rows[part]
    assert str(tmp_path / "a") in rows._place
    for start in range(7):
        if not any(part.start - 1 <= row <= part.stop for row in (start, start + 1)):
            np.testing.assert_array_equal(rows[start : start + 1].toarray(), DENSE[start : start + 1])
