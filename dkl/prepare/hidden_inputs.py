"""Inputs that share a sigma must be of like size: warn when some are too small for the kernel to see.

The size of an input is its standard deviation, or a tenth of its range if that is more: a pixel that is hardly ever lit
and a rare category have a small deviation in the same unit as their neighbours. An input is hidden if its size is below
a tenth of the largest in its group. Some hidden inputs are ordinary (the margins of pictures), above all those with
rare entries (a deviation below a tenth of the range). So the warning comes if more than a quarter of the inputs are
hidden; if more than an eighth are, of those that have no rare entries; or if there is a tenfold gap between the sizes
of two neighbours among these.
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
"""Sizes that differ by more are not alike, and a range of more deviations than this is that of a rare event."""
HIDDEN_SHARE, STEADY_SHARE = 1 / 4, 1 / 8
"""Inputs that may be hidden, of all that vary: any, and those without rare entries."""
SMALLEST = 1e-140
"""Entries below it have squares that float64 loses."""


def refuse_lost(found: InputMoments, groups: np.ndarray, m: int) -> None:
    """Refuse a group of inputs whose squares are all below float64's range: it would look constant."""
    most = np.maximum(np.abs(found.low), np.abs(found.high)).reshape(-1, m).max(axis=0)
    variance = found.variance.reshape(-1, m).sum(axis=0)
    for g in range(int(groups.max()) + 1):
        inputs = np.flatnonzero(groups == g)
        largest = float(most[inputs].max())
        if 0 < largest < SMALLEST and variance[inputs].sum() < LEAST:
            raise ValueError(
                f"X is so small (at most {largest:.3g} in input {inputs[int(most[inputs].argmax())]}) that its "
                "variance is zero in float64; multiply it by a constant"
            )


def warn_hidden(kernel: Kernel, found: InputMoments, groups: np.ndarray, coords: Mapping[str, Any]) -> None:
    """Say which inputs a shared sigma hides; kernels of histograms compare shares, which have one unit."""
    if kernel.additive is not None or kernel.skewed:
        return
    deviation = np.sqrt(found.variance)
    reach = (found.high - found.low) / FACTOR
    for g in range(int(groups.max()) + 1):
        inputs = np.flatnonzero((groups == g) & (deviation > 0))
        if len(inputs) > 1 and _scales_differ(deviation[inputs], reach[inputs]):
            _warn(inputs, deviation[inputs], np.maximum(deviation, reach)[inputs], _names(coords, len(groups)))


def _scales_differ(deviation: np.ndarray, reach: np.ndarray) -> bool:
    size, steady = np.maximum(deviation, reach), deviation >= reach
    hidden = size < size.max() / FACTOR
    if hidden.mean() > HIDDEN_SHARE or (hidden & steady).mean() > STEADY_SHARE:
        return True
    sizes = np.sort(deviation[steady])
    return bool((sizes[1:] > FACTOR * sizes[:-1]).any())


def _names(coords: Mapping[str, Any], m: int) -> list[str]:
    """What to call each input: the first coordinate of different texts, else its number."""
    for values in coords.values():
        if len(values) == m and all(isinstance(v, str) for v in values) and len(set(values)) == m:
            return [repr(str(v)) for v in values]
    return [f"input {i}" for i in range(m)]


def _warn(inputs: np.ndarray, deviation: np.ndarray, size: np.ndarray, names: list[str]) -> None:
    low, high = int(size.argmin()), int(size.argmax())
    others = int((size < size[high] / FACTOR).sum()) - 1
    hidden = f" (and {others} more)" if others > 0 else ""
    warn_user(
        f"one sigma is shared by inputs whose spreads differ {size[high] / size[low]:.2g}-fold: {names[inputs[high]]} "
        f"has {deviation[high]:.3g}, {names[inputs[low]]}{hidden} {deviation[low]:.3g}, which the kernel hardly sees; "
        "use groups='each', or standardise the inputs (dkl ingest --scale standard)"
    )
