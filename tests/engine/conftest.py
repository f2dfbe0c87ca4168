"""A real cluster for tests: one scheduler process and worker processes without nannies, started and killed by id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, SchedulerPlugin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds in which a process must start, or a state must be reached."""


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Poll until the condition holds; its value."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not reached in {seconds:g} s: {what}")


class Machines:
    """Processes of one cluster; `workers` maps a worker's address to its process."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.environ = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"} | environ
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen] = []
        self.workers: dict[str, subprocess.Popen] = {}
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--dashboard-address", ":0")
        wait_until(lambda: self.file.exists() and self.file.stat().st_size, "a scheduler")
        self.client: Client | None = None

    def _start(self, what: str, *options: str, **environ: str) -> subprocess.Popen:
        log = self.folder / f"{what}-{len(self.processes)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", what, "--host", "127.0.0.1", "--scheduler-file", self.file, *options],
                stdout=out, stderr=out, cwd=self.folder, env=self.environ | environ,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def connect(self, address: str | None = None) -> Client:
        """The default client of this process."""
        options: dict = {"scheduler_file": str(self.file)} if address is None else {"address": address}
        self.client = Client(**options, timeout="10s")
        return self.client

    def add(self, count: int, threads: int = 1, **environ: str) -> list[str]:
        """Start workers; their addresses, once the scheduler knows them."""
        assert self.client is not None
        names = [f"w{len(self.processes) + i}" for i in range(count)]
        options = ("--no-nanny", "--no-dashboard", "--nthreads", str(threads), "--memory-limit", "2GB")
        started = {name: self._start("worker", *options, "--name", name, **environ) for name in names}

        def known() -> dict[str, str]:
            info = self.client.scheduler_info(n_workers=-1)["workers"]
            found = {w["name"]: address for address, w in info.items()}
            return {name: found[name] for name in names} if names and set(names) <= found.keys() else {}

        addresses = wait_until(known, f"{count} workers")
        self.workers |= {addresses[name]: process for name, process in started.items()}
        return [addresses[name] for name in names]

    def kill(self, *addresses: str) -> None:
        """kill -9, without warning; the process has ended when this returns."""
        for address in addresses:
            self.workers[address].send_signal(signal.SIGKILL)
        for address in addresses:
            self.workers.pop(address).wait(10)

    def close(self) -> None:
        """End every process that was started here."""
        if self.client is not None:
            with contextlib.suppress(OSError, TimeoutError):
                self.client.close(timeout=5)
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait(10)


@contextlib.contextmanager
def cluster_of(folder: Path, workers: int, threads: int = 1, **environ: str) -> Iterator[Machines]:
    """A cluster and its default client, for a while."""
    machines = Machines(folder, **environ)
    try:
        machines.connect()
        if workers:
            machines.add(workers, threads)
        yield machines
    finally:
        machines.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two workers of one thread."""
    with cluster_of(tmp_path_factory.mktemp("pair"), 2) as machines:
        yield machines


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Machines]]:
    """Start clusters that a test may break."""
    with contextlib.ExitStack() as stack:

        def start(workers: int, threads: int = 1, **environ: str) -> Machines:
            folder = tmp_path / f"cluster{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            return stack.enter_context(cluster_of(folder, workers, threads, **environ))

        yield start


@pytest.fixture
def background() -> Iterator[Callable[..., Future]]:
    """Run a call in a thread; the future of its result."""
    pool = ThreadPoolExecutor(2)
    yield pool.submit
    pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def embedded() -> Iterator[None]:
    """No cluster inside, whatever clients there are."""
    with dask.config.set(scheduler="threads"):
        yield


def learned(model: Any) -> dict[str, np.ndarray]:
    """Everything a fit found out, as arrays."""
    values = {"coef": model.coef_, "intercept": model.intercept_, "sigma": model.sigma_, "alpha": model.alpha_}
    values |= getattr(model, "cv_results_", {})
    return {name: np.asarray(value) for name, value in values.items()}


def assert_same_bits(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Not one bit differs."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        assert found[name].tobytes() == value.tobytes(), name


def assert_unfitted(model: Any) -> None:
    """A failed fit has left nothing behind."""
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert [name for name in vars(model) if name.endswith("_")] == []


def gated(block: np.ndarray, gate: str, free: int, block_info: Any = None) -> np.ndarray:
    """The block itself; chunks from number `free` on wait until the file `gate` exists."""
    if block_info[0]["chunk-location"][0] >= free:
        wait_until(lambda: os.path.exists(gate), "an open gate")
    return block


def slow(block: np.ndarray, seconds: float) -> np.ndarray:
    """The block itself, after a while."""
    time.sleep(seconds)
    return block


class Recorder(SchedulerPlugin):
    """Keys that came to be on the scheduler, and those of them that could not be computed again."""

    name = "test-recorder"

    def __init__(self) -> None:
        self.keys: set = set()
        self.lost: set = set()

    async def start(self, scheduler: Any) -> None:
        """Remember whom to ask."""
        self.scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Called by the scheduler whenever a task changes its state."""
        if start == "released" and finish != "forgotten":
            self.keys.add(key)
            task = self.scheduler.tasks[key]
            self.lost |= {t.key for t in (task, *task.dependencies) if t.run_spec is None}


def take_record(dask_scheduler: Any = None) -> tuple[set, set]:
    """(keys, keys without a recipe) since the last call; runs on the scheduler."""
    recorder = dask_scheduler.plugins[Recorder.name]
    record = recorder.keys, recorder.lost
    recorder.keys, recorder.lost = set(), set()
    return record


def under_way(dask_scheduler: Any = None) -> tuple[dict[str, int], dict[str, int]]:
    """(parts being summed, sums held), each by worker; runs on the scheduler."""
    busy, held = {}, {}
    for address, worker in dask_scheduler.workers.items():
        busy[address] = sum(str(t.key).startswith("dkl-gram") for t in worker.processing)
        held[address] = sum(str(t.key).startswith(("dkl-gram", "dkl-merge")) for t in worker.has_what)
    return busy, held
