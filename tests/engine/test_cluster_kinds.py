"""Clusters of other kinds: in this process, growing from nothing, standing in another directory."""

from __future__ import annotations

import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import dkl

pytestmark = pytest.mark.cluster
rng = np.random.default_rng(0)
X = rng.standard_normal((4000, 5))
y = np.sin(X[:, 0]) + X[:, 1]


def model() -> dkl.SingleKernelRegressor:
    """A small model with a fixed seed."""
    return dkl.SingleKernelRegressor(n_components=50, random_state=0, alpha=[0.1, 1.0], cv=3)


def test_a_cluster_in_this_process():
    """Client(processes=False), the notebook's cluster, gives the bits of the embedded engine."""
    rows = da.from_array(X, chunks=(500, 5))
    expected = model().fit(rows, y).coef_
    with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        np.testing.assert_array_equal(model().fit(rows, y).coef_, expected)


def test_a_cluster_that_grows_from_nothing():
    """An adaptive cluster with no worker yet gets one because there is work."""
    rows = da.from_array(X, chunks=(500, 5))
    with LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        cluster.adapt(minimum=0, maximum=1)
        assert np.isfinite(model().fit(rows, y).coef_).all()


def test_a_relative_path_means_the_same_to_workers(tmp_path, monkeypatch):
    """Workers that stand in another directory read the array that the client named."""
    zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(500, 5))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        monkeypatch.chdir(tmp_path)
        fitted = model().fit("rows.zarr", y)
    assert fitted.score(X, y) > 0.9


def test_an_array_that_workers_cannot_see_is_an_error(tmp_path):
    """A store that is gone when workers look is refused, never read as zeros."""
    array = zarr.create_array(tmp_path / "rows.zarr", data=X, chunks=(500, 5))
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        (tmp_path / "rows.zarr").rename(tmp_path / "moved.zarr")
        with pytest.raises(FileNotFoundError, match="where all workers can read it"):
            model().set_params(sigma=0.5).fit(array, y)


def test_waiting_for_a_result_ends_when_nobody_is_left():
    """A result that no worker can give is an error in bounded time."""
    from dkl.engine.passes import await_result

    with (
        dask.config.set({"dkl.no-workers-timeout": 2}),
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        start = time.monotonic()
        with pytest.raises(RuntimeError, match="no worker"):
            await_result(client, client.submit(int, 3))
        assert time.monotonic() - start < 20


def test_source_chunks_of_a_rechunk_do_not_pile_up():
    """Chunks that several blocks share are dropped after the last of them."""
    alive, most, lock = [0], [0], threading.Lock()

    class Chunk(np.ndarray):
        def __del__(self):
            if getattr(self, "counted", False):
                with lock:
                    alive[0] -= 1

    def make(block):
        chunk = block.view(Chunk).copy()
        chunk.counted = True
        with lock:
            alive[0] += 1
            most[0] = max(most[0], alive[0])
        return chunk

    big = rng.standard_normal((120_000, 3))
    rows = da.from_array(big, chunks=(10_000, 3)).map_blocks(make, meta=np.empty((0, 0))).rechunk((15_000, 3))
    dkl.SingleKernelRegressor(n_components=10, sigma=0.5, random_state=0).fit(rows, big[:, 0])
    assert 0 < most[0] <= 8
