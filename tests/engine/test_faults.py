"""Processes that die or arrive during a pass: the same bits, or one clear error soon."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from dkl import SingleKernelClassifier, SingleKernelRegressor
from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import open_table
from dkl.sums.targets import ValueProgram
from tests.engine.conftest import (
    Machines,
    assert_same_bits,
    assert_unfitted,
    embedded,
    learned,
    slow,
    under_way,
    wait_until,
)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

CHUNKS, ROWS = 60, 300
BOUND = 20.0
"""Seconds in which a lost cluster must have become an error."""


def rows(seconds: float) -> tuple[da.Array, np.ndarray]:
    """Rows whose chunks take their time; y is in memory, so that a fit is one pass on the cluster."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((CHUNKS * ROWS, 4)).astype(np.float32)
    lazy = da.from_array(X, chunks=(ROWS, -1))
    lazy = lazy.map_blocks(slow, seconds=seconds, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    return lazy, np.digitize(np.sin(X[:, 0]) + X[:, 1], [-1.0, 1.0])


def new_model() -> SingleKernelClassifier:
    """A model that needs one pass."""
    return SingleKernelClassifier(n_components=64, sigma=0.7, cv=2, alpha=[0.01, 1.0], random_state=1, verbose=0)


@pytest.fixture(scope="module")
def right() -> dict[str, np.ndarray]:
    """What a fit learns when nothing happens, in this process."""
    with embedded():
        return learned(new_model().fit(*rows(0.0)))


@pytest.fixture
def begin(background: Callable[..., Future]) -> Callable[..., tuple[Any, Future]]:
    """Begin a slow fit; the model and the future of the fit."""

    def start(seconds: float = 0.1) -> tuple[Any, Future]:
        model = new_model()
        return model, background(model.fit, *rows(seconds))

    return start


def amid(machines: Machines, run: Future, workers: int) -> list[str]:
    """Wait until that many workers hold sums and are summing; their addresses."""

    def victims() -> list[str]:
        assert not run.done(), "the fit ended before anything could happen to it"
        busy, held = machines.client.run_on_scheduler(under_way)
        found = [address for address in busy if busy[address] and held[address]]
        return found[:workers] if len(found) >= workers else []

    return wait_until(victims, f"{workers} workers amid a pass", 30)


def known(machines: Machines) -> set[str]:
    """Addresses of the workers that the scheduler knows."""
    return set(machines.client.scheduler_info(n_workers=-1)["workers"])


def test_one_worker_dies(started: Any, begin: Any, right: dict) -> None:
    """kill -9 of one of two workers that holds finished sums."""
    machines = started(2)
    model, run = begin()
    (victim,) = amid(machines, run, 1)
    machines.kill(victim)
    assert not run.done()
    assert_same_bits(learned(run.result(timeout=60)), right)
    assert known(machines) == set(machines.workers)
    assert len(machines.workers) == 1
    assert model.n_features_in_ == 4


def test_all_but_one_die(started: Any, begin: Any, right: dict) -> None:
    """kill -9 of two of three workers, one after the other."""
    machines = started(3)
    _, run = begin(0.15)
    for _ in range(2):
        (victim,) = amid(machines, run, 1)
        machines.kill(victim)
        assert not run.done()
    assert_same_bits(learned(run.result(timeout=60)), right)
    assert known(machines) == set(machines.workers)
    assert len(machines.workers) == 1


def test_two_die_at_once(started: Any, begin: Any, right: dict) -> None:
    """kill -9 of two of three workers in the same moment."""
    machines = started(3)
    _, run = begin(0.15)
    machines.kill(*amid(machines, run, 2))
    assert not run.done()
    assert_same_bits(learned(run.result(timeout=60)), right)
    assert len(machines.workers) == 1


def finished(dask_scheduler: Any = None) -> dict[str, int]:
    """Parts that each worker has summed and still holds, or was given; runs on the scheduler."""
    busy, held = under_way(dask_scheduler)
    return {address: busy[address] + held[address] for address in busy}


def test_worker_joins(started: Any, begin: Any, right: dict) -> None:
    """A worker that comes during a pass gets work, and changes nothing."""
    machines = started(1)
    _, run = begin(0.25)
    amid(machines, run, 1)
    (newcomer,) = machines.add(1)
    assert not run.done()
    wait_until(lambda: machines.client.run_on_scheduler(finished)[newcomer] > 0, "work for the newcomer", 30)
    assert not run.done()
    assert_same_bits(learned(run.result(timeout=60)), right)


def test_worker_is_replaced(started: Any, begin: Any, right: dict) -> None:
    """The only worker dies; another one comes and the pass goes on."""
    machines = started(1)
    _, run = begin()
    machines.kill(*amid(machines, run, 1))
    machines.add(1)
    assert not run.done()
    assert_same_bits(learned(run.result(timeout=60)), right)


def where(key: str, dask_scheduler: Any = None) -> list[str]:
    """Addresses of the workers that hold a key; runs on the scheduler."""
    return [worker.address for worker in dask_scheduler.tasks[key].who_has]


def total_weight(sums: Any) -> float:
    """A small solve."""
    return float(sums.tree.total().weight)


def test_sums_are_lost_before_the_solve(started: Any) -> None:
    """The holder of the total dies after the pass: it is summed again."""
    machines = started(2)
    y = da.from_array(np.ones(6000), chunks=500)
    engine = engine_for(True)
    sums = engine.sum(ValueProgram(), Rows([open_table(y, "y"), None], ["y", "sample_weight"]), Progress(0))
    holders = machines.client.run_on_scheduler(where, sums.key)
    assert len(holders) == 1
    machines.kill(*holders)
    assert engine.solve(total_weight, sums) == 6000


@pytest.mark.parametrize("number", [1, 2])
def test_every_worker_dies(started: Any, begin: Any, right: dict, number: int) -> None:
    """Without any worker a fit gives up, soon; with new workers the same client fits again."""
    machines = started(number)
    with dask.config.set({"dkl.no-workers-timeout": 5}):
        model, run = begin()
        amid(machines, run, number)
        began = time.monotonic()
        machines.kill(*machines.workers)
        assert not run.done()
        with pytest.raises(RuntimeError, match="no worker for 5 s"):
            run.result(timeout=BOUND)
        assert 4 < time.monotonic() - began < BOUND
        assert_unfitted(model)
    with dask.config.set({"dkl.no-workers-timeout": 0.5}), pytest.raises(RuntimeError, match=r"no worker for 0\.5 s"):
        model.fit(*rows(0.0))
    assert_unfitted(model)
    machines.add(1)
    assert_same_bits(learned(model.fit(*rows(0.0))), right)


def test_failed_refit_keeps_the_old_model(started: Any, begin: Any, right: dict) -> None:
    """A fitted estimator whose next fit fails is what it was."""
    machines = started(1)
    model = new_model().fit(*rows(0.0))
    with dask.config.set({"dkl.no-workers-timeout": 0.5}):
        machines.kill(*machines.workers)
        with pytest.raises(RuntimeError, match="no worker"):
            model.fit(*rows(0.0))
    assert_same_bits(learned(model), right)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "closed"])
