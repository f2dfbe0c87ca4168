"""What is learned, as one vector x: sigma of each group, or every frequency and phase.

    Scales        sigma_j = start_j exp(x_g), or start_j x_g with x_g >= 0 if l1 may switch inputs off
    Frequencies   x = (H, b), sigma stays

Penalties are in units of the start, u = sigma / start, and of the variance of y:

    var(y) (l1 sum_g u_g + l2 / 2 sum_g u_g^2)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dkl.features.fourier import FourierMap
from dkl.sums.pullback import PullbackSums

REACH = 1e4
"""sigma stays within this factor of its start."""
VANISHED = 0.005
"""Share of its start below which a sigma may be switched off; of inputs with a linear effect it is often 0.03."""


@dataclass(frozen=True)
class Scales:
    """One factor for each group of inputs."""

    base: FourierMap
    groups: np.ndarray  # (m,)
    l1: float = 0.0
    l2: float = 0.0
    size: np.ndarray | None = None  # (groups,), sigma / start at x = 0 of a descent without l1; None: 1

    frequencies = False
    wanted = ("sigma",)

    @property
    def count(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def linear(self) -> bool:
        """Whether zero can be reached."""
        return self.l1 > 0

    @property
    def penalised(self) -> bool:
        """Whether l1 leaves a bias."""
        return self.l1 > 0

    def begin(self, factor: float) -> np.ndarray:
        """x at `factor` times the start."""
        return np.full(self.count, factor if self.linear else np.log(factor))

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Edges of the box that x stays in."""
        low, high = (0.0, REACH) if self.linear else (-np.log(REACH), np.log(REACH))
        return np.full(self.count, low), np.full(self.count, high)

    def switched_off(self, x: np.ndarray) -> np.ndarray | None:
        """x with zeros where l1 has all but reached them; None if there are no such places."""
        vanished = self.linear & (x > 0) & (x < VANISHED)
        return np.where(vanished, 0.0, x) if vanished.any() else None

    def without_l1(self, x: np.ndarray) -> Scales:
        """The parameters of a descent from x without l1: what is zero stays zero."""
        return replace(self, l1=0.0, size=x)

    def factor(self, x: np.ndarray) -> np.ndarray:
        """u = sigma / start, of each group."""
        if self.linear:
            return x
        return np.asarray(np.exp(x) if self.size is None else self.size * np.exp(x))

    def map(self, x: np.ndarray) -> FourierMap:
        """The map at x."""
        return replace(self.base, sigma=self.sigma(x))

    def sigma(self, x: np.ndarray) -> np.ndarray:
        """sigma of each input at x."""
        return np.asarray(self.base.sigma * self.factor(x)[self.groups])

    def penalty(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalty over var(y), and its gradient in x."""
        u = self.factor(x)
        slope = self.l1 + self.l2 * u
        return float((self.l1 * u + 0.5 * self.l2 * u * u).sum()), slope if self.linear else slope * u

    def gradient(self, x: np.ndarray, sums: PullbackSums) -> np.ndarray:
        """dJ/dx from dJ/dsigma of each input."""
        slope = np.bincount(self.groups, self.base.sigma * sums.gradients["sigma"], minlength=self.count)
        return slope if self.linear else slope * self.factor(x)


@dataclass(frozen=True)
class ScalesAndAlpha(Scales):
    """One factor for each group of inputs, and last log lam, which has no penalty."""

    log_lam: float = 0.0  # where it begins
    reach: tuple[float, float] = (-np.inf, np.inf)  # that it stays in

    @property
    def scales(self) -> Scales:
        """The same without alpha."""
        return Scales(self.base, self.groups, self.l1, self.l2, None if self.size is None else self.size[:-1])

    def begin(self, factor: float) -> np.ndarray:
        """x at `factor` times the start."""
        return np.append(self.scales.begin(factor), self.log_lam)

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """Edges of the box that x stays in."""
        (low, high), start = self.scales.box(), 0.0 if self.size is None else float(self.size[-1])
        return np.append(low, self.reach[0] - start), np.append(high, self.reach[1] - start)

    def switched_off(self, x: np.ndarray) -> np.ndarray | None:
        """x with zeros where l1 has all but reached them; None if there are no such places."""
        found = self.scales.switched_off(x[:-1])
        return None if found is None else np.append(found, x[-1])

    def factor(self, x: np.ndarray) -> np.ndarray:
        """u = sigma / start of each group, and log lam."""
        return np.append(self.scales.factor(x[:-1]), x[-1] + (0.0 if self.size is None else self.size[-1]))

    def penalty(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Penalty over var(y), and its gradient in x."""
        value, slope = self.scales.penalty(x[:-1])
        return value, np.append(slope, 0.0)

    def gradient(self, x: np.ndarray, sums: PullbackSums) -> np.ndarray:
        """dJ/dx from dJ/dsigma of each input, and dJ/dlog lam."""
        return np.append(self.scales.gradient(x[:-1], sums), sums.gradients["log_lam"])


@dataclass(frozen=True)
class Frequencies:
    """Every frequency, in units of sigma, and every phase, in turns."""

    base: FourierMap

    frequencies = True
    wanted = ("unit", "phase")
    penalised = False

    def begin(self, factor: float) -> np.ndarray:
        """x at `factor` times the start."""
        return np.concatenate([factor * self.base.unit.ravel(), self.base.phase])

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """No box."""
        size = self.base.unit.size + self.base.phase.size
        return np.full(size, -np.inf), np.full(size, np.inf)

    def switched_off(self, x: np.ndarray) -> None:
        """No sigma moves."""

    def without_l1(self, x: np.ndarray) -> Frequencies:
        """They have no l1."""
        return self

    def factor(self, x: np.ndarray) -> np.ndarray:
        """sigma stays."""
        return np.ones_like(x)

    def map(self, x: np.ndarray) -> FourierMap:
        """The map at x."""
        unit = x[: self.base.unit.size].reshape(self.base.unit.shape)
        return replace(self.base, unit=unit, phase=x[self.base.unit.size :])

    def sigma(self, x: np.ndarray) -> np.ndarray:
        """sigma of each input, which stays."""
        return self.base.sigma

    def penalty(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """None."""
        return 0.0, np.zeros_like(x)

    def gradient(self, x: np.ndarray, sums: PullbackSums) -> np.ndarray:
        """dJ/dx."""
        found = self.base.gradients(sums.gradients)
        return np.concatenate([found["unit"].ravel(), found["phase"]])


Parameters = Scales | Frequencies
