"""Inputs that share a sigma need similar scales: warn if some are too small to matter to the kernel.

The size of an input is its standard deviation, or a tenth of its range if that is larger: a pixel that is rarely lit
and a rare category have a small deviation in the same unit as their neighbours. An input
is hidden if both its size and its deviation are below a tenth of the largest in its group: after standardising, none
is. Some hidden inputs are normal (the margins of images), above all those with rare entries (a deviation below a tenth
of the range); the others are called steady. The warning comes if more than a quarter of the inputs are hidden, if more
than an eighth are hidden and steady, or if the sorted sizes of the steady ones have a tenfold gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dkl.checks import warn_user
from dkl.kernels import Kernel
from dkl.sums.input_moments import InputMoments
from dkl.sums.targets import LEAST

FACTOR = 10.0
"""Sizes that differ by a larger factor are not similar; a range of more deviations means rare entries."""
HIDDEN_SHARE, STEADY_SHARE = 1 / 4, 1 / 8
"""Shares of the varying inputs that may be hidden, and hidden and steady."""
SMALLEST = 1e-140
"""Squares of smaller entries underflow in float64."""


def refuse_lost(found: InputMoments, groups: np.ndarray, m: int) -> None:
    """Refuse a group of inputs whose squares all underflow in float64: it would look constant."""
    most = np.maximum(np.abs(found.low), np.abs(found.high)).reshape(-1, m).max(axis=0)
    variance = found.variance.reshape(-1, m).sum(axis=0)
    for g in range(int(groups.max()) + 1):
        inputs = np.flatnonzero(groups == g)
        largest = float(most[inputs].max())
        if 0 < largest < SMALLEST and variance[inputs].sum() < LEAST:
            raise ValueError(
                f"X is so small (at most {largest:.3g} in input {inputs[int(most[inputs].argmax())]}) that its "
                "variance underflows in float64; multiply X by a constant"
            )


def warn_hidden(
    kernel: Kernel,
    found: InputMoments,
    groups: np.ndarray,
    coords: Mapping[str, Any],
    instead: str = "groups='each'",
) -> None:
    """Warn of inputs that a shared sigma hides; histogram kernels are exempt, as shares have one unit."""
    if kernel.additive is not None or kernel.skewed:
        return
    deviation = np.sqrt(found.variance)
    reach = (found.high - found.low) / FACTOR
    for g in range(int(groups.max()) + 1):
        inputs = np.flatnonzero((groups == g) & (deviation > 0))
        if len(inputs) > 1 and _scales_differ(deviation[inputs], reach[inputs]):
            size = np.maximum(deviation, reach)[inputs]
            _warn(inputs, size, _hidden(deviation[inputs], size), _names(coords, len(groups)), instead)


def _scales_differ(deviation: np.ndarray, reach: np.ndarray) -> bool:
    steady, hidden = deviation >= reach, _hidden(deviation, np.maximum(deviation, reach))
    if hidden.mean() > HIDDEN_SHARE or (hidden & steady).mean() > STEADY_SHARE:
        return True
    sizes = np.sort(deviation[steady])
    return bool((sizes[1:] > FACTOR * sizes[:-1]).any())


def _hidden(deviation: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Inputs that hardly change the kernel beside the largest one."""
    return np.asarray((size < size.max() / FACTOR) & (deviation < deviation.max() / FACTOR))


def _names(coords: Mapping[str, Any], m: int) -> list[str]:
    """A label for each input: the first coordinate of distinct texts, else its number."""
    for values in coords.values():
        if len(values) == m and all(isinstance(v, str) for v in values) and len(set(values)) == m:
            return [repr(str(v)) for v in values]
    return [f"input {i}" for i in range(m)]


def _warn(inputs: np.ndarray, size: np.ndarray, hidden: np.ndarray, names: list[str], instead: str) -> None:
    low, high, others = int(np.where(hidden, size, np.inf).argmin()), int(size.argmax()), int(hidden.sum()) - 1
    more = f" (and {others} more)" if others > 0 else ""
    factor = f"{float(f'{size[high] / size[low]:.2g}'):,.15g}-fold"
    warn_user(
        f"one sigma is shared by inputs whose spreads differ {factor}: {names[inputs[high]]} "
        f"has {size[high]:.3g}, {names[inputs[low]]}{more} {size[low]:.3g}, which hardly changes the kernel; "
        f"use {instead}, or standardise the inputs (dkl ingest --scale standard)"
    )
