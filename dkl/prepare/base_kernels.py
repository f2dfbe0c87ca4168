"""The kernels of a sum, from an estimator's parameters: each kernel of the list on each channel of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dkl.checks import check_nonnegative, check_positive
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.features.base_kernel import BaseKernel
from dkl.kernels import find_kernel
from dkl.prepare.scales import find_sigma, group_index
from dkl.prepare.targets import sum_small
from dkl.sums.tree import TreeProgram

DEFAULT = tuple(("gaussian", f"scale*{factor:g}") for factor in (0.25, 0.5, 1, 2, 4))
"""What kernels=None stands for."""
PRECOMPUTED = "precomputed"
N_TERMS = 5
"""Terms of the additive map that finds the scale of an exponentiated kernel."""


def check_kernels(name: str, value: Any) -> None:
    """None, "precomputed", or a list of names and (name, sigma) pairs."""
    if value is None or (isinstance(value, str) and value == PRECOMPUTED):
        return
    if isinstance(value, str) or not isinstance(value, Sequence) or not len(value):
        raise ValueError(
            f"{name}={value!r} must be a list of kernels, e.g. [('gaussian', 0.5), ('laplacian', 'scale')], or "
            f"{PRECOMPUTED!r}"
        )
    for kernel, sigma in pairs_of(value):
        find_kernel(kernel)
        factor_of(sigma)


def pairs_of(kernels: Any) -> list[tuple[str, Any]]:
    """(name, sigma) of each; a name alone has the scale of the data."""
    pairs: list[tuple[str, Any]] = []
    for one in DEFAULT if kernels is None else kernels:
        if isinstance(one, str):
            pairs.append((one, "scale"))
        elif isinstance(one, (tuple, list)) and len(one) == 2:
            pairs.append((one[0], one[1]))
        else:
            raise ValueError(f"kernels has {one!r}; give a name or a pair, e.g. ('gaussian', 0.5)")
    return pairs


def factor_of(sigma: Any) -> float | None:
    """2.0 of "scale*2" and 1.0 of "scale"; None of numbers."""
    if not isinstance(sigma, str):
        check_nonnegative("sigma", sigma)
        return None
    word, star, number = sigma.partition("*")
    try:
        if word.strip() == "scale":
            return check_positive("sigma", float(number)) if star else 1.0
    except ValueError:
        pass
    raise ValueError(f"sigma={sigma!r} is not known; give numbers, 'scale', or a multiple of it, e.g. 'scale*2'")


def channels_of(channels: Any, m: int, coords: Any) -> list[np.ndarray]:
    """The inputs of each channel: slices or lists of columns, which may overlap; or labels, "each", a coordinate."""
    listed = isinstance(channels, (list, tuple)) and any(isinstance(c, slice) or np.ndim(c) == 1 for c in channels)
    if not listed:
        index = group_index(channels, m, coords, "channels")
        return [np.flatnonzero(index == i) for i in range(int(index.max()) + 1)]
    found = []
    for one in channels:
        try:
            inputs = np.arange(m)[one if isinstance(one, slice) else np.asarray(one)]
        except (IndexError, TypeError):
            inputs = np.empty(0, int)
        if not inputs.size or inputs.ndim != 1:
            raise ValueError(f"channels has {one!r}, which is empty or names no input; X has inputs 0 to {m - 1}")
        found.append(inputs)
    return found


def base_kernels(
    kernels: Any, channels: Any, skew: float, rows: Table, weight: Table | None, coords: Any
) -> tuple[BaseKernel, ...]:  # fmt: skip
    """Every kernel on every channel, those of the first channel first."""
    found = []
    for inputs in channels_of(channels, rows.array.shape[1], coords):
        own = Table("memory", rows.array[:, inputs])

        def moments(program: TreeProgram, own: Table = own) -> Any:
            return sum_small(program, [own, weight], ["X", "sample_weight"], Progress(0))

        for name, sigma in pairs_of(kernels):
            factor = factor_of(sigma)
            wanted = sigma if factor is None else "scale"
            params = {"kernel": name, "sigma": wanted, "groups": None, "skew": skew, "n_terms": N_TERMS}
            scaled = find_sigma(params, len(inputs), {}, moments, lifted=False)
            found.append(BaseKernel(scaled.kernel, scaled.skew, scaled.sigma * (factor or 1.0), inputs))
    return tuple(found)
