"""The map of a fit that may be resumed: drawn once, kept with its seed, and taken from there the next time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dkl.features.stored import restore_map, store_map
from dkl.prepare.input_ranges import Extent
from dkl.store.checkpoint import Checkpoint

Drawn = tuple[Any, np.ndarray, int, np.ndarray, Extent | None]


def kept_map(checkpoint: Checkpoint | None, params: dict | None, make: Callable[[], Drawn]) -> Drawn:
    """(map, groups, seed, squares and extent of inputs) of the checkpoint; if it has none, they are made and kept."""
    if checkpoint is None:
        return make()
    known = checkpoint.prepared()
    if known is not None:
        about, arrays = known
        extent = Extent(*arrays["extent"]) if "extent" in arrays else None
        return restore_map(about, arrays, params), arrays["groups"], int(about["seed"]), arrays["squares"], extent
    if checkpoint.newest() or checkpoint.newest("step"):
        raise ValueError(f"checkpoint {checkpoint.folder.path!r} is damaged: it has sums but not their map; remove it")
    features, groups, seed, squares, extent = make()
    about, parts = store_map(features)
    parts |= {"groups": (("input",), groups), "squares": (("square",), squares)}
    if extent is not None:
        parts["extent"] = ("part", "input"), np.stack(extent)
    checkpoint.save_prepared({**about, "seed": seed}, parts)
    return features, groups, seed, squares, extent
