"""The engine on real clusters: the same bits as in one process, small graphs, solves where they belong."""

from __future__ import annotations

import asyncio
import io
import os
import pickle
import re
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import product
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from dask.utils import key_split
from distributed import Client

from dkl import FourierFeatures, NystroemFeatures, SingleKernelClassifier, SingleKernelRegressor
from dkl.engine.blocks import Rows
from dkl.engine.cluster import Cluster
from dkl.engine.handles import Reply
from dkl.engine.memory import HELD
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import open_table
from dkl.solvers.factor import factorise
from dkl.sums.gram import GramSums
from dkl.sums.targets import ValueProgram
from tests.engine.conftest import (
    Machines,
    Recorder,
    assert_same_bits,
    assert_unfitted,
    cluster_of,
    embedded,
    gated,
    learned,
    slow,
    take_record,
    under_way,
    wait_until,
)
from tests.relay import Relay

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

ROWS, CHUNK, INPUTS = 6000, 250, 5
SIZES = [(1, 1), (2, 1), (1, 2), (3, 1)]


class Data:
    """Rows on disk, in Zarr arrays."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(7)
        X = rng.standard_normal((ROWS, INPUTS))
        y = np.sin(X[:, :2]) + 0.1 * rng.standard_normal((ROWS, 2))
        arrays = {
            "float32": X.astype(np.float32),
            "float64": X,
            "values": y,
            "classes": np.digitize(y.sum(1), [-0.5, 0.5]),
            "weight": rng.gamma(1.0, size=ROWS),
        }
        self.folder = folder
        for name, array in arrays.items():
            chunks = (CHUNK, *array.shape[1:])
            zarr.create_array(folder / name, shape=array.shape, dtype=array.dtype, chunks=chunks)[:] = array

    def lazy(self, name: str) -> da.Array:
        """A Dask array of one of them."""
        return da.from_zarr(self.folder / name)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    """The rows of all tests here."""
    return Data(tmp_path_factory.mktemp("rows"))


@pytest.fixture(scope="module")
def expected() -> dict:
    """What was learned without a cluster, by case."""
    return {}


@pytest.fixture(scope="module", params=SIZES, ids=lambda p: f"{p[0]}x{p[1]}")
def sized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Clusters of several sizes: workers x threads."""
    with cluster_of(tmp_path_factory.mktemp("sized"), *request.param) as machines:
        yield machines


def fit(data: Data, kind: str, dtype: str, folds: bool, weights: bool, source: str = "zarr") -> dict:
    """Everything learned from one description of the same rows."""
    options: dict = {"n_components": 48, "random_state": 3, "verbose": 0}
    if folds:
        options |= {"cv": 3, "alpha": [0.1, 1.0]}
    model = (SingleKernelClassifier if kind == "classes" else SingleKernelRegressor)(**options)
    X: Any = data.lazy(dtype)
    if source == "path":
        X = str(data.folder / dtype)
    elif source == "persisted":
        X = X.persist()
    elif source == "centred":
        X = X - X.mean(0)
    model.fit(X, data.lazy(kind), sample_weight=data.lazy("weight") if weights else None)
    return learned(model)


def as_embedded(expected: dict, *case: Any) -> dict:
    """What a case gives in one process; computed once."""
    if case[1:] not in expected:
        with embedded():
            expected[case[1:]] = fit(*case)
    return expected[case[1:]]


def assert_as_embedded(expected: dict, *case: Any) -> None:
    """The same case with and without the cluster."""
    assert_same_bits(fit(*case), as_embedded(expected, *case))


CASES = {"alone": (False, False), "weighted-folds": (True, True)}


SOON = {("classes", "float32", "weighted-folds"), ("values", "float64", "alone"), ("values", "float32", "alone")}
EACH = [
    pytest.param(*each, marks=() if each in SOON else pytest.mark.long)
    for each in product(["classes", "values"], ["float32", "float64"], CASES)
]


@pytest.mark.parametrize(("kind", "dtype", "case"), EACH)
def test_same_bits(sized: Machines, data: Data, expected: dict, kind: str, dtype: str, case: str) -> None:
    """Coefficients, intercept and fold scores do not depend on workers or threads."""
    assert_as_embedded(expected, data, kind, dtype, *CASES[case])


