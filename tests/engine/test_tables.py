"""Tables: what each input becomes, and its labels."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

from dkl.engine.blocks import Rows
from dkl.engine.tables import (
    Table,
    is_labelled,
    is_lazy,
    labelled_rows,
    open_table,
    put_together,
    with_known_rows,
)

X = np.random.default_rng(0).standard_normal((30, 3))


def labelled(values):
    """A DataArray with two row coordinates, one of the inputs, and a scalar."""
    return xr.DataArray(
        values,
        dims=("time", "channel"),
        coords={"time": np.arange(30), "day": ("time", np.arange(30) % 7), "band": ("channel", [1, 1, 2]), "run": 5},
    )


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (X, "memory"),
        (X.tolist(), "memory"),
        (pd.DataFrame(X), "memory"),
        (sp.coo_array(X), "memory"),
        (da.from_array(X, chunks=(7, 3)), "dask"),
        (labelled(X), "memory"),
        (labelled(da.from_array(X, chunks=(7, 3))), "dask"),
        (xr.Dataset({"X": labelled(X)}), "memory"),
        (xr.Dataset({"a": labelled(da.from_array(X, chunks=(7, 3)))}), "dask"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_kind_and_values(rows, kind):
    """Values survive; lazy stays lazy."""
    table = open_table(rows)
    assert table.kind == kind
    assert table.is_lazy == is_lazy(rows) == (kind == "dask")
    assert table.n_columns == 3
    array = table.array.compute() if kind == "dask" else table.array
    np.testing.assert_array_equal(array.toarray() if sp.issparse(array) else array, X)
    assert is_labelled(rows) == (table.labels is not None)


def test_labels_of_rows_and_inputs():
    """Coordinates are sorted by what they belong to."""
    table = open_table(labelled(X))
    assert table.labels.row_dim == "time"
    assert sorted(table.labels.row_coords) == ["day", "time"]
    assert sorted(table.input_coords) == ["band"]
    np.testing.assert_array_equal(table.input_coords["band"], [1, 1, 2])


def test_zarr_members_and_coordinates(tmp_path):
    """An array by its path, X and y of a group, and coordinates as wide as X."""
    group = zarr.open_group(str(tmp_path / "g"), mode="w")
    for name, values in {"X": X, "y": X[:, 0], "band": np.array([1, 1, 2]), "other": np.arange(4)}.items():
        group.create_array(name, data=values)
    table = open_table(tmp_path / "g")
    assert table.kind == "zarr"
    np.testing.assert_array_equal(table.array[:], X)
    assert sorted(table.input_coords) == ["band"]
    np.testing.assert_array_equal(open_table(str(tmp_path / "g"), "y").array[:], X[:, 0])
    np.testing.assert_array_equal(open_table(tmp_path / "g" / "X").array[:], X)
    with pytest.raises(ValueError, match=r"no array 'sample_weight'.*\['X', 'band', 'other', 'y'\]"):
        open_table(tmp_path / "g", "sample_weight")


def test_dataset_with_two_candidates_asks():
    """Which of two variables is X cannot be guessed."""
    data = xr.Dataset({"a": labelled(X), "b": labelled(X)})
    with pytest.raises(ValueError, match=r"\['a', 'b'\].*'X'"):
        open_table(data)


def test_known_rows():
    """Unknown lengths are counted; known ones are left as they are."""
    lazy = da.from_array(X, chunks=(7, 3))
    assert with_known_rows(Table("dask", lazy)).array is lazy
    known = with_known_rows(Table("dask", lazy[lazy[:, 0] > 0])).array
    wanted = X[X[:, 0] > 0]
    assert known.shape == wanted.shape
    np.testing.assert_array_equal(known.compute(), wanted)
    column = with_known_rows(Table("dask", lazy[:, 1][lazy[:, 0] > 0])).array
    np.testing.assert_array_equal(column.compute(), wanted[:, 1])
    assert column.chunks[0] == known.chunks[0]


@pytest.mark.parametrize("chunk", [1, 4, 7, 30])
@pytest.mark.parametrize("wanted", [1, 5, 100])
def test_blocks_cover_every_row_once(chunk, wanted):
    """Blocks of a Dask array are whole chunks, in order, and large enough except the last."""
    rows = Rows([Table("dask", da.from_array(X, chunks=(chunk, 3))), Table("memory", X[:, 0])], ["X", "y"])
    blocks = rows.blocks(wanted)
    assert [i for start, stop in blocks for i in range(start, stop)] == list(range(30))
    assert all(stop - start >= wanted for start, stop in blocks[:-1])
    assert all(start % chunk == 0 for start, _ in blocks)
    parts = rows.cut([[block] for block in blocks])
    for i, part in enumerate(parts):
        for number, start, (x, y) in part.read():
            assert number == i
            np.testing.assert_array_equal(x, X[start : start + len(x)])
            np.testing.assert_array_equal(y, X[start : start + len(x), 0])
    assert sum(part.n_rows for part in parts) == 30


def test_rows_must_agree():
    """Both lengths and both names."""
    with pytest.raises(ValueError, match=r"X has 30 rows.*y has 29"):
        Rows([Table("memory", X), Table("memory", X[1:, 0])], ["X", "y"])


def group_of(path, **arrays):
    """A Zarr group of arrays: values, or (values, names of dimensions, attributes)."""
    group = zarr.open_group(str(path), mode="w")
    for name, given in arrays.items():
        values, dims, attrs = given if isinstance(given, tuple) else (given, None, {})
        group.create_array(name, data=values, dimension_names=dims).attrs.update(attrs)
    return group


def test_what_a_table_is():
    """Columns, laziness, sparseness and labels of inputs, by kind."""
    assert [Table("memory", a).n_columns for a in (X, X[:, 0], X[:, :1])] == [3, 1, 1]
    assert [Table(kind, X).is_lazy for kind in ("memory", "dask", "zarr")] == [False, True, True]
    assert Table("memory", sp.csr_array(X)).is_sparse
    assert not Table("memory", X).is_sparse
    lazy = da.from_array(X, chunks=(7, 3))
    assert not Table("dask", lazy).is_sparse
    assert Table("dask", lazy.map_blocks(sp.csr_array, meta=sp.csr_array((0, 3)))).is_sparse
    names = np.array(["a", "b", "c"])
    coords = {"band": names, "other": names[::-1]}
    assert Table("memory", X, input_coords=coords).input_labels is None
    assert Table("memory", X, input_coords=coords, input_dim="band").input_labels is names
    assert Table("memory", X, input_coords=coords, input_dim="none").input_labels is None


def test_an_index_of_the_inputs():
    """The dimension's name if it has labels, with them; of one dimension there are no inputs."""
    rows = labelled(X).assign_coords(channel=list("rgb"), both=(("time", "channel"), X))
    table = open_table(rows)
    assert table.input_dim == "channel"
    assert table.input_labels.tolist() == ["r", "g", "b"]
    assert sorted(table.input_coords) == ["band", "channel"]
    assert sorted(table.labels.row_coords) == ["day", "time"]
    assert open_table(labelled(X)).input_dim is None
    column = open_table(rows[:, 0])
    assert (column.input_dim, dict(column.input_coords), column.n_columns) == (None, {}, 1)
    assert open_table(pd.DataFrame(X, index=np.arange(30) + 5)).rows.index[0] == 5


