"""Rows and answers never pass through the client: bytes that reach it, counted by a relay before the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import dkl
from tests.relay import Relay

ROWS, OUTPUTS, CHUNK = 20_000, 150, 1000
ANSWER = ROWS * OUTPUTS * 8
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    """Between this client and a scheduler whose workers are threads behind sockets."""
    options: dict = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**options, protocol="tcp://") as cluster:
        relay = Relay(cluster.scheduler_address)
        try:
            with Client(relay.address, timeout="10s"):
                yield relay
        finally:
            relay.close()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> str:
    """X and y in chunks of 1,000 rows."""
    path, X = str(tmp_path_factory.mktemp("rows") / "rows.zarr"), RNG.standard_normal((ROWS, 4))
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=X, chunks=(CHUNK, 4))
    group.create_array("y", data=np.tile(X[:, :1], OUTPUTS), chunks=(CHUNK, OUTPUTS))
    return path


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, Any]:
    """A model of many outputs, and a map of many features."""
    X = RNG.standard_normal((300, 4))
    model = dkl.SingleKernelRegressor(n_components=20, random_state=0, verbose=0)
    model.fit(X, X[:, :1] * np.linspace(1.0, 2.0, OUTPUTS))
    return model, dkl.FourierFeatures(n_components=OUTPUTS, random_state=0).fit(X)


def received(relay: Relay, call: Callable[[], Any]) -> int:
    """Bytes that reach the client meanwhile."""
    before = relay.received
    call()
    return relay.received - before


@pytest.mark.parametrize("what", ["zarr", "parquet", "features", "evaluate"])
def test_answers_stay_away(
    relay: Relay, rows: str, fitted: tuple[Any, Any], tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an answer of 24 MB, not one part in fifty comes here; all of it is on disk."""
    monkeypatch.setattr("dkl.estimators.predictor.ROWS", CHUNK)
    model, features = fitted
    none: dict[str, list[str]] = {"score": [], "probability": []}
    out = str(tmp_path / f"a.{'parquet' if what == 'parquet' else 'zarr'}")
    calls: dict[str, Callable[[], Any]] = {
        "features": lambda: features.transform_to(rows, out),
        "evaluate": lambda: model.evaluate(rows),
    }
    came = received(relay, calls.get(what, lambda: model.predict_to(rows, out, none)))
    assert 1000 < came < ANSWER / 50
    if what != "evaluate":
        assert sum(file.stat().st_size for file in Path(out).rglob("*") if file.is_file()) > ANSWER / 3


def test_the_relay_counts(relay: Relay, rows: str, fitted: tuple[Any, Any]) -> None:
    """Answers that do come here are seen."""
    assert received(relay, lambda: list(fitted[0].predict_blocks(rows))) > ANSWER
