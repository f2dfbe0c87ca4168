"""Clusters that grow and shrink by themselves, and workers that spill: the same bits as in one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import dkl
from tests.engine.conftest import assert_same_bits, embedded, learned, slow

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(240)]

ROWS, CHUNK = 20_000, 250
X = np.random.default_rng(5).standard_normal((ROWS, 6))
Y = np.sin(X[:, 0])
SPILL = {f"distributed.worker.memory.{name}": at for name, at in (("target", 0.2), ("spill", 0.25), ("pause", 0.9))}


def lazy(seconds: float) -> da.Array:
    """The rows; each chunk takes a while."""
    rows = da.from_array(X, chunks=(CHUNK, -1))
    return rows.map_blocks(slow, seconds=seconds, dtype=X.dtype, meta=np.empty((0, 0)))


def fitted(rows: Any, **options: Any) -> dict[str, np.ndarray]:
    """What a fit finds out."""
    chosen = {"n_components": 64, "sigma": 0.7, "cv": 2, "alpha": [0.1, 1.0], "random_state": 1, "verbose": 0}
    return learned(dkl.SingleKernelRegressor(**(chosen | options)).fit(rows, Y))


@pytest.fixture(scope="module")
def right() -> dict[str, np.ndarray]:
    """In this process."""
    with embedded():
        return fitted(lazy(0.0))


@pytest.fixture
def local(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """Processes with so little memory, so many at first."""
    workers, memory = request.param
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": memory}
    with dask.config.set(SPILL), LocalCluster(n_workers=workers, **options) as cluster, Client(cluster):
        yield cluster


@pytest.mark.parametrize("local", [(0, "1GB")], indirect=True)
def test_adaptive_scaling(local: LocalCluster, right: dict) -> None:
    """From no worker to two and back, fit after fit."""
    local.adapt(minimum=0, maximum=2, interval="200ms", wait_count=2, target_duration="1s")
    for seconds in (0.03, 0.0):
        assert_same_bits(fitted(lazy(seconds)), right)


@pytest.mark.parametrize("local", [(2, "600MB")], indirect=True)
def test_spilling_workers(local: LocalCluster, right: dict) -> None:
    """Rows kept by workers, and sums that are larger than what they hold in memory; too much is refused before."""
    rows = lazy(0.0).persist()
    assert_same_bits(fitted(rows), right)
    large = {"n_components": 1500, "alpha": 1.0, "cv": None}
    found = fitted(rows, **large)
    with embedded():
        assert_same_bits(found, fitted(lazy(0.0), **large))
    with pytest.raises(MemoryError, match=r"a worker would need .* but may use"):
        fitted(rows, n_components=9000, alpha=1.0, cv=None, solver="cholesky")
