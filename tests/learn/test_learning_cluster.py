"""Learning on real clusters: the same bits as in one process; sums, weights and their adjoints stay off the client."""

from __future__ import annotations

import pickle
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import distributed
import numpy as np
import pytest
import zarr
from distributed import Client

import dkl
from dkl.engine.blocks import Rows
from dkl.engine.cluster import Cluster
from dkl.engine.place import NAME
from dkl.engine.progress import Progress, listening
from dkl.engine.reduce import engine_for
from dkl.engine.tables import open_table
from dkl.estimators import single
from dkl.learn.iterate import iterate
from dkl.store.checkpoint import Checkpoint
from dkl.sums.targets import ValueProgram
from tests.engine.conftest import (
    Machines,
    assert_same_bits,
    assert_unfitted,
    cluster_of,
    embedded,
    wait_until,
)
from tests.engine.test_cluster import Relay
from tests.learn.client import FITS, everything, fit, make_data
from tests.learn.clients import address, clients_in
from tests.learn.test_interrupt import assert_solved_at_its_sigma, interrupted, pressed_at

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows on disk."""
    path = str(tmp_path_factory.mktemp("rows") / "d.zarr")
    make_data(path)
    return path


@pytest.fixture(scope="module")
def right(data: str) -> Callable[[str], dict]:
    """What each kind of fit learns in one process."""
    known: dict[str, dict] = {}

    def of(kind: str) -> dict:
        if kind not in known:
            with embedded():
                known[kind] = everything(fit(kind, data))
        return known[kind]

    return of


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Three workers at first, then fewer."""
    with cluster_of(tmp_path_factory.mktemp("cluster"), 3) as machines:
        yield machines


def keep(machines: Machines, count: int) -> Client:
    """Let so many workers live; the client."""
    machines.kill(*list(machines.workers)[count:])
    if count > len(machines.workers):
        machines.add(count - len(machines.workers))
    known = lambda: len(machines.client.scheduler_info(n_workers=-1)["workers"])  # noqa: E731
    wait_until(lambda: known() == count, f"{count} workers")
    return machines.client


def kept_values(dask_scheduler: Any = None) -> list[str]:
    """Names of what is kept for solves; runs on the scheduler."""
    plugin = dask_scheduler.plugins.get(NAME)
    return [] if plugin is None else [kept.name for kept in plugin.values]


SIZES = [(3, "scheduler"), (2, "scheduler"), (2, "client"), (1, "scheduler")]
SOON = {(3, "scheduler"): set(FITS), (2, "client"): {"cv", "frequencies"}, (1, "scheduler"): {"gcv"}}
CASES = [
    pytest.param(*size, kind, marks=() if kind in SOON.get(size, ()) else pytest.mark.long)
    for size in SIZES
    for kind in FITS
]


@pytest.mark.parametrize(("workers", "place", "kind"), CASES)
def test_same_bits(machines: Machines, data: str, right: Any, kind: str, workers: int, place: str) -> None:
    """Whoever adds and whoever solves; and nothing is kept for it afterwards."""
    client = keep(machines, workers)
    seen: list[list[str]] = []
    with listening(lambda event: seen.append(client.run_on_scheduler(kept_values)) if "number" in event else None):
        found = everything(fit(kind, data, place=place))
    assert_same_bits(found, right(kind))
    assert len(seen) >= found["n_iter_"] > 0
    assert all(("search" in names) == (place == "scheduler") for names in seen)
    assert client.run_on_scheduler(kept_values) == []


class Stop(Exception):
    """An interruption."""


def interrupt(fit_it: Callable[[], Any], after: int) -> None:
    """Let a fit die after so many steps."""
    seen: list[int] = []
    save = Checkpoint.save_step

    def save_step(self: Checkpoint, number: int, *rest: Any) -> None:
        save(self, number, *rest)
        seen.append(number)
        if len(seen) == after:
            raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "save_step", save_step)
        with pytest.raises(Stop):
            fit_it()


@pytest.mark.parametrize(("kind", "after"), [("validation", 4), pytest.param("frequencies", 1, marks=pytest.mark.long)])
def test_resumed_elsewhere(machines: Machines, data: str, right: Any, tmp_path: Path, kind: str, after: int) -> None:
    """Begun on two workers, it goes on with one, at the client, or without a cluster."""
    client = keep(machines, 2)
    path = tmp_path / "c"
    interrupt(lambda: fit(kind, data, str(path)), after)
    assert client.run_on_scheduler(kept_values) == [], "nothing is kept for a fit that failed"
    copies = [shutil.copytree(path, tmp_path / f"copy-{i}") for i in range(2)]
    with embedded():
        assert_same_bits(everything(fit(kind, data, str(copies[0]))), right(kind))
    assert_same_bits(everything(fit(kind, data, str(copies[1]), place="client")), right(kind))
    keep(machines, 1)
    assert_same_bits(everything(fit(kind, data, str(path))), right(kind))
    with embedded():
        interrupt(lambda: fit(kind, data, str(tmp_path / "here")), after)
    assert_same_bits(everything(fit(kind, data, str(tmp_path / "here"))), right(kind))


