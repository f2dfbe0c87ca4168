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
from dkl.engine.tables import Table, is_labelled, is_lazy, open_table, with_known_rows

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
