"""/metrics of a real scheduler and real workers: rows and passes against the truth, also after a worker was killed."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

import dkl
from dkl.engine.fault_counts import CountPlugin
from dkl.engine.run_ids import ids_of
from tests.engine.conftest import ROOT, Machines, cluster_of, gated, under_way, wait_until

pytest.importorskip("prometheus_client")
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

CHUNKS, FREE, ROWS = 24, 12, 250
TOTAL = CHUNKS * ROWS


def ports(dask_scheduler: Any = None) -> tuple[int, dict[str, int]]:
    """HTTP ports of the scheduler and of each worker; runs on the scheduler."""
    workers = {address: w.services["dashboard"] for address, w in dask_scheduler.workers.items()}
    return dask_scheduler.services["dashboard"].port, workers


def scrape(port: int) -> dict[str, float]:
    """Every sample of dkl that one process shows, read as text."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert "dask_" in text, "dask's own metrics are there too"
    return {name: float(value) for name, value in re.findall(r"^(dkl_\S+) (\S+)$", text, flags=re.MULTILINE)}


def increase(after: dict[str, float], before: dict[str, float], name: str) -> float:
    """How much a counter has grown."""
    return after[name] - before.get(name, 0.0)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two workers."""
    with cluster_of(tmp_path_factory.mktemp("metrics"), 2) as machines:
        yield machines


def model() -> dkl.SingleKernelRegressor:
    """A fit of one pass on the cluster: y is in memory and sigma is given."""
    return dkl.SingleKernelRegressor(n_components=16, sigma=1.0, random_state=0, verbose=0)


def gated_rows(gate: Path) -> tuple[da.Array, np.ndarray]:
    """Rows whose second half waits for a file."""
    X = np.random.default_rng(0).standard_normal((TOTAL, 3))
    lazy = da.from_array(X, chunks=(ROWS, -1)).map_blocks(gated, gate=str(gate), free=FREE, dtype=X.dtype, meta=X[:0])
    return lazy, np.sin(X[:, 0])


def test_rows_and_passes_of_a_fit(machines: Machines, tmp_path: Path, background: Callable[..., Future]) -> None:
    """Half of them while it runs, all of them when it has ended; workers add up to the same."""
    (tmp_path / "free").touch()
    model().fit(*gated_rows(tmp_path / "free"))  # the plugin is there now
    port, workers = machines.client.run_on_scheduler(ports)
    before, of_workers = scrape(port), {a: scrape(p) for a, p in workers.items()}
    running = background(model().fit, *gated_rows(tmp_path / "gate"))
    wait_until(lambda: increase(scrape(port), before, "dkl_scheduler_rows_total") > 0, "rows of half a pass")
    assert increase(scrape(port), before, "dkl_scheduler_rows_total") <= FREE * ROWS
    assert increase(scrape(port), before, "dkl_scheduler_passes_total") == 1
    (tmp_path / "gate").touch()
    running.result(60)
    after = scrape(port)
    assert increase(after, before, "dkl_scheduler_rows_total") == TOTAL
    assert increase(after, before, "dkl_scheduler_rows_again_total") == 0
    assert increase(after, before, "dkl_scheduler_passes_total") == 1
    assert increase(after, before, "dkl_scheduler_fits_total") == 1
    assert increase(after, before, "dkl_scheduler_solves_total") == 1
    assert increase(after, before, "dkl_scheduler_solve_seconds_total") > 0
    grown = [increase(scrape(p), of_workers[a], "dkl_worker_rows_total") for a, p in workers.items()]
    assert sum(grown) == TOTAL
    assert all(grown), "both have summed"


def test_several_passes_count_each(machines: Machines, tmp_path: Path) -> None:
    """As many passes and rows as the log of the fit has, which counts them where the fit runs."""
    from dkl.engine.progress import listening

    (tmp_path / "free").touch()
    X, y = gated_rows(tmp_path / "free")
    events: list[dict] = []
    model().fit(X, y)
    port, _ = machines.client.run_on_scheduler(ports)
    before = scrape(port)
    learner = dkl.SingleKernelRegressor(n_components=8, learn="cv", max_iter=2, random_state=0, verbose=0)
    with listening(events.append):
        learner.fit(X, da.from_array(y, chunks=ROWS))
    passes = [event for event in events if event["event"] == "pass"]
    after = scrape(port)
    assert len(passes) > 3
    assert increase(after, before, "dkl_scheduler_passes_total") == len(passes)
    assert increase(after, before, "dkl_scheduler_rows_total") == sum(event["rows"] for event in passes)
    assert increase(after, before, "dkl_scheduler_fits_total") == 1


def test_a_killed_worker_is_a_fault_and_its_rows_count_once(
    machines: Machines, tmp_path: Path, background: Callable[..., Future]
) -> None:
    """Rows are those of the data; rows that were summed again are counted apart."""
    (tmp_path / "free").touch()
    model().fit(*gated_rows(tmp_path / "free"))
    port, _ = machines.client.run_on_scheduler(ports)
    before = scrape(port)
    running = background(model().fit, *gated_rows(tmp_path / "gate"))
    victim = next(iter(machines.workers))
    wait_until(lambda: machines.client.run_on_scheduler(under_way)[1].get(victim), "sums that will be lost")
    machines.kill(victim)
    machines.add(1)
    (tmp_path / "gate").touch()
    running.result(60)
    after = scrape(port)
    assert increase(after, before, "dkl_scheduler_rows_total") == TOTAL
    assert increase(after, before, "dkl_scheduler_passes_total") == 1
    assert increase(after, before, "dkl_scheduler_rows_again_total") > 0, "what it held was summed again"
    assert increase(after, before, 'dkl_scheduler_faults_total{kind="worker_lost"}') == 1


def test_a_worker_that_is_asked_to_go_is_no_fault(machines: Machines, tmp_path: Path) -> None:
    """A cluster that shrinks; and one that loses a worker while dkl does nothing."""
    (tmp_path / "free").touch()
    model().fit(*gated_rows(tmp_path / "free"))
    port, _ = machines.client.run_on_scheduler(ports)
    before, gone = scrape(port), machines.add(2)
    machines.client.retire_workers([gone[0]])
    machines.kill(gone[1])
    wait_until(lambda: not set(gone) & set(machines.client.run_on_scheduler(ports)[1]), "two less")
    assert increase(scrape(port), before, 'dkl_scheduler_faults_total{kind="worker_lost"}') == 0


def fail(block: np.ndarray) -> np.ndarray:
    """A chunk that cannot be read."""
    raise OSError("a bad disk") if block.shape[0] else block


def test_a_part_that_fails_is_a_fault(machines: Machines, tmp_path: Path) -> None:
    """Of the kind part_failed, or of a chunk before it: the fit fails, and no row was counted twice."""
    (tmp_path / "free").touch()
    X, y = gated_rows(tmp_path / "free")
    port, workers = machines.client.run_on_scheduler(ports)
    before, of_workers = scrape(port), {a: scrape(p) for a, p in workers.items()}
    bad = X.copy()
    bad = da.where(da.arange(TOTAL, chunks=ROWS)[:, None] == 700, np.nan, bad)
    with pytest.raises(ValueError, match="700"):
        model().fit(bad, y)
    with pytest.raises(OSError, match="a bad disk"):
        model().fit(X.map_blocks(fail, dtype=X.dtype, meta=np.empty((0, 0))), y)
    after = scrape(port)
    assert increase(after, before, 'dkl_scheduler_faults_total{kind="part_failed"}') >= 1
    failed = [increase(scrape(p), of_workers[a], "dkl_worker_failed_parts_total") for a, p in workers.items()]
    assert sum(failed) >= 1


def test_nothing_breaks_without_prometheus_client(tmp_path: Path) -> None:
    """The same fit, in a process that cannot import it."""
    (tmp_path / "prometheus_client.py").write_text("raise ModuleNotFoundError('no', name='prometheus_client')\n")
    program = (
        "import dask.array as da, numpy as np, dkl\n"
        "from distributed import Client\n"
        "if __name__ == '__main__':\n"
        "    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None):\n"
        "        X = np.random.default_rng(0).standard_normal((200, 2))\n"
        "        m = dkl.SingleKernelRegressor(n_components=8, sigma=1.0, random_state=0, verbose=0)\n"
        "        print(m.fit(da.from_array(X, chunks=(50, 2)), X[:, 0]).score(X, X[:, 0]) > 0)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True"], done.stderr


def test_keys_say_whose_they_are() -> None:
    """Only keys of dkl; zeros are nobody."""
    plugin = CountPlugin()
    own = f"dkl-gram-{'a' * 8}{'b' * 8}{'0' * 16}"
    assert ids_of(own) == ("gram", "a" * 8, "b" * 8)
    assert ids_of(f"dkl-gram-{'0' * 32}") == ("gram", "", "")
    assert [ids_of(key) for key in ("sum-1", ("dkl-gram", 0), "dkl-gram-12")] == [None] * 3
    for key, rows in ((own, 5), (own, 5), ("sum-1", 7), (own, "5")):
        plugin.log_event("dkl", {"key": key, "rows": rows})
    assert (plugin.done["rows"], plugin.done["rows_again"], plugin.done["passes"]) == (5, 5, 1)


def test_the_operators_page_names_the_counters_that_there_are() -> None:
    """All of them, and no other."""
    from dkl.engine.fault_counts import COUNTERS, FAULTS
    from dkl.engine.part_counts import WORKER

    page = (ROOT / "deploy" / "operations.md").read_text()
    named = set(re.findall(r"dkl_(?:scheduler|worker)_[a-z_]+_total", page))
    ours = {f"dkl_scheduler_{name}_total" for name, _ in COUNTERS} | {f"dkl_worker_{name}_total" for name, _ in WORKER}
    assert named == ours | {"dkl_scheduler_faults_total"}
    assert set(re.findall(r'kind="(\w+)"', page)) == set(FAULTS)
