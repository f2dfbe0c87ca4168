"""Random Fourier features of a block of rows.

    paired   Psi = sqrt(1/D) [cos Theta, sin Theta],       D = d / 2
    phase    Psi = sqrt(2/d) cos(Theta + 2 pi b),          Theta = t(X) (sigma * H)

An odd d in the paired form leaves the last frequency without a sine: it gets a phase and a factor sqrt2 instead.

A map is a frozen record of its parameters. `at(dtype)` gives the form in which blocks are computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.features.additive import AdditiveMap, as_plain
from dkl.features.kernel_inputs import prepare_inputs
from dkl.features.map import Arrays, check_parameters
from dkl.features.trigonometry import cos_sin, cosine
from dkl.kernels import Kernel

FORMS = ("paired", "phase")
SAFE_PHASE = 2.0**13
"""A row whose phase could exceed this many radians is projected in float64."""
FAR = 1024
"""Such rows are projected so many at a time."""


def fourier_cost(inputs: int, features: int, form: str, n_terms: int, dtype: Any) -> MapCost:
    """What a map of that form costs before it is drawn: one product with omega, one cosine for each feature."""
    item, columns = np.dtype(dtype).itemsize, n_terms * inputs
    D = (features + 1) // 2 if form == "paired" else features
    shifted = features % 2 if form == "paired" else features
    return MapCost(
        features=features,
        columns=columns,
        parameter_bytes=columns * D * (16 + 2 * item) + shifted * (8 + item) + 8 * inputs,
        flops=2.0 * columns * D + 10.0 * features,
        cosines=features,
        scratch_bytes=8 * FAR * (columns + 2 * features) if item == 4 else 0,
        sparse_row_bytes=D * item,
        pull_bytes=columns * D * (item + 16),
        pull_row_bytes=shifted * item,
        pull_flops=2.0 * columns * D + 5.0 * features,
        movable=(columns + 1) * D,
    )


@dataclass(frozen=True)
class FourierMap:
    """Parameters of the map: sigma (m,) multiplies unit (m, D); phase (D,) in [0, 1), (1,) or (0,) if paired.

    With an additive map of N terms t(X) has N m columns, term by term, and unit as many rows.
    """

    kernel: Kernel
    unit: np.ndarray
    sigma: np.ndarray
    phase: np.ndarray
    skew: float
    form: str
    additive: AdditiveMap | None = None
    kind: ClassVar[str] = "fourier"

    @property
    def n_terms(self) -> int:
        """Columns of t(X) for each input."""
        return 1 if self.additive is None else self.additive.n_terms

    @property
    def wide_sigma(self) -> np.ndarray:
        """sigma of each column of t(X)."""
        return self.sigma if self.n_terms == 1 else np.tile(self.sigma, self.n_terms)

    def of_input(self, j: int) -> FourierMap:
        """The map of one input alone."""
        return replace(self, unit=self.unit[j :: len(self.sigma)], sigma=self.sigma[[j]])

    @property
    def n_inputs(self) -> int:
        return len(self.sigma)

    @property
    def n_columns(self) -> int:
        return len(self.unit)

    @property
    def n_features(self) -> int:
        frequencies = int(self.unit.shape[1])
        return frequencies if self.form == "phase" else 2 * frequencies - len(self.phase)

    @property
    def column_group(self) -> np.ndarray:
        """One kernel."""
        return np.zeros(self.n_features, int)

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """sigma of each input, every unit frequency, every phase in turns."""
        return {"sigma": self.sigma, "unit": self.unit, "phase": self.phase}

    def with_parameters(self, **new: np.ndarray) -> Self:
        """The map with other values of the named parameters."""
        check_parameters(self, tuple(new))
        return replace(self, **new)  # type: ignore[arg-type]

    def by_input(self, columns: np.ndarray) -> np.ndarray:
        """Numbers of the columns of t(X), added up for each input."""
        return np.asarray(columns.reshape(self.n_terms, -1).sum(axis=0))

    def gradients(self, pulled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """dunit = sigma domega, dphase = 2 pi dshift; dsigma as it is."""
        factor = {"sigma": 1.0, "unit": self.wide_sigma[:, None], "phase": 2 * np.pi}
        return {name: factor[name] * total for name, total in pulled.items()}

    def pull_bounds(
        self, input_size: np.ndarray, reach: np.ndarray, weight: float, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """By Cauchy-Schwarz: |T_j| |theta_bar_k|, both parts of a pair counted at sqrt2."""
        check_parameters(self, wanted)
        D = self.unit.shape[1]
        theta = np.sqrt(2.0) * reach[:D]
        theta[: len(reach) - D] += np.sqrt(2.0) * reach[D:]
        bounds = {}
        if "sigma" in wanted:
            bounds["sigma"] = self.by_input(input_size * (np.abs(self.unit) @ theta))
        if "unit" in wanted:
            bounds["unit"] = np.outer(input_size, theta)
        if "phase" in wanted:
            bounds["phase"] = np.sqrt(weight) * theta[D - len(self.phase) :]
        return bounds

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and named arrays; a map without phases has no array of them."""
        arrays: Arrays = {"sigma": (("input",), self.sigma)}
        arrays["unit"] = ("input" if self.n_terms == 1 else "column", "frequency"), self.unit
        if self.phase.size:
            arrays["phase"] = ("phase",), self.phase
        own = {"kind": self.kind, "kernel": self.kernel.name, "skew": float(self.skew), "form": self.form}
        return {"map": own, "additive": as_plain(self.additive)}, arrays

    @property
    def scale(self) -> float:
        """The constant that multiplies cosines and sines."""
        return float(np.sqrt((2.0 if self.form == "phase" else 1.0) / self.unit.shape[1]))

    def cost(self, dtype: Any) -> MapCost:
        """What the map costs in blocks of that dtype."""
        return fourier_cost(len(self.sigma), self.n_features, self.form, self.n_terms, dtype)

    def at(self, dtype: DTypeLike) -> FourierBlocks:
        """The map ready to be applied to blocks of that dtype."""
        omega = self.wide_sigma[:, None] * self.unit
        reach = float(np.sqrt((omega * omega).sum(0).max()))
        dtype = np.dtype(dtype)
        wide = omega if dtype == np.float32 else None
        return FourierBlocks(self, omega.astype(dtype), wide, (2 * np.pi * self.phase).astype(dtype), reach)


