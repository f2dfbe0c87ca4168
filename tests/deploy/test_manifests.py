"""deploy/kubernetes: valid for the operator and for Kubernetes, renderings of the chart, and hardened."""

from __future__ import annotations

import copy
import importlib
import re

import click
import dask
import jsonschema
import pytest
import yaml

from dkl.cli.main import cli
from tests.deploy.render import MANIFESTS, PLAIN, documents, plain
from tests.deploy.schemas import check

FILES = sorted(path.stem for path in PLAIN.glob("*.yaml"))
RUN = ("cluster", "job", "tls")


def objects(name: str) -> list[dict]:
    """The objects of a file."""
    return documents((PLAIN / f"{name}.yaml").read_text())


def pods(name: str) -> dict[str, dict]:
    """The pod specs of a DaskCluster or a DaskJob, by role."""
    (made,) = objects(name)
    spec = made["spec"]
    found = {"job": spec["job"]["spec"]} if "job" in spec else {}
    inner = spec["cluster"]["spec"] if "job" in spec else spec
    return found | {role: inner[role]["spec"] for role in ("scheduler", "worker")}


PODS = [pytest.param(name, role, id=f"{name}-{role}") for name in RUN for role in pods(name)]


def only_container(pod: dict) -> dict:
    """The container of a pod."""
    (container,) = pod["containers"]
    return container


def flags(container: dict) -> dict[str, str]:
    """--name=value arguments."""
    return dict(
        word.removeprefix("--").split("=", 1) for word in container["args"] if word.startswith("--") if "=" in word
    )


def environment(container: dict) -> dict[str, str]:
    """Variables with a value."""
    return {item["name"]: item["value"] for item in container["env"]}


def test_every_concern_has_its_file():
    """One plain example for each concern."""
    assert FILES == ["autoscale", "cluster", "disruption", "job", "network-policy", "s3-secret", "tls"]


@pytest.mark.parametrize("name", FILES)
def test_valid(name):
    """For the operator's own schemas, and those of Kubernetes, without unknown fields."""
    made = objects(name)
    assert made
    for document in made:
        check(document)


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_rendered_from_the_chart(name):
    """Edited by hand, a manifest and the chart would say different things."""
    assert (PLAIN / f"{name}.yaml").read_text() == plain(name), "make manifests"


def spoil(made: dict, path: str, value: object) -> dict:
    """A copy with one field changed or added."""
    made = copy.deepcopy(made)
    *way, last = path.split(".")
    inside = made
    for step in way:
        inside = inside[int(step)] if isinstance(inside, list) else inside[step]
    inside[last] = value
    return made


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("job", "spec.job.spec.restartpolicy", "OnFailure"),
        ("job", "spec.cluster.spec.worker.replicas", "four"),
        ("job", "spec.cluster.spec.worker.spec.containers.0.resources.limit", {}),
        ("cluster", "spec.scheduler.spec.containers.0.ports.0.containerPort", "8786"),
        ("cluster", "spec.idletimeout", 1),
        ("autoscale", "spec.maximum", "8"),
        ("network-policy", "spec.ingres", []),
        ("disruption", "preemptionPolicies", "Never"),
    ],
)
def test_checks_find_mistakes(name, path, value):
    """The validation above is not empty: misspelt names and wrong types are refused."""
    with pytest.raises(jsonschema.ValidationError, match=r"(?i)additional|not of type|is not|unexpected"):
        check(spoil(objects(name)[0], path, value))


@pytest.mark.parametrize(("name", "role"), PODS)
def test_hardened(name, role):
    """Not root, nothing writable but /tmp and data, no capabilities, no account of the API, a minute to stop."""
    pod = pods(name)[role]
    container = only_container(pod)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["terminationGracePeriodSeconds"] >= 30
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert "/tmp" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert environment(container)["HOME"] == "/tmp"


