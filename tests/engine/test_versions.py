"""Processes with no dkl, or another one, are named before the first pass, and when they come in the middle of one."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import dkl
from dkl.engine.reduce import engine_for
from dkl.engine.stamp import STAMP
from dkl.engine.versions import VersionSkew, check_versions, threads_of
from tests.cli.conftest import assert_refused, leftovers, run
from tests.engine.conftest import ROOT, Machines, assert_same_bits, cluster_of, embedded, gated, learned, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

BLOCK = """
import importlib.metadata as metadata, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "dkl" or name.startswith("dkl."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""
SOON = 90.0
"""Seconds in which a refusal must have come, on a busy machine too; only a hang is a failure."""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that cannot import dkl."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "sitecustomize.py").write_text(BLOCK)
    return {"PYTHONPATH": str(folder)}


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, str]]:
    """The environment of a process with a copy of dkl that calls itself another version, or was edited."""

    def make(version: str, edit: Callable[[Path], Any] = lambda package: None) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("other")
        shutil.copytree(ROOT / "dkl", folder / "dkl", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / f"dkl-{version}.dist-info").mkdir()
        about = f"Metadata-Version: 2.1\nName: dkl\nVersion: {version}\n"
        (folder / f"dkl-{version}.dist-info" / "METADATA").write_text(about)
        edit(folder / "dkl")
        return {"PYTHONPATH": str(folder)}

    return make


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """A scheduler with one worker as they should be, which others join."""
    with cluster_of(tmp_path_factory.mktemp("cluster"), 1) as machines:
        yield machines


@pytest.fixture
def joined(machines: Machines) -> Iterator[Callable[..., str]]:
    """Add a worker for this test; its address."""
    added: list[str] = []

    def join(**environ: str) -> str:
        added.extend(machines.add(1, **environ))
        return added[-1]

    yield join
    machines.kill(*added)
    wait_until(lambda: not set(added) & set(machines.client.scheduler_info(n_workers=-1)["workers"]), "one less")


def rows() -> tuple[da.Array, np.ndarray]:
    """A small fit's data."""
    X = np.random.default_rng(0).standard_normal((2000, 3))
    return da.from_array(X, chunks=(250, -1)), np.sin(X[:, 0])


def fit() -> Any:
    """A small fit on the active cluster."""
    return dkl.SingleKernelRegressor(n_components=20, sigma=1.0, random_state=0, verbose=0).fit(*rows())


def refused(*words: str) -> str:
    """A fit is refused soon; the sentence."""
    began = time.monotonic()
    with pytest.raises(VersionSkew) as info:
        fit()
    assert time.monotonic() - began < SOON
    for word in words:
        assert word in str(info.value)
    return str(info.value)


def test_same_everywhere_is_asked_once(machines: Machines) -> None:
    """Equal versions pass; a process that has answered is not asked again."""
    with embedded():
        right = learned(fit())
    assert_same_bits(learned(fit()), right)
    asked: list = []
    before = machines.client.run
    machines.client.run = lambda *args, **kwargs: asked.append(args) or before(*args, **kwargs)
    try:
        engine_for(True)
        fit()
    finally:
        del machines.client.run
    assert asked == []


