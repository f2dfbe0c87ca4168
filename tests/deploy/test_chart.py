"""deploy/helm/dkl: lint, the values' schema, every rendering valid for the operator, and the chart's own tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import pytest
import yaml

from dkl.cli.main import cli
from tests.deploy.chart_suites import load, run
from tests.deploy.render import CHART, ROOT, documents, helm, render, values
from tests.deploy.schemas import check

EXAMPLES = sorted(path.stem for path in (CHART / "examples").glob("*.yaml"))
SUITES = load(CHART / "tests")


def test_there_are_examples():
    """Three value files, which are also those of the plain manifests."""
    assert EXAMPLES == ["cluster", "job", "tls"]


@pytest.mark.parametrize("name", ["", *EXAMPLES])
def test_lint(name):
    """helm lint, where a warning is a failure."""
    done = helm("lint", "--strict", CHART, *(values(name) if name else ()))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["", *EXAMPLES])
def test_every_rendering_is_valid(name):
    """All objects of the chart, its test pod too."""
    made = documents(render("fit-1", *(values(name) if name else ())))
    assert {"NetworkPolicy", "PriorityClass", "PodDisruptionBudget", "Pod"} <= {one["kind"] for one in made}
    assert {"DaskCluster", "DaskAutoscaler"} <= {one["kind"] for one in made} or name != "cluster"
    for one in made:
        check(one)


@pytest.mark.parametrize(("suite", "test"), [pytest.param(suite, test, id=name) for name, suite, test in SUITES])
def test_suite(suite, test):
    """The chart's own tests."""
    assert run(suite, test) == []


def test_suites_can_fail():
    """An assertion that does not hold is told, of every kind."""
    suite = {"templates": ["templates/job.yaml"], "release": {"name": "fit-1"}}
    name = "metadata.name"
    wrong = [
        {"equal": {"path": name, "value": "other"}}, {"isKind": {"of": "Pod"}}, {"hasDocuments": {"count": 2}},
        {"contains": {"path": "spec.job.spec.containers[0].args", "content": "--no"}}, {"notExists": {"path": name}},
        {"notContains": {"path": "spec.job.spec.containers[0].args", "content": "dkl"}},
        {"failedTemplate": {"errorPattern": "."}}, {"equal": {"path": "spec.nothing[3]", "value": 1}},
    ]  # fmt: skip
    assert len(run(suite, {"asserts": wrong})) == len(wrong)


def notes(folder: Path, name: str) -> str:
    """What helm install prints; it wants a cluster, so a copy of the chart has the notes as a value."""
    chart = shutil.copytree(CHART, folder / name)
    text = (chart / "templates" / "NOTES.txt").read_text()
    wrapped = '{{ define "notes" }}' + text + '{{ end }}\nnotes: {{ include "notes" . | quote }}\n'
    (chart / "templates" / "notes.yaml").write_text(wrapped)
    done = helm("template", "fit-1", chart, *values(name), "--show-only", "templates/notes.yaml")
    return documents(done.stdout)[0]["notes"]


def test_notes_say_what_to_type(tmp_path):
    """The job's log, the dashboard, how to resume; the secret only while there is no TLS."""
    job = notes(tmp_path, "job")
    assert "logs -f fit-1-runner" in job
    assert "port-forward deployment/fit-1-scheduler 8787" in job
    assert "dkl certificates tls --hosts localhost,fit-1-scheduler" in job
    assert "dkl certificates" not in notes(tmp_path, "tls")
    assert "runs until you uninstall it, or 3600 s after its last work" in notes(tmp_path, "cluster")


def test_doctor_can_be_parsed():
    """The pod of helm test calls a verb that there is, with flags that it has."""
    (pod,) = documents(render("fit-1", "--show-only", "templates/tests/doctor.yaml"))
    program, verb, *words = pod["spec"]["containers"][0]["args"]
    assert program == "dkl"
    assert cli.get_command(click.Context(cli), verb).make_context(verb, words).params["scheduler"]


def test_schema_covers_every_value():
    """A value without a schema would be refused; one without a default could not be found."""

    def names(schema: dict, value: object) -> set[str]:
        if "properties" not in schema:
            return set()
        own = set(schema["properties"]) - {"global"}
        assert own == set(value), f"{own ^ set(value)}"
        return own.union(*(names(schema["properties"][name], value[name]) for name in own))

    schema = json.loads((CHART / "values.schema.json").read_text())
    assert len(names(schema, yaml.safe_load((CHART / "values.yaml").read_text()))) > 30


def test_versions_agree():
    """The chart's version is the library's."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'version = "{chart["version"]}"' in (ROOT / "pyproject.toml").read_text()
    assert yaml.safe_load((CHART / "values.yaml").read_text())["image"]["name"] == f"dkl:{chart['appVersion']}"
