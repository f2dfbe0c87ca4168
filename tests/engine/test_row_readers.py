"""Columns: parts give the right rows, shared keys are computed once, nothing is read twice in a pass."""

from __future__ import annotations

import itertools
import pickle
import shutil
import threading
from collections import Counter

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dkl
from dkl.engine.row_readers import DaskColumn, MemoryColumn, ZarrColumn

X = np.random.default_rng(0).standard_normal((60, 3))
CALLS: Counter = Counter()
LOCK = threading.Lock()


def count(name, value):
    """value, and a note that it was made."""
    with LOCK:
        CALLS[name] += 1
    return value


def counted_rows(chunks):
    """X from delayed blocks that count how often each is made."""
    bounds = np.cumsum((0, *chunks))
    blocks = [
        da.from_delayed(dask.delayed(count)(("block", i), X[a:b]), (b - a, 3), dtype=float)
        for i, (a, b) in enumerate(itertools.pairwise(bounds))
    ]
    return da.concatenate(blocks)


def fill(column, parts):
    """Shared values, computed once for all parts."""
    shared = column.shared(set().union(*(part.needs for part in parts)))
    return dict(zip(shared, dask.compute(*shared.values(), scheduler="sync"), strict=True)) if shared else {}


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(
        lambda sizes: sum(sizes) > 1
    ),  # Dask itself fails on (0, 1)
    st.data(),
)
@settings(max_examples=60, deadline=None)
def test_parts_hold_their_rows(sizes, data):
    """Any chunking, empty chunks too, cut at any chunk boundaries."""
    n = sum(sizes)
    values = np.arange(2.0 * n).reshape(n, 2)
    column = DaskColumn(da.from_array(values, chunks=(tuple(sizes), 2)) * 1.0 + 0.0)
    bounds = np.cumsum((0, *sizes))
    np.testing.assert_array_equal(column.boundaries(), bounds)
    cuts = sorted({0, n, *data.draw(st.lists(st.sampled_from(bounds.tolist())))})
    ranges = list(itertools.pairwise(cuts))
    parts = column.cut(ranges)
    given_values = fill(column, parts)
    for part, (start, stop) in zip(parts, ranges, strict=True):
        np.testing.assert_array_equal(part.read(start, stop, given_values), values[start:stop])


def test_part_reads_some_of_its_chunks():
    """A range inside a part, at chunk boundaries."""
    column = DaskColumn(da.from_array(X, chunks=(10, 3)))
    (part,) = column.cut([(10, 50)])
    given_values = fill(column, [part])
    np.testing.assert_array_equal(part.read(20, 40, given_values), X[20:40])


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_matrix])
def test_sparse_parts(kind):
    """Blocks of scipy.sparse are put together sparse."""
    column = DaskColumn(da.from_array(X, chunks=(10, 3)).map_blocks(kind, meta=kind(np.zeros((0, 3)))))
    (part,) = column.cut([(0, 60)])
    given_values = fill(column, [part])
    rows = part.read(0, 60, given_values)
    assert sp.issparse(rows)
    np.testing.assert_array_equal(rows.toarray(), X)


def test_a_part_carries_only_its_own_tasks():
    """The graph of a part does not grow with the number of parts."""
    column = DaskColumn(da.from_array(np.arange(4000.0).reshape(-1, 1), chunks=(10, 1)) + 1)
    parts = column.cut([(i, i + 10) for i in range(0, 4000, 10)])
    assert max(len(part.graph) for part in parts) < 6
    assert len(parts) == 400


def test_shared_keys_are_computed_once():
    """(x - mean) over three parts: one mean for all; a block is made for the mean and, not held, again for its part."""
    CALLS.clear()
    rows = counted_rows((20, 20, 20))
    mean = da.from_delayed(dask.delayed(count)("mean", rows.mean(0)), (3,), dtype=float)
    column = DaskColumn(rows - mean)
    ranges = [(0, 20), (20, 40), (40, 60)]
    parts = column.cut(ranges)
    assert all(part.needs for part in parts)
    given_values = fill(column, parts)
    for part, (start, stop) in zip(parts, ranges, strict=True):
        np.testing.assert_allclose(part.read(start, stop, given_values), X[start:stop] - X.mean(0), atol=1e-14)
    assert CALLS["mean"] == 1
    assert {CALLS["block", i] for i in range(3)} == {2}


