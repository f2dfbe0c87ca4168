"""Where rows are cut into blocks, and what a part of them reads."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from dkl.engine.blocks import Part, Rows
from dkl.engine.row_readers import MemoryColumn
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


def kinds_of(path):
    """X and y in memory, as Dask arrays cut in other places, and in Zarr."""
    zarr.create_array(str(path / "x"), data=X, chunks=(4, 3))
    zarr.create_array(str(path / "y"), data=Y, chunks=(3,))
    return {
        "memory": (Table("memory", X), Table("memory", Y)),
        "dask": (Table("dask", da.from_array(X, ((4, 6), 3))), Table("dask", da.from_array(Y, ((1, 5, 4),)))),
        "zarr": (open_table(path / "x"), open_table(path / "y")),
    }


@pytest.mark.parametrize("first", ["memory", "dask", "zarr"])
@pytest.mark.parametrize("second", ["memory", "dask", "zarr"])
def test_columns_of_every_kind_side_by_side(tmp_path, first, second):
    """The first decides where blocks are cut; the second follows, whatever its own chunks are."""
    kinds = kinds_of(tmp_path)
    rows = Rows([kinds[first][0], kinds[second][1]], ["X", "y"])
    assert (rows.n_rows, rows.is_lazy) == (10, first != "memory")
    blocks = rows.blocks(4)
    assert blocks == {"memory": [(0, 3), (3, 6), (6, 10)], "dask": [(0, 4), (4, 10)]}.get(
        first, [(0, 4), (4, 8), (8, 10)]
    )
    assert rows.largest_block(4) == max(stop - start for start, stop in blocks)
    parts = rows.cut([blocks[:1], blocks[1:]])
    shared = rows.shared(parts)
    assert set(shared) == set().union(*(part.needs for part in parts))
    values = dict(zip(shared, dask.compute(*shared.values(), scheduler="sync"), strict=True)) if shared else {}
    for part in parts:
        for _, start, (x, y) in part.read(values):
            np.testing.assert_array_equal(np.asarray(x), X[start : start + len(x)])
            np.testing.assert_array_equal(y, Y[start : start + len(x)])


def test_more_rows_than_the_first():
    """Refused too, with the name of the column."""
    with pytest.raises(ValueError, match="X has 9 rows, sample_weight has 10"):
        Rows([Table("memory", X[:9]), None, Table("memory", Y)], ["X", "y", "sample_weight"])
