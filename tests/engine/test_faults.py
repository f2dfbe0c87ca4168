"""Processes that die or arrive during a pass: the same bits, or one clear error soon.

Chunks of the rows wait for a file, so a pass is under way until its test lets it end.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import KilledWorker

from dkl import SingleKernelClassifier
from dkl.engine.blocks import Rows
from dkl.engine.cluster import Cluster
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import open_table
from dkl.learn import resumable_pass as legs
from dkl.store.checkpoint import progress_of
from dkl.sums.targets import ValueProgram
from tests.engine.conftest import (
    Machines,
    assert_same_bits,
    assert_unfitted,
    cluster_of,
    embedded,
    gated,
    learned,
    under_way,
    wait_until,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

CHUNKS, FREE, ROWS = 60, 36, 300
BOUND = 20.0
"""Seconds in which a lost cluster must have become an error."""


def open_rows(gate: Path) -> tuple[da.Array, np.ndarray]:
    """Rows whose later chunks wait at the gate; y is in memory, so that a fit is one pass on the cluster."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((CHUNKS * ROWS, 4)).astype(np.float32)
    lazy = da.from_array(X, chunks=(ROWS, -1))
    lazy = lazy.map_blocks(gated, gate=str(gate), free=FREE, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    return lazy, np.digitize(np.sin(X[:, 0]) + X[:, 1], [-1.0, 1.0])


def new_model() -> SingleKernelClassifier:
    """A model that needs one pass."""
    return SingleKernelClassifier(n_components=64, sigma=0.7, cv=2, alpha=[0.1, 1.0], random_state=1, verbose=0)


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What a fit learns when nothing happens, in this process."""
    gate = tmp_path_factory.mktemp("right") / "gate"
    gate.touch()
    with embedded():
        return learned(new_model().fit(*open_rows(gate)))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """A scheduler whose workers come and go."""
    with cluster_of(tmp_path_factory.mktemp("cluster"), 0) as machines:
        yield machines


@pytest.fixture
def crew(machines: Machines) -> Callable[[int], Machines]:
    """The cluster with so many workers."""

    def of(count: int) -> Machines:
        machines.kill(*list(machines.workers)[count:])
        if count > len(machines.workers):
            machines.add(count - len(machines.workers))
        wait_until(lambda: known(machines) == set(machines.workers), f"{count} workers")
        return machines

    return of


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "gate"


@pytest.fixture
def begin(gate: Path, background: Callable[..., Future]) -> Iterator[Callable[..., tuple[Any, Future]]]:
    """Begin a fit that stops at the gate; the model and the future of the fit."""

    def start() -> tuple[Any, Future]:
        model = new_model()
        return model, background(model.fit, *open_rows(gate))

    yield start
    gate.touch()


def amid(machines: Machines, run: Future, workers: int) -> list[str]:
    """Wait until that many workers are summing and the first of them holds sums; their addresses."""

    def victims() -> list[str]:
        assert not run.done(), run
        busy, held = machines.client.run_on_scheduler(under_way)
        found = sorted((address for address in busy if busy[address]), key=lambda address: -held[address])
        return found[:workers] if len(found) >= workers and held[found[0]] else []

    return wait_until(victims, f"{workers} workers amid a pass")


def known(machines: Machines) -> set[str]:
    """Addresses of the workers that the scheduler knows."""
    return set(machines.client.scheduler_info(n_workers=-1)["workers"])


def busy_with(address: str, dask_scheduler: Any = None) -> int:
    """Parts that a worker is summing; runs on the scheduler."""
    return under_way(dask_scheduler)[0].get(address, 0)


@pytest.mark.long
def test_worker_joins(crew: Any, begin: Any, gate: Path, right: dict) -> None:
    """A worker that comes during a pass gets work, and changes nothing."""
    machines = crew(1)
    _, run = begin()
    amid(machines, run, 1)
    (newcomer,) = machines.add(1)
    wait_until(lambda: machines.client.run_on_scheduler(busy_with, newcomer), "work for the newcomer")
    assert not run.done()
    gate.touch()
    assert_same_bits(learned(run.result(timeout=60)), right)


def test_one_worker_dies(crew: Any, begin: Any, gate: Path, right: dict) -> None:
    """kill -9 of one of two workers that holds finished sums and is summing."""
    machines = crew(2)
    model, run = begin()
    machines.kill(*amid(machines, run, 1))
    wait_until(lambda: len(known(machines)) == 1, "one worker less")
    assert not run.done()
    gate.touch()
    assert run.result(timeout=60) is model
    assert_same_bits(learned(model), right)
    assert known(machines) == set(machines.workers)


def test_all_but_one_die(crew: Any, begin: Any, gate: Path, right: dict) -> None:
    """kill -9 of two of three workers in the same moment."""
    machines = crew(3)
    _, run = begin()
    machines.kill(*amid(machines, run, 2))
    wait_until(lambda: len(known(machines)) == 1, "two workers less")
    assert not run.done()
    gate.touch()
    assert_same_bits(learned(run.result(timeout=60)), right)
    assert known(machines) == set(machines.workers)


def test_worker_is_replaced(crew: Any, begin: Any, gate: Path, right: dict) -> None:
    """The only worker dies; another one comes and the pass goes on."""
    machines = crew(1)
    _, run = begin()
    machines.kill(*amid(machines, run, 1))
    machines.add(1)
    assert not run.done()
    gate.touch()
    assert_same_bits(learned(run.result(timeout=60)), right)


def where(key: str, dask_scheduler: Any = None) -> list[str]:
    """Addresses of the workers that hold a key; runs on the scheduler."""
    return [worker.address for worker in dask_scheduler.tasks[key].who_has]


def total_weight(sums: Any) -> float:
    """A small solve."""
    return float(sums.tree.total().weight)


def test_sums_are_lost_before_the_solve(crew: Any) -> None:
    """The holder of the total dies after the pass: it is summed again."""
    machines = crew(2)
    y = da.from_array(np.ones(6000), chunks=500)
    engine = engine_for(True)
    sums = engine.sum(ValueProgram(), Rows([open_table(y, "y"), None], ["y", "sample_weight"]), Progress(0))
    holders = machines.client.run_on_scheduler(where, sums.key)
    assert len(holders) == 1
    machines.kill(*holders)
    assert engine.solve(total_weight, sums) == 6000


@pytest.mark.timeout(300)
def test_every_worker_dies(crew: Any, begin: Any, gate: Path, right: dict) -> None:
    """Without any worker a fit gives up, not before its patience has ended; with a new worker the same model fits.

    How long after depends on what else the machine does, so only a hang is a failure.
    """
    machines = crew(2)
    with dask.config.set({"dkl.no-workers-timeout": 5}):
        model, run = begin()
        amid(machines, run, 2)
        began = time.monotonic()
        machines.kill(*machines.workers)
        assert not run.done()
        with pytest.raises(RuntimeError, match="no worker for 5 s"):
            run.result(timeout=120)
        assert time.monotonic() - began > 4
        assert_unfitted(model)
    gate.touch()
    with dask.config.set({"dkl.no-workers-timeout": 0.5}), pytest.raises(RuntimeError, match=r"no worker for 0\.5 s"):
        model.fit(*open_rows(gate))
    assert_unfitted(model)
    crew(1)
    assert_same_bits(learned(model.fit(*open_rows(gate))), right)
    crew(0)
    with dask.config.set({"dkl.no-workers-timeout": 0.5}), pytest.raises(RuntimeError, match="no worker"):
        model.fit(*open_rows(gate))
    assert_same_bits(learned(model), right)


def die(block: np.ndarray) -> np.ndarray:
    """What running out of memory looks like."""
    os.kill(os.getpid(), signal.SIGKILL)
    return block


def allow_deaths(count: int, dask_scheduler: Any = None) -> int:
    """Set how many workers may die of one task; what it was. Runs on the scheduler."""
    before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, count
    return before


def test_rows_that_kill_their_reader(crew: Any) -> None:
    """Rows that nobody can read without dying are distributed's own error, not a hang."""
    machines = crew(2)
    before = machines.client.run_on_scheduler(allow_deaths, 0)
    try:
        X = da.ones((4000, 2), chunks=(1000, 2)).map_blocks(die, dtype=float, meta=np.empty((0, 0)))
        model = new_model()
        with pytest.raises(KilledWorker, match="dkl-gram"):
            model.fit(X, np.arange(4000) % 2)
        assert_unfitted(model)
    finally:
        machines.client.run_on_scheduler(allow_deaths, before)
        machines.kill(*machines.workers)


def test_scheduler_dies(started: Any, begin: Any) -> None:
    """The end of the scheduler is one clear error, soon."""
    machines = started(1)
    model, run = begin()
    amid(machines, run, 1)
    began = time.monotonic()
    machines.scheduler.kill()
    machines.scheduler.wait(10)
    with pytest.raises(RuntimeError, match="scheduler"):
        run.result(timeout=BOUND)
    assert time.monotonic() - began < BOUND
    assert_unfitted(model)


@pytest.mark.long
def test_scheduler_restarted_in_a_checkpointed_fit(
    started: Any, background: Any, gate: Path, right: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new scheduler with a new worker goes on from the sums that were kept, to the same bits."""
    monkeypatch.setattr(legs, "SECONDS", 0.0)
    monkeypatch.setattr(legs, "SHARE", 1e9)
    place = str(tmp_path / "kept")
    first = started(1)
    model = new_model().set_params(checkpoint=place)
    run = background(model.fit, *open_rows(gate))
    wait_until(lambda: run.done() or (progress_of(place) or {}).get("blocks"), "sums that are kept")
    assert not run.done(), run
    first.scheduler.kill()
    first.scheduler.wait(10)
    with pytest.raises(RuntimeError, match="scheduler"):
        run.result(timeout=BOUND)
    assert_unfitted(model)
    first.close()
    kept = progress_of(place)["blocks"]
    assert kept > 0
    gate.touch()
    started(1)
    model.fit(*open_rows(gate), resume=True)
    assert_same_bits(learned(model), right)


def test_a_call_on_a_client_that_is_closing(started):
    """distributed says "ConnectionPool is closed" as a RuntimeError; the user hears of the scheduler."""
    client = started(1).client
    engine = Cluster(client)
    client.sync(client.rpc.close)
    with pytest.raises(RuntimeError, match="connection to the scheduler is lost"), engine._reached():
        client.sync(client.rpc.connect, client.scheduler.address)