def test_a_chunk_across_two_parts_is_made_once():
    """Rechunking makes neighbours share a source block."""
    CALLS.clear()
    column = DaskColumn(counted_rows((30, 30)).rechunk({0: (20, 20, 20)}))
    ranges = [(0, 20), (20, 40), (40, 60)]
    parts = column.cut(ranges)
    given_values = fill(column, parts)
    for part, (start, stop) in zip(parts, ranges, strict=True):
        np.testing.assert_array_equal(part.read(start, stop, given_values), X[start:stop])
    assert CALLS == {("block", 0): 1, ("block", 1): 1}


def reading(name, values, chunk):
    """A Dask array that counts the reading of each of its chunks."""
    blocks = -(-len(values) // chunk)

    def read(block_id=None):
        start = block_id[0] * chunk
        return count((name, block_id[0]), values[start : start + chunk])

    sizes = tuple(min(chunk, len(values) - i * chunk) for i in range(blocks))
    return da.map_blocks(
        read, chunks=(sizes, *((s,) for s in values.shape[1:])), dtype=values.dtype, meta=np.empty((0,) * values.ndim)
    )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("chunk", [7, 64, 1000])
def test_a_fit_reads_each_chunk_once_per_pass(chunk, threads):
    """X once with a sigma, twice with 'scale'; y and weights twice: before the pass and in it."""
    rows = np.random.default_rng(1).standard_normal((1000, 4))
    blocks = -(-1000 // chunk)
    for sigma, passes in ((0.5, 1), ("scale", 2)):
        CALLS.clear()
        model = dkl.SingleKernelRegressor(n_components=20, sigma=sigma)
        with dask.config.set(num_workers=threads):
            model.fit(reading("X", rows, chunk), reading("y", rows[:, 0], chunk), reading("w", rows[:, 1] ** 2, chunk))
        assert {CALLS["X", i] for i in range(blocks)} == {passes}
        assert {CALLS["y", i] for i in range(blocks)} == {2}
        assert {CALLS["w", i] for i in range(blocks)} == {1 + passes}


def test_a_shared_mean_in_a_fit_is_made_once():
    """A centred X costs one more reading of its source, for the mean, and no more."""
    rows = np.random.default_rng(1).standard_normal((3000, 4))
    CALLS.clear()
    lazy = reading("X", rows, 600)
    centred = lazy - da.from_delayed(dask.delayed(count)("mean", lazy.mean(0)), (4,), dtype=float)
    model = dkl.SingleKernelRegressor(n_components=20, sigma=0.5, random_state=0).fit(centred, rows[:, 0])
    assert CALLS["mean"] == 1
    assert max(CALLS["X", i] for i in range(5)) <= 2
    plain = dkl.SingleKernelRegressor(n_components=20, sigma=0.5, random_state=0).fit(rows - rows.mean(0), rows[:, 0])
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8, atol=1e-10)


def test_memory_and_zarr_columns(tmp_path):
    """Ranges, cuts, and chunk boundaries of plain and sharded arrays."""
    column = MemoryColumn(X)
    np.testing.assert_array_equal(column.read(5, 9), X[5:9])
    np.testing.assert_array_equal(column.cut([(5, 20), (20, 30)])[1].read(22, 25), X[22:25])
    plain = zarr.create_array(str(tmp_path / "a"), data=X, chunks=(25, 3))
    sharded = zarr.create_array(str(tmp_path / "b"), data=X, chunks=(8, 3), shards=(32, 3))
    assert ZarrColumn(plain).boundaries().tolist() == [0, 25, 50, 60]
    assert ZarrColumn(sharded).boundaries().tolist() == [0, 32, 60]
    for array in (plain, sharded):
        np.testing.assert_array_equal(ZarrColumn(array).cut([(0, 30), (30, 60)])[1].read(30, 60), X[30:60])


def masked_rows():
    """Two chunks, the second of which masks its first entry."""
    rows = np.ma.masked_array(np.arange(8.0).reshape(4, 2), np.zeros((4, 2), bool))
    rows[2, 0] = np.ma.masked
    return rows


def test_masks_survive():
    """Of several chunks put together, and of one alone."""
    rows = masked_rows()
    lazy = da.concatenate([da.from_array(rows[:2], chunks=2, asarray=False), da.from_array(rows[2:], chunks=2)])
    column = DaskColumn(lazy.map_blocks(np.ma.asarray, dtype=float))
    (part,) = column.cut([(0, 4)])
    found = part.read(0, 4, fill(column, [part]))
    assert np.ma.getmaskarray(found).tolist() == np.ma.getmaskarray(rows).tolist()
    plain = DaskColumn(da.from_array(X, chunks=(30, 3)))
    (part,) = plain.cut([(0, 60)])
    assert not isinstance(part.read(0, 60, fill(plain, [part])), np.ma.MaskedArray)


def spoilt_block(block):
    """A csr block; one whose first number is 40 or more has a column that is not there, in its second row."""
    matrix = sp.csr_array(block)
    if block[0, 0] >= 40:
        matrix.indices[matrix.indptr[1]] = 9
    return matrix


@pytest.mark.parametrize("sizes", [(10, 10, 10), (4, 25, 1)])
def test_a_spoilt_sparse_block_names_its_row(sizes):
    """Counted from the first row of all, whichever blocks lie before it in the part; blocks of one part and two."""
    rows = np.arange(30.0)[:, None] + np.array([[0.5, 0.25]])
    rows[sum(sizes[:2]) - sizes[1] :] += 40
    lazy = da.from_array(rows, chunks=(sizes, 2)).map_blocks(spoilt_block, meta=sp.csr_array((0, 2)))
    column = DaskColumn(lazy)
    for first in (0, sizes[0]):
        (part,) = column.cut([(first, sizes[0] + sizes[1])])
        with pytest.raises(ValueError, match=f"row {sizes[0] + 1} of X has column 9, but there are 2 columns"):
            part.read(first, sizes[0] + sizes[1], fill(column, [part]))
    (good,) = column.cut([(0, sizes[0])])
    found = good.read(0, sizes[0], fill(column, [good]))
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), rows[: sizes[0]])