class Watch:
    """What reaches the client while sigma is learned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, relay: Relay) -> None:
        self.told: list[int] = []
        self.fetched: list[str] = []
        self.bytes: list[int] = []
        self.learning = False
        solve = Cluster.solve

        def watched_solve(engine: Cluster, *args: Any, **options: Any) -> Any:
            answer = solve(engine, *args, **options)
            if self.learning:
                self.told.append(len(pickle.dumps(answer)))
            return answer

        def watched_learn(run: Any, method: Any) -> Any:
            self.learning, self.bytes = True, [relay.received]
            with listening(lambda event: self.bytes.append(relay.received) if "number" in event else None):
                try:
                    return iterate(run, method)
                finally:
                    self.learning = False

        def watched(owner: Any, name: str) -> None:
            method = getattr(owner, name)

            def call(*args: Any, **options: Any) -> Any:
                if self.learning:
                    self.fetched.append(name)
                return method(*args, **options)

            monkeypatch.setattr(owner, name, call)

        monkeypatch.setattr(Cluster, "solve", watched_solve)
        monkeypatch.setattr(single, "iterate", watched_learn)
        for owner, name in ((Client, "gather"), (distributed.Future, "result"), (Cluster, "fetch")):
            watched(owner, name)


@pytest.mark.parametrize("learn", ["validation", "log_loss"])
def test_matrices_stay_away_from_the_client(machines: Machines, monkeypatch: pytest.MonkeyPatch, learn: str) -> None:
    """Bytes that reach the client in an iteration: far less than d x c numbers, unless it solves."""
    d, classes, n = 600, 50, 4000
    X = np.random.default_rng(1).normal(size=(n, 4)).astype(np.float32)
    y = np.digitize(np.sin(3 * X[:, 0]) + 0.1 * X[:, 1], np.linspace(-1, 1, classes - 1))
    rows, labels = da.from_array(X, chunks=(1000, -1)), da.from_array(y, chunks=1000)
    options = {"n_components": d, "groups": "each", "max_iter": 2, "starts": 1, "random_state": 0, "verbose": 0}
    options["tol"] = 1e-9
    relay = Relay(machines.client.scheduler.address)
    found = {}
    try:
        with Client(relay.address, timeout="10s"), monkeypatch.context() as patch:
            watch = Watch(patch, relay)
            for place in ("scheduler", "client"):
                watch.told.clear()
                watch.fetched.clear()
                dkl.SingleKernelClassifier(**options, learn=learn, place=place).fit(rows, labels)
                found[place] = watch.told[:], watch.fetched[:], np.diff(watch.bytes)
    finally:
        relay.close()
    told, fetched, received = found["scheduler"]
    assert len(told) >= 6
    assert max(told) < 20_000 < 8 * d * classes / 10
    assert fetched == []
    assert len(received) >= 2
    assert received.max() < 8 * d * classes / 4, received
    told, fetched, received = found["client"]
    assert "result" in fetched, "the watch sees what is fetched"
    assert received.min() > 4 * d * d, received


def test_frequencies_stay_away_from_the_client(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frequency is learned, and an iteration still tells the client one number for each input and some more."""
    d, inputs, n = 400, 150, 2000
    X = np.random.default_rng(1).normal(size=(n, inputs)).astype(np.float32)
    rows, y = da.from_array(X, chunks=(500, -1)), da.from_array(np.sin(X[:, 0]), chunks=500)
    relay = Relay(machines.client.scheduler.address)
    watch = Watch(monkeypatch, relay)
    options = {"learn": "frequencies", "max_iter": 2, "tol": 1e-9, "n_components": d, "random_state": 0, "verbose": 0}
    try:
        dkl.SingleKernelRegressor(**options).fit(rows, y)
    finally:
        relay.close()
    assert len(watch.told) >= 6
    assert max(watch.told) < 8 * inputs + 3000 < 8 * inputs * d / 100


def test_nothing_is_kept_for_a_fit_that_failed(machines: Machines) -> None:
    """A row that no pass takes: the fit says so, and the scheduler lets go of what it had."""
    client = machines.client
    X = np.random.default_rng(0).normal(size=(4000, 3))
    X[3500, 1] = np.nan
    model = dkl.SingleKernelRegressor(n_components=10, sigma=1.0, learn="gcv", random_state=0, verbose=0)
    with pytest.raises(ValueError, match="row 3500"):
        model.fit(da.from_array(X, chunks=(500, -1)), X[:, 0] * 0)
    assert_unfitted(model)
    assert client.run_on_scheduler(kept_values) == []


def clients_known(dask_scheduler: Any = None) -> set[str]:
    """Clients of a scheduler that did not come from its workers; runs on the scheduler."""
    return {name for name in dask_scheduler.clients if name.startswith("Client-") and "worker" not in name}


