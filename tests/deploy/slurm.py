"""A Slurm of one machine for tests: munged, slurmctld and slurmd with a folder and ports of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.deploy.system import find

CONFIGURATION = """ClusterName=dkltest
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={state}/munge/socket
CredType=cred/munge
StateSaveLocation={state}/ctld
SlurmdSpoolDir={state}/d
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd.pid
SlurmctldLogFile={state}/ctld.log
SlurmdLogFile={state}/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=10
MailProg=/bin/true
NodeName=localhost CPUs=8 RealMemory=12000 State=UNKNOWN
PartitionName=debug Nodes=localhost Default=YES MaxTime=INFINITE State=UP
"""
"""Eight cores on paper: what is tried is the order of events, not speed."""


@contextlib.contextmanager
def slurm(state: Path) -> Iterator[dict[str, str]]:
    """The environment in which sbatch, scancel and scontrol speak to it."""
    state.chmod(0o755)
    for name in ("munge", "ctld", "d"):
        (state / name).mkdir()
    (state / "munge" / "key").write_bytes(os.urandom(256))
    (state / "munge" / "key").chmod(0o600)
    config = state / "slurm.conf"
    config.write_text(CONFIGURATION.format(state=state, ports=_free_ports(2)))
    environment = os.environ | {"SLURM_CONF": str(config), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    munge = [f"--{name}={state}/munge/{file}" for name, file in (
        ("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"),
    )]  # fmt: skip
    commands = [
        [find("munged"), "--foreground", "--force", *munge],
        [find("slurmctld"), "-D", "-f", config],
        [find("slurmd"), "-D", "-f", config, "-N", "localhost"],
    ]
    processes: list[subprocess.Popen] = []
    try:
        for number, command in enumerate(commands):
            with (state / f"out-{number}").open("wb") as out:
                processes.append(
                    subprocess.Popen([str(word) for word in command], env=environment, stdout=out, stderr=out)
                )
            if not number:
                wait_for((state / "munge" / "socket").exists, "munged", 20)
        wait_for(lambda: "idle" in told(environment, "sinfo", "-h", "-o", "%t", check=False), "slurmd", 60)
        yield environment
    finally:
        told(environment, "scancel", "--user=root", check=False)
        time.sleep(2)
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()


def told(environment: dict[str, str], *words: str, check: bool = True) -> str:
    """What a command of Slurm says."""
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def job(environment: dict[str, str], number: str) -> dict[str, str]:
    """What Slurm knows of a job."""
    shown = told(environment, "scontrol", "show", "job", number).split()
    return dict(word.split("=", 1) for word in shown if "=" in word)


def jobs_named(environment: dict[str, str], name: str, state: str) -> list[str]:
    """Numbers of jobs of a name in a state."""
    return told(environment, "squeue", "-h", "-o", "%A", f"--name={name}", f"--states={state}").split()


def wait_for(condition: Callable[[], Any], what: str, seconds: float) -> Any:
    """Its value, once it holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError(f"not in {seconds:g} s: {what}")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
