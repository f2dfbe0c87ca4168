"""dkl.ingest: files to a data set, as `dkl ingest` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dkl.checks import check_choice
from dkl.engine.active import active_client
from dkl.engine.memory import available_bytes
from dkl.engine.progress import Progress
from dkl.engine.threads import thread_count
from dkl.store.dataset import matrices_of, recipe_of
from dkl.store.folder import is_url
from dkl.store.ingest import begin_ingest, run_ingest
from dkl.store.request import Request, request_like

PLACES = ("auto", "cluster", "here")


def ingest(
    sources: Any,
    dest: Any,
    *,
    target: str | int | None = None,
    task: str = "auto",
    scale: str | Sequence[str] = "none",
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "refuse",
    na: Sequence[str] = (),
    split: Mapping[str, float | str] | None = None,
    seed: int = 0,
    rows: bool = False,
    like: Any = None,
    dtype: str = "auto",
    layout: str = "auto",
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    descriptor: str | Sequence[str] = "pixels",
    resize: tuple[int, int] | None = None,
    patches: int | tuple[int, int] | None = None,
    per_image: int | None = None,
    overwrite: bool = False,
    threads: int | None = None,
    on: str = "auto",
    verbose: int = 1,
) -> str:
    """Write the data set `dest` from files, URLs, folders of images or Zarr, in bounded memory; returns its path.

    Several sources are channels of the same rows (rows=True: further rows of one table). Options are those of
    `dkl ingest --help`; `split` is a dict such as {"test": 0.2}, or {"test": "right"} of patches; `like` is a data set
    whose columns and scales are used. If the process is killed, `dkl resume DEST` resumes.

    on="cluster": the workers of the active distributed client read the sources and write the data set, which must lie
    where all of them can reach them; "here": this process does; "auto": the cluster, if there is one and everything is
    on an object store. The data set is the same, bit for bit.
    """
    how: dict[str, Any] = {
        "target": None if target is None else str(target),
        "task": task,
        "scale": _several(scale),
        "categorical": _several(categorical),
        "drop": _several(drop),
        "missing": missing,
        "na": _several(na),
        "split": tuple((split or {}).items()),
        "seed": int(seed),
        "rows": rows,
        "dtype": dtype,
        "layout": layout,
        "format": format,
        "delimiter": delimiter,
        "header": header,
        "encoding": encoding,
        "descriptor": _several(descriptor),
        "resize": resize,
        "patches": (patches, patches) if isinstance(patches, int) else patches,
        "per_image": per_image,
        "overwrite": overwrite,
    }
    paths, place = tuple(map(os.fspath, _several(sources))), os.fspath(dest)
    if like is None:
        request = Request(paths, place, **how)
    else:
        matrices = matrices_of(os.fspath(like), available_bytes())
        request = request_like(_recipe(like), paths, place, how, matrices)
    crew = crew_for(check_choice("on", on, PLACES), (*paths, place))
    folder = begin_ingest(request, spread=crew is not None)
    run_ingest(request, folder, threads or thread_count(), Progress(verbose), available_bytes(), crew)
    return place


def crew_for(on: str, paths: Sequence[str]) -> Any:
    """The workers that ingest these paths; None: this process does."""
    client = None if on == "here" else active_client()
    if client is None:
        if on == "cluster":
            raise ValueError("on='cluster' needs a cluster; create a distributed.Client first, or leave on out")
        return None
    if on == "auto" and not all(map(is_url, paths)):
        return None
    from dkl.engine.crew import Crew  # here, as distributed takes a second to import

    return Crew(client)


def _several(value: Any) -> tuple:
    return (value,) if isinstance(value, (str, os.PathLike)) else tuple(value)


def _recipe(like: Any) -> dict:
    path = os.fspath(like)
    recipe = recipe_of(path)
    if recipe is None:
        raise ValueError(
            f"like={path!r} is not a data set of dkl, nor a model fitted to one; give the path of one of them"
        )
    return recipe