def test_a_column_that_a_worker_cannot_see(tmp_path):
    """It travels as its address; where nothing is there, that is said."""
    array = zarr.create_array(str(tmp_path / "a.zarr"), data=X, chunks=(25, 3))
    column = pickle.loads(pickle.dumps(ZarrColumn(array)))
    assert column.opened is None
    np.testing.assert_array_equal(column.read(5, 30), X[5:30])
    assert column.array is column.array
    lost = pickle.loads(pickle.dumps(ZarrColumn(array)))
    shutil.rmtree(tmp_path / "a.zarr")
    with pytest.raises(FileNotFoundError, match=r"a worker finds no Zarr array at .*a.zarr; put it where all workers"):
        lost.read(0, 5)


def test_columns_of_one_dimension():
    """Keys of a Dask vector, and its chunks; an empty chunk is computed by no part."""
    column = DaskColumn(da.from_array(X[:, 0], chunks=((20, 0, 40),)))
    assert column.boundaries().tolist() == [0, 20, 20, 60]
    parts = column.cut([(0, 20), (20, 60)])
    values = fill(column, parts)
    np.testing.assert_array_equal(parts[1].read(20, 60, values), X[20:, 0])
    assert [len(part.keys) for part in parts] == [1, 1]
    assert MemoryColumn(X).first == 0
