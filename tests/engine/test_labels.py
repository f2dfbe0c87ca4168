"""Labels of rows: which pairs of tables are refused, with which words, and which are not."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from dkl.engine.labels import RowLabels, pandas_rows, refuse_other_rows, xarray_rows
from dkl.engine.tables import Table

GRID, WEEK = np.arange(12.0).reshape(4, 3), [4, 3, 2, 1]


def table(array, rows=None):
    """A table in memory with the labels that are given."""
    return Table("memory", array, rows=rows)


def of_xarray(values, dims, **coords):
    """A table of a DataArray."""
    array = xr.DataArray(values, dims=dims, coords=coords)
    return table(array.data, xarray_rows(array))


def of_pandas(labels, kind="pandas"):
    """A table of a Series with that index."""
    return table(np.zeros(len(labels)), RowLabels(kind, (), pd.Index(list(labels))))


def rows_of(values=GRID, dims=("time", "band"), **coords):
    """Rows along `time`."""
    return of_xarray(values, dims, **coords)


def test_what_pandas_knows():
    """The index of a frame and of a series; nothing of arrays, lists, and lazy frames."""
    frame = pd.DataFrame(GRID, index=list("abcd"))
    rows = pandas_rows(frame)
    assert (rows.kind, rows.dims, rows.others) == ("pandas", (), {})
    assert rows.index is frame.index
    assert list(pandas_rows(frame[0]).index) == list("abcd")
    assert pandas_rows(GRID) is None
    assert pandas_rows([1, 2]) is None  # a list has a method `index`
    assert pandas_rows((1, 2)) is None
    import dask.dataframe as dd

    assert pandas_rows(dd.from_pandas(frame, npartitions=2)) is None


def test_what_xarray_knows():
    """Dimensions as words; the index of the rows; without one, the coordinates of the rows that are in memory."""
    array = xr.DataArray(GRID, dims=("time", "band"), coords={"time": [5, 6, 7, 8], "day": ("time", list("abcd"))})
    known = xarray_rows(array)
    assert (known.kind, known.dims, known.others) == ("xarray", ("time", "band"), {})
    assert list(known.index) == [5, 6, 7, 8]
    bare = array.drop_vars("time").assign_coords(
        far=("time", da.zeros(4, chunks=2)), wide=("band", [1, 2, 3]), both=(("time", "band"), GRID), one=7
    )
    known = xarray_rows(bare)
    assert known.index is None
    assert list(known.others) == ["day"]
    np.testing.assert_array_equal(known.others["day"], list("abcd"))
    assert xarray_rows(xr.DataArray(3.0)) == RowLabels("xarray", (), None, {})


def test_nothing_to_compare():
    """No other table, and sides that know nothing of their rows."""
    refuse_other_rows(rows_of(), None, "y")
    refuse_other_rows(table(GRID), rows_of(dims=("band", "time")), "y")
    refuse_other_rows(rows_of(), table(np.zeros(4)), "y")
    refuse_other_rows(of_pandas("abcd"), table(np.zeros(4)), "y")


DISAGREE = {
    "lengths": (
        rows_of(time=[1, 2, 3, 4]),
        of_xarray(np.zeros(3), "time", time=[1, 2, 3]),
        r"X has 4 rows along 'time', y has 3: inconsistent numbers of samples; "
        r"use X, y = xr.align\(X, y, join='inner'\)$",
    ),
    "a label": (
        rows_of(time=[1, 2, 3, 4]),
        of_xarray(np.zeros(4), "time", time=[1, 2, 9, 4]),
        r"disagree: at row 2 X has time=3 and y has time=9; use X, y = xr.align\(X, y, join='inner'\), or y.data",
    ),
    "an order": (
        rows_of(time=list("abcd")),
        of_xarray(np.zeros(4), "time", time=list("adcb")),
        r"at row 1 X has time='b' and y has time='d'; they are the same labels in another order: "
        r"use y.reindex_like\(X\['time'\]\), or y.data",
    ),
    "labels that come twice": (
        rows_of(time=[1, 1, 2, 3]),
        of_xarray(np.zeros(4), "time", time=[1, 2, 2, 3]),
        r"at row 1 X has time=1 and y has time=2; use X, y = xr.align",
    ),
    "twice on one side": (
        rows_of(time=[1, 2, 2, 3]),
        of_xarray(np.zeros(4), "time", time=[1, 3, 2, 4]),
        r"at row 1 X has time=2 and y has time=3; use X, y = xr.align",
    ),
    "after a missing label": (
        rows_of(time=[np.nan, 1.0, 2.0, 3.0]),
        of_xarray(np.zeros(4), "time", time=[np.nan, 1.0, 3.0, 2.0]),
        r"at row 2 X has time=2.0 and y has time=3.0; they are the same labels",
    ),
    "pandas": (
        of_pandas("abcd"),
        of_pandas("acbd"),
        r"at row 1 X has 'b' and y has 'c'; use y.reindex\(X.index\), or y.to_numpy\(\)",
    ),
    "xarray and pandas": (
        rows_of(time=list("abcd")),
        of_pandas("abdc"),
        r"same index labels in another order: at row 2 X has 'c' and y has 'd'",
    ),
    "pandas and xarray": (
        of_pandas("abcd"),
        of_xarray(np.zeros(4), "time", time=list("abdc")),
        r"same index labels in another order: at row 2 X has 'c' and y has 'd'",
    ),
    "a coordinate": (
        rows_of(day=("time", [1, 2, 3, 4]), site=("time", list("abcd"))),
        of_xarray(np.zeros(4), "time", day=("time", [1, 2, 4, 3]), other=("time", [4, 3, 2, 1])),
        r"at row 2 X has day=3 and y has day=4; put them in the same order, or use y.drop_vars\('day'\) if",
    ),
    "rows of X come second": (
        rows_of(dims=("band", "time")),
        of_xarray(np.zeros(4), "time"),
        r"X has dims \(band, time\), and y is along 'time', so rows are 'time'; "
        r"rows come first: use X.transpose\('time', 'band'\)",
    ),
    "by the number of rows": (
        rows_of(),
        table(np.zeros(3)),
        r"X has dims \(time, band\) and shape \(4, 3\), y has 3 rows; rows come first: "
        r"use X.transpose\('band', 'time'\)",
    ),
    "rows of y come second": (
        rows_of(),
        of_xarray(GRID.T, ("output", "time")),
        r"y has dims \(output, time\), and rows of X are 'time'; rows come first: use y.transpose\('time', 'output'\)",
    ),
    "another name": (
        rows_of(),
        of_xarray(np.zeros(4), "hour"),
        r"rows of X are along 'time', those of y along 'hour'; if they are the same rows, "
        r"use y.rename\({'hour': 'time'}\)",
    ),
    "another name, of one column": (
        of_xarray(np.zeros(4), "time"),
        of_xarray(np.zeros(4), "hour"),
        r"rows of X are along 'time', those of y along 'hour'",
    ),
}


@pytest.mark.parametrize("why", DISAGREE)
def test_what_is_refused(why):
    """With the first row that differs, both labels, and what to type."""
    X, y, said = DISAGREE[why]
    with pytest.raises(ValueError, match=said):
        refuse_other_rows(X, y, "y")


AGREE = {
    "the same labels": (rows_of(time=[1, 2, 3, 4]), of_xarray(np.zeros(4), "time", time=[1, 2, 3, 4])),
    "pandas shifted": (of_pandas([1, 2, 3]), of_pandas([2, 3, 4])),
    "pandas fresh": (of_pandas("abc"), of_pandas([0, 1, 2])),
    "pandas of other lengths": (of_pandas([1, 2, 3]), of_pandas([3, 2])),
    "pandas, labels that come twice": (of_pandas([1, 1, 2]), of_pandas([1, 2, 1])),
    "pandas, twice in X": (of_pandas([1, 1, 2]), of_pandas([2, 1, 3])),
    "pandas, twice in y": (of_pandas([2, 1, 3]), of_pandas([1, 2, 2])),
    "pandas, equal": (of_pandas("abc"), of_pandas("abc")),
    "only X has labels": (rows_of(time=[1, 2, 3, 4]), of_xarray(np.zeros(4), "time")),
    "only y has labels": (rows_of(), of_xarray(np.zeros(4), "time", time=[1, 2, 3, 4])),
    "equal coordinates": (rows_of(day=("time", WEEK)), of_xarray(np.zeros(4), "time", day=("time", WEEK))),
    "other lengths of both": (rows_of(day=("time", WEEK)), of_xarray(np.zeros(3), "time", day=("time", WEEK[:3]))),
    "dimensions nobody named": (rows_of(), of_xarray(np.zeros(4), "dim_0")),
    "nobody named those of X": (rows_of(dims=("dim_0", "dim_1")), of_xarray(np.zeros(4), "hour")),
    "zarr": (rows_of(), table(np.zeros(4), RowLabels("zarr", ("hour",)))),
    "X in zarr": (table(GRID, RowLabels("zarr", ("hour", "band"))), of_xarray(np.zeros(4), "time")),
    "as many rows as inputs": (rows_of(GRID[:3]), table(np.zeros(3))),
    "other lengths": (rows_of(), table(np.zeros(5))),
    "one column": (of_xarray(np.zeros(4), "time"), table(np.zeros(3))),
    "dims of y are known": (rows_of(), of_xarray(np.zeros(3), "time")),
}  # fmt: skip


@pytest.mark.parametrize("why", AGREE)
def test_what_is_not_refused(why):
    """Rows that agree, and what goes by position; lengths are compared elsewhere."""
    X, y = AGREE[why]
    refuse_other_rows(X, y, "y")


def test_labels_that_only_an_index_tells_apart():
    """Numbers and dates that compare equal one by one, in indexes of different kinds."""
    days = pd.date_range("2020-01-01", periods=3)
    mine, theirs = RowLabels("xarray", ("time",), days), RowLabels("xarray", ("time",), pd.Index(days, dtype=object))
    refuse_other_rows(table(GRID[:3], mine), table(np.zeros(3), theirs), "y")
