"""Sigmas of several kernels side by side as one vector: sigma_j = start_j exp(x_p), p the parameter of that input.

A parameter is one factor for all inputs of a kernel, or for one input of it. Kernels without a sigma stay as they are.
Penalties are as in learn/parameters.py: var(y) l2 / 2 sum_p exp(x_p)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dkl.checks import check_choice
from dkl.features.part_names import prefix
from dkl.features.side_by_side import SideBySide
from dkl.learn.parameters import REACH
from dkl.sums.pullback import PullbackSums

BY = ("kernel", "input")
"""One sigma for each kernel, or for each input of each kernel."""


@dataclass(frozen=True)
class SeveralScales:
    """One factor for each kernel, or each of its inputs, in the order of the kernels."""

    base: SideBySide
    by: str = "kernel"
    l2: float = 0.0

    frequencies: ClassVar[bool] = False
    penalised: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice("by", self.by, BY)
        if not self.wanted:
            raise ValueError(
                f"none of the {len(self.base.channels)} kernels has a sigma that can be learned; use Fourier features, "
                "or learn='none'"
            )

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of the sigmas that move."""
        known = self.base.parameters
        names = (f"{prefix(i)}sigma" for i in range(len(self.base.channels)))
        return tuple(name for name in names if name in known)

    @property
    def places(self) -> dict[str, np.ndarray]:
        """Of each name the number of the parameter that each of its inputs has."""
        found, first = {}, 0
        for name in self.wanted:
            m = len(self.base.parameters[name])
            found[name] = first + (np.arange(m) if self.by == "input" else np.zeros(m, int))
            first = int(found[name][-1]) + 1
        return found

    @property
    def count(self) -> int:
        """How many parameters there are."""
        return 1 + max(int(place[-1]) for place in self.places.values())

    def begin(self, factor: float) -> np.ndarray:
        """x at `factor` times the start."""
        return np.full(self.count, np.log(factor))

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Edges of the box that x stays in."""
        return np.full(self.count, -np.log(REACH)), np.full(self.count, np.log(REACH))

    def switched_off(self, x: np.ndarray) -> None:
        """A kernel is switched off by its weights, not by its sigma."""

    def without_l1(self, x: np.ndarray) -> SeveralScales:
        """They have no l1."""
        return self

    def factor(self, x: np.ndarray) -> np.ndarray:
        """sigma / start of each parameter."""
        return np.asarray(np.exp(x))

    def _sigmas(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """By name."""
        u, start = self.factor(x), self.base.parameters
        return {name: start[name] * u[place] for name, place in self.places.items()}

    def map(self, x: np.ndarray) -> SideBySide:
        """The map at x."""
        return self.base.with_parameters(**self._sigmas(x))

    def sigma(self, x: np.ndarray) -> np.ndarray:
        """sigma of each input of each kernel, one kernel after the other."""
        return np.concatenate(list(self._sigmas(x).values()))

    def penalty(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalty over var(y), and its gradient in x."""
        u = self.factor(x)
        return float(0.5 * self.l2 * (u * u).sum()), self.l2 * u * u

    def gradient(self, x: np.ndarray, sums: PullbackSums) -> np.ndarray:
        """dJ/dx from dJ/dsigma of each input."""
        found, slope = self.base.gradients(sums.gradients), np.zeros(self.count)
        for name, place in self.places.items():
            slope += np.bincount(place, self.base.parameters[name] * found[name], minlength=self.count)
        return np.asarray(slope * self.factor(x))
