"""The frequencies of a network before and after training, as an xarray Dataset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dkl.estimators.input_info import input_coords
from dkl.features.fourier import FourierMap
from dkl.prepare.prepared import Prepared


def spectrum_of(model: Any, data: Prepared, features: FourierMap) -> Any:
    """Frequencies in radians per unit of X, and phases, at the start (of the first fit, if it goes on) and learned."""
    import xarray as xr

    first = data.features
    assert isinstance(first, FourierMap)
    if model._goes_on:
        begun = model.spectrum_["start"].values / first.wide_sigma[:, None]
        first = replace(first, unit=begun, phase=model.spectrum_["phase_start"].values)
    dim = "input" if features.n_terms == 1 else "column"
    about = {
        "frequency": ((dim, "cosine"), features.wide_sigma[:, None] * features.unit, "learned frequency"),
        "start": ((dim, "cosine"), first.wide_sigma[:, None] * first.unit, "frequency at the start"),
        "phase": (("cosine",), features.phase, "learned phase, in turns"),
        "phase_start": (("cosine",), first.phase, "phase at the start, in turns"),
    }
    coords = input_coords(data.X, getattr(model, "feature_names_in_", None), data.groups, about)
    along = {name: (("input",), np.asarray(values)) for name, values in coords.items()} if dim == "input" else {}
    variables = {name: (dims, values, {"long_name": said}) for name, (dims, values, said) in about.items()}
    return xr.Dataset(variables, coords=along)
