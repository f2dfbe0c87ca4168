"""dkl cluster kubernetes: the plain manifests with other names and sizes, valid, and the same where nothing differs."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from tests.cli.in_process import dkl_in, done
from tests.deploy.render import PLAIN, documents
from tests.deploy.schemas import check

SIZES = ("--workers", "3", "--cpus", "6", "--memory", "20GiB", "--scheduler-memory", "12GiB", "--image", "my/dkl:2")
FIT = ("--for", "s3://b/rows.zarr", "--fit", "s3://b/model.zarr")
CONFIG = 'n_components = 500  # "quotes": and\n# --- lines\nsigma = [0.5, 1]\n'
HOSTILE = 's3://b/a: {x: "1"}\'#$(DASK_SCHEDULER_ADDRESS) - --scheduler=tcp://evil'


def made(folder: Path, *words: str) -> list[dict]:
    """The objects that are printed, each valid."""
    found = documents(done(folder, "cluster", "kubernetes", *words))
    for document in found:
        check(document)
    return found


def container(pod: dict) -> dict:
    """The container of a pod."""
    (found,) = pod["containers"]
    return found


def variables(pod: dict) -> dict[str, str]:
    """Names and values."""
    return {item["name"]: item["value"] for item in container(pod)["env"]}


def plain(name: str) -> dict:
    """A manifest of deploy/kubernetes."""
    (found,) = documents((PLAIN / f"{name}.yaml").read_text())
    return found


def test_cluster_of_the_plain_size_is_the_plain_manifest(tmp_path):
    """Not one field differs."""
    words = ("--workers", "2", "--cpus", "4", "--memory", "16GiB", "--scheduler-memory", "8GiB")
    assert made(tmp_path, *words) == [plain("cluster")]


@pytest.mark.parametrize(("base", "more"), [("job", ()), ("tls", ("--tls", "dkl-tls"))])
def test_job_of_the_plain_size_is_the_plain_manifest(tmp_path, base, more):
    """But for the options of the fit, the last words of the job."""
    expected = plain(base)
    worker = expected["spec"]["cluster"]["spec"]["worker"]
    replicas, limits = worker["replicas"], container(worker["spec"])["resources"]["limits"]
    words = container(expected["spec"]["job"]["spec"])["args"]
    last = next(number for number, word in enumerate(words) if word.startswith("--scheduler="))
    del words[last + 1 :]
    paths = variables(expected["spec"]["job"]["spec"])
    (found,) = made(
        tmp_path, "--name", "dkl-fit", "--workers", str(replicas), "--cpus", limits["cpu"], "--memory",
        limits["memory"] + "B", "--scheduler-memory", "8GiB", "--for", paths["DKL_DATA"], "--fit", paths["DKL_MODEL"],
        *more,
    )  # fmt: skip
    assert sorted_names(found) == sorted_names(expected)


def sorted_names(document: dict) -> dict:
    """The object with lists of named things in the order of their names."""
    found = copy.deepcopy(document)

    def walk(value: object) -> None:
        for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(part)
        if isinstance(value, list) and all(isinstance(part, dict) and "name" in part for part in value):
            value.sort(key=lambda part: part["name"])

    walk(found)
    return found


def test_sizes_and_names(tmp_path):
    """What was asked for stands where Kubernetes and dask read it; the file is left as it was."""
    (tmp_path / "fit.toml").write_text(CONFIG)
    config, found = made(tmp_path, *SIZES, *FIT, "--name", "mine", "--config", "fit.toml", "--split", "train")
    cluster, job = found["spec"]["cluster"]["spec"], found["spec"]["job"]["spec"]
    worker, scheduler = cluster["worker"]["spec"], cluster["scheduler"]["spec"]
    assert (found["kind"], found["metadata"]["name"], cluster["worker"]["replicas"]) == ("DaskJob", "mine", 3)
    assert cluster["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == "mine"
    assert {"--nthreads=6", "--memory-limit=17400MiB"} <= set(container(worker)["args"])
    for pod, memory in ((worker, "20Gi"), (scheduler, "12Gi")):
        sizes = container(pod)["resources"]
        assert sizes["limits"] == sizes["requests"]
        assert sizes["limits"]["memory"] == memory
    assert container(worker)["resources"]["limits"]["cpu"] == "6"
    for pod in (worker, scheduler, job):
        assert container(pod)["image"] == "my/dkl:2"
        assert variables(pod)["DASK_SCHEDULER_ADDRESS"] == "tcp://mine-scheduler:8786"
        assert pod["priorityClassName"] == "dkl-scheduler" if pod is scheduler else True
    assert config["data"] == {"fit.toml": CONFIG}
    assert container(job)["args"][-4:] == ["--config", "/etc/dkl/config/fit.toml", "--split", "train"]
    assert {"name": "config", "configMap": {"name": config["metadata"]["name"]}} in job["volumes"]
    assert variables(job)["DKL_MODEL"] == "s3://b/model.zarr"


def test_hostile_values_stay_values(tmp_path):
    """No field, argument or variable of Kubernetes comes out of a path."""
    (tame,) = made(tmp_path, *SIZES, "--for", "s3://b/x", "--fit", "s3://b/y", "--split", "z")
    (wild,) = made(tmp_path, *SIZES, "--for", HOSTILE, "--fit", "s3://b/y", "--split", "$(HOME) --overwrite")
    job = container(wild["spec"]["job"]["spec"])
    assert variables(wild["spec"]["job"]["spec"])["DKL_DATA"] == HOSTILE.replace("$(", "$$(")  # $$ is a $ there
    assert job["args"][-2:] == ["--split", "$$(HOME) --overwrite"]
    job["args"][-1] = "z"
    next(item for item in job["env"] if item["name"] == "DKL_DATA")["value"] = "s3://b/x"
    assert wild == tame


def test_cluster_with_tls(tmp_path):
    """Each role has the key of its own, from the secret that was named, and plain connections are refused."""
    (found,) = made(tmp_path, *SIZES, "--tls", "our-tls")
    for role in ("scheduler", "worker"):
        pod = found["spec"][role]["spec"]
        (secret,) = (volume["secret"] for volume in pod["volumes"] if volume["name"] == "tls")
        assert secret["secretName"] == "our-tls"
        assert {item["key"] for item in secret["items"]} == {"ca.pem", f"{role}.pem", f"{role}.key"}
        assert variables(pod)["DASK_SCHEDULER_ADDRESS"] == "tls://dkl-scheduler:8786"
        assert variables(pod)["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "true"
    assert "--protocol=tls" in container(found["spec"]["scheduler"]["spec"])["args"]


def test_storage_follows_the_paths(tmp_path):
    """Keys for s3://, a claim for /data, neither for other URLs."""
    for path, claims, keys in (("s3://b/", 0, True), ("/data/", 1, False), ("gs://b/", 0, False)):
        (found,) = made(tmp_path, *SIZES, "--for", f"{path}x", "--fit", f"{path}y")
        for pod in (found["spec"]["job"]["spec"], found["spec"]["cluster"]["spec"]["worker"]["spec"]):
            assert sum("persistentVolumeClaim" in volume for volume in pod["volumes"]) == claims
            assert ("envFrom" in container(pod)) == keys


