"""|omega_k| = |sigma * h_k| of the frequencies, at the start and learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.plot.canvas import set_ticks, start_sigma, unit_of
from dkl.plot.style import axes_of, colour, drawn, legend_above


@drawn
def plot_spectrum(model: Any, ax: Any = None) -> Any:
    """Density of log2 |omega_k|, omega_k = sigma * h_k, over the frequencies, at the start and learned, as histograms.

    The bin widths are those of Freedman and Diaconis. A network keeps its first frequencies in spectrum_;
    learn="frequencies" does not, so its start is sampled again from the spectrum of the kernel.
    """
    start = start_sigma(model)
    features = _fourier(model)
    if not features.sigma.any():
        raise ValueError(
            f"sigma is 0 for all {len(features.sigma)} inputs, so every frequency is 0; fit with a smaller sigma_l1"
        )
    spectra = {"frequencies" if start is None else "learned": _norms(features, features.sigma)}
    if hasattr(model, "spectrum_"):
        spectra = {"start": np.linalg.norm(model.spectrum_["start"], axis=0), "learned": spectra["frequencies"]}
    elif start is not None and not model._moves_frequencies:
        spectra = {"start": _norms(features, start), **spectra}
    elif start is not None:
        (m, D), rng = features.unit.shape, np.random.default_rng(0)
        drawn = draw_unit(features.kernel, m, D, model.frequencies, rng)
        spectra = {"start, drawn anew": _norms(replace(features, unit=drawn), start), **spectra}
    ax = axes_of(ax)
    for tint, (name, norms) in zip((colour(1), colour(0))[-len(spectra) :], spectra.items(), strict=True):
        density, edges = np.histogram(np.log2(norms), "fd", density=True)
        ax.stairs(density, 2.0**edges, fill=True, alpha=0.35, color=tint, label=name)
        ax.stairs(density, 2.0**edges, color=tint, linewidth=1.2)
    ax.set_xscale("log")
    set_ticks(ax.xaxis, np.concatenate(list(spectra.values())))
    ax.set(xlabel=f"|omega|, in radians / unit of {unit_of(model)}", ylabel="share in a factor of 2")
    legend_above(ax)
    return ax


def _fourier(model: Any) -> FourierMap:
    """The map, if it has frequencies."""
    check_is_fitted(model, "sigma_")
    features = getattr(model, "features_", None)
    if features is None:
        raise ValueError(f"{type(model).__name__} has the kernel itself and no frequencies to draw; use plot_kernel")
    if not isinstance(features, FourierMap):
        raise ValueError(f"landmarks={model.landmarks!r} has no frequencies to draw; fit with landmarks=None")
    return features


def _norms(features: FourierMap, sigma: np.ndarray) -> np.ndarray:
    """|sigma * h_k| (D,)."""
    return np.sqrt(np.square(replace(features, sigma=sigma).wide_sigma) @ np.square(features.unit))
