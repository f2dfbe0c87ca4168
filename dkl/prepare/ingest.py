"""dkl.ingest: files to a data set, as `dkl ingest` does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from dkl.engine.memory import available_bytes
from dkl.engine.progress import Progress
from dkl.engine.threads import thread_count
from dkl.store.dataset import matrices_of, recipe_of
from dkl.store.ingest import begin_ingest, run_ingest
from dkl.store.request import Request, request_like


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
    verbose: int = 1,
) -> str:
    """Write the data set `dest` from files, URLs, folders of images or Zarr, in bounded memory; returns its path.

    Several sources are channels of the same rows (rows=True: further rows of one table). Options are those of
    `dkl ingest --help`; `split` is a dict such as {"test": 0.2}, or {"test": "right"} of patches; `like` is a data set
    whose columns and scales are used. If the process is killed, `dkl resume DEST` resumes.
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
    run_ingest(request, begin_ingest(request), threads or thread_count(), Progress(verbose), available_bytes())
    return place


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
