"""Gabor features of patches: how strongly a wave of one direction and length stands out, wherever in the patch.

    F(z, y) = exp(-z0^2 / (2 along^2) - y0^2 / (2 across^2)) cos(2 pi frequency z0)
    z0 = z cos(orientation) + y sin(orientation),     y0 = -z sin(orientation) + y cos(orientation)
    psi_j(x) = sum over positions p of |<F_jp, x>| / (sqrt(P d) unit)

F_jp is the filter j around position p of a grid, less its mean over the patch (a constant patch has no response), and
in units of the norm of all P of them. By Cauchy-Schwarz the sum is at most sqrt(P) |x - mean of x|, so sums over rows
whose largest norm is known have a bound, and with `unit`, the root mean square of the norms, psi(x)'psi(x) is at most
one in the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from dkl.cost import MapCost
from dkl.features.gabor_filters import PARAMETERS, Filters, chunks_of, positions_of, work_bytes
from dkl.features.map import Arrays, check_parameters
from dkl.features.rows import dense, finite_inputs

TILE = 512
"""Rows whose responses exist at the same time."""
ROUNDED = 1e-12
"""Rounding of a slope, at most, over the norm of dF: where a parameter moves nothing, a slope is rounding alone."""


def gabor_cost(shape: tuple[int, int], stride: int, filters: int, dtype: Any) -> MapCost:
    """What so many filters cost before they are drawn: one product with all of them at all positions."""
    item, pixels, positions = np.dtype(dtype).itemsize, shape[0] * shape[1], len(positions_of(shape, stride))
    columns, widest = positions * filters, positions * max(len(chunk) for chunk in chunks_of(shape, stride, filters))
    return MapCost(
        features=filters,
        columns=pixels,
        parameter_bytes=pixels * columns * item + 8 * filters * (len(PARAMETERS) + 1),
        flops=2.0 * (pixels + 1) * columns,
        cosines=0,
        scratch_bytes=TILE * (widest + pixels) * item,
        sparse_row_bytes=pixels * item,
        pull_bytes=work_bytes(pixels, widest) + TILE * widest * item,
        pull_flops=4.0 * pixels * columns,
        movable=len(PARAMETERS) * filters,
    )


@dataclass(frozen=True)
class GaborMap:
    """Filters (d,) on patches of a shape, at positions `stride` pixels apart; unit and largest are norms of rows."""

    shape: tuple[int, int]
    stride: int
    orientation: np.ndarray  # of the wave, in radians
    frequency: np.ndarray  # in cycles for each pixel
    along: np.ndarray  # width of the filter in the direction of the wave, in pixels
    across: np.ndarray
    unit: float  # root mean square norm of the rows less their means
    largest: float  # norm of the rows that are summed
    kind: ClassVar[str] = "gabor"

    @property
    def n_inputs(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def n_columns(self) -> int:
        return self.n_inputs

    @property
    def n_features(self) -> int:
        return len(self.orientation)

    @property
    def column_group(self) -> np.ndarray:
        """One kernel."""
        return np.zeros(self.n_features, int)

    @property
    def scale(self) -> float:
        """What keeps features below one."""
        return float(self.largest / self.unit / np.sqrt(self.n_features))

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """orientation, frequency, along and across of every filter."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def with_parameters(self, **new: np.ndarray) -> GaborMap:
        """The map with other values of the named parameters."""
        check_parameters(self, tuple(new))
        return replace(self, **new)  # type: ignore[arg-type]

    @property
    def filters(self) -> Filters:
        """The filters at all positions."""
        return Filters(self.shape, self.stride, *self.parameters.values())

    @property
    def positions(self) -> int:
        """P, at which every filter stands."""
        return len(positions_of(self.shape, self.stride))

    def gradients(self, pulled: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """As they were pulled back."""
        return dict(pulled)

    def pull_bounds(
        self, input_size: np.ndarray, reach: np.ndarray, weight: float, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """By Cauchy-Schwarz and Minkowski: |Psi_bar_j| sum_p sum_k |dF_jpk| |x_k|, and what rounding adds."""
        check_parameters(self, wanted)
        bounds = {name: np.empty(self.n_features) for name in wanted}
        for chunk in self.filters.chunks():
            for name, slopes in chunk.derivatives(wanted).items():
                size = np.abs(chunk.normed(slopes)).reshape(len(input_size), -1, self.positions).sum(axis=2)
                size += ROUNDED * self.positions * chunk.sizes(slopes)
                bounds[name][chunk.own] = reach[chunk.own] * (input_size @ size)
        return {name: values * self.per_response for name, values in bounds.items()}

    @property
    def per_response(self) -> float:
        """What makes a sum of responses a feature without its scale."""
        return float(1 / (np.sqrt(self.positions) * self.largest))

    def cost(self, dtype: Any) -> MapCost:
        """What the map costs in blocks of that dtype."""
        return gabor_cost(self.shape, self.stride, self.n_features, dtype)

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """Plain values and named arrays."""
        about = {"shape": list(self.shape), "stride": self.stride, "unit": self.unit, "largest": self.largest}
        arrays: Arrays = {name: (("filter",), values) for name, values in self.parameters.items()}
        return {"map": {"kind": self.kind}, **about}, arrays

    def at(self, dtype: DTypeLike) -> GaborBlocks:
        """The map ready to be applied to blocks of that dtype."""
        dtype, bank = np.dtype(dtype), np.empty((self.n_inputs, self.n_features * self.positions), dtype)
        for chunk in self.filters.chunks():
            bank[:, chunk.columns] = chunk.bank * self.per_response
        return GaborBlocks(self, bank)


@dataclass(frozen=True)
class GaborBlocks:
    """Features of blocks; column j P + p of the bank is filter j at position p."""

    map: GaborMap
    bank: np.ndarray
    slope_columns: ClassVar[int] = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the map travels; the bank is made again where it arrives."""
        return GaborMap.at, (self.map, self.dtype)

    @property
    def dtype(self) -> np.dtype:
        return self.bank.dtype

    def prepare(self, X: Any) -> Any:
        """Rows in the compute dtype."""
        return finite_inputs(X, self.dtype)

    def write(self, T: Any, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Features of prepared rows into out (rows, d); nothing is kept for `pull`."""
        for rows, columns, own in self._tiles(T.shape[0]):
            self._respond(dense(T[rows]), columns, out[rows, own])

    def _respond(self, rows: np.ndarray, columns: slice, out: np.ndarray) -> None:
        """Absolute responses of some filters, added up over positions."""
        responses = rows @ self.bank[:, columns]
        np.abs(responses, out=responses)
        responses.reshape(len(rows), -1, self.map.positions).sum(axis=2, out=out)

    def _tiles(self, n: int) -> Iterator[tuple[slice, slice, slice]]:
        """Rows and columns of the bank whose responses exist at the same time, and the features that they make."""
        P = self.map.positions
        for chunk in chunks_of(self.map.shape, self.map.stride, self.map.n_features):
            for i in range(0, n, TILE):
                yield slice(i, i + TILE), slice(chunk[0] * P, (chunk[-1] + 1) * P), slice(chunk[0], chunk[-1] + 1)

    def pull(
        self, T: Any, Psi: np.ndarray, slope: np.ndarray, Psi_bar: np.ndarray, wanted: tuple[str, ...]
    ) -> dict[str, np.ndarray]:
        """bank_bar = T' (sign of the responses * Psi_bar), and through the filters to their parameters."""
        check_parameters(self.map, wanted)
        pulled = {name: np.empty(self.map.n_features) for name in wanted}
        for chunk in self.map.filters.chunks():
            bank_bar = np.zeros((T.shape[1], chunk.columns.stop - chunk.columns.start))
            for i in range(0, T.shape[0], TILE):
                rows = dense(T[i : i + TILE])
                signs = rows @ self.bank[:, chunk.columns]
                np.sign(signs, out=signs)
                by_filter = signs.reshape(len(rows), -1, self.map.positions)
                by_filter *= Psi_bar[i : i + TILE, chunk.own, None]
                bank_bar += rows.T @ signs
            bank_bar *= self.map.per_response
            for name, found in chunk.pull(bank_bar, wanted).items():
                pulled[name][chunk.own] = found
        return pulled

    def transform(self, X: Any) -> np.ndarray:
        """psi (rows, d) with its scale."""
        out = np.empty((X.shape[0], self.map.n_features), self.dtype)
        self.write(self.prepare(X), out)
        out *= self.dtype.type(self.map.scale)
        return out
