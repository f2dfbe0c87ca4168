"""The kernel along some inputs, exact and by random features."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from dkl.checks import check_choice
from dkl.estimators.input_info import bars_of
from dkl.features.fourier import FourierMap
from dkl.features.slices import exact_slice, random_slice, slice_range
from dkl.kernels import is_for_histograms
from dkl.plot.canvas import kernel_of, start_sigma
from dkl.plot.style import GREY, axes_of, colour, drawn, label, legend_above

DOTS = (0, (1.5, 1))


@drawn
def plot_kernel(model: Any, ax: Any = None, inputs: Any = None) -> Any:
    """k(delta e_j) against delta: exact as a wide line, psi(delta e_j)'psi(0) as a thin one; the start is dashed.

    inputs : numbers or names; None takes the largest sigma of each group, for at most three groups. A skewed kernel is
    not a function of delta, so k(delta e_j, 0) is drawn. A line at the foot shows the range of each input (for
    histograms, its values); it is thick up to the root mean square distance of two rows. learn="frequencies" has an
    exact kernel only at its start; landmarks and the models of dkl.exact have only the exact kernel.
    """
    names = bars_of(model, "input")[0]
    kernel, skew, sigma = kernel_of(model), float(model.skew), model.sigma_
    features = getattr(model, "features_", None)
    features = features if isinstance(features, FourierMap) else None
    chosen = _chosen(inputs, names, sigma * getattr(model, "input_spread_", 1.0), model.groups_)
    start, moved = start_sigma(model), getattr(model, "_moves_frequencies", False)
    delta = slice_range(kernel, skew, (sigma if start is None or sigma[chosen].any() else start)[chosen])
    ax = axes_of(ax)
    for i, j in enumerate(chosen):
        tint = colour(i)
        began = "" if start is None or moved else f" from {start[j]:.3g}"
        name = f"{label(f'input {names[j]}')}: sigma {sigma[j]:.3g}{began}"
        if not moved:
            wide = exact_slice(kernel, skew, sigma[j], delta)
            ax.plot(delta, wide, color=tint, linewidth=4, alpha=0.35, label="_" if features else name)
        if features:
            ax.plot(delta, random_slice(features, j, delta), color=tint, linewidth=1.3, label=name)
        if start is None:
            continue
        ax.plot(delta, exact_slice(kernel, skew, start[j], delta), color=tint, linewidth=4, alpha=0.2, linestyle=DOTS)
        if features and not moved:
            before = random_slice(replace(features, sigma=start), j, delta)
            ax.plot(delta, before, color=tint, linewidth=1, linestyle="--")
    _mark_range(ax, model, chosen)
    ax.plot([], [], color=GREY, linewidth=4, alpha=0.35, label="exact")
    if features:
        ax.plot([], [], color=GREY, linewidth=1.3, label="random features")
    if start is not None:
        style = {"linewidth": 1, "linestyle": "--"} if features else {"linewidth": 4, "alpha": 0.2, "linestyle": DOTS}
        ax.plot([], [], color=GREY, label="at the start", **style)
    if kernel.skewed:
        ax.set_xscale("symlog", linthresh=skew)
    against = r"$k(\delta\, e_j, 0)$" if is_for_histograms(kernel.name) else r"$k(\delta\, e_j)$"
    ax.set(xlabel=r"$\delta$, in units of the input", ylabel=against, xlim=(0, delta[-1]))
    ax.axhline(0, color=GREY, linewidth=0.7, zorder=0)
    legend_above(ax)
    return ax


def _mark_range(ax: Any, model: Any, chosen: list[int]) -> None:
    """Lines at the foot: distances of rows along an input, or for histograms their values."""
    if not hasattr(model, "input_range_"):
        return
    place, from_zero = ax.get_xaxis_transform(), is_for_histograms(model.kernel)
    for i, j in enumerate(chosen):
        low, high = model.input_range_[:, j]
        ends, y, tint = ([low, high] if from_zero else [0.0, high - low]), 0.02 + 0.025 * i, colour(i)
        ax.plot(ends, [y, y], color=tint, linewidth=1.2, transform=place, label="_", solid_capstyle="butt")
        if not from_zero:
            far = [0.0, np.sqrt(2) * model.input_spread_[j]]
            ax.plot(far, [y, y], color=tint, linewidth=4, transform=place, label="_", solid_capstyle="butt")
    ax.plot([], [], color=GREY, linewidth=1.2, label="range of the data")


def _chosen(inputs: Any, names: list[str], sigma: np.ndarray, groups: np.ndarray) -> list[int]:
    """Numbers of the inputs whose kernel is drawn."""
    if inputs is None:
        order = np.argsort(-sigma, kind="stable")
        return order[np.sort(np.unique(groups[order], return_index=True)[1])[:3]].tolist()
    asked = [inputs] if isinstance(inputs, str) or not isinstance(inputs, Iterable) else list(inputs)
    chosen = [names.index(check_choice("inputs", j, names)) if isinstance(j, str) else int(j) for j in asked]
    if not chosen or min(chosen) < 0 or max(chosen) >= len(names):
        raise ValueError(f"inputs={inputs!r} must name some of the inputs, numbered 0 to {len(names) - 1}")
    return chosen