@pytest.mark.parametrize(("name", "role"), PODS)
def test_resources(name, role):
    """Whole CPUs, requests = limits, one BLAS thread; a worker's limit lies below its pod's."""
    container = only_container(pods(name)[role])
    resources, variables = container["resources"], environment(container)
    assert resources["requests"] == resources["limits"]
    assert re.fullmatch(r"[1-9]\d*", resources["limits"]["cpu"])
    assert {variables[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL")} == {"1"}
    if role == "worker":
        said = flags(container)
        assert said["nthreads"] == resources["limits"]["cpu"]
        pod_bytes = int(resources["limits"]["memory"].removesuffix("Gi")) * 1024
        assert 0.8 * pod_bytes < int(said["memory-limit"].removesuffix("MiB")) < 0.9 * pod_bytes
    if role != "job":
        assert flags(container)["preload"] == "dkl.engine.preload"


@pytest.mark.parametrize("name", RUN)
def test_scheduler_has_its_own_class_of_priority(name):
    """The class of disruption.yaml, which workers do not have."""
    (made,) = [one for one in objects("disruption") if one["kind"] == "PriorityClass"]
    assert pods(name)["scheduler"]["priorityClassName"] == made["metadata"]["name"]
    assert "priorityClassName" not in pods(name)["worker"]


def test_policy_opens_the_ports_that_processes_use():
    """No other port is open, and only to pods of the same cluster (and the operator, if it may ask)."""
    policies = {one["metadata"]["name"]: one["spec"] for one in objects("network-policy")}
    worker = flags(only_container(pods("job")["worker"]))
    for name, ports in (("worker", {worker["worker-port"], worker["nanny-port"]}), ("scheduler", {"8786", "8787"})):
        spec = policies[f"dkl-fit-{name}"]
        assert spec["podSelector"]["matchLabels"] == {"dask.org/cluster-name": "dkl-fit", "dask.org/component": name}
        assert {str(port["port"]) for rule in spec["ingress"] for port in rule["ports"]} == ports
        for rule in spec["ingress"]:
            own = [{"podSelector": {"matchLabels": {"dask.org/cluster-name": "dkl-fit"}}}]
            operator = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dask-operator"}}}]
            assert rule["from"] == (operator if rule["ports"][0]["port"] == 8787 else own)
    assert "ingress" not in policies["dkl-fit"]  # nothing else comes in
    assert policies["dkl-fit"]["policyTypes"] == ["Ingress", "Egress"]


def test_tls_reaches_all_three_roles():
    """Each has its own certificate and key, no other's, and refuses plain connections."""
    for pod, role in (("scheduler", "scheduler"), ("worker", "worker"), ("job", "client")):
        spec = pods("tls")[pod]
        (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "tls"]
        assert {item["path"] for item in volume["secret"]["items"]} == {"ca.pem", f"{role}.pem", f"{role}.key"}
        said = environment(only_container(spec))
        assert said["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "true"
        assert said[f"DASK_DISTRIBUTED__COMM__TLS__{role.upper()}__KEY"] == f"/etc/dkl/tls/{role}.key"
        assert said["DASK_SCHEDULER_ADDRESS"].startswith("tls://dkl-fit-scheduler:")


def test_no_registry_is_named():
    """The image's name is the user's to complete."""
    for name in RUN:
        assert {only_container(pod)["image"] for pod in pods(name).values()} == {"dkl:0.1.0"}


def test_secret_has_no_secret():
    """What stands in the repository is a placeholder."""
    (secret,) = yaml.safe_load_all((PLAIN / "s3-secret.yaml").read_text())
    assert {secret["stringData"][name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")} == {"change-me"}


@pytest.mark.parametrize(("name", "role"), [one for one in PODS if one.values[1] == "job"])
def test_job_can_be_parsed(name, role):
    """dkl takes the arguments of the job; `--resume auto` is what makes a restart resume."""
    program, verb, *words = only_container(pods(name)[role])["args"]
    command = cli.get_command(click.Context(cli), verb)
    assert program == "dkl"
    assert command.make_context(verb, words).params["resume"] == "auto"


def test_operator_may_ask_the_cluster_that_it_scales():
    """The scheduler of cluster.yaml has all routes that dask has by default, and the one that the operator calls."""
    said = environment(only_container(pods("cluster")["scheduler"]))
    routes = dask.config.collect_env(said)["distributed"]["scheduler"]["http"]["routes"]
    import distributed  # noqa: F401 (reads its defaults)

    assert set(routes) == {*dask.config.get("distributed.scheduler.http.routes"), "distributed.http.scheduler.api"}
    for route in routes:
        importlib.import_module(route)
