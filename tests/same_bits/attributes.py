"""Fitted attributes as named arrays, so that two versions of the code can be compared bit by bit.

Only public names and files are read, so the same code serves every version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np


def flat(name: str, value: Any, without: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Arrays of a value, by name; tables have one for each column. Objects of other kinds have none."""
    if hasattr(value, "compute"):
        value = value.compute()
    if hasattr(value, "data_vars"):
        value = {str(column): value[column].values for column in value.variables}
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        value = {part: getattr(rows, part) for part in ("data", "indices", "indptr")}
    if isinstance(value, dict):
        parts = [flat(f"{name}.{key}", part, without) for key, part in value.items() if key not in without]
        return {key: array for part in parts for key, array in part.items()}
    if isinstance(value, list) and not all(isinstance(part, (bool, int, float, str)) for part in value):
        value = json.dumps(value, sort_keys=True)
    if not isinstance(value, (bool, int, float, str, list, np.ndarray, np.generic)):
        return {}
    return {name: without_objects(np.asarray(value))}


def without_objects(array: np.ndarray) -> np.ndarray:
    """Objects and texts of any width as texts of one width, which npz takes; the first one says what they were."""
    if array.dtype.kind not in "OT":
        return array
    return np.array([repr(array.dtype), *map(str, array.ravel().tolist())])


def fitted(model: Any, without: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Every fitted attribute: names that end in an underscore."""
    found: dict[str, np.ndarray] = {}
    for name, value in sorted(vars(model).items()):
        if name.endswith("_") and not name.startswith("_"):
            found |= flat(name, value, without)
    return found


def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
    """What a fitted model says of rows: everything, and of rows in memory the kernel of the first few."""
    found: dict[str, np.ndarray] = {}
    for name in ("predict", "decision_function", "transform"):
        if hasattr(model, name):
            found |= flat(name, getattr(model, name)(X))
    if hasattr(model, "kernel_matrix") and not isinstance(X, str):
        found |= flat("kernel_matrix", model.kernel_matrix(X[:8]))
    return found


def stored(path: Any, without: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Every array of a Zarr folder, by its path there."""
    import zarr

    arrays = (file.parent for file in sorted(Path(path).rglob("zarr.json")))
    found = {}
    for place in arrays:
        name = str(place.relative_to(path))
        if json.loads((place / "zarr.json").read_text())["node_type"] == "array" and name not in without:
            found[f"stored.{name}"] = without_objects(np.asarray(zarr.open_array(str(place), mode="r")[...]))
    return found
