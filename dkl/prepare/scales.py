"""Where sigma starts: the groups of the inputs, and the spread of what the kernel sees of each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.checks import check_count, check_nonnegative, check_positive, warn_user
from dkl.features.additive import AdditiveMap
from dkl.kernels import Kernel, find_kernel
from dkl.prepare.additive import check_additive, make_additive, method_of
from dkl.prepare.hidden_inputs import refuse_lost, warn_hidden
from dkl.sums.histogram import HistogramProgram
from dkl.sums.input_moments import InputMoments, MomentProgram


def group_index(groups: Any, m: int, coords: Any, name: str = "groups") -> np.ndarray:
    """Group number of each input, for None (one group), 'each', labels, slices, or the name of a coordinate."""
    if groups is None:
        return np.zeros(m, int)
    if isinstance(groups, str):
        if groups == "each":
            return np.arange(m)
        if groups not in coords:
            raise ValueError(
                f"{name}={groups!r} is not a coordinate of the inputs; there are {sorted(coords)} and 'each'"
            )
        return np.unique(coords[groups], return_inverse=True)[1]
    if np.ndim(groups) == 0:
        raise ValueError(
            f"{name}={groups!r} must be None, 'each', a label for each input, slices, or a coordinate's name"
        )
    if any(isinstance(g, slice) for g in groups):
        index = np.full(m, -1)
        for i, g in enumerate(groups):
            if not index[g].size or (index[g] >= 0).any():
                raise ValueError(f"{name} has {g}, which is empty or overlaps another; let slices part the {m} inputs")
            index[g] = i
        if (index < 0).any():
            raise ValueError(
                f"{name} leaves input {int(np.argmax(index < 0))} out; let the slices cover all {m} inputs"
            )
        return index
    labels = np.asarray(groups)
    if labels.shape != (m,):
        raise ValueError(f"{name} has shape {labels.shape}, but X has {m} inputs; give one label for each")
    return np.unique(labels, return_inverse=True)[1]


def spread_sigma(sigma: Any, index: np.ndarray) -> np.ndarray:
    """sigma of each input from one shared value, one of each group, or one of each input."""
    values = check_nonnegative("sigma", sigma)
    m, r = len(index), int(index.max()) + 1
    if values.ndim == 0:
        return np.full(m, float(values))
    if values.shape == (r,):
        return values[index]
    if values.shape == (m,):
        return values
    raise ValueError(
        f"sigma has shape {values.shape}; give one value, {r} (one for each group) or {m} (one for each input)"
    )


class Scaled(NamedTuple):
    """Kernel, skew, additive map (of an exponentiated kernel), sigma and group of each input."""

    kernel: Kernel
    skew: float
    additive: AdditiveMap | None
    sigma: np.ndarray
    groups: np.ndarray


def find_sigma(params: dict, m: int, coords: Any, moments: Any, lifted: bool = True) -> Scaled:
    """The kernel of an estimator's parameters and sigma of each input.

    `moments(program)` sums over X: if sigma='scale', and for an exponentiated kernel.
    lifted: the additive map is needed too.
    """
    kernel, c = check_kernel(params)
    look = lifted or isinstance(params["sigma"], str)
    additive = additive_of(kernel, params["n_terms"], m, moments) if look else None
    sigma, index = params["sigma"], group_index(params["groups"], m, coords)
    if isinstance(sigma, str):
        sigma = scale_of_groups(kernel, moments(MomentProgram(kernel, c, additive)), index, coords)
    return Scaled(kernel, c, additive, spread_sigma(sigma, index), index)


def scale_of_groups(
    kernel: Kernel, found: InputMoments, index: np.ndarray, coords: Any, instead: str = "groups='each'"
) -> np.ndarray:
    """sigma of each group of inputs from their moments; `instead` is what one may use if they spread differently."""
    m = len(index)
    if not found.weight:
        raise ValueError(
            f"sample_weight is zero for every row (a total of {found.weight:g}); give some a positive weight"
        )
    if not np.isfinite(found.variance).all():
        raise ValueError(
            f"X is so large (up to {np.abs(found.high).max():.3g}) that its variance is infinite in float64; "
            "rescale it, or give sigma a number"
        )
    refuse_lost(found, index, m)
    if not (found.variance > 0).any():
        warn_user("no input of X varies, so sigma='scale' has nothing to go by; give sigma a number, or more rows")
    warn_hidden(kernel, found, index, coords, instead)
    return start_of_groups(kernel, found.variance.reshape(-1, m).sum(axis=0), index)


def additive_of(kernel: Kernel, n_terms: int, m: int, look: Any) -> AdditiveMap | None:
    """The additive map of an exponentiated kernel, from a histogram of the entries; None for the others."""
    if kernel.additive is None:
        return None
    program = HistogramProgram(f"kernel={kernel.name!r}")
    return make_additive(kernel.additive, method_of(kernel.additive), n_terms, "fitted", m, lambda: look(program))


def _start(kernel: Kernel, variance: np.ndarray) -> float:
    return kernel.start_sigma(variance, np.sqrt(variance))


def start_of_groups(kernel: Kernel, variance: np.ndarray, index: np.ndarray) -> np.ndarray:
    """sigma of each group at which all that vary have the same share in a mean exponent of about one."""
    total = np.bincount(index, np.sqrt(variance) if kernel.mean_absolute else variance)
    varies, power = total > 0, 1 if kernel.mean_absolute else 2
    own = (max(1, varies.sum()) * np.where(varies, total, 1.0)) ** (-1 / power)
    return np.where(varies, own, _start(kernel, variance))


def check_kernel(params: dict) -> tuple[Kernel, float]:
    """The kernel and its skew constant."""
    kernel = find_kernel(params["kernel"])
    if kernel.additive is not None:
        check_additive(kernel.additive, method_of(kernel.additive), params["n_terms"], "fitted")
    check_count("n_terms", params["n_terms"])
    return kernel, check_positive("skew", params["skew"])
