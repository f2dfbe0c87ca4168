"""kill -9 of the client, of a worker and of the scheduler at random moments of learning: the same bits.

A dead worker is no matter; after the death of the client or of the scheduler a new process goes on from the checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dkl.store.checkpoint import Checkpoint, progress_of
from tests.engine.conftest import Machines, assert_same_bits, embedded, wait_until
from tests.learn.client import everything, fit, make_data
from tests.learn.clients import Clients, address, clients_in, read, steps_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

KIND, MORE, KILLS = "validation", {"max_iter": 2}, 10
BOUND = 25.0
"""Seconds in which the death of a scheduler must have become an error."""


class Site:
    """Data, a cluster of two workers that is made again when it is gone, clients, and what a fit gives undisturbed."""

    def __init__(self, folder: Path, clients: Clients) -> None:
        self.folder, self.clients, self.count = folder, clients, 0
        self.data = str(folder / "d.zarr")
        self.machines: Machines | None = None
        self.reached: list[int] = []
        make_data(self.data)
        numbers: list[int] = []
        save = Checkpoint.save_step

        def save_step(checkpoint: Checkpoint, number: int, *rest: dict) -> None:
            numbers.append(number)
            save(checkpoint, number, *rest)

        with embedded(), pytest.MonkeyPatch.context() as patch:
            self.right = everything(fit(KIND, self.data, **MORE))
            patch.setattr(Checkpoint, "save_step", save_step)
            assert_same_bits(everything(fit(KIND, self.data, str(folder / "whole"), **MORE)), self.right)
        self.steps = numbers

    def cluster(self) -> Machines:
        """Two workers."""
        if self.machines is None:
            folder = self.folder / f"cluster-{len(list(self.folder.iterdir()))}"
            folder.mkdir()
            self.machines = Machines(folder)
            self.machines.connect()
        if len(self.machines.workers) < 2:
            self.machines.add(2 - len(self.machines.workers))
        return self.machines

    def end_cluster(self) -> None:
        """End its processes, if there is one."""
        if self.machines is not None:
            self.machines.close()
            self.machines = None

    def begin(self, name: str) -> tuple[int, Path, Path]:
        """A fit in a process of its own: pid, checkpoint, result."""
        kept, out = self.folder / f"{name}.kept", self.folder / f"{name}.npz"
        order = {"data": self.data, "checkpoint": str(kept), "out": str(out), "scheduler": address(self.cluster())}
        return self.clients.begin(fit=KIND, more=MORE, **order), kept, out

    def wait_for_moment(self, pid: int, kept: Path, number: int, of: int) -> None:
        """Until a step in part `number` of `of` of the learning, and then for a random part of an iteration."""
        rng = np.random.default_rng([number, of])
        last = len(self.steps) - 1  # after the last step nothing is learned any more
        target = (
            self.steps[min(last - 1, int((number + rng.random()) / of * last))] if of > 1 else self.steps[last // 2]
        )
        wait_until(lambda: steps_of(kept) >= target or self.clients.ended(pid) is not None, f"step {target}")
        time.sleep(0.15 * rng.random())

    def note(self, kept: Path) -> None:
        """Remember the step at which somebody was killed, before anything goes on."""
        known = progress_of(str(kept))
        self.reached.append(known["steps"])
        assert known["prepared"]

    def check(self, name: str) -> None:
        """A new process goes on to the same bits."""
        before = self.reached[-1]
        pid, kept, out = self.begin(name)
        assert self.clients.finish(pid) == 0, self.error(out)
        assert progress_of(str(kept))["steps"] == self.steps[-1] >= before
        assert_same_bits(read(out), self.right)

    @staticmethod
    def error(out: Path) -> list[str] | None:
        """Type and text of what a client died of."""
        file = Path(f"{out}.error")
        return json.loads(file.read_text()) if file.exists() else None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One for all tests here."""
    folder = tmp_path_factory.mktemp("site")
    with clients_in(folder) as clients:
        made = Site(folder, clients)
        with contextlib.closing(contextlib.ExitStack()) as stack:
            stack.callback(made.end_cluster)
            yield made


def kill_client(site: Site, number: int, of: int) -> None:
    """The client dies; the workers stay, and another client goes on with them."""
    machines, name = site.cluster(), f"client-{number}-{of}"
    workers = set(machines.workers)
    pid, kept, _ = site.begin(name)
    site.wait_for_moment(pid, kept, number, of)
    site.clients.kill(pid)
    site.note(kept)
    site.check(name)
    assert set(machines.client.scheduler_info(n_workers=-1)["workers"]) == workers


def kill_worker(site: Site, number: int, of: int) -> None:
    """One of two workers dies; the fit goes on by itself."""
    machines = site.cluster()
    pid, kept, out = site.begin(f"worker-{number}-{of}")
    site.wait_for_moment(pid, kept, number, of)
    machines.kill(list(machines.workers)[number % 2])
    site.reached.append(steps_of(kept))
    assert site.clients.finish(pid) == 0, site.error(out)
    assert_same_bits(read(out), site.right)


def kill_scheduler(site: Site, number: int, of: int) -> None:
    """The scheduler dies: one clear error, soon; a new cluster goes on."""
    machines, name = site.cluster(), f"scheduler-{number}-{of}"
    pid, kept, out = site.begin(name)
    machines.client.close(timeout=5)
    site.wait_for_moment(pid, kept, number, of)
    assert site.clients.ended(pid) is None
    machines.scheduler.kill()
    machines.scheduler.wait(10)
    assert site.clients.finish(pid, BOUND) == 1
    kind, said = site.error(out)
    print(f"scheduler gone: {kind}: {said}")
    assert kind == "RuntimeError"
    assert "scheduler" in said
    assert "\n" not in said
    site.note(kept)
    site.end_cluster()
    site.check(name)


KINDS: dict[str, Callable[[Site, int, int], None]] = {
    "client": kill_client,
    "worker": kill_worker,
    "scheduler": kill_scheduler,
}


@pytest.mark.parametrize("who", KINDS)
def test_killed_amid_learning(site: Site, who: str) -> None:
    """One kill in the middle."""
    site.reached.clear()
    KINDS[who](site, 0, 1)
    assert 0 < site.reached[0] < site.steps[-1]


@pytest.mark.long
@pytest.mark.parametrize("who", KINDS)
def test_killed_at_random_iterations(site: Site, who: str) -> None:
    """Ten kills, spread over all iterations."""
    site.reached.clear()
    for number in range(KILLS):
        KINDS[who](site, number, KILLS)
    print(f"steps at which the {who} was killed: {site.reached} of {site.steps[-1]}")
    assert len(set(site.reached)) >= KILLS // 2
    amid = [step for step in site.reached if 0 < step < site.steps[-1]]
    assert len(amid) >= KILLS * 7 // 10
