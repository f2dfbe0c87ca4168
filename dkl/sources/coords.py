"""Labels stored beside a Zarr array, as xarray writes them: dimension names, and coordinates along them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.sources.batch import SourceError
from dkl.sources.damage import read_rows
from dkl.sources.safe_zarr import check_held, checked
from dkl.sources.whole import whole

MOST_DECLARED = 2**26
"""Bytes that a coordinate may declare unchecked; it is read at once."""
TEXT_KINDS = "UOT"
"""dtype.kind of texts: fixed width, objects, variable width."""


class Coords(NamedTuple):
    """Coordinates of a source: arrays along its rows, still on disk, and values along its columns."""

    rows: dict[str, Any]
    inputs: dict[str, np.ndarray]
    names: list[str] | None  # of the columns, if their index holds distinct texts


NO_COORDS = Coords({}, {}, None)


def dims_of(array: Any) -> tuple[str, ...]:
    """Names of a stored array's dimensions, as Zarr 3 has them, or as xarray writes them into Zarr 2; () if unknown."""
    names = getattr(getattr(array, "metadata", None), "dimension_names", None)
    names = names or getattr(array, "attrs", {}).get("_ARRAY_DIMENSIONS")
    names = names if isinstance(names, (list, tuple)) else ()
    return tuple(names) if len(names) == array.ndim and all(isinstance(n, str) for n in names) else ()


def input_coords(group: Any, X: Any) -> dict[str, np.ndarray]:
    """Arrays beside X along its inputs: of their dimension, or of their length if dimensions have no names."""
    found, inputs = {}, dims_of(X)[1:]
    for key, array in group.arrays():
        if key in ("X", "y", "row") or array.shape != X.shape[-1:] or " since " in str(array.attrs.get("units", "")):
            continue
        if not inputs or not dims_of(array) or dims_of(array) == inputs:
            place = str(array.store_path)
            check_held(checked(array, place), place, MOST_DECLARED)
            values = np.asarray(read_rows(whole(array), 0, array.shape[0]))
            found[key] = values.astype(object) if values.dtype.kind == "T" else values
    return found


def coords_of(path: str, group: Any, X: Any, target: str) -> Coords:
    """The coordinates of the array X of a group; none if its dimensions have no names."""
    dims = dims_of(X)
    if group is None or len(dims) != 2 or not hasattr(X, "chunks"):
        return NO_COORDS
    _refuse_transposed(path, group, dims, target)
    listed = f"{group.attrs.get('coordinates', '')} {X.attrs.get('coordinates', '')}".split()
    rows = {
        key: array
        for key, array in sorted(group.arrays())
        if dims_of(array) == dims[:1] and (key == dims[0] or key in listed) and array.dtype.kind in "fiub" + TEXT_KINDS
    }
    inputs = {key: values for key, values in input_coords(group, X).items() if values.dtype.kind in "fiub" + TEXT_KINDS}
    index = inputs.get(dims[1])
    texts = [] if index is None else index.tolist()
    names = texts if texts and all(isinstance(t, str) for t in texts) and len(set(texts)) == len(texts) else None
    kept = {key: values for key, values in inputs.items() if names is None or key != dims[1]}
    return Coords(rows, kept, names)


def _refuse_transposed(path: str, group: Any, dims: tuple[str, ...], target: str) -> None:
    """Rows come first; the target's dimension tells which one is the rows."""
    given = dims_of(group[target]) if target in group and hasattr(group[target], "shape") else ()
    if given and given[0] == dims[1] != dims[0]:
        raise SourceError(
            f"{path!r} has X with dims ({', '.join(dims)}), and {target} has dim {given[0]!r}; rows come first: "
            f"save X.transpose({dims[1]!r}, {dims[0]!r})"
        )
