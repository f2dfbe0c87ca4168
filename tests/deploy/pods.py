"""Pods as processes of this machine: the containers' own arguments and environment, as the operator completes them.

What a kubelet does is done with folders and free ports: a mounted path becomes a folder, a service's name becomes this
machine, a pinned port a free one, and `$(NAME)` the value of a variable. Nothing else of a manifest is changed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

PORTS = ("8786", "8787", "8790", "8791", "8792")
NAMESPACE = "default"


def pods_of(job: dict) -> tuple[dict[str, dict], dict]:
    """The pod specs of a DaskJob by name, made by the operator's own functions, and the scheduler's service."""
    from dask_kubernetes.operator.controller import controller as operator

    name, spec = job["metadata"]["name"], job["spec"]
    labels, cluster = job["metadata"]["labels"], spec["cluster"]["spec"]
    scheduler = operator.build_scheduler_deployment_spec(name, cluster["scheduler"]["spec"], {}, labels)
    pods = {"scheduler": scheduler["spec"]["template"]["spec"]}
    for i in range(cluster["worker"]["replicas"]):
        made = operator.build_worker_deployment_spec(
            f"{name}-default", NAMESPACE, name, f"{i:010d}", cluster["worker"]["spec"], {}, labels
        )
        pods[f"worker-{i}"] = made["spec"]["template"]["spec"]
    pods["job"] = operator.build_job_pod_spec(name, name, NAMESPACE, spec["job"]["spec"], {}, labels)["spec"]
    return pods, operator.build_scheduler_service_spec(name, cluster["scheduler"]["service"], {}, labels)


def machine() -> dict[str, str]:
    """The variables that say which CPU OpenBLAS shall see here, as bits depend on it; those of a node are its own."""
    return {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}


def free_ports(count: int) -> list[str]:
    """Ports that nobody uses."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


class Pod:
    """One pod: its container's command, environment and folders, started and killed as often as one likes."""

    def __init__(self, folder: Path, spec: dict, service: str, port: str, secrets: dict, claims: dict) -> None:
        (container,) = spec["containers"]
        self.folder = folder
        self.ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True)) | {"8786": port}
        self.service, self.process = service, None
        self.log = folder / "log"
        self.mounts = {
            mount["mountPath"]: self._volume(volume, secrets, claims)
            for mount in container["volumeMounts"]
            for volume in spec["volumes"]
            if volume["name"] == mount["name"]
        }
        self.given = {item["name"]: item["value"] for item in container["env"]}
        self.environ = {name: self.here(value) for name, value in self.given.items()}
        self.args = [self.here(self.expand(word)) for word in container["args"]]
        self.probe = [
            self.here(word) for word in container.get("readinessProbe", {}).get("exec", {}).get("command", ())
        ]

    def _volume(self, volume: dict, secrets: dict, claims: dict) -> Path:
        if "persistentVolumeClaim" in volume:
            return claims[volume["persistentVolumeClaim"]["claimName"]]
        made = self.folder / volume["name"]
        made.mkdir(parents=True)
        for item in volume.get("secret", {}).get("items", ()):
            (made / item["path"]).write_bytes(secrets[volume["secret"]["secretName"]][item["key"]])
        return made

    def expand(self, word: str) -> str:
        """$(NAME), as Kubernetes expands it; an unknown one stays."""
        return re.sub(r"\$\((\w+)\)", lambda found: self.given.get(found[1], found[0]), word)

    def here(self, word: str) -> str:
        """A word with the paths, names and ports of this machine."""
        paths = "|".join(map(re.escape, self.mounts))
        word = re.sub(rf"(?<![\w/])({paths})(?=/|$)", lambda found: str(self.mounts[found[1]]), word)
        word = re.sub(rf"\b{re.escape(self.service)}(?=:)", "127.0.0.1", word)
        return re.sub(rf"(?:(?<=[:=])|(?<=^))({'|'.join(PORTS)})$", lambda found: self.ports[found[1]], word)

    def start(self) -> Pod:
        """Run the container's command; of this environment only the path and the kind of CPU are passed on."""
        programs = str(Path(sys.executable).parent)
        environ = {"PATH": f"{programs}:{os.environ['PATH']}", **machine(), **self.environ}
        program = shutil.which(self.args[0], path=programs)
        assert program, self.args
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [program, *self.args[1:]], stdout=out, stderr=out, cwd=self.folder, env=environ, start_new_session=True
            )
        return self

    def ready(self) -> bool:
        """The readiness probe of the manifest."""
        assert self.probe
        command = [sys.executable if self.probe[0] == "python" else self.probe[0], *self.probe[1:]]
        return subprocess.run(command, capture_output=True, env=self.environ, timeout=60).returncode == 0

    def kill(self) -> None:
        """kill -9 of all its processes."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)

    def listening(self) -> set[tuple[str, int]]:
        """Addresses and ports at which its processes listen."""
        import psutil

        own = psutil.Process(self.process.pid)
        found = [one for part in (own, *own.children(recursive=True)) for one in part.net_connections("tcp")]
        return {(one.laddr.ip, one.laddr.port) for one in found if one.status == psutil.CONN_LISTEN}
