"""The map of a fit that may be resumed: drawn once, kept with its seed, and taken from there the next time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkl.features.additive import as_plain, from_plain
from dkl.features.fourier import FourierMap
from dkl.kernels import find_kernel
from dkl.store.checkpoint import Checkpoint

Drawn = tuple[FourierMap, np.ndarray, int, np.ndarray]


def kept_map(checkpoint: Checkpoint | None, params: dict, make: Callable[[], Drawn]) -> Drawn:
    """(map, groups, seed, squares of the inputs) of the checkpoint; if it has none they are made, and kept there."""
    if checkpoint is None:
        return make()
    known = checkpoint.prepared()
    if known is not None:
        about, arrays = known
        kernel = find_kernel(params["kernel"])
        parts = arrays["unit"], arrays["sigma"], arrays["phase"]
        features = FourierMap(kernel, *parts, float(about["skew"]), params["form"], from_plain(about.get("additive")))
        return features, arrays["groups"], int(about["seed"]), arrays["squares"]
    if checkpoint.newest() or checkpoint.newest("step"):
        raise ValueError(f"checkpoint {checkpoint.folder.path!r} is damaged: it has sums but not their map; remove it")
    features, groups, seed, squares = make()
    arrays = {"unit": features.unit, "sigma": features.sigma, "phase": features.phase, "groups": groups}
    arrays["squares"] = squares
    rows = "input" if features.n_terms == 1 else "column"
    axes = {"unit": (rows, "frequency"), "sigma": ("input",), "phase": ("phase",), "groups": ("input",)}
    axes["squares"] = ("square",)
    about = {"skew": float(params["skew"]), "seed": seed, "additive": as_plain(features.additive)}
    checkpoint.save_prepared(about, {name: (axes[name], array) for name, array in arrays.items()})
    return features, groups, seed, squares
