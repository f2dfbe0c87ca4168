"""Row by row work on rows of every kind against the function on all rows at once."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr
import zarr

from dkl.engine.apply import ROWS, _Named, apply_rows, as_dask, take_inputs
from dkl.engine.tables import Table, open_table
from dkl.features.rows import Refusal

RNG = np.random.default_rng(0)
SIZES = [1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 3]


def double(block):
    """Twice the rows; a row that holds -7 is refused."""
    dense = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
    if (dense == -7).any():
        raise Refusal(int(np.flatnonzero((dense == -7).any(axis=1))[0]), "{name} has -7 at row {row}")
    return 2 * block


def total(block):
    """The sum of each row."""
    return np.asarray(double(block).sum(axis=1)).ravel()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["memory", "dask", "zarr"])
def test_all_rows_once(n, kind, tmp_path):
    """Whole tiles and what is left of one, two dimensions and one; lazy rows stay lazy."""
    X = RNG.standard_normal((n, 3))
    if kind == "zarr":
        stored = zarr.create_array(str(tmp_path / "x.zarr"), shape=X.shape, chunks=(1000, 2), dtype=X.dtype)
        stored[:] = X
    table = {
        "memory": lambda: Table("memory", X),
        "dask": lambda: Table("dask", da.from_array(X, (700, 3))),
        "zarr": lambda: open_table(str(tmp_path / "x.zarr")),
    }[kind]()
    for function, columns, expected in ((double, 3, 2 * X), (total, None, 2 * X.sum(axis=1))):
        found = apply_rows("apply", function, table, columns, np.float64)
        assert isinstance(found, np.ndarray if kind == "memory" else da.Array)
        assert found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-13)
    some = take_inputs(table, np.array([2, 0]))
    np.testing.assert_array_equal(np.asarray(some.array), X[:, [2, 0]])
    assert some.array.shape == (n, 2)
    if kind == "zarr":
        assert as_dask(table).chunks == da.core.normalize_chunks((1000, 3), X.shape)


@pytest.mark.parametrize("n", SIZES)
def test_sparse_rows_stay_sparse(n):
    """csr for csr, with the same entries."""
    X = sp.random_array((n, 4), density=0.3, format="csr", rng=RNG)
    found = apply_rows("apply", double, Table("memory", X), 4, np.float64, keeps_zeros=True)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), 2 * X.toarray())
    dense = apply_rows("apply", total, Table("memory", X), None, np.float64)
    np.testing.assert_allclose(dense, 2 * X.toarray().sum(axis=1), rtol=1e-13)


@pytest.mark.parametrize("row", [0, ROWS - 1, ROWS, 2 * ROWS + 2])
def test_a_refused_row_has_its_own_number(row):
    """Counted from the first row of all, in whichever tile it is."""
    X = np.ones((2 * ROWS + 3, 2))
    X[row, 1] = -7
    for rows, sparse in ((X, False), (sp.csr_array(X), True)):
        with pytest.raises(ValueError, match=f"^X has -7 at row {row}$"):
            apply_rows("apply", double, Table("memory", rows), 2, np.float64, keeps_zeros=sparse)
    lazy = apply_rows("apply", double, Table("dask", da.from_array(X, (row + 1, 2))), 2, np.float64)
    with pytest.raises(ValueError, match=rf"X has -7 at row {row} \(rows are counted from the start of the block\)"):
        lazy.compute(scheduler="sync")


def test_labels_of_rows_are_kept():
    """An xarray result with the row coordinates of what came; its other dimension is called component."""
    rows = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("time", "band"), coords={"time": [5, 6, 7]})
    found = apply_rows("apply", double, open_table(rows), 2, np.float64)
    assert found.dims == ("time", "component")
    assert found.time.values.tolist() == [5, 6, 7]
    assert apply_rows("apply", total, open_table(rows), None, np.float64).dims == ("time",)


def test_lazy_sparse_rows_stay_sparse():
    """Blocks of csr where zeros are kept, dense ones where they are not; some inputs of them are csr too."""
    X = sp.random_array((50, 4), density=0.3, format="csr", rng=RNG)
    lazy = da.from_array(X.toarray(), (20, 4)).map_blocks(sp.csr_array, meta=sp.csr_array((0, 4)))
    found = apply_rows("apply", double, Table("dask", lazy), 4, np.float64, keeps_zeros=True)
    assert (found.chunks, found.dtype) == (((20, 20, 10), (4,)), np.float64)
    assert found._meta.format == "csr"
    assert found._meta.shape[0] == 0
    np.testing.assert_array_equal(found.blocks[1].compute().toarray(), 2 * X[20:40].toarray())
    sums = apply_rows("apply", total, Table("dask", lazy), None, np.float64)
    np.testing.assert_allclose(sums.compute(), 2 * X.toarray().sum(axis=1), rtol=1e-13)
    some = take_inputs(Table("dask", lazy), np.array([3, 1])).array
    assert some._meta.shape == (0, 0)
    assert some.chunks == ((20, 20, 10), (2,))
    np.testing.assert_array_equal(some.blocks[2].compute().toarray(), X[40:, [3, 1]].toarray())
    dense = apply_rows(
        "apply", lambda block: np.asarray(double(block)), Table("memory", X.toarray()), 4, np.float64, True
    )
    assert isinstance(dense, np.ndarray)


def test_what_lazy_results_promise():
    """Empty blocks that Dask may look at: of two dimensions, or one."""
    lazy = Table("dask", da.from_array(np.ones((10, 3)), (4, 3)))
    wide = apply_rows("apply", double, lazy, 3, np.float32)
    assert (wide._meta.shape, wide._meta.dtype, wide.chunks) == ((0, 0), np.float32, ((4, 4, 2), (3,)))
    flat = apply_rows("score", total, lazy, None, np.float32)
    assert (flat._meta.shape, flat.chunks) == ((0,), ((4, 4, 2),))
    assert flat.name.startswith("dkl-score")


def test_rows_on_disk_by_shards(tmp_path):
    """A block is a shard, or a chunk where there are none, of all columns; its slices are those of the array."""
    X = np.arange(60.0).reshape(20, 3)
    for name, cut, rows in (("a", {"chunks": (2, 3), "shards": (6, 3)}, 6), ("b", {"chunks": (7, 2)}, 7)):
        stored = zarr.create_array(str(tmp_path / name), data=X, **cut)
        lazy = as_dask(open_table(stored))
        assert lazy.chunks[0][0] == rows
        assert lazy.chunks[1] == (3,)
        assert lazy._meta.shape[0] == 0
        np.testing.assert_array_equal(lazy.compute(), X)
        np.testing.assert_array_equal(lazy[3:17:2, 1:].compute(), X[3:17:2, 1:])
        np.testing.assert_array_equal(lazy[5:2].compute(), X[5:2])
        assert as_dask(open_table(stored)).name == lazy.name


def test_slices_of_what_lies_on_disk(tmp_path):
    """By rows alone, by rows and columns, with a step, and empty."""
    X = np.arange(60.0).reshape(20, 3)
    named = _Named(zarr.create_array(str(tmp_path / "a"), data=X, chunks=(4, 3)))
    assert (named.shape, named.dtype, named.ndim) == ((20, 3), np.float64, 2)
    for key in (slice(3, 9), (slice(3, 9), slice(None)), (slice(2, 19, 3), slice(0, 2)), slice(9, 3), slice(None)):
        np.testing.assert_array_equal(named[key], X[key])


def test_inputs_of_rows_in_memory():
    """Those columns, in that order, and no labels."""
    X = np.arange(12.0).reshape(4, 3)
    taken = take_inputs(Table("memory", X), np.array([2, 0]))
    assert (taken.kind, taken.labels) == ("memory", None)
    np.testing.assert_array_equal(taken.array, X[:, [2, 0]])
