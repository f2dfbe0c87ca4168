"""What is known of each input of a fitted model, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice
from dkl.engine.tables import Table
from dkl.prepare.input_ranges import Extent
from dkl.store.recipe import Recipe


def set_or_delete(model: Any, name: str, value: Any) -> None:
    """An attribute that not every fit has: set, or deleted if there is nothing to set."""
    if value is not None:
        setattr(model, name, value)
    elif hasattr(model, name):
        delattr(model, name)


def set_extent(model: Any, extent: Extent | None) -> None:
    """input_spread_ and input_range_, if a pass over X has seen them."""
    set_or_delete(model, "input_spread_", None if extent is None else extent.spread)
    set_or_delete(model, "input_range_", None if extent is None else np.stack([extent.low, extent.high]))


def input_coords(table: Table, names: Any, groups: np.ndarray, columns: Iterable[str]) -> dict[str, Any]:
    """Coordinates along the inputs: those of xarray or of the data set, the columns of a dataframe, and the groups.

    A coordinate that has the name of a column of the history gets another one.
    """
    taken = {*columns, "iteration"}
    coords = {f"input_{name}" if name in taken else name: values for name, values in table.input_coords.items()}
    if "input" not in coords and names is not None:
        coords["input"] = np.asarray(names, np.str_)
    return coords if "group" in coords else {**coords, "group": groups}


def extent_at(model: Any) -> Extent | None:
    """What set_extent has set."""
    return Extent(model.input_spread_, *model.input_range_) if hasattr(model, "input_spread_") else None


def known_of_inputs(model: Any) -> dict[str, np.ndarray]:
    """Everything known of each input, by name: a data set's recipe, xarray's coordinates, columns, groups."""
    check_is_fitted(model, "sigma_")
    coords = model.history_.coords if hasattr(model, "history_") else {}
    named = ((str(name).replace("group", "group name"), c) for name, c in coords.items() if c.dims == ("input",))
    found = {name: np.asarray(c) for name, c in named}
    if hasattr(model, "feature_names_in_"):
        found.setdefault("input", np.asarray(model.feature_names_in_))
    recipe = Recipe.from_json(model.recipe_) if hasattr(model, "recipe_") else None
    if recipe is not None and recipe.n_inputs == len(model.sigma_):
        pairs = [(channel.name, name) for channel in recipe.channels for name in channel.names]
        found["channel"] = np.array([channel for channel, _ in pairs])
        found["input"] = np.array([name if len(recipe.channels) == 1 else " ".join((c, name)) for c, name in pairs])
    if "input" not in found:
        own = (c for c in found.values() if c.dtype.kind in "OU" and len(set(c.tolist())) == len(c))
        found["input"] = next(own, np.arange(len(model.sigma_)))
    return {**found, "group": np.asarray(model.groups_)}


def bars_of(model: Any, by: str) -> tuple[list[str], np.ndarray]:
    """Names of the bars, and the bar of each input; groups take the names of a coordinate that tells them apart."""
    coordinates = known_of_inputs(model)
    values = coordinates[check_choice("by", by, coordinates)]
    first = index = np.arange(len(values))
    if by != "input":
        first, index = np.unique(values, return_index=True, return_inverse=True)[1:]
    if by == "group" and len(first) == 1:
        return ["all inputs"], index
    if by == "group":  # the groups themselves stand last, so there is one
        alike = [c for c in coordinates.values() if len(set(c.tolist())) == len(first)]
        values = next(c for c in alike if len(set(zip(c.tolist(), index, strict=True))) == len(first))
    return [f"{values[i]:g}" if values.dtype.kind == "f" else str(values[i]) for i in first], index
