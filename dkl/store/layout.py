"""The arrays of one split before a row is in them: shapes, chunks, shards, names and constants of the recipe."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.sources.coords import Coords
from dkl.sources.recipe_matrices import GROUP
from dkl.store.coords import RowCoords, create_coords, write_inputs
from dkl.store.dataset import create_rows, cut_rows
from dkl.store.recipe import Recipe
from dkl.store.target import Y_DTYPES, Target


def index_dtype(columns: int) -> Any:
    """The narrowest integer dtype for column indices."""
    return np.int32 if columns <= np.iinfo(np.int32).max else np.int64


def lay_out(
    group: Any, rows: int, entries: int, recipe: Recipe, target: Target, sparse: bool, beside: list[Coords],
    row_coords: RowCoords,
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:  # fmt: skip
    """(arrays of the rows by their path in the group, coordinates of the rows, names of all coordinates)."""
    m, dtype = recipe.n_inputs, np.dtype(recipe.dtype)
    row_bytes = dtype.itemsize * m if not sparse else max(1, entries // rows) * (dtype.itemsize + 4)
    cut = cut_rows(rows, row_bytes)
    plain = (cut[1] or cut[0], None)
    arrays: dict[str, Any] = {}
    if sparse:
        inner = group.create_group("X")
        inner.attrs.put(
            {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [rows, m], "block_rows": plain[0]}
        )
        stored = cut_rows(entries, dtype.itemsize)
        for name, kind in (("data", dtype), ("indices", index_dtype(m))):
            arrays[f"X/{name}"] = create_rows(inner, name, (entries,), kind, stored, ["entry"])
        arrays["X/indptr"] = create_rows(inner, "indptr", (rows + 1,), np.int64, (plain[0] + 1, None), ["bound"])
    else:
        arrays["X"] = create_rows(group, "X", (rows, m), dtype, cut, ["row", "input"])
    arrays["row"] = create_rows(group, "row", (rows,), np.int64, plain, ["row"])
    if target.kind != "none":
        arrays["y"] = create_rows(group, "y", (rows,), Y_DTYPES[target.kind], plain, ["row"])
    if target.classes:
        group["y"].attrs["classes"] = target.classes
    owner = np.repeat(np.arange(len(recipe.channels)), [c.n_inputs for c in recipe.channels]).astype(np.int32)
    channel = write_inputs(group, "channel", owner)
    channel.attrs["names"] = [c.name for c in recipe.channels]
    for name, values in recipe.matrices().items():
        inner = group.require_group(GROUP)
        cut_of_matrix = cut_rows(len(values), values[0].nbytes)
        dims = [f"{name}_row", f"{name}_input"]
        create_rows(inner, name, values.shape, values.dtype, cut_of_matrix, dims)[:] = values
    names = recipe.input_names
    if names is not None:
        write_inputs(group, "input", np.array(names))
    coords, named = create_coords(group, beside, row_coords, rows, plain)
    return arrays, coords, named