def test_which_inputs_are_lazy(tmp_path):
    """Paths and Zarr arrays too; a path need not be there."""
    group = group_of(tmp_path / "g", X=X)
    assert is_lazy("no/such/path")
    assert is_lazy(tmp_path)
    assert is_lazy(group["X"])
    assert not is_lazy(sp.csr_array(X))
    lazy = labelled(da.from_array(X, chunks=(7, 3)))
    assert is_lazy(xr.Dataset({"X": lazy, "other": labelled(X)}))
    assert not is_lazy(xr.Dataset({"other": lazy, "X": labelled(X)}))


def test_an_opened_zarr_array(tmp_path):
    """By the object, and by the path of the array alone, whose dimensions are known."""
    group = group_of(tmp_path / "g", X=(X, ("time", "band"), {}))
    for given in (group["X"], str(tmp_path / "g" / "X")):
        table = open_table(given)
        assert (table.kind, table.n_columns) == ("zarr", 3)
        np.testing.assert_array_equal(table.array[:], X)
    assert open_table(tmp_path / "g" / "X").rows.dims == ("time", "band")


def test_names_in_a_group(tmp_path):
    """The inputs' dimension, classes of y alone, attributes of the group; coordinates of X alone."""
    classes = {"classes": ["ant", "bee"]}
    group = group_of(
        tmp_path / "g",
        X=(X, ("time", "band"), classes),
        y=(X[:, 0], ("time",), classes),
        z=(X[:, 0], ("time",), classes),
        band=(np.array([4, 5, 6]), ("band",), {}),
    )
    group.attrs["id"] = "seven"
    table = open_table(tmp_path / "g")
    assert (table.input_dim, table.input_labels.tolist(), table.names) == ("band", [4, 5, 6], None)
    assert table.about["id"] == "seven"
    assert table.rows.dims == ("time", "band")
    y, z = open_table(tmp_path / "g", "y"), open_table(tmp_path / "g", "z")
    assert y.names.tolist() == ["ant", "bee"]
    assert z.names is None
    for column in (y, z):
        assert (column.input_dim, dict(column.input_coords)) == (None, {})
    assert open_table(group_of(tmp_path / "h", X=X, y=X[:, 0]).store_path.store.root, "y").names is None


