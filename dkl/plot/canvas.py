"""What several pictures need to know of a model, and the ticks of their axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.kernels import Kernel, find_kernel


def history_of(model: Any) -> Any:
    """history_ of a fitted model, or None."""
    check_is_fitted(model)
    return getattr(model, "history_", None)


def start_sigma(model: Any) -> np.ndarray | None:
    """sigma at the first iteration of the start that won, or None if nothing was learned."""
    if (history := history_of(model)) is None or "sigma" not in history:
        return None
    begun = (np.asarray(history["stage"]) == 0) & (np.asarray(history["start"]) == winner(history))
    return np.asarray(history["sigma"])[np.argmax(begun)]


def winner(history: Any) -> int:
    """Number of the start that was continued: the one that ended lowest."""
    first = np.asarray(history["stage"]) == 0
    start, objective = np.asarray(history["start"])[first], np.asarray(history["objective"])[first]
    return int(start[np.argmin(objective)])


def set_ticks(axis: Any, values: np.ndarray) -> None:
    """Plain numbers on a logarithmic axis: 1, 2 and 5 of each decade if there are few, all of them within one."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter

    span = float(values.max() / values.min())
    decade = (1.0, 2.0, 5.0) if span < 300 else (1.0,)
    axis.set_major_locator(MaxNLocator(6) if span < 5 else LogLocator(subs=decade))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


def unit_of(model: Any) -> str:
    """The unit of 1 / sigma."""
    kernel = kernel_of(model)
    if kernel.additive is not None:
        return "the root of the input"
    return f"log(1 + x / {model.skew:g})" if kernel.skewed else "the input"


def kernel_of(model: Any) -> Kernel:
    """The kernel of a model that has one."""
    if not hasattr(model, "kernel"):
        raise ValueError(f"{type(model).__name__} has no kernel of its own; plot its `features`")
    return find_kernel(model.kernel)
