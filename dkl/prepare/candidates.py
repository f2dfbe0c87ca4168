"""Where candidates come from: fresh random groups of features, drawn as often as asked.

    one bandwidth       omega = sigma h,     h ~ the spectrum of the kernel            the kernel itself
    a range, or a list  omega = f sigma h,   f log-uniform in low .. high, or of a list: many kernels at once

sigma is that of each input, f a factor of it for each candidate. A list is a family for each of its values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from dkl.features.frequencies import draw_unit
from dkl.features.groups import GroupMap
from dkl.features.waves import WaveMap

M = TypeVar("M", bound=GroupMap)


class Source(Protocol[M]):
    """A kind of candidates; frozen, so that it travels."""

    @property
    def like(self) -> M:
        """A map of its kind, with one group or more: what all of its maps share."""

    @property
    def families(self) -> int:
        """How many kinds of groups it draws from."""

    def draw(self, rng: np.random.Generator, count: int) -> M:
        """So many fresh groups of each family."""

    def nearest(self, features: M) -> M:
        """The map itself, or if a gradient has led its parameters out of their range, the nearest one inside."""


class Bandwidths(NamedTuple):
    """Factors of sigma: a list, or a range."""

    values: tuple[float, ...] = (1.0,)
    is_range: bool = False

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """A factor for each of `count` candidates of each family, family by family."""
        if self.is_range:
            low, high = np.log(self.values)
            return np.asarray(np.exp(rng.uniform(low, high, count)))
        return np.repeat(np.array(self.values), count)


def read_bandwidths(given: Any) -> Bandwidths:
    """1 is sigma itself; "0.1:10" a range; several numbers a list."""
    wrong = ValueError(
        f"bandwidths={given!r} must be factors of sigma above 0: 1 for sigma itself, '0.1:10' for a range, or a list "
        "such as [0.5, 1, 2]"
    )
    try:
        if isinstance(given, str) and ":" in given:
            low, high = (float(word) for word in given.split(":"))
            if not 0 < low < high < np.inf:
                raise wrong
            return Bandwidths((low, high), is_range=True)
        words = given.split(",") if isinstance(given, str) else np.atleast_1d(given).tolist()
        values = tuple(float(word) for word in words)
    except (TypeError, ValueError):
        raise wrong from None
    if not values or not all(0 < value < np.inf for value in values) or isinstance(given, bool):
        raise wrong
    return Bandwidths(values)


@dataclass(frozen=True)
class WaveSource:
    """Waves of one kernel, at one bandwidth or many; `like` has its kernel, its form and sigma of the inputs."""

    like: WaveMap
    bandwidths: Bandwidths
    frequencies: str = "orthogonal"

    @property
    def families(self) -> int:
        """One for each value of a list."""
        return 1 if self.bandwidths.is_range else len(self.bandwidths.values)

    def draw(self, rng: np.random.Generator, count: int) -> WaveMap:
        """Unit frequencies times their factors; phases if the form has them."""
        total = count * self.families
        unit = draw_unit(self.like.kernel, self.like.n_columns, total, self.frequencies, rng)
        phase = rng.random(total if self.like.form == "phase" else 0)
        return replace(self.like, unit=unit * self.bandwidths.draw(rng, count), phase=phase)

    def nearest(self, features: WaveMap) -> WaveMap:
        """Phases as turns from 0 to 1; frequencies may be any."""
        return features if features.form == "paired" else replace(features, phase=features.phase % 1.0)
