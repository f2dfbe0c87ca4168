"""Where rows are cut into blocks, and what a part of them reads."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import zarr

from dkl.engine.blocks import Part, Rows
from dkl.engine.columns import MemoryColumn
from dkl.engine.tables import Table, open_table

X, Y = np.arange(30.0).reshape(10, 3), np.arange(10.0)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(1, [1] * 10), (3, [2, 3, 2, 3]), (4, [3, 3, 4]), (5, [5, 5]), (9, [5, 5]), (10, [10]), (99, [10])],
)
def test_rows_in_memory_are_cut_evenly(wanted, expected):
    """At most as many as wanted, of sizes that differ by one."""
    rows = Rows([Table("memory", X), None], ["X", "y"])
    blocks = rows.blocks(wanted)
    assert [stop - start for start, stop in blocks] == expected
    assert [start for start, _ in blocks] == [0, *(stop for _, stop in blocks[:-1])]
    assert rows.largest_block(wanted) == max(expected)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(1, [(0, 3), (3, 5), (5, 9), (9, 10)]), (4, [(0, 5), (5, 9), (9, 10)]), (6, [(0, 9), (9, 10)]), (99, [(0, 10)])],
)
def test_lazy_rows_are_cut_where_their_chunks_are(wanted, expected):
    """Whole chunks, as many as are wanted at least; what is left in the end is a block too; empty chunks are none."""
    rows = Rows([Table("dask", da.from_array(X, ((3, 2, 0, 4, 1), 3)))], ["X"])
    assert rows.is_lazy
    assert rows.blocks(wanted) == expected
    assert rows.largest_block(wanted) == max(stop - start for start, stop in expected)


@pytest.mark.parametrize("kind", ["memory", "dask", "zarr"])
def test_parts_read_their_rows(kind, tmp_path):
    """Block numbers, first rows and data of parts of one and two blocks; a column that is not given is None."""
    if kind == "zarr":
        zarr.create_array(str(tmp_path / "x.zarr"), data=X, chunks=(2, 3))
    table = {
        "memory": lambda: Table("memory", X),
        "dask": lambda: Table("dask", da.from_array(X, (2, 3))),
        "zarr": lambda: open_table(str(tmp_path / "x.zarr")),
    }[kind]()
    rows = Rows([table, Table("memory", Y), None], ["X", "y", "sample_weight"])
    blocks = rows.blocks(2)
    parts = rows.cut([blocks[:1], blocks[1:3], blocks[3:]])
    assert [part.n_rows for part in parts] == [2, 4, 4]
    assert [part.first for part in parts] == [0, 1, 3]
    read = [block for part in parts for block in part.read()]
    assert [(number, start) for number, start, _ in read] == [(0, 0), (1, 2), (2, 4), (3, 6), (4, 8)]
    for _, start, (some, y, weight) in read:
        np.testing.assert_array_equal(np.asarray(some), X[start : start + 2])
        np.testing.assert_array_equal(y, Y[start : start + 2])
        assert weight is None


def test_columns_of_other_lengths():
    """Refused when the rows are known beforehand, and when a block turns out to have fewer."""
    with pytest.raises(ValueError, match="X has 10 rows, y has 9: inconsistent numbers of samples"):
        Rows([Table("memory", X), Table("memory", Y[:9])], ["X", "y"])
    with pytest.raises(ValueError, match=r"X has 0 sample\(s\); a minimum of 1 is required"):
        Rows([Table("memory", X[:0])], ["X"])
    part = Part(0, [(0, 5), (5, 10)], [MemoryColumn(X), MemoryColumn(Y[:9])])
    blocks = part.read()
    assert next(blocks)[2][1].tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(
        ValueError, match=r"a block of rows 5\.\.10 has \[4, 5\] rows; X, y and sample_weight must agree"
    ):
        next(blocks)
