"""One split while it is written: how it is cut, what it counts, and what channels must agree on; by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from dkl.sources.batch import Batch, Coded, Column
from dkl.store import dataset
from dkl.store.assemble import SplitWriter, _side_by_side
from dkl.store.coords import RowCoords
from dkl.store.layout import index_dtype
from dkl.store.recipe import Channel, Recipe
from dkl.store.seen import column_range
from dkl.store.target import Target, merge_targets

NONE = Target("none")


@pytest.fixture
def pool():
    """Threads that write."""
    with ThreadPoolExecutor(2) as threads:
        yield threads


def made_of(*channels, dtype="float32"):
    """The recipe of channels of so many inputs, or of a Channel."""
    channels = [c if isinstance(c, Channel) else Channel(f"c{i}", None, c) for i, c in enumerate(channels)]
    return Recipe(tuple(channels), dtype, "refuse", None, {})


def writer(pool, rows, entries, recipe, target=NONE, sparse=False):
    """A writer into memory, and its group."""
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    return SplitWriter(group, rows, entries, recipe, target, sparse, pool, [], RowCoords([])), group


def test_targets_as_they_are_stored():
    """Names by their place in all classes; a row without a target, which is dropped, has some number."""
    text = Target("text", "t", ["a", "b", "c"])
    coded = text.encode(Coded(np.array([1, 0, 1, -1], np.int32), ["c", "b"]))
    assert (coded.dtype, coded[:3].tolist()) == (np.int32, [1, 2, 1])
    assert text.encode(Coded(np.array([-1, -1], np.int32), [])).tolist() == [0, 0]
    whole = Target("classification").encode(np.array([3.0, np.nan, -1.0]))
    assert (whole.dtype, whole.tolist()) == (np.int64, [3, 0, -1])
    measure = Target("regression").encode(np.array([3.5, np.nan]))
    assert measure.dtype == np.float64
    np.testing.assert_array_equal(measure, [3.5, np.nan])


@pytest.mark.parametrize(("columns", "dtype"), [(1, "int32"), (2**31 - 1, "int32"), (2**31, "int64")])
def test_numbers_of_columns(columns, dtype):
    """Wide ones only where they are needed."""
    assert np.dtype(index_dtype(columns)) == dtype


@pytest.mark.parametrize(("rows", "chunk", "shard"), [(40, 5, None), (41, 5, (40, 3))])
def test_dense_rows_are_cut_by_their_bytes(monkeypatch, pool, rows, chunk, shard):
    """12 bytes of three float32; chunks of 60 bytes, eight in a shard; what is narrow is cut like a shard."""
    monkeypatch.setattr(dataset, "SMALLEST", 8 * 60)
    _, group = writer(pool, rows, 0, made_of(2, 1), Target("regression"))
    assert (group["X"].chunks, group["X"].shards) == ((chunk, 3), shard)
    assert group["X"].shape == (rows, 3)
    for name in ("y", "row"):
        assert (group[name].chunks, group[name].shards) == ((shard or (chunk,))[:1], None)


@pytest.mark.parametrize(("entries", "block", "of_data"), [(701, 80, 105), (99, 70, 99), (200, 35, 105)])
def test_sparse_rows_are_cut_by_their_mean_bytes(monkeypatch, pool, entries, block, of_data):
    """A float64 and an int32 for each entry, 7, 1 (at least) or 2 in a row; chunks of 840 bytes."""
    monkeypatch.setattr(dataset, "SMALLEST", 8 * 840)
    _, group = writer(pool, 100, entries, made_of(50, dtype="float64"), sparse=True)
    inner = group["X"]
    assert dict(inner.attrs) | {"shape": [100, 50], "block_rows": block} == dict(inner.attrs)
    assert inner["indptr"].chunks == (block + 1,)
    assert inner["indptr"].shape == (101,)
    assert inner["data"].chunks == inner["indices"].chunks == (of_data,)
    assert (inner["data"].dtype, inner["indices"].dtype, inner["indptr"].dtype) == ("float64", "int32", "int64")
    assert group["row"].chunks == (block,)
    assert "y" not in group


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_in_several_blocks(pool, sparse):
    """Three blocks, one of them empty, are the matrix again, with its ranges by channel and counts by class."""
    X = np.array([[0, -2, 5, 0], [1, 0, 6, 7], [0, 0, 8, 9], [3, 0, 5.5, 0]], np.float32)
    y, classes = np.array([1, 0, 1, 1], np.int32), ["a", "b"]
    recipe = made_of(2, Channel("t", (Column("k", True),), 0, categories={"k": ["u", "v"]}))
    split, group = writer(pool, 4, int((X != 0).sum()), recipe, Target("text", "t", classes), sparse)
    for rows in (slice(0, 3), slice(3, 3), slice(3, 4)):
        block = sp.csr_array(X[rows]) if sparse else X[rows]
        split.add(block, y[rows], np.arange(10, 14)[rows])
    split.close({"task": "classification"}, ["c0", "t"], "test")
    if sparse:
        whole = sp.csr_array(X)
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(group["X"][name][:], getattr(whole, name))
    else:
        np.testing.assert_array_equal(group["X"][:], X)
    assert group["y"][:].tolist() == y.tolist()
    assert group["y"].attrs["classes"] == classes
    assert group["row"][:].tolist() == [10, 11, 12, 13]
    assert group["channel"][:].tolist() == [0, 0, 1, 1]
    assert group["channel"].attrs["names"] == ["c0", "t"]
    assert group["input"][:].tolist() == ["c0 0", "c0 1", "t k=u", "t k=v"]
    said = dict(group.attrs)
    assert said["channels"] == [
        {"name": "c0", "inputs": 2, "low": -2.0, "high": 3.0},
        {"name": "t", "inputs": 2, "low": 0.0, "high": 9.0},
    ]
    assert (said["class_counts"], said["target_range"]) == ({"a": 1, "b": 3}, None)
    assert (said["rows"], said["split"], said["task"], said["complete"]) == (4, "test", "classification", True)
    assert said["coordinates"] == "channel"


@pytest.mark.parametrize(
    ("kind", "y", "counts", "span"),
    [
        ("classification", [-1, 7, -1], {"-1": 2, "7": 1}, None),
        ("regression", [2.5, -1.0, 2.0], {}, [-1.0, 2.5]),
        ("regression", [2.5, 3.0, 4.0], {}, [2.5, 4.0]),
        ("regression", [-2.5, -3.0, -4.0], {}, [-4.0, -2.5]),
        ("none", None, {}, None),
    ],
)
def test_what_is_said_of_targets(pool, kind, y, counts, span):
    """Classes are counted, measures have a range."""
    split, group = writer(pool, 3, 0, made_of(1), Target(kind))
    y = None if y is None else Target(kind).encode(np.array(y, float))
    for rows in (slice(0, 1), slice(1, 3)):
        split.add(np.ones((3, 1), np.float32)[rows], None if y is None else y[rows], np.arange(3)[rows])
    split.close({}, ["c0"], None)
    assert (group.attrs["class_counts"], group.attrs["target_range"]) == (counts, span)
    assert "split" not in group.attrs
    assert "input" not in group
    assert ("y" in group) == (y is not None)


def test_a_value_that_is_still_missing_is_refused(pool):
    """In any channel."""
    split, _ = writer(pool, 1, 0, made_of(1, 1))
    with pytest.raises(
        ValueError, match=r"row 7 of channel 'c1' has no value in column '0', and .*; use --missing drop or zero"
    ):
        split.add(np.array([[1, np.nan]], np.float32), None, np.array([7]))


def test_ranges_of_some_columns():
    """Of stored entries in them, and of zero if one is not stored."""
    X = np.array([[4.0, 0.0, 9.0], [5.0, -3.0, 0.0]])
    for first, last, zero in ((0, 1, False), (1, 2, True), (2, 3, True), (0, 2, True), (1, 3, True), (0, 3, True)):
        inside = X[:, first:last]
        assert column_range(X, first, last) == (inside.min(), inside.max())
        assert column_range(sp.csr_array(X), first, last) == (inside.min(), inside.max())
        assert bool((inside == 0).any()) == zero
    full = sp.csr_array(np.array([[4.0, 6.0], [5.0, 7.0], [3.0, 8.0]]))
    assert (column_range(full, 0, 2), column_range(full, 0, 1), column_range(full, 1, 2)) == ((3, 8), (3, 5), (6, 8))
    assert column_range(sp.csr_array((2, 2)), 0, 2) == (0, 0)


def batch(y):
    """One row for each target."""
    return Batch(np.zeros((3, 1)), y=y)


def test_channels_agree_on_the_target():
    """Numbers and the same numbers as text; gaps at the same rows; channels without a target do not matter."""
    numbers, text = np.array([1.0, np.nan, 3.0]), Coded(np.array([1, -1, 0], np.int32), ["b", "a"])
    none = batch(None)
    assert merge_targets(0, [none, none], ["p", "q"]) is None
    assert merge_targets(0, [none, batch(numbers), none, batch(numbers.copy())], list("pqrs")) is numbers
    same = Coded(np.array([0, -1, 1], np.int32), ["a", "b"])
    assert merge_targets(0, [batch(text), none, batch(same)], list("pqr")) is text
    written = Coded(np.array([0, 1, 2], np.int32), ["1.0", "nan", "3.0"])
    assert merge_targets(0, [batch(numbers), batch(written)], ["p", "q"]) is numbers


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], "row 12 has the target 3.0 in 'p' and 4.0 in 'r'"),
        ([1.0, np.nan, 3.0], [1.0, 2.0, 3.0], "row 11 has the target nan in 'p' and 2.0 in 'r'"),
        ([1.0, 2.0, 3.0], [1.0, np.nan, 3.0], "row 11 has the target 2.0 in 'p' and nan in 'r'"),
        (Coded(np.array([0, 1, 1]), ["a", "b"]), Coded(np.array([0, 0, 1]), ["a", "b"]), "row 11 has the target b "),
        (Coded(np.array([0, 0, 0]), ["1.0"]), [1.0, 1.0, 2.0], "row 12 has the target 1.0 in 'p' and 2.0 in 'r'"),
    ],
)
def test_targets_that_differ(first, second, line):
    """The first row that differs is named, with both channels; a channel without a target lies between them."""
    ys = [y if isinstance(y, Coded) else np.array(y) for y in (first, second)]
    with pytest.raises(ValueError, match=line):
        merge_targets(10, [batch(ys[0]), batch(None), batch(ys[1])], ["p", "q", "r"])


def test_blocks_side_by_side():
    """Dense if that is asked for, whatever they are; sparse rows in the order of their columns."""
    A, B = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 3.0], [4.0, 5.0]])
    np.testing.assert_array_equal(_side_by_side([A, sp.csr_array(B)], False), np.hstack([A, B]))
    np.testing.assert_array_equal(_side_by_side([sp.csr_array(A)], False), A)
    assert _side_by_side([A], False) is A
    joined = _side_by_side([sp.csr_array(A), sp.csr_array(B)], True)
    np.testing.assert_array_equal(joined.toarray(), np.hstack([A, B]))
    turned = sp.csr_array((np.array([5.0, 4.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    assert _side_by_side([turned], True).indices.tolist() == [0, 1]
