"""Data and models as the verbs take them: a data set or a split of it, any Zarr, files prepared like training rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dkl.engine.memory import available_bytes
from dkl.engine.progress import Progress
from dkl.engine.tables import open_table
from dkl.engine.threads import thread_count
from dkl.store.dataset import choose_split, is_dataset, open_node, recipe_of
from dkl.store.folder import exists
from dkl.store.ingest import begin_ingest, run_ingest
from dkl.store.request import request_like


def load_model(path: str) -> Any:
    """The model at a path, or one sentence."""
    import dkl

    if not exists(path):
        raise ValueError(f"there is no model at {path!r}; dkl fit DATA {path} makes one")
    return dkl.load(path)


def load_predictor(path: str) -> Any:
    """The model at a path, if it is one that predicts."""
    model = load_model(path)
    if not hasattr(model, "predict"):
        raise ValueError(f"{path!r} holds a {type(model).__name__}, which transforms rows and predicts nothing")
    return model


def recipe_at(path: str) -> dict:
    """The recipe of a data set or of a model."""
    if not exists(path):
        raise ValueError(f"there is nothing at {path!r}; give a data set or a model whose columns and scales to use")
    recipe = recipe_of(path)
    if recipe is None:
        raise ValueError(f"{path!r} has no recipe: it was not made of a data set that dkl ingested")
    return recipe


def training_rows(path: str, split: str | None) -> str:
    """The path of the rows to fit to."""
    if path.startswith("sklearn:"):
        raise ValueError(f"{path!r} is a source; first: dkl ingest {path} {path.removeprefix('sklearn:')}.zarr")
    if not exists(path):
        raise ValueError(f"there is no data set at {path!r}; dkl ingest SOURCE {path} makes one")
    if looks_like_zarr(path):
        open_node(path)  # or a sentence on why it cannot be read
    elif not is_zarr(path):
        raise ValueError(f"{path!r} is not Zarr; first: dkl ingest {path} {path.split('.')[0]}.zarr")
    chosen = choose_split(path, split, "train")
    if hasattr(open_node(chosen), "shape"):
        raise ValueError(
            f"{path!r} is one array; a fit needs a group with X and y: dkl ingest {path} DEST.zarr makes one"
        )
    return chosen


def unlabelled_rows(path: str, like: str) -> str:
    """The path of rows without y: a data set prepared like the rows to fit to, one of its splits, or any Zarr array."""
    if not exists(path) or not is_zarr(path):
        raise ValueError(f"there is no Zarr at {path!r}; give rows such as DATA.zarr/test, or dkl ingest them first")
    chosen = choose_split(path, None, "test")
    _check_recipe(recipe_of(like), recipe_of(chosen), path, "the rows to fit to")
    return chosen


def looks_like_zarr(path: str) -> bool:
    """Whether a folder has the name or the files of Zarr; if it is damaged, ingest would not help."""
    marks = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
    named = path.rstrip("/").endswith(".zarr") and not os.path.isfile(path)
    return named or any(os.path.exists(os.path.join(path, mark)) for mark in marks)


def is_zarr(path: str) -> bool:
    """Whether a Zarr array or group lies there."""
    from dkl.sources.safe_zarr import UnsafeZarr

    try:
        open_node(path)
    except UnsafeZarr:
        raise
    except ValueError:
        return False
    return True


def task_of(path: str, wanted: str | None = None) -> str:
    """classification or regression: as wanted, as the data set says, or as its y looks."""
    y = open_table(path, "y")
    if wanted == "regression" and y.names is not None:
        raise ValueError(f"--task regression: the target of {path!r} holds names, as {str(y.names[0])!r}, not numbers")
    if wanted is not None:
        return wanted
    said = y.about.get("task")
    if said in ("classification", "regression"):
        return said
    return "regression" if y.array.dtype.kind == "f" else "classification"


@contextmanager
def rows_for(model: Any, sources: tuple[str, ...], split: str | None, how: dict) -> Iterator[str]:
    """The path of rows prepared as the model's training rows were; files are prepared, and read as `how` says, in a
    temporary folder.
    """
    recipe = getattr(model, "recipe_", None)
    path = sources[0]
    if len(sources) == 1 and exists(path) and is_zarr(path) and (recipe is None or is_dataset(path)):
        chosen = choose_split(path, split, "test")
        _check_recipe(recipe, recipe_of(chosen), path)
        yield chosen
        return
    if recipe is None:
        raise ValueError(
            f"{path!r} is not Zarr, and the model has no recipe to read it with (it was not fitted to a data set of "
            "dkl "
            f"ingest); give Zarr rows with {model.n_features_in_} inputs"
        )
    if split is not None:
        raise ValueError(f"--split {split}: {path!r} is not a data set with splits")
    with tempfile.TemporaryDirectory(prefix="dkl-") as folder:
        given = {name: value for name, value in how.items() if value}
        matrices = getattr(model, "recipe_matrices_", None)
        request = request_like(recipe, sources, os.path.join(folder, "rows.zarr"), given, matrices)
        run_ingest(request, begin_ingest(request), thread_count(), Progress(), available_bytes())
        yield request.dest


def _check_recipe(ours: dict | None, theirs: dict | None, path: str, whose: str = "the model's rows") -> None:
    """Refuse a data set that was prepared in another way."""
    if ours is None or theirs is None:
        return
    for mine, other in zip(ours["channels"], theirs["channels"], strict=False):
        for key in mine:
            if key not in ("name", "target") and mine[key] != other.get(key):
                raise ValueError(
                    f"{path!r} was prepared in another way than {whose} ({key} of channel {mine['name']!r} "
                    "differs); ingest it with --like and the model or the data set of these"
                )
    if len(ours["channels"]) != len(theirs["channels"]):
        raise ValueError(f"{path!r} has {len(theirs['channels'])} channels, {whose} have {len(ours['channels'])}")
