"""The path of several kernels, and the weights of the one point that the model has."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_count
from dkl.estimators.group_paths import names_of
from dkl.plot.canvas import set_ticks
from dkl.plot.style import FAINT, GREY, axes_of, colour, drawn, label, legend_above, line

NAMED = 10
"""Kernels of a path that have a colour and a name: those with the largest weight at its end."""
TEXT_HEIGHT, BAR = 0.22, 0.8
"""Inches of a row of bars, and the share of it that is drawn."""


@drawn
def plot_path(model: Any, ax: Any = None, output: Any = None) -> Any:
    """|w_g| of every kernel on every channel against alpha, from all to few; the mean error of the folds on the right.

    A line marks the alpha of the model; bars are the standard error over the folds. output : which path, of a model
    with by_output; None takes the first. Of few features that were chosen among infinitely many, the number that is
    used is drawn.
    """
    _check_has(model, "path_", "was not fitted along a path of alpha")
    if "norm" not in model.path_:
        return _draw_used(model, axes_of(ax))
    path, alpha, of = model.path_, model.alpha_, ""
    if "step" in path.dims:
        names = path["output"].values.tolist()
        if output is not None and output not in names:
            raise ValueError(f"output={output!r} has no path; there are {names}")
        i = 0 if output is None else names.index(output)
        path, alpha, of = path.isel(output=i), alpha[i], f" for output {names[i]}"
    elif output is not None:
        raise ValueError(f"output={output!r}: all outputs share one path; fit with by_output=True for one of each")
    ax = axes_of(ax)
    alphas, norms = np.asarray(path["alpha"]), np.asarray(path["norm"])
    order = np.argsort(-norms[-1], kind="stable")
    for place, g in enumerate(order.tolist()):
        used = place < NAMED and norms[:, g].any()
        style = {**line(place), "label": label(path["group"].values[g])} if used else {"color": FAINT, "zorder": 1}
        ax.plot(alphas, norms[:, g], linewidth=1.5 if used else 0.8, **style)
    if others := int((norms[:, order[NAMED:]] > 0).any(axis=0).sum()):
        ax.plot([], [], color=FAINT, label=f"{others} others")
    ax.axvline(alpha, color=GREY, linestyle=":", label=f"alpha = {alpha:.3g}")
    if "error" in path:
        _draw_errors(ax, alphas, np.asarray(path["error"]), "squared error" if model.loss == "square" else model.loss)
    _alphas_from_large(ax, alphas)
    ax.set(xlabel="alpha", ylabel=f"|w| of each kernel{of}", ylim=(0, None))
    legend_above(ax, 3)
    return ax


def _draw_used(model: Any, ax: Any) -> Any:
    """Features that are used at each alpha, and the mean held-out loss if rows are held out."""
    path = model.path_
    alphas = np.asarray(path["alpha"])
    ax.plot(alphas, np.asarray(path["used"]), ".-", color=colour(0), label="features used")
    ax.axvline(model.alpha_, color=GREY, linestyle=":", label=f"alpha = {model.alpha_:.3g}")
    if "error" in path:
        _draw_errors(ax, alphas, np.asarray(path["error"])[:, None], "held-out loss")
    _alphas_from_large(ax, alphas)
    ax.set(xlabel="alpha", ylabel="features used", ylim=(0, None))
    legend_above(ax, 3)
    return ax


def _alphas_from_large(ax: Any, alphas: np.ndarray) -> None:
    """The largest alpha, of the fewest kernels, stands left."""
    if len(alphas) > 1:
        ax.set_xscale("log")
        set_ticks(ax.xaxis, alphas)
        ax.invert_xaxis()


def _draw_errors(ax: Any, alphas: np.ndarray, errors: np.ndarray, loss: str) -> None:
    """Mean and standard error of the folds, on an axis of its own."""
    right = ax.twinx()
    mean, several = errors.mean(axis=1), errors.shape[1] > 1
    if several:
        spread = errors.std(axis=1, ddof=1) / errors.shape[1] ** 0.5
        right.fill_between(alphas, mean - spread, mean + spread, color=GREY, alpha=0.2, linewidth=0)
    right.plot(alphas, mean, "--", color=GREY, linewidth=1.2)
    right.set(ylabel=f"{loss}{' of the folds' * several} (dashed)", ylim=(0, None))
    right.spines["top"].set_visible(False)
    ax.plot([], [], "--", color=GREY, linewidth=1.2, label="error of the folds" if several else loss)


@drawn
def plot_kernel_weights(model: Any, ax: Any = None, top: int | None = None) -> Any:
    """Bars of kernel_weights_: for each channel one of each kernel, beside each other; a cross for those left out.

    Of a model with by_output the largest weight over the outputs is drawn. top : number of channels, those of the
    largest weights; None draws all, in their order.
    """
    _check_has(model, "kernel_weights_", "has no weights of kernels")
    weights = model.kernel_weights_
    names, values = names_of(weights), weights.values
    values = values if values.ndim == 2 else values.max(axis=0)
    order = np.arange(len(values))
    if top is not None and check_count("top", top) < len(values):
        order = np.argsort(-values.max(axis=1), kind="stable")[:top]
        values = values[order]
    channels, kernels = values.shape
    rows = channels * kernels
    ax = axes_of(ax, (4.8, float(np.clip(TEXT_HEIGHT * max(rows, 2 * channels) + 0.9, 2.4, 11))))
    y, height = np.arange(channels), BAR / kernels
    for k in range(kernels):
        at = y + (k - (kernels - 1) / 2) * height
        ax.barh(at, values[:, k], height, color=colour(k), label=label(names.kernels[k]))
        if (out := values[:, k] == 0).any():
            size = float(np.clip(72 * TEXT_HEIGHT * height, 1.5, 5))
            ax.plot(0 * at[out], at[out], "x", color=colour(k), ms=size, clip_on=False, label="_")
    ax.set_yticks(y, [names.channels[i] for i in order], parse_math=False)
    ax.set_ylim(channels - 0.5, -0.5)
    ax.set_xlim(0, None if values.any() else 1)
    largest = "" if len(order) == weights.shape[-2] else f", the {len(order)} largest of {weights.shape[-2]}"
    what = "weight d = |w| / sqrt(2)" + (", largest of the outputs" if weights.ndim == 3 else "")
    ax.set(xlabel=what + "; x: left out", ylabel="channel" + largest)
    legend_above(ax, 3)
    return ax


def _check_has(model: Any, name: str, lacks: str) -> None:
    """Refuse a model that is not fitted, and one of a family that has no such attribute."""
    check_is_fitted(model)
    if not hasattr(model, name):
        raise ValueError(f"{type(model).__name__} {lacks}; use MultipleKernelRegressor or MultipleKernelClassifier")
