"""The data set on disk: how it is cut, who can read it, and what is not one."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dkl
from dkl.store import dataset
from dkl.store.dataset import CHUNKS, LARGEST, SMALLEST, Appender, choose_split, create_rows, cut_rows, is_dataset
from tests.store.made import ingest, small_segments


@given(st.integers(1, 10**12), st.integers(1, 10**9))
@settings(max_examples=300, deadline=None)
def test_cuts(rows, row_bytes):
    """Shards of eight chunks, of bounded bytes, not many, and none where one chunk would do."""
    chunk, shard = cut_rows(rows, row_bytes)
    assert 1 <= chunk <= rows
    if shard is None:
        assert chunk * CHUNKS >= rows or chunk == rows
        assert chunk == 1 or chunk * row_bytes <= LARGEST // CHUNKS
        assert rows <= CHUNKS or rows * row_bytes <= LARGEST
        return
    assert shard == CHUNKS * chunk
    assert shard < rows
    assert chunk == 1 or shard * row_bytes <= LARGEST
    assert chunk * row_bytes > SMALLEST // CHUNKS // 2
    if rows * row_bytes >= 128 * LARGEST and chunk > 1:
        assert shard * row_bytes > LARGEST // 2


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(1, 30), st.booleans())
@settings(max_examples=15, deadline=None)
def test_appending(sizes, chunk, sharded):
    """Blocks of any size give the array they are pieces of, and no shard is written twice."""
    total = sum(sizes)
    values = np.arange(total * 2.0).reshape(total, 2)
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    cut = (chunk, 2 * chunk if sharded else None)
    written = []
    with ThreadPoolExecutor(3) as pool:
        appender = Appender(create_rows(group, "X", (total, 2), "f8", cut, ["row", "input"]), pool)
        put = appender._put
        appender._put = lambda start, block: (written.append((start, start + len(block))), put(start, block))
        for start, stop in zip(np.cumsum([0, *sizes[:-1]]), np.cumsum(sizes), strict=True):
            appender.add(values[start:stop])
        appender.close()
    np.testing.assert_array_equal(group["X"][:], values)
    assert all(start % appender.unit == 0 and stop - start <= appender.unit for start, stop in written)
    assert sorted(written) == [(i, min(i + appender.unit, total)) for i in range(0, total, appender.unit)]


def test_an_array_that_is_not_filled_is_an_error():
    """Rows that are missing at the end are noticed."""
    group = zarr.open_group(zarr.storage.MemoryStore(), mode="w")
    with ThreadPoolExecutor(1) as pool:
        appender = Appender(create_rows(group, "X", (5, 1), "f8", (2, None), ["row", "input"]), pool)
        appender.add(np.ones((4, 1)))
        with pytest.raises(RuntimeError, match="4 of 5 rows"):
            appender.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Enough rows for shards, and what they hold."""
    folder = tmp_path_factory.mktemp("large")
    X = np.random.default_rng(0).random((30_000, 100), np.float32)
    np.savez(folder / "t.npz", X=X, y=np.arange(30_000) % 3)
    with pytest.MonkeyPatch.context() as patch:
        small_segments(patch, 700_001)
        ingest(folder / "t.npz", folder / "d.zarr")
        ingest(folder / "t.npz", folder / "s.zarr", split={"test": 0.5})
    return folder, X


