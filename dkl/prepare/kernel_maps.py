"""Features of several kernels of several channels, side by side: psi = [psi_1, psi_2 ...], k = sum_g k_g.

    group = (channel, kernel)     those of the first channel first; the map of each is Channel(FourierMap)
    kernels = ["gaussian:0.5", ("gaussian", "scale*2"), "laplacian"]
            | {"fine": "gaussian:2", "coarse": ("gaussian", 0.5)}

Behind the colon, or in the pair, stands sigma: a number, or a multiple of the scale of the channel. A name alone has
the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.apply import take_inputs
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.features.channel import Channel
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.features.side_by_side import SideBySide
from dkl.kernels import Kernel, find_kernel
from dkl.prepare.base_kernels import DEFAULT, factor_of
from dkl.prepare.named_channels import NamedChannel, refuse_duplicates
from dkl.prepare.scales import additive_of, scale_of_groups, spread_sigma
from dkl.prepare.targets import sum_small
from dkl.sums.input_moments import InputMoments, MomentProgram
from dkl.sums.spread import Spread
from dkl.sums.tree import TreeProgram

INSTEAD = "channels='each', or a sigma for each input"
"""What to use where the inputs of a channel spread differently."""
EXAMPLE = "['gaussian:0.5', ('gaussian', 'scale*2'), 'laplacian']"


class NamedKernel(NamedTuple):
    """One kernel of the sum: its name in the answer, the kernel, and sigma (a number, several, scale*2)."""

    name: str
    kernel: str
    sigma: Any


def named_kernels(kernels: Any) -> tuple[NamedKernel, ...]:
    """The kernels that a list, or a dict with names, asks for; None: gaussian at five multiples of the scale."""
    if kernels is None:
        kernels = DEFAULT
    if isinstance(kernels, str) or not isinstance(kernels, (Sequence, Mapping)) or not len(kernels):
        raise ValueError(f"kernels={kernels!r} must be a list of one kernel or more, e.g. {EXAMPLE}")
    named = kernels.items() if isinstance(kernels, Mapping) else [(None, one) for one in kernels]
    found = tuple(_named(name, one) for name, one in named)
    refuse_duplicates("kernels", [one.name for one in found])
    return found


def _named(name: Any, one: Any) -> NamedKernel:
    """A kernel under its name, or one made of what it is."""
    if isinstance(one, str):
        kernel, colon, text = one.partition(":")
        sigma = _sigma_of(text) if colon else "scale"
    elif isinstance(one, (tuple, list)) and len(one) == 2:
        kernel, sigma = one
    else:
        raise ValueError(f"kernels has {one!r}; give a name or a pair, e.g. {EXAMPLE}")
    find_kernel(kernel)
    if factor_of(sigma) is None and not np.all(np.asarray(sigma) > 0):
        raise ValueError(f"kernels has {one!r}: sigma={sigma!r} must be above 0, or the kernel is constant")
    return NamedKernel(_text(kernel, sigma) if name is None else str(name), kernel, sigma)


def _sigma_of(text: str) -> Any:
    """A number, or text that is to be a multiple of the scale."""
    try:
        return float(text)
    except ValueError:
        return text


def _text(kernel: str, sigma: Any) -> str:
    """gaussian:0.5 of a kernel and its sigma; gaussian alone has the scale."""
    if isinstance(sigma, str):
        return kernel if factor_of(sigma) == 1 else f"{kernel}:{sigma.replace(' ', '')}"
    values = np.asarray(sigma, float)
    return f"{kernel}:{values:g}" if values.ndim == 0 else f"{kernel}:[{','.join(f'{v:g}' for v in values)}]"


class MapOptions(NamedTuple):
    """What all maps have in common; `n_components` are those of each."""

    n_components: int
    frequencies: str
    form: str
    skew: float
    n_terms: int


def draw_kernel_maps(
    kernels: Sequence[NamedKernel],
    channels: Sequence[NamedChannel],
    options: MapOptions,
    X: Table,
    weight: Table | None,
    rng: np.random.Generator,
    progress: Progress,
) -> SideBySide:
    """The map of each kernel on each channel, drawn in turn from one generator."""
    look, drawn = _Look(X, weight, progress), []
    for channel in channels:
        for one in kernels:
            drawn.append(Channel(_draw(one, channel, options, look, rng), channel.inputs))
    return SideBySide(tuple(drawn))


def _draw(
    one: NamedKernel, channel: NamedChannel, options: MapOptions, look: _Look, rng: np.random.Generator
) -> FourierMap:  # fmt: skip
    """The map of one kernel on one channel."""
    kernel, m, form = find_kernel(one.kernel), len(channel.inputs), options.form
    additive = additive_of(kernel, options.n_terms, m, lambda program: look.entries(kernel, program, channel))
    factor, index = factor_of(one.sigma), np.zeros(m, int)
    if factor is None:
        sigma = spread_sigma(one.sigma, index)
    else:
        seen = look.moments(kernel, MomentProgram(kernel, options.skew, additive), channel)
        if not seen.variance.any() and seen.weight:
            raise ValueError(
                f"channel {channel.name!r} has no variance: its {m} input{'s' * (m > 1)} (the first is "
                f"{int(channel.inputs[0])}) are constant, so it has no scale; leave it out of channels"
            )
        sigma = factor * spread_sigma(scale_of_groups(kernel, seen, index, {}, INSTEAD), index)
    terms = 1 if additive is None else additive.n_terms
    unit, phase = _frequencies(kernel, terms * m, options, rng)
    return FourierMap(kernel, unit, sigma, phase, options.skew, form, additive)


def _frequencies(
    kernel: Kernel, columns: int, options: MapOptions, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Frequencies at sigma = 1, and phases."""
    d, form = options.n_components, options.form
    unit = draw_unit(kernel, columns, (d + 1) // 2 if form == "paired" else d, options.frequencies, rng)
    return unit, rng.random(d if form == "phase" else d % 2)


def with_components(features: SideBySide, options: MapOptions, rng: np.random.Generator) -> SideBySide:
    """The same kernels at the same sigmas with another number of features, whose frequencies are drawn anew."""
    drawn = []
    for channel in features.channels:
        assert isinstance(channel, Channel)
        of = channel.of
        assert isinstance(of, FourierMap)
        unit, phase = _frequencies(of.kernel, len(of.unit), options, rng)
        drawn.append(replace(channel, of=replace(of, unit=unit, phase=phase)))
    return SideBySide(tuple(drawn))


class _Look:
    """Passes over X, each made once: what kernels of plain inputs need of all channels comes from one."""

    def __init__(self, X: Table, weight: Table | None, progress: Progress) -> None:
        self.X, self.weight, self.progress = X, weight, progress
        self.seen: dict[Any, Any] = {}

    def of(self, program: TreeProgram[Any], channel: NamedChannel | None) -> Any:
        """The total of a program over the inputs of a channel, or over all."""
        table = self.X if channel is None else take_inputs(self.X, channel.inputs)
        return sum_small(program, [table, self.weight], ["X", "sample_weight"], self.progress)

    def entries(self, kernel: Kernel, program: TreeProgram[Any], channel: NamedChannel) -> Any:
        """The histogram of the entries of a channel."""
        return self._once((kernel.additive, channel.name), lambda: self.of(program, channel))

    def moments(self, kernel: Kernel, program: MomentProgram, channel: NamedChannel) -> InputMoments:
        """Moments of a channel as a kernel sees it."""
        if kernel.skewed or kernel.additive is not None:
            return self._once((kernel.name, program.task, channel.name), lambda: self.of(program, channel))
        w, own = self._once("plain", lambda: self.of(program, None)), channel.inputs
        return InputMoments(Spread(w.weight, w.mean[own], w.spread.m2[own]), w.low[own], w.high[own])

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self.seen:
            self.seen[key] = make()
        return self.seen[key]