SOURCES = [
    pytest.param(*each, marks=() if each in {("path", "classes"), ("centred", "values")} else pytest.mark.long)
    for each in product(["path", "persisted", "centred"], ["classes", "values"])
]


@pytest.mark.parametrize(("source", "kind"), SOURCES)
def test_same_bits_of_every_source(sized: Machines, data: Data, expected: dict, source: str, kind: str) -> None:
    """A Zarr path, a persisted and a lazily centred array give the bits they give without a cluster."""
    assert_as_embedded(expected, data, kind, "float32", True, True, source)
    plain, found = (as_embedded(expected, data, kind, "float32", True, True, *s) for s in ((), (source,)))
    if source == "centred":
        assert (found["coef"] != plain["coef"]).any()
    else:
        assert_same_bits(found, plain)


def test_matrices_stay_away_from_the_client(pair: Machines, data: Data) -> None:
    """Bytes that reach the client: far less than a d x d matrix, unless it solves."""
    d, received = 1000, {}
    relay = Relay(pair.client.scheduler.address)
    try:
        with Client(relay.address, timeout="10s"):
            for place in ("scheduler", "client"):
                model = SingleKernelRegressor(n_components=d, sigma=0.5, random_state=0, place=place, verbose=0)
                before = relay.received
                model.fit(data.lazy("float32"), data.lazy("values"))
                received[place] = relay.received - before
    finally:
        relay.close()
    assert 1000 < received["scheduler"] < 8 * d * d / 20
    assert received["client"] > 4 * d * d


def who(sums: Any, seconds: float) -> tuple[int, str, bool]:
    """Where this runs, after a solve of some seconds; and whether the sums came along."""
    deadline = time.monotonic() + seconds
    a = np.eye(2500) * 2.0 + 1.0
    while time.monotonic() < deadline:  # the library's own solve, back to back, with no pause to hide behind
        factorise(a.copy(), 1.0).solve(a[:, :500])
    return os.getpid(), threading.current_thread().name, sums.tree.total().weight == ROWS


def loop_thread(dask_scheduler: Any = None) -> str:
    """Name of the event loop's thread."""
    return threading.current_thread().name


def test_solve_runs_beside_the_event_loop(pair: Machines, data: Data, background: Any) -> None:
    """A solve of three seconds is in the scheduler process, which answers meanwhile and keeps its workers."""
    engine = engine_for(True)
    sums = engine.sum(ValueProgram(), Rows([open_table(data.lazy("values"), "y"), None], ["y", "w"]), Progress(0))
    loop = pair.client.run_on_scheduler(loop_thread)
    engine.solve(who, sums, seconds=0.0)
    began = time.monotonic()
    answer: Future = background(engine.solve, who, sums, seconds=3.0)
    slowest, answers = 0.0, 0
    while not answer.done():
        asked = time.monotonic()
        pair.client.run_on_scheduler(loop_thread)
        slowest, answers = max(slowest, time.monotonic() - asked), answers + 1
        assert pair.client.submit(abs, -answers, pure=False).result(timeout=10) == answers
        time.sleep(0.05)
    pid, thread, complete = answer.result()
    assert time.monotonic() - began >= 3
    assert complete
    assert pid == pair.scheduler.pid != os.getpid()
    assert thread != loop
    assert answers >= 10
    assert slowest < 0.5
    assert pair.client.scheduler_info(n_workers=-1)["workers"].keys() == pair.workers.keys()


def test_solve_at_the_client(pair: Machines, data: Data) -> None:
    """place='client' solves in this process."""
    engine = engine_for(True, "client")
    sums = engine.sum(ValueProgram(), Rows([open_table(data.lazy("values"), "y"), None], ["y", "w"]), Progress(0))
    assert engine.solve(who, sums, seconds=0.0)[0] == os.getpid()


def test_scheduler_that_takes_no_plugin(started: Any, data: Data, expected: dict) -> None:
    """A warning, and the client solves."""
    blocked = {"DASK_DISTRIBUTED__SCHEDULER__BLOCKED_HANDLERS": "['register_scheduler_plugin']"}
    started(1, **blocked)
    with embedded():
        right = fit(data, "classes", "float32", True, True)
    with pytest.warns(UserWarning, match=r"does not take dkl's plugin.*the client solves"):
        found = fit(data, "classes", "float32", True, True)
    assert_same_bits(found, right)


