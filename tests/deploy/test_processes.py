"""A DaskJob with TLS, run: scheduler, two workers and job as processes, with what the manifest says.

The job begins before its scheduler, is killed in the middle of learning (kill -9), starts again as its restart policy
says, and gives the bits of a fit that nobody disturbed. Meanwhile strangers call.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from distributed import Security
from distributed.comm import CommClosedError, connect

import dkl
from dkl.cli.authority import make_certificates
from dkl.store.checkpoint import progress_of
from tests.deploy.pods import Pod, free_ports, pods_of
from tests.deploy.render import documents, render, values
from tests.deploy.schemas import check
from tests.engine.conftest import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

ROLES = ("scheduler", "worker", "client")
FIT = [
    "--n-components",
    "60",
    "--learn",
    "cv",
    "--groups",
    "each",
    "--max-iter",
    "8",
    "--starts",
    "1",
    "--random-state",
    "0",
]
SETTINGS = ("--set-json", "job.arguments=" + str(FIT).replace("'", '"'))
RUNNING = 90.0
"""Seconds in which a state must come on a busy machine; only a hang is a failure."""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The job of the TLS example, killed in the middle, while its cluster goes on."""
    folder = tmp_path_factory.mktemp("pods")
    data = folder / "claim"
    data.mkdir()
    dkl.ingest("sklearn:diabetes", str(data / "rows.zarr"), scale="standard")
    secrets = {"dkl-tls": make_certificates(ROLES, ["localhost"], 1)}
    made = documents(render("dkl-fit", *values("tls"), *SETTINGS, "--show-only", "templates/job.yaml"))[0]
    specs, service = pods_of(made)
    check(service)
    name, port = service["metadata"]["name"], free_ports(1)[0]
    pods = {}
    for role, spec in specs.items():
        (folder / role).mkdir()
        pods[role] = Pod(folder / role, spec, name, port, secrets, {"dkl-data": data})
    right = subprocess.Popen(
        [sys.executable, "-m", "dkl", "fit", str(data / "rows.zarr"), str(data / "right.zarr"), *FIT],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for role in ("job", "scheduler", "worker-0", "worker-1"):  # a job may begin before its scheduler
            pods[role].start()
        wait_until(pods["scheduler"].ready, "the scheduler is ready", RUNNING)
        wait_until(lambda: iteration(data) >= 2 or pods["job"].process.poll() is not None, "the learning", RUNNING)
        pods["job"].kill()
        yield SimpleNamespace(pods=pods, data=data, port=port, secrets=secrets["dkl-tls"], folder=folder, right=right)
    finally:
        for pod in pods.values():
            pod.kill()
        right.kill()
        right.wait(10)


def iteration(data) -> int:
    """The steps of learning that the checkpoint holds."""
    told = progress_of(str(data / "model.zarr.fit" / "sums"))
    return 0 if told is None else told["steps"]


def dial(address: str, security: Security | None, port: str) -> str:
    """What answers a call: the type of the process, or the name of the error."""

    async def call() -> str:
        options = security.get_connection_args("client") if security else {}
        comm = await connect(f"{address}:{port}", timeout=5, **options)
        try:
            await comm.write({"op": "identity", "reply": True})
            return str((await asyncio.wait_for(comm.read(), 5))["type"])
        finally:
            comm.abort()

    try:
        return asyncio.run(call())
    except (OSError, CommClosedError, ssl.SSLError, TimeoutError) as error:
        return type(error).__name__


def security_of(folder, certificates) -> Security:
    """What a client with these files would use."""
    for name in ("ca.pem", "client.pem", "client.key"):
        (folder / name).write_bytes(certificates[name])
    paths = {"tls_ca_file": "ca.pem", "tls_client_cert": "client.pem", "tls_client_key": "client.key"}
    return Security(require_encryption=True, **{key: str(folder / name) for key, name in paths.items()})


def test_strangers_are_refused(job, tmp_path):
    """Plain TCP and another authority's certificate, by scheduler, worker and nanny; ours is answered."""
    foreign, ours = tmp_path / "foreign", tmp_path / "ours"
    foreign.mkdir()
    ours.mkdir()
    stranger = security_of(foreign, make_certificates(ROLES, ["localhost"], 1))
    friend = security_of(ours, job.secrets)
    worker = job.pods["worker-0"].ports
    wait_until(lambda: dial("tls://127.0.0.1", friend, worker["8790"]) == "Worker", "the first worker")
    for port, kind in ((job.port, "Scheduler"), (worker["8790"], "Worker"), (worker["8791"], "Nanny")):
        assert dial("tls://127.0.0.1", friend, port) == kind
        assert dial("tcp://127.0.0.1", None, port) not in (kind, "ConnectionRefusedError")
        assert dial("tls://127.0.0.1", stranger, port) not in (kind, "ConnectionRefusedError")


def test_dashboards_answer_on_loopback_only(job):
    """And no port is open that the network policy does not name."""
    for role, dashboard, others in (("scheduler", "8787", ["8786"]), ("worker-0", "8792", ["8790", "8791"])):
        pod = job.pods[role]
        with urllib.request.urlopen(f"http://127.0.0.1:{pod.ports[dashboard]}/health", timeout=30) as answer:
            assert answer.status == 200
        places = pod.listening()
        assert {ip for ip, port in places if port == int(pod.ports[dashboard])} == {"127.0.0.1"}
        assert {port for _, port in places} == {int(pod.ports[name]) for name in (dashboard, *others)}


def test_processes_say_what_they_are(job):
    """The preload has logged the versions on scheduler and workers, and no process says that it does not know it."""
    for role in ("scheduler", "worker-0", "worker-1"):
        log = job.pods[role].log.read_text()
        assert f"dkl {dkl.__version__}, source" in log, log[-2000:]
        assert "Failed to start preload" not in log


def test_killed_job_resumes_with_the_same_bits(job):
    """Restarted with the same arguments; then the model is complete, and another restart changes nothing."""
    before = iteration(job.data)
    assert 2 <= before < 8, job.pods["job"].log.read_text()[-2000:]
    assert not (job.data / "model.zarr").exists()
    assert job.right.wait(RUNNING) == 0
    pod = job.pods["job"]
    assert pod.start().process.wait(RUNNING) == 0, pod.log.read_text()[-2000:]
    found, expected = (zarr.open_group(job.data / f"{name}.zarr", mode="r") for name in ("model", "right"))
    names = {name for name, _ in expected.members(max_depth=None)} - {"history_seconds"}
    arrays = [name for name in names if isinstance(expected[name], zarr.Array)]
    assert len(arrays) > 5
    for name in arrays:
        np.testing.assert_array_equal(found[name][...], expected[name][...], err_msg=name)
    assert not (job.data / "model.zarr.fit").exists()
    assert pod.start().process.wait(RUNNING) == 0
    assert "is complete; there is nothing to do" in pod.log.read_text()
