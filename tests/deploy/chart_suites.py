"""The chart's own tests: YAML suites in the format of helm-unittest, a part of which is understood here.

A suite has templates, a release and tests; a test sets values, renders a template and asserts about its documents.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.deploy.render import documents, render

STEP = re.compile(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]]+)')
MISSING = object()


def run(suite: dict, test: dict) -> list[str]:
    """What a test of a suite finds wrong; empty if it passes."""
    templates = [test["template"]] if "template" in test else suite["templates"]
    shown = [word for name in templates for word in ("--show-only", name)]
    settings = [
        word for name, value in test.get("set", {}).items() for word in ("--set-json", f"{name}={json.dumps(value)}")
    ]
    try:
        made, failure = documents(render(suite["release"]["name"], *settings, *shown)), ""
    except ValueError as error:
        made, failure = [], "" if "could not find template" in str(error) else str(error)
    if "documentIndex" in test:
        made = made[test["documentIndex"] :][:1]
    wrong = [_judge(kind, said, made, failure) for assertion in test["asserts"] for kind, said in assertion.items()]
    return [word for word in wrong if word]


def at(document: Any, path: str) -> Any:
    """The value at a path such as `spec.containers[0].env`."""
    for quoted, index, name in STEP.findall(path):
        try:
            document = document[int(index)] if index else document[quoted or name]
        except (KeyError, IndexError, TypeError):
            return MISSING
    return document


def _judge(kind: str, said: dict, made: list[dict], failure: str) -> str:
    """What is wrong with an assertion."""
    if kind == "failedTemplate":
        return "" if re.search(said["errorPattern"], failure) else f"{kind} {said}: {failure or 'it was rendered'}"
    if failure:
        return failure
    if kind == "hasDocuments":
        return "" if len(made) == said["count"] else f"{len(made)} documents, not {said['count']}"
    if not made:
        return f"{kind} {said}: nothing was rendered"
    return next((word for word in (_of_document(kind, said, one) for one in made) if word), "")


def _of_document(kind: str, said: dict, document: dict) -> str:
    if kind == "isKind":
        return "" if document["kind"] == said["of"] else f"a {document['kind']}, not a {said['of']}"
    found = at(document, said["path"])
    holds = {
        "equal": lambda: found == said["value"],
        "contains": lambda: found is not MISSING and said["content"] in found,
        "notContains": lambda: found is not MISSING and said["content"] not in found,
        "notExists": lambda: found is MISSING,
    }[kind]()
    return "" if holds else f"{kind} {said}: {'nothing there' if found is MISSING else found}"


def load(folder: Path) -> list[tuple[str, dict, dict]]:
    """Name, suite and test of every test in a folder."""
    import yaml

    suites = [(path, yaml.safe_load(path.read_text())) for path in sorted(folder.glob("*_test.yaml"))]
    return [(f"{path.stem}: {test['it']}", suite, test) for path, suite in suites for test in suite["tests"]]
