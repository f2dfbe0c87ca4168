"""Kubernetes objects against the schemas of Kubernetes and of the dask operator; a misspelt field is an error."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = "1.37"
CRDS = Path("operator", "deployment", "helm", "dask-kubernetes-operator", "crds")


def check(document: dict) -> None:
    """Raise if the object is not valid."""
    if document["apiVersion"].startswith("kubernetes.dask.org/"):
        _validator(document["kind"]).validate(document)
    else:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)


@lru_cache
def _validator(kind: str) -> Any:
    """The operator's own schema of a kind, from its package (not imported: that starts the operator's libraries)."""
    spec = find_spec("dask_kubernetes")
    assert spec is not None
    assert spec.origin is not None
    text = (Path(spec.origin).parent / CRDS / f"{kind.lower()}.yaml").read_text()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    version = yaml.load(text, loader)["spec"]["versions"][0]
    return jsonschema.Draft202012Validator(_closed({**version["schema"]["openAPIV3Schema"]}, top=True))


def _closed(schema: Any, top: bool = False) -> Any:
    """The schema without unknown fields, as an API server with strict field validation reads it."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _closed(part) for name, part in schema.items() if name not in ("type", "default")}
    if schema.get("x-kubernetes-int-or-string"):
        return {name: part for name, part in found.items() if name != "anyOf"} | {"type": ["integer", "string"]}
    if isinstance(schema.get("type"), str):
        found["type"] = schema["type"]
    elif "type" in schema:  # a field of that name
        found["type"] = _closed(schema["type"])
    fields = schema.get("properties")
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(fields, dict) and schema.get("type") == "object" and not is_open:
        found["additionalProperties"] = False
    if top:
        found["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
    return found
