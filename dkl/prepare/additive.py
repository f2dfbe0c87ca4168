"""The additive map of a method, from at most one pass over X."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkl.checks import check_choice, check_count
from dkl.features.additive import AdditiveMap, Chebyshev, Direct, Homogeneous
from dkl.kernels.additive import ADDITIVE
from dkl.solvers.nodes import (
    SPAN,
    central_scale,
    fitted_period,
    greedy_nodes,
    refined_nodes,
    sampled_weights,
    standard_period,
    zolotarev_nodes,
)
from dkl.sums.histogram import LogHistogram

METHODS = ("direct", "greedy", "zolotarev", "chebyshev", "homogeneous")
WINDOWS = ("fitted", "rectangular", "uniform")


def check_additive(kernel: str, method: str, n_terms: int, window: str) -> None:
    """Refuse options that are wrong for any X."""
    check_choice("kernel", kernel, ADDITIVE)
    check_choice("method", method, METHODS)
    check_choice("window", window, WINDOWS)
    check_count("n_terms", n_terms)
    if kernel != "chi2" and method != "homogeneous":
        raise ValueError(f"method={method!r} is a series of the chi2 kernel; use method='homogeneous' for {kernel!r}")
    if method == "homogeneous" and n_terms % 2 == 0:
        raise ValueError(
            f"n_terms={n_terms} of the homogeneous map of {kernel!r} must be odd (one constant, and pairs of cosine "
            "and "
            f"sine); use n_terms={n_terms + 1}"
        )


def method_of(kernel: str) -> str:
    """The best method for an additive kernel."""
    return "direct" if kernel == "chi2" else "homogeneous"


def make_additive(
    kernel: str, method: str, n_terms: int, window: str, inputs: int, look: Callable[[], LogHistogram]
) -> AdditiveMap:
    """The map; `look` is called for the histogram of X if the method needs it."""
    check_additive(kernel, method, n_terms, window)
    if method == "zolotarev":
        return Direct(zolotarev_nodes(SPAN, 1.0, n_terms))
    if method != "homogeneous":
        return _series(method, n_terms, inputs, look())
    which, count, smooth = ADDITIVE[kernel], n_terms // 2, window != "uniform"
    if kernel == "chi2" and window != "fitted" and count:
        period = standard_period(count, smooth)
    else:
        found = look()
        period = fitted_period(which, *_entries(found), count, inputs, smooth)
    return Homogeneous(sampled_weights(which, count, period, smooth), 2 * np.pi / period)


def _series(method: str, n_terms: int, inputs: int, found: LogHistogram) -> AdditiveMap:
    x, p = _entries(found)
    if method == "chebyshev":
        return Chebyshev(central_scale(x, p), n_terms)
    largest = found.largest or 1.0
    if method == "greedy":
        return Direct(greedy_nodes(x, p, largest, n_terms))
    return Direct(refined_nodes(x, p, largest, n_terms, inputs))


def _entries(found: LogHistogram) -> tuple[np.ndarray, np.ndarray]:
    """Positive entries and their shares; a single entry 1 if X has none."""
    return (found.middles, found.shares) if found.counts.any() else (np.ones(1), np.ones(1))