def total_weight(sums: Any) -> float:
    """A small solve."""
    return float(sums.tree.total().weight)


def next_solve() -> float:
    """The answer of another small solve."""
    rows = Rows([open_table(da.ones(100, chunks=50), "y"), None], ["y", "sample_weight"])
    engine = engine_for(True)
    return engine.solve(total_weight, engine.sum(ValueProgram(), rows, Progress(0)))


def test_nothing_is_kept_for_a_client_that_died(machines: Machines, tmp_path: Path) -> None:
    """kill -9 in the middle of a solve: what it had is let go, and what the solve gives when it ends is not kept."""
    client = machines.client
    gate = tmp_path / "gate"
    with clients_in(tmp_path) as clients:
        pid = clients.begin(keep=str(gate), scheduler=address(machines))
        wait_until(lambda: clients.ended(pid) is not None or Path(f"{gate}.begun").exists(), "a solve")
        assert clients.ended(pid) is None, list(tmp_path.iterdir())
        assert client.run_on_scheduler(kept_values) == ["problem"]
        before = client.run_on_scheduler(clients_known)
        clients.kill(pid)
        wait_until(lambda: len(client.run_on_scheduler(clients_known)) == len(before) - 1, "the end of the client")
        assert client.run_on_scheduler(kept_values) == []
        gate.touch()
        wait_until(lambda: Path(f"{gate}.ended").exists(), "the end of the solve")
        assert next_solve() == 100, "one thread solves, so the answer of the one before was taken first"
        assert client.run_on_scheduler(kept_values) == []


async def watch_loop(dask_scheduler: Any = None) -> None:
    """Note from now on how late the event loop is; runs on the scheduler."""
    import asyncio

    dask_scheduler.dkl_test_late = []

    async def look() -> None:
        while dask_scheduler.dkl_test_late is not None:
            asked = time.monotonic()
            await asyncio.sleep(0.01)
            if dask_scheduler.dkl_test_late is not None:
                dask_scheduler.dkl_test_late.append(time.monotonic() - asked - 0.01)

    dask_scheduler.dkl_test_look = asyncio.ensure_future(look())


def lateness(dask_scheduler: Any = None) -> list[float]:
    """How late it was at each look, which ends the watch; runs on the scheduler."""
    found, dask_scheduler.dkl_test_late = dask_scheduler.dkl_test_late, None
    return found


@pytest.mark.long
@pytest.mark.parametrize("learn", ["validation", "gcv", "cv"])
def test_scheduler_answers_while_it_solves(machines: Machines, data: str, learn: str) -> None:
    """Heartbeats wait for no factorisation, determinant or inverse: its event loop itself says how late it was."""
    client = keep(machines, 2)
    fit("gcv", data)  # the scheduler imports what it needs, once
    X = np.random.default_rng(0).normal(size=(6000, 3))
    model = dkl.SingleKernelRegressor(
        n_components=1500, sigma=0.5, learn=learn, starts=1, max_iter=1, random_state=0, verbose=0, tol=10.0,
        cv=2 if learn == "cv" else None,
    )  # fmt: skip
    client.run_on_scheduler(watch_loop)
    began = time.monotonic()
    model.fit(da.from_array(X, chunks=(1500, -1)), np.sin(X[:, 0]))
    took, late = time.monotonic() - began, client.run_on_scheduler(lateness)
    print(f"{learn}: {took:.1f} s, {len(late)} looks, the latest {max(late):.3f} s late")
    assert len(late) > 20 * took
    assert max(late) < 1.0


@pytest.mark.parametrize(("event", "number"), [("iteration", 2), ("trial", 3)])
def test_ctrl_c_on_a_cluster(machines: Machines, data: str, tmp_path: Path, event: str, number: int) -> None:
    """The best sigma so far is solved for on the workers; nothing is kept there; going on gives the right bits."""
    client = keep(machines, 2)
    options = {"n_components": 24, "random_state": 0, "verbose": 0, "learn": "cv", "cv": 2, "starts": 1}
    options |= {"max_iter": 4, "tol": 1e-9, "groups": "each"}
    rows, code = f"{data}/X", zarr.open_array(f"{data}/code", mode="r")
    with embedded():
        whole = dkl.SingleKernelClassifier(**options).fit(rows, code)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pressed_at(event, number) as when:
            model, said = interrupted(
                lambda: dkl.SingleKernelClassifier(**options, checkpoint=tmp_path / "c").fit(rows, code)
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert when
    assert "fit(resume=True) resumes" in said
    assert 0 < model.n_iter_ < whole.n_iter_
    with embedded():
        assert_solved_at_its_sigma(model, rows, code)
    wait_until(lambda: client.run_on_scheduler(kept_values) == [], "nothing kept")
    resumed = dkl.SingleKernelClassifier(**options, checkpoint=tmp_path / "c").fit(rows, code, resume=True)
    assert_same_bits(everything(resumed), everything(whole))
