"""dkl doctor on this machine alone and on real processes: good ones, one of another version, one that is slow."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import zarr

import dkl
from tests.cli.in_process import dkl_in
from tests.engine.conftest import Machines, cluster_of
from tests.engine.test_versions import other  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]


def write_data(folder: Path) -> Path:
    """A data set."""
    group = zarr.open_group(folder / "d.zarr", mode="w")
    group.create_array("X", data=np.ones((20, 2)), chunks=(10, 2))
    group.create_array("y", data=np.ones(20), chunks=(10,))
    return folder / "d.zarr"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two workers of one thread, on one BLAS thread."""
    with cluster_of(tmp_path_factory.mktemp("doctor"), 2, OMP_NUM_THREADS="1") as machines:
        yield machines


def ask(folder: Path, *words: object, code: int = 0) -> dict[str, Any]:
    """What it says, as JSON."""
    said = dkl_in(folder, "doctor", *words, "--json")
    assert said.code == code, said
    assert said.err == ""
    found = json.loads(said.out)
    assert found["ok"] == (code == 0)
    return found


def wrong(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Who, and what."""
    return [(one["who"], one["what"]) for one in found["findings"] if one["level"] == "wrong"]


def test_this_machine(tmp_path: Path) -> None:
    """Facts as numpy, psutil and the platform have them; data that is not there is wrong; nothing is left behind."""
    data = write_data(tmp_path)
    found = ask(tmp_path, data, "--checkpoint", "m.zarr")
    assert found["client"]["versions"]["numpy"] == np.__version__
    assert found["client"]["versions"]["python"] == platform.python_version()
    assert found["client"]["versions"]["dkl"] == dkl.__version__
    assert found["client"]["machine_bytes"] == psutil.virtual_memory().total
    assert found["client"]["pid"] == os.getpid()
    assert found["flops"][""] > 1e8
    assert os.listdir(tmp_path) == ["d.zarr"]
    (array,) = (data / "X" / "c" / "0").iterdir()
    array.write_bytes(b"damaged")
    said = wrong(ask(tmp_path, data, "--checkpoint", "no/m.zarr", code=1))
    assert [who for who, _ in said] == ["this process"] * 2
    assert "cannot read" in said[0][1]
    assert "create it first" in said[1][1]
    text = dkl_in(tmp_path, "doctor", "nowhere.zarr")
    assert text.code == 1
    assert text.out.endswith("\n1 thing is wrong\n")
    assert "wrong: this process: it cannot read" in text.out


def test_a_good_cluster(machines: Machines, tmp_path: Path) -> None:
    """Every process is asked, every worker reads, writes, and is measured; a table for people."""
    data = write_data(tmp_path)
    said = dkl_in(tmp_path, "doctor", data, "--checkpoint", "m.zarr", "--scheduler", machines.file, "--json")
    found = json.loads(said.out)
    assert said.code == (0 if found["ok"] else 1)
    assert found["ok"] == (not wrong(found))
    assert [what for _, what in wrong(found) if "B/s" not in what and "FLOP/s" not in what] == []  # a busy machine
    assert found["workers"].keys() == machines.workers.keys()
    assert {one["pid"] for one in found["workers"].values()} == {p.pid for p in machines.workers.values()}
    assert found["scheduler"]["pid"] == machines.scheduler.pid
    assert {b["threads"] for one in found["workers"].values() for b in one["blas"]} == {1}
    assert all(rate > 1e8 for rate in found["flops"].values())
    assert all(rate > 1e6 for rate in found["bytes_per_second"].values())
    assert found["flops"].keys() == found["bytes_per_second"].keys() == machines.workers.keys()
    assert os.listdir(tmp_path) == ["d.zarr"]


def test_places_that_are_not_shared(machines: Machines, tmp_path: Path) -> None:
    """fsspec's memory:// is another place in every process, as a pod's own disk is: nobody sees the others' marks."""
    said = dkl_in(
        tmp_path, "doctor", "memory://d.zarr", "--checkpoint", "memory://a/m.zarr", "--scheduler", machines.file
    )
    assert said.code == 1
    assert "cannot read 'memory://d.zarr'" in said.out
    assert re.search(r"wrong: the client, tcp://\S+, tcp://\S+: it does not see what 2 others wrote", said.out)
    assert said.out.count("memory://a/m.zarr") == 1, "said once for all of them"


def test_a_worker_of_another_version(machines: Machines, tmp_path: Path, other: Any) -> None:  # noqa: F811
    """Named by address, and not measured."""
    stranger, *_ = machines.add(1, **other("9.8.7"))
    try:
        found = ask(tmp_path, "--scheduler", machines.file, code=1)
    finally:
        machines.kill(stranger)
    assert "dkl 9.8.7" in dict(wrong(found))[stranger]
    assert stranger not in found["flops"]
    assert len(found["flops"]) == 2


@pytest.mark.long  # on a busy machine every worker is slow at times
def test_a_worker_that_is_slow(machines: Machines, tmp_path: Path) -> None:
    """One that is stopped nine tenths of the time is named."""
    slow = next(iter(machines.workers))
    stop = threading.Event()

    def hold_up(pid: int) -> None:
        while not stop.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.19)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.01)

    holding = threading.Thread(target=hold_up, args=(machines.workers[slow].pid,))
    holding.start()
    try:
        found = ask(tmp_path, "--scheduler", machines.file, code=1)
    finally:
        stop.set()
        holding.join()
    assert "GFLOP/s" in dict(wrong(found))[slow]


def test_no_cluster(tmp_path: Path) -> None:
    """Nobody there: exit code 4, one line."""
    said = dkl_in(tmp_path, "doctor", "--scheduler", "none.json")
    assert said.code == 4
    assert said.err.count("\n") == 1
