"""What lies at a path, as plain values: a data set, a model, any Zarr, or an interrupted run."""

from __future__ import annotations

import os
from typing import Any


def describe(path: str) -> dict:
    """What the path holds, as plain values; `kind` names it."""
    from dkl.cli.runs import RUN, run_path
    from dkl.store.checkpoint import progress_of
    from dkl.store.dataset import FORMAT, open_node
    from dkl.store.folder import Folder, exists
    from dkl.store.ingest import staging_path

    bare = path.rstrip("/").removesuffix(".fit").removesuffix(".ingest")
    if not exists(path) or bare != path.rstrip("/"):
        if Folder(run_path(bare)).names():
            return describe_run(bare, Folder(run_path(bare)).read_json(RUN))
        if Folder(staging_path(bare)).names():
            return describe_staging(bare)
        raise ValueError(f"there is nothing at {path!r}; give a data set, a model, or a run")
    try:
        node = open_node(path)
    except ValueError:
        if os.path.isfile(path) or (known := progress_of(path)) is None:
            raise
        return describe_checkpoint(path, known)
    kind = node.attrs.get("format")
    if kind == FORMAT:
        return describe_dataset(path)
    if kind == "dkl-model":
        return describe_model(path)
    return describe_zarr(path, node)


def describe_checkpoint(path: str, known: dict) -> dict:
    """A checkpoint of a fit in Python."""
    fit = known["fit"]
    asked = {name: fit[name] for name in ("estimator", "kernel", "kernels", "n_components", "learn") if name in fit}
    return {"kind": "checkpoint", "path": path, **asked, "steps_kept": known["steps"], "blocks_summed": known["blocks"]}


def describe_dataset(path: str) -> dict:
    """A data set: its splits with shape, chunks, bytes, classes and ranges."""
    from dkl.sources.intact import check_chunks, check_description, is_older
    from dkl.store.dataset import check_complete, open_node
    from dkl.store.recipe import Recipe

    root = open_node(path)
    attributes = dict(root.attrs)
    check_complete(attributes, path)
    check_description(root, path)
    names = attributes.get("splits") or [None]
    splits = []
    for name in names:
        group, place = (root, path) if name is None else (root[name], f"{path.rstrip('/')}/{name}")
        check_description(group, place)
        check_chunks(group, place)
        own = dict(group.attrs)
        splits.append(
            {
                "split": name,
                **_arrays(group),
                "class_counts": own["class_counts"],
                "target_range": own["target_range"],
                "channels": own["channels"],
            }
        )
    recipe = attributes["recipe"]
    return {
        "kind": "data set",
        "path": path,
        "task": attributes["task"],
        "target": recipe["target"],
        "scale": [channel["scale"] for channel in recipe["channels"]],
        "missing": recipe["missing"],
        "dropped": attributes["dropped"],
        "checksums": not is_older(attributes),
        "input_names": Recipe.from_json(recipe).input_labels,
        "splits": splits,
    }


def _arrays(group: Any) -> dict:
    """Shape, cut and bytes of X (dense or sparse) and what lies beside it."""
    import zarr

    from dkl.engine.sparse import SparseRows

    X = group["X"]
    sparse = isinstance(X, zarr.Group)
    arrays = [X["data"], X["indices"], X["indptr"]] if sparse else [X]
    rows: Any = SparseRows(X) if sparse else X
    stored = sum(array.nbytes_stored() for array in arrays)
    return {
        "rows": int(rows.shape[0]),
        "inputs": int(rows.shape[1]),
        "dtype": str(rows.dtype),
        "layout": "sparse" if sparse else "dense",
        "density": float(X["data"].shape[0] / max(1, rows.shape[0] * rows.shape[1])) if sparse else 1.0,
        "chunk_rows": int(rows.chunks[0]),
        "shard_rows": int(rows.shards[0]) if rows.shards else None,
        "bytes": int(sum(array.nbytes for array in arrays)),
        "stored_bytes": int(stored),
    }


def describe_model(path: str) -> dict:
    """A model: kernel, sigma, alpha, classes and whatever else its FITTED tells."""
    from dkl.cli.open import load_model
    from dkl.estimators.summary import summary

    model, lacks = load_model(path), lacking(path)
    if not hasattr(model, "predict"):
        return {**describe_transformer(path, model), "lacks": lacks}
    return {"kind": "model", "path": path, **summary(model), "lacks": lacks}


def lacking(path: str) -> str | None:
    """What a model of an earlier version lacks."""
    from dkl.store.record import DIGEST, open_attributes

    if DIGEST in open_attributes(path):
        return None
    return "a digest of its parameters (written by an earlier dkl), so damage may go unnoticed; load and save it again"


def describe_transformer(path: str, model: Any) -> dict:
    """A map by itself: its parameters, how many features it makes of how many inputs, and what was found."""
    from dkl.estimators.summary import told

    simple = (str, int, float, bool)
    found = told(model)
    if "explained_variance_ratio" in found:
        found["variance"] = found.pop("explained_variance_ratio")
    return {
        "kind": "transformer",
        "path": path,
        "estimator": type(model).__name__,
        "inputs": int(model.n_features_in_),
        "components": int(model._n_features_out),
        "params": {name: value for name, value in model.get_params().items() if isinstance(value, simple)},
        "found": found,
    }


def describe_zarr(path: str, node: Any) -> dict:
    """Any other Zarr: its arrays."""
    import zarr

    arrays = [("", node)] if isinstance(node, zarr.Array) else sorted(node.arrays())
    return {
        "kind": "zarr",
        "path": path,
        "arrays": [
            {
                "name": name,
                "shape": list(a.shape),
                "dtype": str(a.dtype),
                "chunks": list(a.chunks),
                "bytes": int(a.nbytes),
            }
            for name, a in arrays
        ],
    }


def describe_run(path: str, run: dict | None) -> dict:
    """A fit that was interrupted."""
    from dkl.cli.runs import run_path
    from dkl.store.checkpoint import progress_of

    if run is None:
        raise ValueError(f"the unfinished fit of {path!r} was stopped before it began; remove {run_path(path)!r}")
    done = progress_of(f"{run_path(path)}/sums")
    return {
        "kind": "interrupted fit",
        "path": path,
        "data": run["data"],
        "task": run["estimator"],
        "params": run["params"],
        "map_is_drawn": bool(done and done["prepared"]),
        "steps_learned": done["steps"] if done else 0,
        "blocks_summed": done["blocks"] if done else 0,
    }


def describe_staging(path: str) -> dict:
    """An ingest that was interrupted."""
    from dkl.store.ingest import open_ingest

    request, folder, _ = open_ingest(path)
    names = folder.names()
    return {
        "kind": "interrupted ingest",
        "path": path,
        "sources": list(request.sources),
        "sources_read": sum(name.startswith("source-") for name in names),
        "parts_read": sum(name.startswith("part-") and name.endswith(".json") for name in names),
    }
