"""A job that is started again with the same request: start it, resume it, or see that it is complete.

The request is DATA, its split, the unlabelled rows and every option; a resumed run may have new limits.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from dkl.cli.runs import RUN, run_path
from dkl.learn.run import Limits
from dkl.store.folder import Folder, exists, is_url

NAMES = {"data": "DATA (or --split)", "unlabelled": "--unlabelled", "estimator": "--task"}


def source_of(run: dict) -> str:
    """A digest of the rows of a run: the identity of a data set, or the path of any other Zarr."""
    return hashlib.sha256(json.dumps([_named(run["data"]), _named(run.get("unlabelled"))]).encode()).hexdigest()


def _named(path: str | None) -> list | None:
    from dkl.store.dataset import is_dataset, open_node

    if path is None:
        return None
    parent, name = path.rstrip("/").rsplit("/", 1)
    for place, part in ((path, ""), (parent, name)):
        if exists(place) and is_dataset(place) and (told := dict(open_node(place).attrs).get("id")):
            return [told, part]
    return [path, ""]


def go_on(known: dict, wanted: dict) -> dict:
    """The interrupted run with the limits that are wanted now; another request is refused."""
    names = [NAMES[key] for key in NAMES if known.get(key) != wanted.get(key)]
    names += _changed(known["params"], wanted["params"], Limits._fields)
    if names:
        raise ValueError(
            f"the interrupted fit of {wanted['model']!r} is another request ({', '.join(names)} differ); dkl resume "
            f"{wanted['model']} resumes it, or remove {wanted['model'] + '.fit'!r}"
        )
    return with_limits(known, {name: wanted["params"][name] for name in Limits._fields})


def with_limits(run: dict, limits: dict[str, Any]) -> dict:
    """A run with other limits."""
    return {**run, "params": {**run["params"], **limits}}


def check_complete(wanted: dict, build: Any) -> None:
    """Refuse a model that another request has made."""
    from dkl.cli.open import load_model
    from dkl.estimators.checkpoints import as_text

    path, ours = wanted["model"], build(wanted)
    found = load_model(path)
    names = [] if type(found) is type(ours) else ["--task"]
    mine, theirs = ({k: as_text(v) for k, v in model.get_params().items()} for model in (ours, found))
    names += _changed(theirs, mine, ("checkpoint", "verbose"))
    source = getattr(found, "request_", None)
    if source is not None and source != source_of(wanted):
        names.append("DATA, --split or --unlabelled")
    if names:
        raise FileExistsError(
            f"{path!r} is complete, but of another request ({', '.join(names)} differ); choose another name, or use "
            "--overwrite without --resume"
        )
    if source is None or _is_newer(wanted["data"], path):
        why = "does not say what rows it is of" if source is None else f"is older than {wanted['data']!r}"
        raise FileExistsError(
            f"{path!r} is complete, but {why}; choose another name, or use --overwrite without --resume"
        )


def _changed(known: dict, wanted: dict, free: tuple[str, ...]) -> list[str]:
    names = [name for name in wanted if name not in free and known.get(name) != wanted[name]]
    return ["--" + name.replace("_", "-") for name in names]


def _is_newer(data: str, model: str) -> bool:
    """Whether rows on this machine were written after the model."""
    if is_url(data) or is_url(model):
        return False
    times = [os.stat(os.path.join(top, name)).st_mtime for top, _, names in os.walk(data) for name in names]
    return max(times, default=0.0) > os.stat(os.path.join(model, "zarr.json")).st_mtime


def interrupted_run(model: str) -> dict | None:
    """The interrupted fit of a model, if there is one."""
    folder = Folder(run_path(model))
    folder.clear()
    run = folder.read_json(RUN)
    if run is not None and (not isinstance(run, dict) or run.get("format") != "dkl-fit"):
        raise ValueError(f"{folder.path!r} holds no fit that can be resumed; remove it and fit again")
    return run