@pytest.fixture
def recorded(pair: Machines) -> Iterator[Machines]:
    """Two workers, and a plugin that writes down every key."""
    pair.client.register_plugin(Recorder())
    pair.client.run_on_scheduler(take_record)
    yield pair
    pair.client.unregister_scheduler_plugin(Recorder.name)


def scattered_is_seen(client: Client) -> bool:
    """Whether the recorder would notice scattered data."""
    future = client.scatter(np.ones(3), hash=False)
    client.submit(np.sum, future, pure=False).result(timeout=10)
    key = future.key
    return key in client.run_on_scheduler(take_record)[1]


@pytest.mark.parametrize("source", ["zarr", "path", "persisted", "centred"])
def test_keys_of_a_fit(recorded: Machines, data: Data, source: str) -> None:
    """Every key can be computed again, and no raw or feature block is one."""
    client = recorded.client
    assert scattered_is_seen(client)
    X: Any = data.lazy("float32")
    given: set = set()
    if source == "path":
        X = str(data.folder / "float32")
    elif source == "persisted":
        X = X.persist()
        given = {k for row in X.__dask_keys__() for k in row}
    elif source == "centred":
        X = X - X.mean(0)
    SingleKernelRegressor(n_components=32, random_state=0, cv=2, verbose=0).fit(
        X, data.lazy("values"), data.lazy("weight")
    )
    keys, lost = client.run_on_scheduler(take_record)
    assert len(keys) > 10
    assert lost == set()
    blocks = {k for k in keys if isinstance(k, tuple)} - given
    if source == "centred":
        assert blocks
        assert X.name not in {name for name, *_ in blocks}
    else:
        assert blocks == set()
    rest = {k for k in keys if isinstance(k, str) and not k.startswith("dkl-")}
    assert all(k.startswith("original-from-zarr") for k in rest), rest


def count_tasks(machines: Machines, n: int, chunk: int) -> int:
    """Keys of one pass over n rows in chunks."""
    X = da.random.default_rng(0).standard_normal((n, 2), chunks=(chunk, 2))
    machines.client.run_on_scheduler(take_record)
    SingleKernelRegressor(n_components=8, sigma=1.0, random_state=0, verbose=0).fit(X, np.arange(n) % 7)
    keys, _ = machines.client.run_on_scheduler(take_record)
    return len(keys)


def test_graph_is_bounded(recorded: Machines) -> None:
    """Ten times the chunks, or ten times the rows and chunks, are not more tasks than a few for each thread."""
    few, finer, more = (count_tasks(recorded, *size) for size in ((20_000, 1000), (20_000, 100), (200_000, 1000)))
    assert few > 5
    assert finer <= 1.5 * few
    assert more <= 2 * few
    assert max(few, finer, more) <= 16 * 2


def scheduler_tasks(dask_scheduler: Any = None) -> list[str]:
    """Keys of dkl on the scheduler now."""
    return [str(key) for key in dask_scheduler.tasks if str(key).startswith("dkl-")]


def test_nothing_is_left_of_a_fit(recorded: Machines) -> None:
    """Fits one after another have graphs of the same size and leave no key behind."""
    counts = [count_tasks(recorded, 20_000, 1000) for _ in range(4)]
    assert max(counts) <= min(counts) + 8
    wait_until(lambda: not recorded.client.run_on_scheduler(scheduler_tasks), "an empty scheduler", 10)


def count_sums(dask_worker: Any = None) -> int:
    """Sums that a worker holds."""
    return sum(isinstance(value, GramSums) for value in list(dask_worker.data.values()))


