"""Pictures of a fitted model: arrays in, axes out.

    plot_convergence   the objective against iterations, seconds or passes, one line for each start
    plot_sigma         sigma times spread of each input or group, largest first, with its start
    plot_spectrum      |omega_k| = |sigma * h_k| of the frequencies, at the start and learned
    plot_kernel        k(delta e_j) of some inputs j, exact and by random features, with the range of the data

Each takes the axes to draw on, or makes some, and returns them; nothing is shown or saved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.checks import check_choice, check_count
from dkl.estimators.input_info import bars_of
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.features.slices import exact_slice, random_slice, slice_range
from dkl.kernels import Kernel, find_kernel, is_for_histograms
from dkl.learn.learners import learner_of

AGAINST = {"iteration": "iteration", "seconds": "time since learning began, in seconds", "passes": "passes over rows"}
TEXT_HEIGHT = 0.17
"""Inches that a label takes on the axis of the bars."""
DOTS = (0, (1.5, 1))
GREY = "0.45"
"""Lines in a legend that stand for a style."""


def plot_convergence(model: Any, ax: Any = None, against: str = "iteration") -> Any:
    """The objective (solid) and the validation error (dashed) of each iteration; one line per start and stage.

    `model` may be its `history_`. If nothing is penalised the two are the same, and one line is drawn.
    """
    check_choice("against", against, AGAINST)
    history = model if hasattr(model, "data_vars") else _history(model)
    if history is None:
        who = f"learn={model.learn!r}" if hasattr(model, "learn") else type(model).__name__
        raise ValueError(f"{who} has no history_; fit with learn='validation'")
    ax = _axes(ax, (6.4, 4.2))
    objective, error = (np.asarray(history[name]) for name in ("objective", "validation_error"))
    both = not np.array_equal(objective, error)
    x, phases = np.asarray(history[against]), _phases(history)
    for i, (name, rows) in enumerate(phases):
        ax.plot(x[rows], objective[rows], ".-", color=f"C{i % 10}", label=name)
        if both:
            ax.plot(x[rows], error[rows], "o--", color=f"C{i % 10}", markersize=3, markerfacecolor="white", label="_")
    if both:
        ax.plot([], [], ".-", color=GREY, label="objective")
        ax.plot([], [], "o--", color=GREY, markersize=3, markerfacecolor="white", label="validation error")
    drawn = np.concatenate([objective, error])
    if drawn.min() > 0 and drawn.max() > 10 * drawn.min():
        ax.set_yscale("log")
        _ticks(ax.yaxis, drawn)
    what = "objective and validation error" if both else "objective"
    ax.set(xlabel=AGAINST[against], ylabel=what if "error_rate" in history else f"{what}, in units of y²")
    if both or len(phases) > 1:
        ax.legend(fontsize="small")
    return ax


def plot_sigma(model: Any, ax: Any = None, by: str = "input", top: int | None = None) -> Any:
    """Bars of learned sigma times the spread of each input, largest first.

    A line marks the start of each sigma, a cross an input that was switched off (sigma exactly 0). If no pass over X
    measured the spread, sigma itself is drawn, in 1 / unit of its input.
    by : "input", "group", or a coordinate of the inputs such as "channel"; inputs that share a bar give their mean.
    top : number of bars; None draws all. If names do not fit, only some bars are labelled.
    """
    names, index = bars_of(model, by)
    count, sizes = len(names), np.bincount(index)
    spread = getattr(model, "input_spread_", None)
    unit = np.ones(len(index)) if spread is None else spread
    learned = np.bincount(index, model.sigma_ * unit) / sizes
    off = np.bincount(index, model.sigma_) == 0
    order = np.argsort(-learned, kind="stable")[: count if top is None else check_count("top", top)]
    ax = _axes(ax, (6.4, float(np.clip(TEXT_HEIGHT * len(order) / 0.75, 2.4, 11))))
    y, width = np.arange(len(order)), 0.8 if len(order) <= 100 else 1.0
    marks = [ax.barh(y, learned[order], width, color="C0", label="learned" if hasattr(model, "history_") else "sigma")]
    if (start := _start_sigma(model)) is not None:
        begun = (np.bincount(index, start * unit) / sizes)[order]
        marks.append(ax.vlines(begun, y - width / 2, y + width / 2, colors="C1", label="start"))
    inches = ax.get_window_extent().height / ax.figure.dpi
    if len(gone := y[off[order]]):
        size = float(np.clip(50 * inches / len(order), 1.5, 6))
        marks += ax.plot(0 * gone, gone, "x", color="C3", ms=size, clip_on=False, label=f"switched off: {len(gone)}")
    step = max(1, int(np.ceil(len(order) * TEXT_HEIGHT / inches)))
    ax.set_yticks(y[::step], [names[i] for i in order[::step]], parse_math=False)
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(0, None)
    alike = np.allclose(learned[index], model.sigma_ * unit, rtol=1e-9, atol=0)
    largest = "" if len(order) == count else f", the {len(order)} largest of {count}"
    ax.set(xlabel=("" if alike else "mean ") + _what(model, spread is not None), ylabel=by + largest)
    ax.legend(handles=marks, fontsize="small", loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
    return ax


def _what(model: Any, known: bool) -> str:
    """The label of the bars of sigma."""
    if known:
        return f"sigma times the spread (standard deviation) of {_unit(model)}"
    return f"sigma, in 1 / unit of {_unit(model)} (no pass has seen the spread)"


def plot_spectrum(model: Any, ax: Any = None) -> Any:
    """Density of log2 |omega_k|, omega_k = sigma * h_k, over the frequencies, at the start and learned, as histograms.

    The bin widths are those of Freedman and Diaconis. learn="frequencies" does not keep its first frequencies, so its
    start is sampled again from the spectrum of the kernel.
    """
    start = _start_sigma(model)
    features = _fourier(model)
    if not features.sigma.any():
        raise ValueError(
            f"sigma is 0 for all {len(features.sigma)} inputs, so every frequency is 0; fit with a smaller sigma_l1"
        )
    spectra = {"frequencies" if start is None else "learned": _norms(features, features.sigma)}
    if start is not None and not learner_of(model.learn).moves_frequencies:
        spectra = {"start": _norms(features, start), **spectra}
    elif start is not None:
        (m, D), rng = features.unit.shape, np.random.default_rng(0)
        drawn = draw_unit(features.kernel, m, D, model.frequencies, rng)
        spectra = {"start, drawn anew": _norms(replace(features, unit=drawn), start), **spectra}
    ax = _axes(ax, (6.4, 4.2))
    for colour, (name, norms) in zip(("C1", "C0")[-len(spectra) :], spectra.items(), strict=True):
        density, edges = np.histogram(np.log2(norms), "fd", density=True)
        ax.stairs(density, 2.0**edges, fill=True, alpha=0.35, color=colour, label=name)
        ax.stairs(density, 2.0**edges, color=colour, linewidth=1.2)
    ax.set_xscale("log")
    _ticks(ax.xaxis, np.concatenate(list(spectra.values())))
    ax.set(xlabel=f"|omega|, in radians / unit of {_unit(model)}", ylabel="share of the frequencies in a factor of 2")
    ax.legend(fontsize="small")
    return ax


def plot_kernel(model: Any, ax: Any = None, inputs: Any = None) -> Any:
    """k(delta e_j) against delta: exact as a wide line, psi(delta e_j)'psi(0) as a thin one; the start is dashed.

    inputs : numbers or names; None takes the largest sigma of each group, for at most three groups. A skewed kernel is
    not a function of delta, so k(delta e_j, 0) is drawn. A line at the foot shows the range of each input (for
    histograms, its values); it is thick up to the root mean square distance of two rows. learn="frequencies" has an
    exact kernel only at its start; landmarks and the models of dkl.exact have only the exact kernel.
    """
    names = bars_of(model, "input")[0]
    kernel, skew, sigma = _kernel(model), float(model.skew), model.sigma_
    features = getattr(model, "features_", None)
    features = features if isinstance(features, FourierMap) else None
    chosen = _chosen(inputs, names, sigma * getattr(model, "input_spread_", 1.0), model.groups_)
    start, moved = _start_sigma(model), learner_of(getattr(model, "learn", None)).moves_frequencies
    delta = slice_range(kernel, skew, (sigma if start is None or sigma[chosen].any() else start)[chosen])
    ax = _axes(ax, (6.4, 4.2))
    for i, j in enumerate(chosen):
        colour = f"C{i % 10}"
        began = "" if start is None or moved else f" from {start[j]:.3g}"
        label = f"input {names[j]}: sigma {sigma[j]:.3g}{began}".replace("$", r"\$")
        if not moved:
            wide = exact_slice(kernel, skew, sigma[j], delta)
            ax.plot(delta, wide, color=colour, linewidth=4, alpha=0.35, label="_" if features else label)
        if features:
            ax.plot(delta, random_slice(features, j, delta), color=colour, linewidth=1.3, label=label)
        if start is None:
            continue
        ax.plot(delta, exact_slice(kernel, skew, start[j], delta), color=colour, linewidth=4, alpha=0.2, linestyle=DOTS)
        if features and not moved:
            before = random_slice(replace(features, sigma=start), j, delta)
            ax.plot(delta, before, color=colour, linewidth=1, linestyle="--")
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
    ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)
    return ax


def _mark_range(ax: Any, model: Any, chosen: list[int]) -> None:
    """Lines at the foot: distances of rows along an input, or for histograms their values."""
    if not hasattr(model, "input_range_"):
        return
    place, from_zero = ax.get_xaxis_transform(), is_for_histograms(model.kernel)
    for i, j in enumerate(chosen):
        low, high = model.input_range_[:, j]
        ends, y, colour = ([low, high] if from_zero else [0.0, high - low]), 0.02 + 0.025 * i, f"C{i % 10}"
        ax.plot(ends, [y, y], color=colour, linewidth=1.2, transform=place, label="_", solid_capstyle="butt")
        if not from_zero:
            far = [0.0, np.sqrt(2) * model.input_spread_[j]]
            ax.plot(far, [y, y], color=colour, linewidth=4, transform=place, label="_", solid_capstyle="butt")
    named = "range of the data" if from_zero else "range of the data (thick: distance of two rows)"
    ax.plot([], [], color=GREY, linewidth=1.2, label=named)


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"dkl.plot draws with matplotlib ({error}); pip install 'dkl[plot]'") from None
    return plt.subplots(figsize=size, layout="constrained")[1]


def _history(model: Any) -> Any:
    """history_ of a fitted model, or None."""
    check_is_fitted(model, "sigma_")
    return getattr(model, "history_", None)


def _fourier(model: Any) -> FourierMap:
    """The map, if it has frequencies."""
    check_is_fitted(model, "sigma_")
    features = getattr(model, "features_", None)
    if features is None:
        raise ValueError(f"{type(model).__name__} has the kernel itself and no frequencies to draw; use plot_kernel")
    if not isinstance(features, FourierMap):
        raise ValueError(f"landmarks={model.landmarks!r} has no frequencies to draw; fit with landmarks=None")
    return features


def _winner(history: Any) -> int:
    """Number of the start that was continued: the one that ended lowest."""
    first = np.asarray(history["stage"]) == 0
    start, objective = np.asarray(history["start"])[first], np.asarray(history["objective"])[first]
    return int(start[np.argmin(objective)])


def _phases(history: Any) -> list[tuple[str, np.ndarray]]:
    """Name and iterations of every start, then of every later stage."""
    stage, start, rows = (np.asarray(history[name]) for name in ("stage", "start", "rows"))
    kept, several = _winner(history), len(set(start[stage == 0])) > 1
    phases = []
    for s, k in sorted(set(zip(stage.tolist(), start.tolist(), strict=True))):
        here = np.flatnonzero((stage == s) & (start == k))
        name = "then" if s else f"start {k}, kept," if several and k == kept else f"start {k},"
        phases.append((f"{name} {rows[here[0]]:,} rows", here))
    return phases


def _start_sigma(model: Any) -> np.ndarray | None:
    """sigma at the first iteration of the start that won, or None if nothing was learned."""
    if (history := _history(model)) is None:
        return None
    begun = (np.asarray(history["stage"]) == 0) & (np.asarray(history["start"]) == _winner(history))
    return np.asarray(history["sigma"])[np.argmax(begun)]


def _kernel(model: Any) -> Kernel:
    """The kernel of a model that has one."""
    if not hasattr(model, "kernel"):
        raise ValueError(f"{type(model).__name__} has no kernel of its own; plot its `features`")
    return find_kernel(model.kernel)


def _unit(model: Any) -> str:
    """The unit of 1 / sigma."""
    kernel = _kernel(model)
    if kernel.additive is not None:
        return "the root of the input"
    return f"log(1 + x / {model.skew:g})" if kernel.skewed else "the input"


def _norms(features: FourierMap, sigma: np.ndarray) -> np.ndarray:
    """|sigma * h_k| (D,)."""
    return np.sqrt(np.square(replace(features, sigma=sigma).wide_sigma) @ np.square(features.unit))


def _ticks(axis: Any, values: np.ndarray) -> None:
    """Plain numbers on a logarithmic axis: 1, 2 and 5 of each decade if there are few, all of them within one."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter

    span = float(values.max() / values.min())
    decade = (1.0, 2.0, 5.0) if span < 300 else (1.0,)
    axis.set_major_locator(MaxNLocator(6) if span < 5 else LogLocator(subs=decade))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


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