@dataclass(frozen=True)
class FourierBlocks:
    """psi without its scale: cosines and sines, bounded by sqrt2."""

    map: FourierMap
    omega: np.ndarray
    wide_omega: np.ndarray | None
    shift: np.ndarray
    reach: float

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the map travels; the rest is made again where it arrives."""
        return FourierMap.at, (self.map, self.dtype)

    @property
    def dtype(self) -> np.dtype:
        return self.omega.dtype

    def prepare(self, X: Any) -> Any:
        """t(X) in the compute dtype."""
        return prepare_inputs(X, self.map.kernel, self.map.skew, self.dtype, self.map.additive)

    def write(self, T: Any, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Features of prepared rows T into out (rows, d); what `pull` needs beside them into slope, if it is given."""
        D = self.omega.shape[1]
        theta = out[:, :D]
        with np.errstate(over="ignore", invalid="ignore"):
            if hasattr(T, "tocoo"):
                theta[...] = T @ self.omega
            else:
                np.matmul(T, self.omega, out=theta)
        if self.wide_omega is not None:
            self._rewrite_far_rows(T, theta)
        shifted = theta[:, D - len(self.shift) :]
        shifted += self.shift
        if self.map.form == "paired":
            pairs = D - len(self.shift)
            cos_sin(theta[:, :pairs], theta[:, :pairs], out[:, D:])
        if slope is None:
            cosine(shifted)
        else:
            cos_sin(shifted, shifted, slope)
        if self.map.form == "paired" and len(self.shift):
            for column in (shifted,) if slope is None else (shifted, slope):
                column *= self.dtype.type(np.sqrt(2))

    def pull(
        self, T: Any, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """Of sigma: sum_k H_jk omega_bar_jk; of unit: omega_bar = T' theta_bar; of phase: the sum of theta_bar."""
        theta_bar = self._pull_theta(Psi, slope, Psi_bar)
        pulled: dict[str, np.ndarray] = {}
        if "sigma" in wanted or "unit" in wanted:
            omega_bar = T.T @ theta_bar
            if "sigma" in wanted:
                pulled["sigma"] = self.map.by_input(np.einsum("jk,jk->j", self.map.unit, omega_bar))
            if "unit" in wanted:
                pulled["unit"] = omega_bar
        if "phase" in wanted:
            D = self.omega.shape[1]
            pulled["phase"] = theta_bar.sum(axis=0, dtype=np.float64)[D - len(self.shift) :]
        return pulled

    def _pull_theta(self, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray) -> np.ndarray:
        """theta_bar (rows, D) = dPsi/dTheta' Psi_bar, where `write` gave Psi and slope; uses up Psi and Psi_bar.

        -sin Theta Psi_bar_cos + cos Theta Psi_bar_sin of a pair, -sin(Theta + 2 pi b) Psi_bar of a shifted cosine
        """
        D = self.omega.shape[1]
        pairs = D - len(self.shift)
        if self.map.form == "paired" and pairs:
            cos, cos_bar = Psi[:, :pairs], Psi_bar[:, :pairs]
            cos *= Psi_bar[:, D:]
            cos_bar *= Psi[:, D:]
            np.subtract(cos, cos_bar, out=cos_bar)
        shifted = Psi_bar[:, pairs:D] if self.map.form == "paired" else Psi_bar
        shifted *= slope
        np.negative(shifted, out=shifted)
        return Psi_bar[:, :D]

    @property
    def slope_columns(self) -> int:
        """Shifted cosines: their sines do not stand among the features."""
        return len(self.shift)

    def _rewrite_far_rows(self, T: Any, theta: np.ndarray) -> None:
        """float32 phases beyond 2^13 radians are taken again in float64, modulo 2 pi, row by row."""
        square = T.multiply(T).sum(1) if hasattr(T, "tocoo") else np.einsum("ij,ij->i", T, T)
        far = np.flatnonzero(~(np.sqrt(np.asarray(square, np.float64).ravel()) * self.reach < SAFE_PHASE))
        for some in np.array_split(far, max(1, len(far) // FAR)):
            if len(some):
                wide = T[some].astype(np.float64) @ self.wide_omega
                theta[some] = np.remainder(wide, 2 * np.pi)

    def transform(self, X: Any) -> np.ndarray:
        """Psi (rows, d) with its scale."""
        out = np.empty((X.shape[0], self.map.n_features), self.dtype)
        self.write(self.prepare(X), out)
        out *= self.dtype.type(self.map.scale)
        return out