def test_scheduler_dies(started: Any, begin: Any, how: signal.Signals) -> None:
    """The end of the scheduler is one clear error, soon."""
    machines = started(2)
    model, run = begin()
    amid(machines, run, 1)
    began = time.monotonic()
    machines.scheduler.send_signal(how)
    machines.scheduler.wait(10)
    with pytest.raises(RuntimeError, match="scheduler"):
        run.result(timeout=BOUND)
    assert time.monotonic() - began < BOUND
    assert_unfitted(model)


def test_repeated_deaths_of_one_task(started: Any) -> None:
    """Rows that kill whoever reads them are an error that says so, not a hang."""
    machines = started(5)
    X = da.ones((4000, 2), chunks=(1000, 2)).map_blocks(die, dtype=float, meta=np.empty((0, 0)))
    model = SingleKernelRegressor(n_components=8, sigma=1.0, verbose=0)
    with dask.config.set({"dkl.no-workers-timeout": 3}), pytest.raises((RuntimeError, Exception)) as info:
        model.fit(X, np.ones(4000))
    assert "worker" in str(info.value)
    assert_unfitted(model)
    assert machines.scheduler.poll() is None


def die(block: np.ndarray) -> np.ndarray:
    """What running out of memory looks like."""
    import os

    os.kill(os.getpid(), signal.SIGKILL)
    return block
