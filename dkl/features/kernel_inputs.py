"""T = t(X): a block in compute precision and in the kernel's variables, or a refusal that names the row."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import first_where
from dkl.features.additive import AdditiveMap, check_histograms, lift
from dkl.features.rows import Refusal, entry_ends, finite_inputs
from dkl.kernels import Kernel, skew


def kernel_inputs(X: Any, kernel: Kernel, c: float, dtype: np.dtype) -> Any:
    """What the exact kernel is a function of; entries that are not finite or outside its domain are refused."""
    if kernel.additive is not None:
        return check_histograms(X, f"kernel={kernel.name!r}", dtype)
    X = finite_inputs(X, dtype)
    if not kernel.skewed:
        return X
    least = 1e-6 * c - c
    low = first_where(X, lambda values: values <= least) if entry_ends(X)[0] <= least else None
    if low is not None:
        row, column, value = low
        raise Refusal(
            row,
            f"Negative values in data: {{name}} contains {value:g} at row {{row}}, column {{column}}; "
            f"kernel={kernel.name!r} needs entries above -skew = {-c:g}",
            column,
        )
    return skew(X, c)


def prepare_inputs(X: Any, kernel: Kernel, c: float, dtype: np.dtype, additive: AdditiveMap | None = None) -> Any:
    """t(X), of which the kernel is a function of differences; an exponentiated kernel sees the additive map of X."""
    T = kernel_inputs(X, kernel, c, dtype)
    return T if additive is None else lift(T, additive)