def test_what_a_group_lacks(tmp_path):
    """Members that are there, and the split to give of a data set; what is no Zarr is told so."""
    group = group_of(tmp_path / "g", y=X[:, 0])
    with pytest.raises(ValueError, match=r"has no array 'X', only \['y'\]; give the array's own path"):
        open_table(tmp_path / "g")
    group.attrs["splits"] = ["train", "test"]
    with pytest.raises(ValueError, match=r"give .*g/train$"):
        open_table(tmp_path / "g")
    with pytest.raises(ValueError, match=r"cannot open .* as a Zarr array or group"):
        open_table(tmp_path / "nowhere")
    group.create_group("X")
    with pytest.raises(ValueError, match=r"'X' of .* is a group; give an array, or sparse rows"):
        open_table(tmp_path / "g")


def test_a_path_is_absolute(tmp_path, monkeypatch):
    """Workers may stand elsewhere."""
    group_of(tmp_path / "g", X=X)
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path) in str(open_table("g").array.store)


@pytest.mark.parametrize(
    ("attrs", "refused"),
    [
        ({"format": "dkl-dataset"}, True),
        ({"format": "dkl-dataset", "complete": False}, True),
        ({"format": "dkl-dataset", "complete": "yes"}, True),
        ({"format": "another"}, False),
        ({"complete": False}, False),
        ({}, False),
    ],
)
def test_a_data_set_that_was_not_ended(tmp_path, attrs, refused):
    """Refused with what goes on with it; other groups need not say that they are complete."""
    group = group_of(tmp_path / "g", X=X)
    group.attrs.update(attrs)
    if refused:
        with pytest.raises(ValueError, match="was not ingested completely; run dkl resume "):
            open_table(tmp_path / "g")
    else:
        assert open_table(tmp_path / "g").n_columns == 3


def test_the_variable_of_a_dataset():
    """By its name; else the only one of two dimensions."""
    y = xr.DataArray(X[:, 0], dims="time")
    data = xr.Dataset({"a": labelled(2 * X), "y": y})
    np.testing.assert_array_equal(open_table(data).array, 2 * X)
    np.testing.assert_array_equal(open_table(data, "y").array, X[:, 0])
    np.testing.assert_array_equal(open_table(data.assign(X=labelled(X))).array, X)
    for wrong in (data.drop_vars("a"), data.assign(b=labelled(X))):
        with pytest.raises(ValueError, match="name one of them 'X' or pass it alone"):
            open_table(wrong)


def test_rows_alone():
    """Labels without a conversion, of pandas, xarray and what has none."""
    assert labelled_rows(X.tolist()).rows is None
    frame = pd.DataFrame(X)
    assert labelled_rows(frame).array is frame
    assert labelled_rows(frame).rows.kind == "pandas"
    data = xr.Dataset({"X": labelled(X), "other": labelled(X)})
    for rows in (labelled(X), data):
        assert labelled_rows(rows).rows.dims == ("time", "channel")
        assert labelled_rows(rows).array.dims == ("time", "channel")