def test_another_worker_at_the_same_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was away at a poll is asked again; those that stay are not."""

    class Client:
        now: dict[str, int]

        def nthreads(self) -> dict[str, int]:
            return dict(self.now)

    client, asked = Client(), list[dict[str, int]]()

    def check(client: Any) -> dict[str, Any]:
        asked.append(client.now)
        return {address: {"nthreads": n} for address, n in client.now.items()}

    monkeypatch.setattr("dkl.engine.versions.check_versions", check)
    both, one = {"tcp://a:1": 1, "tcp://b:1": 2}, {"tcp://b:1": 2}
    for client.now in (both, both, one, one, both, both):
        assert threads_of(client) == client.now
    assert asked == [both, both]


def test_worker_without_dkl(joined: Any, without: dict) -> None:
    """Named by its address, with what to install."""
    address = joined(**without)
    said = refused(f"the worker {address} has no dkl", f"install dkl {STAMP['dkl']}")
    assert "scheduler has" not in said
    assert said.count("tcp://") == 1


def test_worker_of_another_version(joined: Any, other: Any) -> None:
    """Its number is named."""
    address = joined(**other("9.8.7"))
    refused(f"the worker {address} has dkl 9.8.7", f"install dkl {STAMP['dkl']}")


def test_worker_of_a_version_without_a_stamp(joined: Any, other: Any) -> None:
    """A dkl from before versions were compared."""
    address = joined(**other("0.0.9", lambda package: (package / "engine" / "stamp.py").unlink()))
    refused(f"the worker {address} has dkl 0.0.9")


def test_worker_of_another_checkout(joined: Any, other: Any) -> None:
    """The same version with another line in a file that runs on workers; one in the command line does not matter."""
    address = joined(**other(STAMP["dkl"], lambda p: (p / "sums" / "order_free.py").open("a").write("# other\n")))
    refused(f"the worker {address} has dkl {STAMP['dkl']} with other source files")


def test_what_runs_here_alone_may_differ(machines: Machines, joined: Any, other: Any) -> None:
    """A change in the command line, and other line ends, are no skew."""

    def edit(package: Path) -> None:
        (package / "cli" / "main.py").open("a").write("# other\n")
        text = (package / "sums" / "order_free.py").read_bytes()
        (package / "sums" / "order_free.py").write_bytes(text.replace(b"\n", b"\r\n"))

    joined(**other(STAMP["dkl"], edit))
    assert len(check_versions(machines.client)) == 2


@pytest.mark.parametrize("name", ["numpy", "zarr", "python"])
def test_worker_with_another_package(joined: Any, other: Any, name: str) -> None:
    """numpy decides bits, zarr and Python what a pickle holds: major and minor must agree."""

    def edit(package: Path) -> None:
        (package / "engine" / "stamp.py").open("a").write(f'STAMP["{name}"] = "1.2.3"\n')
        (package / "engine" / "stamp.py").open("a").write(f'STAMP["source"] = "{STAMP["source"]}"\n')

    address = joined(**other(STAMP["dkl"], edit))
    refused(f"the worker {address} has {name} 1.2.3 (here {STAMP[name]})", "the same versions")


def test_command_line_ends_with_4(machines: Machines, joined: Any, without: dict, tmp_path: Path) -> None:
    """One line, exit code 4, nothing left; so too when an answer is asked for."""
    address = joined(**without)
    X, y = rows()
    group = zarr.create_group(tmp_path / "d.zarr")
    group.create_array("X", data=X.compute(), chunks=(250, 3))
    group.create_array("y", data=y, chunks=(250,))
    where = ("--scheduler", str(machines.file))
    ran = run(tmp_path, "fit", "d.zarr", "m.zarr", "--n-components", "20", *where, ok=False)
    assert_refused(ran, 4, address, "no dkl", "install")
    assert leftovers(tmp_path) == ["d.zarr"]


@pytest.mark.parametrize("kind", ["without", "other"])
def test_newcomer_in_a_pass(joined: Any, without: dict, other: Any, background: Any, tmp_path: Path, kind: str) -> None:
    """One that joins during a pass is noticed before the sums are used."""
    X, y = rows()
    gate = tmp_path / "gate"
    X = X.map_blocks(gated, gate=str(gate), free=2, dtype=X.dtype, meta=np.empty((0, 0)))
    model = dkl.SingleKernelRegressor(n_components=20, sigma=1.0, random_state=0, verbose=0)
    try:
        running = background(model.fit, X, y)
        time.sleep(0.5)
        address = joined(**(without if kind == "without" else other("9.8.7")))
        with pytest.raises(VersionSkew, match=re.escape(f"the worker {address} has")):
            running.result(timeout=SOON)
    finally:
        gate.touch()


def test_first_worker_comes_late(without: dict, tmp_path: Path, background: Any) -> None:
    """A cluster that begins with no worker: the first to come has no dkl."""
    with cluster_of(tmp_path, 0) as machines, dask.config.set({"dkl.no-workers-timeout": 60}):
        running = background(fit)
        time.sleep(0.5)
        (address,) = machines.add(1, **without)
        with pytest.raises(VersionSkew, match=re.escape(f"the worker {address} has no dkl")):
            running.result(timeout=SOON)


@pytest.mark.parametrize("place", ["scheduler", "client"])
def test_scheduler_without_dkl(without: dict, other: Any, tmp_path: Path, place: str) -> None:
    """The scheduler reads the tasks, so it needs dkl wherever the solve is."""
    environ = without if place == "scheduler" else other("9.8.7")
    has = "no dkl" if place == "scheduler" else "dkl 9.8.7"
    with cluster_of(tmp_path, 0, **environ) as machines:
        machines.add(1, PYTHONPATH=str(ROOT))
        model = dkl.SingleKernelRegressor(n_components=20, sigma=1.0, place=place, verbose=0)
        with pytest.raises(VersionSkew, match=f"the scheduler has {has}; install"):
            model.fit(*rows())
