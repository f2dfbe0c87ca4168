"""Objects of the dask operator for Kubernetes: the renderings in deploy/kubernetes with other names and sizes.

    cluster.yaml -> DaskCluster;  job.yaml -> DaskJob;  tls.yaml -> what TLS and a claim for /data add to any pod

They are changed as objects, not as text, so no value can begin a field of its own.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from dkl.cli.cluster_request import MIB, Request

HEAD = """# Written by `dkl cluster kubernetes`. Needs the dask operator, and once for the cluster:
#   kubectl create priorityclass dkl-scheduler --value=1000
"""
S3 = "#   kubectl create secret generic dkl-s3 --from-env-file=FILE_WITH_AWS_ACCESS_KEY_ID_AND_AWS_SECRET_ACCESS_KEY\n"
TLS = "#   dkl certificates {0} && mv {0}/ca.key ca-of-{0}.key && kubectl create secret generic {0} --from-file={0}\n"
CONFIG = "/etc/dkl/config"
OF_TLS = "DASK_DISTRIBUTED__COMM__"
"""Beginning of variables of TLS."""
REMOTE = "DKL_DATA"


def manifest_of(request: Request, config: str | None = None) -> str:
    """YAML of a DaskCluster, or of a DaskJob with the text of its configuration."""
    import yaml

    made = _rendering("job" if request.fit else "cluster")
    cluster = made["spec"]["cluster"]["spec"] if request.fit else made["spec"]
    safe, extra = _rendering("tls")["spec"], list[dict[str, Any]]()
    made["metadata"]["name"] = made["metadata"]["labels"]["app.kubernetes.io/instance"] = request.name
    cluster["scheduler"]["service"]["selector"]["dask.org/cluster-name"] = request.name
    cluster["worker"]["replicas"] = request.workers
    roles = {"worker": cluster["worker"]["spec"], "scheduler": cluster["scheduler"]["spec"]}
    adds = {role: safe["cluster"]["spec"][role]["spec"] for role in roles}
    if request.fit:
        roles["job"], adds["job"] = made["spec"]["job"]["spec"], safe["job"]["spec"]
        extra = _set_job(roles["job"], request, config)
    for role, pod in roles.items():
        _set_pod(pod, request)
        _set_storage(pod, adds[role], request)
        if request.tls:
            _add_tls(pod, adds[role], request.tls)
    _set_worker(_container(roles["worker"]), request)
    scheduler = _container(roles["scheduler"])
    _set_resources(scheduler, int(scheduler["resources"]["limits"]["cpu"]), request.scheduler_memory)
    _set_argument(scheduler, "protocol", "tls" if request.tls else "tcp")
    text = yaml.safe_dump_all([*extra, made], sort_keys=False, width=110, allow_unicode=True)
    why = f"# {request.why}\n" if request.why else ""
    needs_s3 = any("envFrom" in _container(pod) for pod in roles.values())
    return HEAD + (S3 if needs_s3 else "") + (TLS.format(request.tls) if request.tls else "") + why + text


def _rendering(name: str) -> dict[str, Any]:
    """A plain manifest: beside this file in an installed package, in deploy/ in a checkout."""
    import yaml

    packed = files("dkl.cli") / "templates" / "kubernetes" / f"{name}.yaml"
    here = packed if packed.is_file() else Path(__file__).parents[2] / "deploy" / "kubernetes" / f"{name}.yaml"
    loaded: dict[str, Any] = yaml.safe_load(here.read_text(encoding="utf-8"))
    return loaded


def _container(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = pod["containers"]
    return found


def _set_pod(pod: dict[str, Any], request: Request) -> None:
    """Image, and where the scheduler answers."""
    container = _container(pod)
    container["image"] = request.image or container["image"]
    protocol = "tls" if request.tls else "tcp"
    for variable in container["env"]:
        if variable["name"] == "DASK_SCHEDULER_ADDRESS":
            variable["value"] = f"{protocol}://{request.name}-scheduler:{variable['value'].rsplit(':', 1)[1]}"


def _set_worker(container: dict[str, Any], request: Request) -> None:
    """Threads and memory of the process, and of its pod."""
    _set_argument(container, "nthreads", str(request.cpus))
    _set_argument(container, "memory-limit", f"{request.limit}MiB")
    _set_resources(container, request.cpus, request.memory)


def _set_resources(container: dict[str, Any], cpus: int, memory: int) -> None:
    """Requests equal limits."""
    sizes = {"cpu": str(cpus), "memory": f"{memory // 2**30}Gi" if memory % 2**30 == 0 else f"{memory // MIB}Mi"}
    container["resources"] = {"requests": sizes, "limits": dict(sizes)}


def _set_argument(container: dict[str, Any], name: str, value: str) -> None:
    """--name=value in place of the one that is there."""
    start = f"--{name}="
    (at,) = (number for number, word in enumerate(container["args"]) if word.startswith(start))
    container["args"][at] = start + value


def _set_job(pod: dict[str, Any], request: Request, config: str | None) -> list[dict[str, Any]]:
    """The words of the fit; the objects that it needs beside: its configuration."""
    container, words = _container(pod), list(request.fit)
    data, model = words[:2]
    options = words[2:]
    for variable in container["env"]:
        if variable["name"] in (REMOTE, "DKL_MODEL"):
            variable["value"] = _plain(data if variable["name"] == REMOTE else model)
    last = next(number for number, word in enumerate(container["args"]) if word.startswith("--scheduler="))
    if config is not None:
        options[options.index("--config") + 1] = f"{CONFIG}/fit.toml"
    container["args"] = container["args"][: last + 1] + [_plain(word) for word in options]
    if config is None:
        return []
    name = f"{request.name}-config"
    pod["volumes"].append({"name": "config", "configMap": {"name": name}})
    container["volumeMounts"].append({"name": "config", "mountPath": CONFIG, "readOnly": True})
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"fit.toml": config}}]


def _plain(word: str) -> str:
    """A word in which Kubernetes finds no variable."""
    return word.replace("$(", "$$(")


def _set_storage(pod: dict[str, Any], add: dict[str, Any], request: Request) -> None:
    """Keys for s3://, a claim for /data, neither for other URLs."""
    paths = request.fit[:2]
    for path in paths:
        if "://" not in path and not path.startswith("/data/"):
            raise click.UsageError(
                f"pods cannot read {path!r}; use a URL (s3://...), or /data/... on the claim dkl-data"
            )
    if paths and not any(path.startswith("s3://") for path in paths):
        _container(pod).pop("envFrom", None)
    if any(path.startswith("/data/") for path in paths):
        _add_volume(pod, add, "data")


def _add_tls(pod: dict[str, Any], add: dict[str, Any], secret: str) -> None:
    """Certificates of the role, and the variables that name them."""
    _add_volume(pod, add, "tls")
    for volume in pod["volumes"]:
        if volume["name"] == "tls":
            volume["secret"]["secretName"] = secret
    _container(pod)["env"] += [item for item in _container(add)["env"] if item["name"].startswith(OF_TLS)]


def _add_volume(pod: dict[str, Any], add: dict[str, Any], name: str) -> None:
    """A volume and its mount, as another pod has them."""
    for there, other in ((pod["volumes"], add["volumes"]), (_mounts(pod), _mounts(add))):
        there += [item for item in other if item["name"] == name]


def _mounts(pod: dict[str, Any]) -> list[Any]:
    found: list[Any] = _container(pod)["volumeMounts"]
    return found
