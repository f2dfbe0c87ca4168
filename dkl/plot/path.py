"""The path of several kernels, and the weights of the one point that the model has."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.estimators.group_paths import names_of
from dkl.plot.canvas import GREY, axes_of, set_ticks

NAMED = 10
"""Kernels of a path that have a colour and a name: those with the largest weight at its end."""
TEXT_HEIGHT, BAR = 0.22, 0.8
"""Inches of a row of bars, and the share of it that is drawn."""


def plot_path(model: Any, ax: Any = None, output: Any = None) -> Any:
    """|w_g| of every kernel on every channel against alpha, from all to few; the mean error of the folds on the right.

    A line marks the alpha of the model; bars are the standard error over the folds. output : which path, of a model
    with by_output; None takes the first.
    """
    check_is_fitted(model, "path_")
    path, alpha, of = model.path_, model.alpha_, ""
    if "step" in path.dims:
        names = path["output"].values.tolist()
        if output is not None and output not in names:
            raise ValueError(f"output={output!r} has no path; there are {names}")
        i = 0 if output is None else names.index(output)
        path, alpha, of = path.isel(output=i), alpha[i], f" for output {names[i]}"
    elif output is not None:
        raise ValueError(f"output={output!r}: all outputs share one path; fit with by_output=True for one of each")
    ax = axes_of(ax, (6.4, 4.2))
    alphas, norms = np.asarray(path["alpha"]), np.asarray(path["norm"])
    order = np.argsort(-norms[-1], kind="stable")
    for place, g in enumerate(order.tolist()):
        used = place < NAMED and norms[:, g].any()
        style = {"color": f"C{place}", "label": str(path["group"].values[g])} if used else {"color": "0.8", "zorder": 1}
        ax.plot(alphas, norms[:, g], linewidth=1.5 if used else 0.8, **style)
    if others := int((norms[:, order[NAMED:]] > 0).any(axis=0).sum()):
        ax.plot([], [], color="0.8", label=f"{others} others")
    ax.axvline(alpha, color=GREY, linestyle=":", label=f"alpha = {alpha:.3g}")
    if "error" in path:
        _draw_errors(ax, alphas, np.asarray(path["error"]), "squared error" if model.loss == "square" else model.loss)
    if len(alphas) > 1:
        ax.set_xscale("log")
        set_ticks(ax.xaxis, alphas)
        ax.invert_xaxis()
    ax.set(xlabel="alpha", ylabel=f"|w| of each kernel{of}", ylim=(0, None))
    ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    return ax


def _draw_errors(ax: Any, alphas: np.ndarray, errors: np.ndarray, loss: str) -> None:
    """Mean and standard error of the folds, on an axis of its own."""
    right = ax.twinx()
    spread = errors.std(axis=1, ddof=1) / errors.shape[1] ** 0.5
    mean = errors.mean(axis=1)
    right.fill_between(alphas, mean - spread, mean + spread, color="0.3", alpha=0.15, linewidth=0)
    right.plot(alphas, mean, "--", color="0.3", linewidth=1.2)
    right.set(ylabel=f"{loss} of the folds (dashed)", ylim=(0, None))
    ax.plot([], [], "--", color="0.3", linewidth=1.2, label="error of the folds")


def plot_kernel_weights(model: Any, ax: Any = None) -> Any:
    """Bars of kernel_weights_: for each channel one of each kernel, beside each other; a cross for those left out.

    Of a model with by_output the largest weight over the outputs is drawn.
    """
    check_is_fitted(model, "kernel_weights_")
    weights = model.kernel_weights_
    names, values = names_of(weights), weights.values
    values = values if values.ndim == 2 else values.max(axis=0)
    channels, kernels = values.shape
    rows = channels * kernels
    ax = axes_of(ax, (6.4, float(np.clip(TEXT_HEIGHT * max(rows, 2 * channels) + 0.9, 2.4, 11))))
    y, height = np.arange(channels), BAR / kernels
    for k in range(kernels):
        at = y + (k - (kernels - 1) / 2) * height
        ax.barh(at, values[:, k], height, color=f"C{k % 10}", label=names.kernels[k])
        if (out := values[:, k] == 0).any():
            size = float(np.clip(72 * TEXT_HEIGHT * height, 1.5, 5))
            ax.plot(0 * at[out], at[out], "x", color=f"C{k % 10}", ms=size, clip_on=False, label="_")
    ax.set_yticks(y, names.channels, parse_math=False)
    ax.set_ylim(channels - 0.5, -0.5)
    ax.set_xlim(0, None if values.any() else 1)
    what = "weight d = |w| / sqrt(2)" + (", largest of the outputs" if weights.ndim == 3 else "")
    ax.set(xlabel=what + "; x: left out", ylabel="channel")
    ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    return ax
