"""Matrices of a recipe: arrays in the group `recipe` of a data set. The recipe itself holds their digests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dkl.sources.damage import Damaged, read_rows
from dkl.sources.safe_zarr import check_held, member
from dkl.sources.whole import whole

GROUP, RECIPE = "recipe", "recipe_"
"""The group of a data set, and the prefix in a model."""
Matrices = Mapping[str, np.ndarray]
"""Matrices by the names that they have on disk."""


def matrix_name(channel: int) -> str:
    """The name of a channel's matrix."""
    return f"whitening{channel}"


def matrices_in(group: Any, place: str) -> dict[str, Any]:
    """The arrays that the recipe of a data set, or of one split of it, names; no row of them is read."""
    recipe = group.attrs.get("recipe")
    channels = recipe.get("channels") if isinstance(recipe, dict) else None
    known = [c.get("whitening") if isinstance(c, dict) else None for c in _listed(channels)]
    names = [matrix_name(i) for i, one in enumerate(known) if one is not None]
    if names and group.attrs.get("splits"):
        split = group.attrs["splits"][0]
        group, place = group[split], f"{place.rstrip('/')}/{split}"
    found = {}
    for name in names:
        own = f"{GROUP}/{name}"
        try:
            array = member(group, own, place)
        except KeyError:
            raise Damaged(f"{place!r} has no array {own!r}; copy it again, or ingest the source again") from None
        check_held(array, f"{place}/{own}")
        found[name] = whole(array)
    return found


def _listed(value: Any) -> list[Any]:
    """A list as it is; nothing of a damaged recipe."""
    return value if isinstance(value, list) else []


def read_matrices(arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Their values; a damaged chunk is refused by name."""
    return {name: read_rows(array, 0, array.shape[0]) for name, array in arrays.items()}
