"""The chart as YAML, and the plain manifests of deploy/kubernetes: `python -m tests.deploy.render` writes them.

Plain manifests are renderings of the chart, so that there is one source; the text says only what differs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "dkl"
PLAIN = ROOT / "deploy" / "kubernetes"
HELM = str(Path(sys.executable).parent / "helm")
OFTEN = ("--set", "disruption.priorityClass.name=dkl-scheduler")  # one class for all plain manifests


class Manifest(NamedTuple):
    """A plain manifest: the release, the values and the template of which it is a rendering, and what it is."""

    release: str
    values: str
    template: str
    about: str


MANIFESTS = {
    "cluster": Manifest("dkl", "cluster", "cluster", "A cluster for notebooks, removed after an hour without work."),
    "autoscale": Manifest("dkl", "cluster", "autoscale", "Grows and shrinks the cluster of cluster.yaml."),
    "job": Manifest("dkl-fit", "job", "job", "A job: a cluster, a fit, and the cluster is removed."),
    "tls": Manifest("dkl-fit", "tls", "job", "The job with TLS between all three roles (secret dkl-tls)."),
    "network-policy": Manifest(
        "dkl-fit", "cluster", "network-policy", "Only pods of cluster dkl-fit may connect to it."
    ),
    "disruption": Manifest(
        "dkl-fit", "job", "disruption", "Priority of schedulers, and what may be evicted of dkl-fit."
    ),
}


def helm(*words: Any) -> subprocess.CompletedProcess[str]:
    """Run helm."""
    return subprocess.run([HELM, *map(str, words)], capture_output=True, text=True)


def render(release: str, *options: Any) -> str:
    """The chart with some values; what helm refuses is an error."""
    done = helm("template", release, CHART, *options)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def values(name: str) -> tuple[str, ...]:
    """The options of helm for one of the chart's value files."""
    return ("--values", str(CHART / "examples" / f"{name}.yaml"))


def documents(text: str) -> list[dict]:
    """The objects of a YAML text."""
    return [document for document in yaml.safe_load_all(text) if document]


def plain(name: str) -> str:
    """The text of a plain manifest."""
    made = MANIFESTS[name]
    text = render(made.release, *values(made.values), *OFTEN, "--show-only", f"templates/{made.template}.yaml")
    text = re.sub(r"^# Source: .*\n", "", text, flags=re.MULTILINE).removeprefix("---\n")
    other = (
        f" For another cluster put its name in place of {made.release}."
        if made.template in ("network-policy", "disruption")
        else ""
    )
    return f"# {made.about}{other}\n# A rendering of deploy/helm/dkl: change that, then make manifests.\n{text}"


if __name__ == "__main__":
    for one in MANIFESTS:
        (PLAIN / f"{one}.yaml").write_text(plain(one))