def test_shards(large):
    """A shard is one file, with values that are all there."""
    folder, X = large
    made = zarr.open(str(folder / "d.zarr"), mode="r")
    assert made["X"].shards[0] == CHUNKS * made["X"].chunks[0]
    np.testing.assert_array_equal(made["X"][:], X)
    files = [p for p in (folder / "d.zarr" / "X").rglob("*") if p.is_file() and p.name != "zarr.json"]
    assert len(files) == -(-len(X) // made["X"].shards[0]) > 1
    assert made["y"].chunks == made["row"].chunks == made["X"].shards[:1]


def test_plain_readers(large):
    """Zarr alone, and xarray, which finds the dimensions."""
    folder, X = large
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_zarr(folder / "d.zarr", consolidated=False) as data:
            assert data["X"].dims == ("row", "input")
            assert data["y"].dims == ("row",)
            assert data["channel"].dims == ("input",)
            np.testing.assert_array_equal(data["X"].values, X)
            np.testing.assert_array_equal(data["y"], np.arange(len(X)) % 3)
        with xr.open_zarr(folder / "s.zarr" / "test", consolidated=False) as data:
            np.testing.assert_array_equal(data["X"].values, X[data["row"].values])


def test_choosing_a_split(large):
    """The one wanted, else the preferred one, else the data set itself."""
    folder, _ = large
    split, plain = str(folder / "s.zarr"), str(folder / "d.zarr")
    assert choose_split(split, None, "test") == f"{split}/test"
    assert choose_split(split, None, "train") == f"{split}/train"
    assert choose_split(split, None, "val") == f"{split}/test"  # rather than what was trained with
    assert choose_split(split, "test", "train") == f"{split}/test"
    assert choose_split(plain, None, "train") == plain
    with pytest.raises(ValueError, match="train, test"):
        choose_split(split, "val", "train")
    with pytest.raises(ValueError, match="no splits"):
        choose_split(plain, "test", "train")
    assert not is_dataset(str(folder))


@pytest.fixture(params=["whole", "split"])
def incomplete(request, tmp_path):
    """A data set, or a split of one, whose writing did not come to its end."""
    np.savez(tmp_path / "t.npz", X=np.random.default_rng(0).normal(size=(60, 2)), y=np.arange(60) % 2)
    ingest(tmp_path / "t.npz", tmp_path / "d.zarr", split={"test": 0.5} if request.param == "split" else None)
    path = tmp_path / "d.zarr" / ("train" if request.param == "split" else "")
    zarr.open_group(str(path), mode="r+").attrs["complete"] = False
    return str(path)


def test_incomplete_data_sets_are_refused(tmp_path, incomplete):
    """By everything that reads one."""
    model = dkl.SingleKernelClassifier(n_components=4, verbose=0)
    fitted = dkl.SingleKernelClassifier(n_components=4, verbose=0).fit(np.eye(2), [0, 1])
    uses = [
        lambda: model.fit(incomplete),
        lambda: dkl.FourierFeatures(n_components=4).fit(incomplete),
        lambda: dkl.plan(incomplete, model),
        lambda: fitted.predict(incomplete),
        lambda: fitted.evaluate(incomplete),
        lambda: fitted.score(incomplete),
        lambda: list(fitted.predict_blocks(incomplete)),
        lambda: dkl.ingest(incomplete, tmp_path / "again.zarr", verbose=0),
        lambda: dkl.ingest(tmp_path / "t.npz", tmp_path / "again.zarr", like=incomplete, verbose=0),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="not ingested completely"):
            use()
    assert not (tmp_path / "again.zarr").exists()


def test_the_parent_of_splits_is_refused_with_a_hint(large, tmp_path):
    """It says which path to give."""
    path = str(large[0] / "s.zarr")
    model = dkl.SingleKernelClassifier(n_components=4, verbose=0)
    for use in (lambda: model.fit(path), lambda: dkl.plan(path, model)):
        with pytest.raises(ValueError, match=r"s\.zarr/train"):
            use()
    with pytest.raises(ValueError, match="train"):
        dkl.ingest(path, tmp_path / "again.zarr", verbose=0)


def test_a_later_version_is_refused(tmp_path):
    """With the advice to upgrade."""
    np.save(tmp_path / "t.npy", np.ones((3, 2)))
    ingest(tmp_path / "t.npy", tmp_path / "d.zarr")
    zarr.open_group(str(tmp_path / "d.zarr"), mode="r+").attrs["version"] = dataset.VERSION + 1
    with pytest.raises(ValueError, match="upgrade"):
        is_dataset(str(tmp_path / "d.zarr"))