def test_few_sums_are_alive(pair: Machines, background: Any) -> None:
    """A worker holds no more sums than the promise of memory says, however many blocks there are."""
    n = 160 * 8192
    X = da.random.default_rng(0).standard_normal((n, 1), chunks=(8192, 1)).astype("float32")
    X = X.map_blocks(slow, seconds=0.015, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    model = SingleKernelRegressor(n_components=8, sigma=1.0, random_state=0, verbose=0)
    run: Future = background(model.fit, X, np.arange(n) % 3)
    most, looks = 0, 0
    while not run.done():
        most, looks = max(most, *pair.client.run(count_sums).values()), looks + 1
        time.sleep(0.005)
    run.result()
    assert looks >= 20
    assert 1 <= most <= HELD


def test_predictions_are_lazy(pair: Machines, data: Data, expected: dict) -> None:
    """predict gives a Dask array of the same chunks; computed on the cluster it is what numpy gives."""
    X = data.lazy("float32")
    for kind, one in (("values", SingleKernelRegressor), ("classes", SingleKernelClassifier)):
        model = one(n_components=32, random_state=0, verbose=0).fit(X, data.lazy(kind))
        lazy = model.predict(X)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == X.chunks[0]
        found = lazy.compute()
        with embedded():
            np.testing.assert_allclose(found, model.predict(X).compute(), rtol=0, atol=0)
        np.testing.assert_allclose(found, model.predict(np.asarray(X)), rtol=1e-6, atol=1e-6)


def test_model_travels_once(recorded: Machines, data: Data) -> None:
    """The model is one key of the graph of predictions, and no other task contains it."""
    X = data.lazy("float64")
    model = SingleKernelRegressor(n_components=3000, sigma=1.0, random_state=0, verbose=0)
    with embedded():
        model.fit(X[:600], data.lazy("values")[:600])
    size = model.coef_.nbytes + model.features_.unit.nbytes
    recorded.client.run_on_scheduler(take_record)
    for lazy in (model.predict(X), dask.optimize(model.predict(X))[0]):
        sizes = sorted(len(cloudpickle.dumps(task)) for task in dict(lazy.__dask_graph__()).values())
        assert len(sizes) >= X.npartitions
        assert sizes[-1] > size / 2
        assert sizes[-2] < size / 10
    model.predict(X).compute()
    keys, lost = recorded.client.run_on_scheduler(take_record)
    assert lost == set()
    assert X.npartitions < len(keys) <= 3 * X.npartitions + 2


def named(keys: set) -> set[str]:
    """What the dashboard calls them."""
    return {key_split(key) for key in keys}


def test_names_on_the_dashboard(recorded: Machines, data: Data) -> None:
    """Every pass has its own name, and none is cut off at an underscore."""
    X, y = data.lazy("float32"), data.lazy("classes")
    SingleKernelClassifier(n_components=16, random_state=0, cv=2, calibrate=50, verbose=0).fit(X, y)
    names = named(recorded.client.run_on_scheduler(take_record)[0])
    assert names >= {"dkl-spread", "dkl-targets", "dkl-scale", "dkl-gram", "dkl-merge", "dkl-calibrate"}
    learner = SingleKernelClassifier(
        n_components=16, learn="log_loss", max_iter=1, starts=1, random_state=0, verbose=0, cv=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one step is not the end
        model = learner.fit(X, y)
    names |= named(recorded.client.run_on_scheduler(take_record)[0])
    assert names >= {"dkl-gradient", "dkl-scores"}
    NystroemFeatures(n_components=8, landmarks="leverage", sigma=1.0, random_state=0, verbose=0).fit(X)
    names |= named(recorded.client.run_on_scheduler(take_record)[0])
    assert names >= {"dkl-landmarks", "dkl-scatter"}
    model.evaluate(X, y)
    assert len(list(model.predict_blocks(X))) >= 1
    names |= named(recorded.client.run_on_scheduler(take_record)[0])
    assert names >= {"dkl-evaluation", "dkl-predict"}
    assert {name for name in names if name == "dkl" or "_" in name} == set()


def test_names_of_lazy_answers(recorded: Machines, data: Data) -> None:
    """Blocks of predictions and features say what they are."""
    X = data.lazy("float32")
    model = SingleKernelClassifier(n_components=16, sigma=1.0, random_state=0, verbose=0).fit(X, data.lazy("classes"))
    features = FourierFeatures(n_components=8, sigma=1.0, random_state=0).fit(X)
    recorded.client.run_on_scheduler(take_record)
    for lazy, name in (
        (model.predict(X), "dkl-predict"),
        (model.decision_function(X), "dkl-scores"),
        (features.transform(X), "dkl-transform"),
    ):
        assert key_split(lazy.name) == name
        lazy.compute()
        seen = named(recorded.client.run_on_scheduler(take_record)[0])
        assert seen >= {name, "dkl-model"}
        assert not any(one.startswith("_") or "call" in one for one in seen)


def test_asynchronous_client(pair: Machines, data: Data) -> None:
    """A sentence, whose advice works."""
    X, y = data.lazy("float32"), data.lazy("values")
    unknown = X[X[:, 0] > 0]

    async def attempt() -> Any:
        model = SingleKernelRegressor(n_components=16, sigma=1.0, random_state=0, verbose=0)
        async with Client(pair.client.scheduler.address, asynchronous=True):
            for rows in (X, unknown):
                with pytest.raises(RuntimeError, match=r"asynchronous.*asyncio\.to_thread"):
                    model.fit(rows, y)
            await asyncio.to_thread(model.fit, X, y)
        return learned(model)

    found = asyncio.run(attempt())
    with embedded():
        model = SingleKernelRegressor(n_components=16, sigma=1.0, random_state=0, verbose=0)
        assert_same_bits(found, learned(model.fit(X, y)))


class Fine(ValueProgram):
    """Blocks of a few rows."""

    rows_wanted = 1


def blocks_alive(dask_scheduler: Any = None) -> int:
    """Blocks of arrays that workers hold now."""
    return sum(isinstance(key, tuple) and bool(task.who_has) for key, task in dask_scheduler.tasks.items())


def blocks_seen(dask_scheduler: Any = None) -> int:
    """Blocks of arrays that came to be."""
    return sum(isinstance(key, tuple) for key in dask_scheduler.plugins[Recorder.name].keys)


def test_shared_values_are_let_go(recorded: Machines, background: Any, tmp_path: Path) -> None:
    """Chunks that two parts share are dropped when both have been summed, not at the end of the pass."""
    gate, n = tmp_path / "gate", 6000
    y = da.ones(n, chunks=10).map_blocks(gated, gate=str(gate), free=540, dtype=float, meta=np.empty(0))
    rows = Rows([open_table(y.rechunk(13), "y"), None], ["y", "w"])
    engine, client = engine_for(True), recorded.client
    try:
        run: Future = background(engine.sum, Fine(), rows, Progress(0))
        wait_until(lambda: client.run_on_scheduler(blocks_seen) >= 20, "many shared chunks")
        wait_until(lambda: client.run_on_scheduler(blocks_alive) <= 10, "few of them alive", 20)
        assert not run.done()
        assert client.run_on_scheduler(blocks_seen) >= 20
    finally:
        gate.touch()
    assert engine.fetch(run.result(timeout=60)).tree.total().weight == n


def keep_behind(sums: Any, gate: str) -> Reply:
    """A solve that ends when a file is there, and wants to keep something."""
    wait_until(lambda: os.path.exists(gate), "an open gate")
    return Reply("told", {"large": np.ones(10)})


def kept_now(dask_scheduler: Any = None) -> list[str]:
    """Names of the values that the scheduler keeps."""
    return [kept.name for kept in dask_scheduler.plugins["dkl-solve"].values]


def test_nothing_is_kept_for_a_fit_that_has_ended(pair: Machines, background: Any, tmp_path: Path) -> None:
    """A solve that outlives its fit keeps nothing; the next fit keeps again, until it ends too."""
    gate, engine = tmp_path / "gate", engine_for(True)
    y = Rows([open_table(da.ones(100, chunks=50), "y"), None], ["y", "w"])
    sums = engine.sum(ValueProgram(), y, Progress(0))
    run: Future = background(engine.solve, keep_behind, sums, gate=str(gate))
    time.sleep(0.5)
    engine.forget()
    gate.touch()
    assert run.result(timeout=60).told == "told"
    assert pair.client.run_on_scheduler(kept_now) == []
    assert engine.solve(keep_behind, sums, gate=str(gate)).told == "told"
    assert pair.client.run_on_scheduler(kept_now) == ["large"]
    engine.forget()
    assert pair.client.run_on_scheduler(kept_now) == []


@pytest.mark.parametrize(("pause", "share"), [(0.8, 0.8), (0.5, 0.5), (False, 1.0)])
def test_a_worker_pauses_before_its_limit(pair: Machines, pause: Any, share: float) -> None:
    """What a worker may use is what it may use before dask pauses it: a share of 2 GB, or all if it never does."""
    with dask.config.set({"distributed.worker.memory.pause": pause}):
        found = engine_for(True).resources()
    assert [worker.limit for worker in found] == [share * 2_000_000_000] * 2
    assert all(0 < worker.used < worker.limit for worker in found)


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        """Somebody is watching."""
        return True


def test_progress_is_seen(pair: Machines) -> None:
    """Lines of a pass on the cluster show rows that grow up to all of them."""
    n, screen = 60 * 512, Screen()
    y = da.ones(n, chunks=512).map_blocks(slow, seconds=0.1, dtype=float, meta=np.empty(0))
    engine = engine_for(True)
    assert isinstance(engine, Cluster)
    progress = Progress(1, screen).name("targets")
    total = engine.fetch(engine.sum(ValueProgram(), Rows([open_table(y, "y"), None], ["y", "w"]), progress))
    assert total.tree.total().weight == n
    lines = [line for line in re.split(r"[\r\n]", screen.getvalue()) if line.strip()]
    done = [int(re.search(r"([\d,]+)/30,720 rows", line)[1].replace(",", "")) for line in lines]
    assert len(done) >= 3
    assert done == sorted(done)
    assert 0 < done[0] < n
    assert done[-1] == n
    assert all(line.startswith("targets [") and "rows/s" in line for line in lines)
    assert any(line.rstrip().endswith("left") for line in lines)


class TroubleError(Exception):
    """A fault of the user's own."""


def fail_at(block: np.ndarray, block_info: Any = None) -> np.ndarray:
    """Refuse the 31st chunk."""
    if block_info[0]["chunk-location"][0] == 30:
        raise TroubleError("chunk thirty")
    return block


@pytest.mark.parametrize("where", ["X", "y"])
def test_fault_of_the_user_comes_through(pair: Machines, where: str) -> None:
    """An exception inside a block is what fit raises, soon, with nothing left behind."""
    n = 60 * 512
    X = da.random.default_rng(0).standard_normal((n, 3), chunks=(512, 3))
    y = da.ones(n, chunks=512)
    X = X.map_blocks(slow, seconds=0.02, dtype=X.dtype, meta=np.empty((0, 0)))
    if where == "X":
        X = X.map_blocks(fail_at, dtype=X.dtype, meta=np.empty((0, 0)))
    else:
        y = y.map_blocks(fail_at, dtype=y.dtype, meta=np.empty(0))
    model = SingleKernelRegressor(n_components=16, random_state=0, verbose=0)
    began = time.monotonic()
    with pytest.raises(TroubleError, match="chunk thirty"):
        model.fit(X, y)
    assert time.monotonic() - began < 15
    assert_unfitted(model)
    wait_until(lambda: not any(pair.client.run_on_scheduler(under_way)[0].values()), "idle workers", 10)
    wait_until(lambda: not pair.client.run_on_scheduler(scheduler_tasks), "an empty scheduler", 10)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_first_bad_row_is_named(pair: Machines, data: Data, bad: float) -> None:
    """NaN and infinity name the first row of all blocks and its column, whoever finds another one first."""
    X = np.array(data.lazy("float64"))
    X[5900, 0] = X[4321, 3] = X[4322, 1] = bad
    lazy = da.from_array(X, chunks=(CHUNK, -1))
    messages = []
    for sigma in (0.5, "scale"):
        model = SingleKernelRegressor(n_components=16, sigma=sigma, random_state=0, verbose=0)
        with pytest.raises(ValueError, match=r"row 4321.*column 3") as info:
            model.fit(lazy, data.lazy("values"))
        assert_unfitted(model)
        with embedded(), pytest.raises(ValueError, match="row 4321") as alone:
            model.fit(lazy, data.lazy("values"))
        messages.append((str(info.value), str(alone.value)))
    assert all(there == here for there, here in messages)


def test_refused_row_survives_a_pickle(pair: Machines, data: Data) -> None:
    """What fit raises on the cluster can be sent on."""
    X = data.lazy("float64").map_blocks(np.log, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="row 0") as info, np.errstate(invalid="ignore"):
        SingleKernelRegressor(n_components=16, sigma=0.5, verbose=0).fit(X, data.lazy("values"))
    assert str(pickle.loads(pickle.dumps(info.value))) == str(info.value)
