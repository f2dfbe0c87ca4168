"""Start, watch and kill the processes of client.py."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.conftest import ROOT, Machines, wait_until


class Clients:
    """The process that forks clients; every client that was not killed ends with it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.pids = folder, set()
        words = [sys.executable, "-m", "tests.learn.client"]
        self.errors = (folder / "clients.err").open("wb")
        self.server = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, cwd=ROOT, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip

    def _order(self, **order: Any) -> Any:
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        assert answer, (self.folder / "clients.err").read_text()[-2000:]
        return json.loads(answer)

    def begin(self, **order: Any) -> int:
        """A fit, or another order of client.py; its pid."""
        pid = self._order(**order)
        self.pids.add(pid)
        return pid

    def ended(self, pid: int) -> int | None:
        """Exit code, or None while it runs."""
        if pid in self.pids and (code := self._order(poll=pid)) is not None:
            self.pids.discard(pid)
            self.last = code
        return None if pid in self.pids else self.last

    def finish(self, pid: int, seconds: float = 60.0) -> int:
        """Wait for its end; the exit code."""
        wait_until(lambda: self.ended(pid) is not None, "the end of a fit", seconds)
        return self.last

    def kill(self, pid: int) -> None:
        """kill -9; it has ended when this returns."""
        os.kill(pid, signal.SIGKILL)
        assert self.finish(pid, 10) == -signal.SIGKILL

    def close(self) -> None:
        """End everything that was started here."""
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.server.kill()
        self.server.wait(10)
        self.server.stdin.close()
        self.server.stdout.close()
        self.errors.close()


@contextlib.contextmanager
def clients_in(folder: Path) -> Iterator[Clients]:
    """Clients for a while."""
    clients = Clients(folder)
    try:
        yield clients
    finally:
        clients.close()


def steps_of(checkpoint: Path) -> int:
    """The newest step of a checkpoint by its folder's name, which is cheap to look at; 0 if there is none."""
    names = os.listdir(checkpoint) if checkpoint.exists() else []
    found = [name.removeprefix("step-") for name in names if name.startswith("step-")]
    return max((int(number) for number in found if number.isdigit()), default=0)


def read(path: Path) -> dict[str, np.ndarray]:
    """What a client found out."""
    with np.load(path) as arrays:
        return dict(arrays)


def address(machines: Machines) -> str:
    """Of a cluster's scheduler."""
    return json.loads(machines.file.read_text())["address"]