@pytest.mark.parametrize(("words", "says"), [
    ((*SIZES, "--for", "rows.zarr", "--fit", "s3://b/m"), "pods cannot read"),
    ((*SIZES, "--tls", "Not/a name"), "secret"),
    ((*SIZES[:-1], "my dkl:2"), "'my dkl:2'"),
    ((*SIZES, "--queue", "long"), "slurm and pbs"),
    ((*SIZES, "--folder", "x"), "slurm and pbs and local"),
    ((*SIZES, *FIT, "--config", "bad.toml"), "bad.toml"),
])  # fmt: skip
def test_refusals(tmp_path, words, says):
    """One line, and no manifest."""
    (tmp_path / "bad.toml").write_text("n_componnents = 5\n")
    said = dkl_in(tmp_path, "cluster", "kubernetes", *words)
    assert said.code in (1, 2)
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert says in said.err


def test_apply(tmp_path, monkeypatch):
    """kubectl gets the manifest; without kubectl it is said what to type."""
    monkeypatch.setenv("PATH", str(tmp_path))
    said = dkl_in(tmp_path, "cluster", "kubernetes", *SIZES, "--apply")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "kubectl apply -f cluster.yaml" in said.err
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$@" > words\n/bin/cat > given\necho created\n')
    (tmp_path / "kubectl").chmod(0o755)
    assert done(tmp_path, "cluster", "kubernetes", *SIZES, "--apply") == "created\n"
    assert (tmp_path / "words").read_text() == "apply -f -\n"
    assert yaml.safe_load((tmp_path / "given").read_text())["spec"]["worker"]["replicas"] == 3
