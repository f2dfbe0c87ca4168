"""The cluster of `drill`: processes that are killed, stopped, slowed, cut off and replaced, by a seeded draw.

A worker reaches the scheduler through a relay of its own, so its connections can be cut. `Faulty.strike()` does one
fault of a kind; whatever has died is started again by `Faulty.mend()`, as Kubernetes or Slurm would.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from tests.relay import Relay

PYTHON = [sys.executable, "-m", "dask"]
CLUSTER_FAULTS = ("kill a worker", "stop a worker", "slow a worker", "cut a worker off", "kill the scheduler")
CLIENT_FAULTS = ("kill the client", "stop the client")
FAULTS = (*CLUSTER_FAULTS, *CLIENT_FAULTS)


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Member:
    """A worker process and the relay that it reaches the scheduler through."""

    def __init__(self, folder: Path, scheduler: str) -> None:
        self.relay = Relay(scheduler)
        options = ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", "2GB", "--no-nanny"]
        command = [*PYTHON, "worker", self.relay.address, *options, "--local-directory", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """End it at once."""
        end(self.process)
        self.relay.close()


class Faulty:
    """A scheduler at one port, workers, and a draw of faults."""

    def __init__(self, folder: Path, workers: int, seed: int) -> None:
        self.folder, self.count, self.rng = folder, workers, np.random.default_rng(seed)
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.scheduler: subprocess.Popen | None = None
        self.members: list[Member] = []
        self.lock = threading.Lock()
        self.mend()

    def mend(self) -> None:
        """Start what has died."""
        with self.lock:
            if self.scheduler is None or self.scheduler.poll() is not None:
                options = ["--port", str(self.port), "--host", "127.0.0.1", "--no-dashboard"]
                quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                self.scheduler = subprocess.Popen([*PYTHON, "scheduler", *options], **quiet)
            for member in [one for one in self.members if not one.is_alive]:
                member.close()
                self.members.remove(member)
            while len(self.members) < self.count:
                self.members.append(Member(self.folder, self.address))

    def strike(self, fault: str, client: subprocess.Popen) -> None:
        """One fault."""
        with self.lock:
            member = self.members[int(self.rng.integers(len(self.members)))]
        if fault == "kill a worker":
            end(member.process)
        elif fault == "stop a worker":
            pause(member.process, float(self.rng.uniform(1, 6)))
        elif fault == "slow a worker":
            for _ in range(20):
                pause(member.process, 0.2)
                time.sleep(0.05)
        elif fault == "cut a worker off":
            cut(member.relay)
        elif fault == "kill the scheduler":
            assert self.scheduler is not None
            end(self.scheduler)
        elif fault == "kill the client":
            end(client)
        elif fault == "stop the client":
            pause(client, float(self.rng.uniform(1, 6)))

    def close(self) -> None:
        """End all of it."""
        for member in self.members:
            member.close()
        if self.scheduler is not None:
            end(self.scheduler)


def cut(relay: Relay) -> None:
    """Every connection breaks; new ones may be made."""
    for one in [one for one in relay.sockets if one is not relay.server]:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
        relay.sockets.remove(one)


def end(process: subprocess.Popen) -> None:
    """Kill a process and its children, and wait until it is gone."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                child.kill()
    process.kill()
    process.wait()


def pause(process: subprocess.Popen, seconds: float) -> None:
    """Stop a process for a while."""
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