def test_split_columns_are_put_together_once():
    """With a warning; what came is given back with the new data, if it has no columns of its own."""
    lazy = da.from_array(X, chunks=(7, (2, 1)))
    with pytest.warns(UserWarning, match=r"columns of X are split into chunks \(2, 1\) and are merged"):
        table = open_table(lazy)
    assert table.array.chunks == ((7, 7, 7, 7, 2), (3,))
    assert put_together(lazy, table) is table.array
    rows = labelled(lazy)
    again = put_together(rows, table)
    assert again.data is table.array
    assert again.dims == rows.dims
    data = xr.Dataset({"X": rows})
    assert put_together(data, table) is data
    assert put_together(X, Table("memory", X + 1)) is X
    assert put_together("a path", Table("zarr", X)) == "a path"
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    assert put_together(frame, table) is frame


def test_lazy_frames_columns_and_texts():
    """A Dask frame and a column of it; texts are refused as X and allowed as y."""
    import dask.dataframe as dd

    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)
    np.testing.assert_array_equal(with_known_rows(open_table(frame)).array.compute(), X)
    column = open_table(frame["b"], "y")
    assert (column.kind, column.n_columns) == ("dask", 1)
    np.testing.assert_array_equal(column.array.compute(), X[:, 1])
    for kind in ("U3", "S3", object):
        words = da.from_array(np.array([["a", "b"]] * 4).astype(kind), chunks=(2, 2))
        with pytest.raises(ValueError, match=r"X has dtype .*; encode strings as numbers first"):
            open_table(words)
        assert open_table(words, "y").array is words


@pytest.mark.parametrize("dtype", ["Float64", "Int32", "boolean"])
def test_nullable_columns(dtype):
    """In numpy's dtype; one that lacks a value is refused with its row."""
    column = pd.Series([1, 0, 1, 0], dtype=dtype)
    found = open_table(column, "y").array
    assert found.dtype == column.dtype.numpy_dtype
    assert found.tolist() == [1, 0, 1, 0]
    column[2] = pd.NA
    with pytest.raises(ValueError, match=r"y is missing \(NA\) at row 2; remove the row or fill it"):
        open_table(column, "y")


def test_columns_of_other_kinds():
    """Texts of pandas stay texts; masked arrays are refused where they mask."""
    assert open_table(pd.Series(["a", "b"], dtype="string"), "y").array.tolist() == ["a", "b"]
    assert open_table(pd.Series(pd.Categorical(["a", "b"])), "y").array.tolist() == ["a", "b"]
    assert open_table(np.ma.masked_array([1, 2], [False, False])).array.tolist() == [1, 2]
    with pytest.raises(ValueError, match="y is masked at row 1; remove the row or fill it"):
        open_table(np.ma.masked_array([1, 2], [False, True]), "y")


def test_sparse_matrices_are_checked():
    """As csr; one whose arrays lead outside is refused by its name and row."""
    spoilt = sp.csr_array(np.eye(3))
    spoilt.indices[1] = 9
    with pytest.raises(ValueError, match="row 1 of y has column 9, but there are 3 columns"):
        open_table(spoilt, "y")
    assert open_table(sp.coo_array(np.eye(3))).array.format == "csr"


def test_sparse_rows_of_a_group(tmp_path):
    """data, indices and indptr of csr rows are a lazy table."""
    matrix, inner = sp.csr_array(X), zarr.open_group(str(tmp_path / "g"), mode="w").create_group("X")
    inner.attrs.update({"encoding-type": "csr_matrix", "shape": [30, 3]})
    for name in ("data", "indices", "indptr"):
        inner.create_array(name, data=getattr(matrix, name))
    table = open_table(tmp_path / "g")
    assert (table.kind, table.is_sparse, table.n_columns) == ("zarr", True, 3)
    np.testing.assert_array_equal(table.array[4:9].toarray(), X[4:9])


def test_lengths_that_are_not_known_at_first():
    """Of columns of several widths, and of a table that has only one chunk."""
    wide = da.from_array(np.arange(50.0).reshape(10, 5), chunks=(4, 5))
    found = with_known_rows(Table("dask", wide[wide[:, 0] != 15]))
    assert found.array.chunks == ((3, 4, 2), (5,))
    assert found.array.compute()[:, 0].tolist() == [0, 5, 10, 20, 25, 30, 35, 40, 45]
    memory = Table("memory", X)
    assert with_known_rows(memory) is memory
    stored = Table("zarr", X)
    assert with_known_rows(stored) is stored
