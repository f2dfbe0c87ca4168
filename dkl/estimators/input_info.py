"""What is known of each input of a fitted model, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice
from dkl.prepare.input_ranges import Extent
from dkl.store.recipe import Recipe


def set_extent(model: Any, extent: Extent | None) -> None:
    """input_spread_ and input_range_, if a pass over X has seen them."""
    for name in ("input_spread_", "input_range_"):
        if hasattr(model, name):
            delattr(model, name)
    if extent is not None:
        model.input_spread_, model.input_range_ = extent.spread, np.stack([extent.low, extent.high])


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
