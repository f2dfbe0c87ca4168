"""Arrays of sparse rows: those that fit together pass, each way to be broken names its row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.features.refusal import Refusal
from dkl.features.sparse import as_csr, check_compressed

X = np.array([[1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0]])


@pytest.mark.parametrize(
    ("indptr", "indices", "values"),
    [
        ([0, 2, 2, 3], [0, 3, 2], 3),
        ([0, 0, 0, 0], [], 0),
        ([0, 2, 2, 3], [0, 3, 2, 99, -5], 5),
        ([0, 2, 2, 2], [0, 3, 99], 3),
        ([0, 1, 2, 3], [3, 3, 3], 3),
        (np.array([0, 1, 2, 3], np.uint64), np.array([1, 2, 1], np.uint8), 3),
    ],
)
def test_arrays_that_fit(indptr, indices, values):
    """Entries after the last row do not matter, nor do empty rows."""
    check_compressed(np.asarray(indptr), np.asarray(indices, getattr(indices, "dtype", np.int32)), values, 4, 3)


@pytest.mark.parametrize(
    ("indptr", "indices", "values", "row", "line"),
    [
        ([0.0, 1, 2, 3], [0, 1, 2], 3, 0, "its indices are int64, indptr float64"),
        ([0, 1, 2, 3], [0.0, 1, 2], 3, 0, "its indices are float64, indptr int64"),
        ([0, 1, 2], [0, 1], 2, 0, "3 rows have 3 bounds, 2 values and 2 columns"),
        ([0, 1, 2, 2, 2], [0, 1], 2, 0, "3 rows have 5 bounds, 2 values and 2 columns"),
        ([0, 1, 1, 1], [0], 2, 0, "3 rows have 4 bounds, 2 values and 1 columns"),
        ([0, 1, 1, 1], [0, 1, 2], 2, 0, "3 rows have 4 bounds, 2 values and 3 columns"),
        ([1, 2, 2, 3], [0, 1, 2], 3, 0, "row 0 of X begins at entry 1, not at 0"),
        ([-1, 2, 2, 3], [0, 1, 2], 3, 0, "row 0 of X begins at entry -1, not at 0"),
        ([0, 2, 1, 3], [0, 1, 2], 3, 1, "row 1 of X ends before it begins"),
        ([0, 3, 3, 2], [0, 1, 2], 3, 2, "row 2 of X ends before it begins"),
        ([0, -1, 2, 3], [0, 1, 2], 3, 0, "row 0 of X ends before it begins"),
        ([0, 1, 2, 4], [0, 1, 2], 3, 2, "row 2 of X ends after the last of 3 values"),
        ([0, 1, 4, 4], [0, 1, 2], 3, 1, "row 1 of X ends after the last of 3 values"),
        ([0, 4, 5, 6], [0, 1, 2], 3, 0, "row 0 of X ends after the last of 3 values"),
        ([0, 2, 2, 3], [0, 1, 4], 3, 2, "row 2 of X has column 4, but there are 4 columns"),
        ([0, 2, 2, 3], [0, 7, 0], 3, 0, "row 0 of X has column 7, but there are 4 columns"),
        ([0, 1, 2, 3], [0, -1, 0], 3, 1, "row 1 of X has column -1, but there are 4 columns"),
        ([0, 1, 2, 3], [0, -1, 9], 3, 1, "row 1 of X has column -1, but there are 4 columns"),
        ([0, 1, 2, 3], [0, 4, -9], 3, 1, "row 1 of X has column 4, but there are 4 columns"),
    ],
)
def test_arrays_that_do_not_fit(indptr, indices, values, row, line):
    """The first row that reaches outside, and why."""
    with pytest.raises(Refusal) as caught:
        check_compressed(indptr, indices, values, 4, 3)
    assert caught.value.row == row
    assert line in str(caught.value)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "lil", "dia", "coo", "dok"])
def test_every_format(kind):
    """The same numbers as csr; csr itself is not copied."""
    given = sp.csr_array(X).asformat(kind)
    found = as_csr(given)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), X)
    assert (found is given) == (kind == "csr")
    np.testing.assert_array_equal(as_csr(sp.csr_array((3, 4)).asformat(kind)).toarray(), np.zeros((3, 4)))


def test_one_dimension():
    """Rows and columns are asked for."""
    with pytest.raises(Refusal, match="X has 1 dimensions; give rows and columns") as caught:
        as_csr(sp.coo_array(np.arange(3.0)))
    assert caught.value.row == 0


def spoilt(kind, change, matrix=X, **how):
    """A matrix in a format, changed."""
    made = sp.csr_array(matrix).asformat(kind, **how)
    change(made)
    return made


def replaced(name, place, value):
    """One number of one array is another."""
    return lambda made: getattr(made, name).__setitem__(place, value)


def test_columns_are_said_of_columns():
    """A csc matrix has rows where csr has columns."""
    bad = spoilt("csc", replaced("indices", 1, 3))
    with pytest.raises(Refusal) as caught:
        as_csr(bad)
    assert str(caught.value) == "column 2 of X has row 3, but there are 3 rows"
    assert caught.value.row == 0
    assert caught.value.at(5, "Z") == (5, "column 2 of Z has row 3, but there are 3 rows")


def test_blocks():
    """Of 2 x 3: the first row of the block row is named."""
    wide = np.kron(np.eye(3), np.ones((2, 3)))
    assert as_csr(sp.bsr_array(wide, blocksize=(2, 3))).shape == (6, 9)
    bad = sp.bsr_array(wide, blocksize=(2, 3))
    bad.indices[2] = 3
    with pytest.raises(Refusal) as caught:
        as_csr(bad)
    assert caught.value.row == 4
    assert str(caught.value) == "row 4 of X has column 3, but there are 3 columns of 2 x 3 blocks"


@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("more", [True, False])
def test_lists(place, more):
    """A row with more or fewer columns than values, and lists for other rows than there are."""
    bad = sp.csr_array(X).tolil()
    if more:
        bad.rows[place] = [*bad.rows[place], 1]
    else:
        bad.rows[place] = bad.rows[place][:-1]
    with pytest.raises(Refusal, match="its lists differ in length") as caught:
        as_csr(bad)
    assert caught.value.row == 0
    for rows in (2, 4):
        lists = np.empty(rows, object)
        lists[:] = [[] for _ in range(rows)]
        short = sp.csr_array((3, 4)).tolil()
        short.rows = lists
        with pytest.raises(Refusal, match="differ in length"):
            as_csr(short)


@pytest.mark.parametrize("offset", [-2, -1, 0, 3, -3, 4, -9, 9])
def test_diagonals(offset):
    """Those between the corners of 3 x 4 are right; others, which scipy forgets in silence, are refused."""
    made = sp.dia_array((np.ones((1, 4)), [0]), shape=(3, 4))
    made.offsets = np.array([offset])
    if -3 < offset < 4:
        rows, columns = np.indices((3, 4))
        np.testing.assert_array_equal(as_csr(made).toarray(), columns - rows == offset)
        return
    line = f"X has a diagonal at offset {offset}, but there are 3 rows, 4 columns"
    with pytest.raises(Refusal, match=line) as caught:
        as_csr(made)
    assert caught.value.row == 0


@pytest.mark.parametrize(("offsets", "data"), [([0, 1], (1, 4)), ([0], (2, 4)), ([0, 1, 2, 3], (4,)), ([0], (4,))])
def test_diagonals_and_offsets_that_disagree(offsets, data):
    """More of one than of the other, or data that are no table."""
    made = sp.dia_array((np.ones((1, 4)), [0]), shape=(3, 4))
    made.offsets, made.data = np.array(offsets), np.ones(data)
    with pytest.raises(Refusal, match=r"it has \d+ diagonals and \d+ offsets") as caught:
        as_csr(made)
    assert caught.value.row == 0


@pytest.mark.parametrize(
    ("row", "col", "line"),
    [
        ([0, 3, 1], [0, 1, 2], "X has an entry at row 3, column 1, but there are 3 rows"),
        ([0, -1, 1], [0, 1, 2], "X has an entry at row -1, column 1, but there are 3 rows"),
        ([0, 5, -1], [0, 1, 2], "X has an entry at row 5, column 1, but there are 3 rows"),
        ([1, 2, 1], [1, 4, 2], "X has an entry at row 2, column 4, but there are 4 columns"),
        ([1, 2, 1], [1, -2, 2], "X has an entry at row 2, column -2, but there are 4 columns"),
    ],
)
def test_coordinates_outside(row, col, line):
    """The first such entry, by row and column."""
    made = sp.coo_array((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(3, 4))
    made.coords = (np.array(row), np.array(col))
    with pytest.raises(Refusal) as caught:
        as_csr(made)
    assert (str(caught.value), caught.value.row) == (line, 0)


@pytest.mark.parametrize("sizes", [(2, 3, 3), (3, 2, 3), (3, 3, 2), (3, 3, 4)])
def test_coordinates_that_disagree(sizes):
    """As many rows as columns as values."""
    made = sp.coo_array((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(3, 4))
    made.coords, made.data = (np.arange(sizes[0]) % 3, np.arange(sizes[1])), np.ones(sizes[2])
    with pytest.raises(Refusal, match=r"it has \d+ rows, \d+ columns and \d+ values") as caught:
        as_csr(made)
    assert caught.value.row == 0
