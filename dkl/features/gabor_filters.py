"""Gabor filters at every position of a grid, as columns (pixels, filters x positions), and their derivatives.

Filters are made a few at a time: a chunk of them, with its derivatives, takes a few MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

PARAMETERS = ("orientation", "frequency", "along", "across")
ENTRIES = 2**18
"""Entries of a chunk of filters, about."""
FAINT = 1e-9
"""Filters whose entries differ by less from their mean are constant: they respond to nothing."""


def positions_of(shape: tuple[int, int], stride: int) -> np.ndarray:
    """(P, 2): row and column of every position, `stride` pixels apart, around the middle of the patch."""
    axes = []
    for side in shape:
        count = max(1, side // stride)
        axes.append((side - 1) / 2 + stride * (np.arange(count) - (count - 1) / 2))
    rows, columns = np.meshgrid(*axes, indexing="ij")
    return np.column_stack([rows.ravel(), columns.ravel()])


def chunks_of(shape: tuple[int, int], stride: int, filters: int) -> list[range]:
    """Filters that are made together, by number."""
    each = shape[0] * shape[1] * len(positions_of(shape, stride))
    step = max(1, ENTRIES // each)
    return [range(i, min(i + step, filters)) for i in range(0, filters, step)]


def work_bytes(pixels: int, columns: int) -> int:
    """Bytes of a chunk of so many columns, with its derivatives and their cotangent."""
    return 8 * 10 * pixels * columns


@dataclass(frozen=True)
class Filters:
    """Filters by their parameters (d,), on patches of a shape."""

    shape: tuple[int, int]
    stride: int
    orientation: np.ndarray
    frequency: np.ndarray
    along: np.ndarray
    across: np.ndarray

    def chunks(self) -> Iterator[FilterChunk]:
        """A few filters at a time, in order."""
        place = positions_of(self.shape, self.stride)
        rows, columns = np.divmod(np.arange(self.shape[0] * self.shape[1]), self.shape[1])
        y, z = rows[:, None] - place[:, 0], columns[:, None] - place[:, 1]
        for chunk in chunks_of(self.shape, self.stride, len(self.orientation)):
            own = slice(chunk[0], chunk[-1] + 1)
            yield FilterChunk(own, z, y, *(getattr(self, name)[own] for name in PARAMETERS))


@dataclass(frozen=True)
class FilterChunk:
    """Some of the filters; arrays are (pixels, filters x positions), filter by filter."""

    own: slice
    z: np.ndarray  # (pixels, P): columns from the position
    y: np.ndarray  # rows
    orientation: np.ndarray
    frequency: np.ndarray
    along: np.ndarray
    across: np.ndarray

    @property
    def columns(self) -> slice:
        """Of the bank of all filters."""
        P = self.z.shape[1]
        return slice(self.own.start * P, self.own.stop * P)

    def _each(self, values: np.ndarray) -> np.ndarray:
        """One value for each column."""
        return np.repeat(values, self.z.shape[1])

    @cached_property
    def _turned(self) -> tuple[np.ndarray, np.ndarray]:
        """z0 and y0: pixels in the directions of the wave and across."""
        cos, sin = self._each(np.cos(self.orientation)), self._each(np.sin(self.orientation))
        z, y = (np.tile(one, len(self.orientation)) for one in (self.z, self.y))
        return z * cos + y * sin, y * cos - z * sin

    @cached_property
    def _envelope(self) -> np.ndarray:
        z0, y0 = self._turned
        square = (z0 / self._each(self.along)) ** 2 + (y0 / self._each(self.across)) ** 2
        return np.asarray(np.exp(-square / 2))

    @cached_property
    def _angle(self) -> np.ndarray:
        return np.asarray(2 * np.pi * self._each(self.frequency) * self._turned[0])

    @cached_property
    def plain(self) -> np.ndarray:
        """F, as the formula has it."""
        return np.asarray(self._envelope * np.cos(self._angle))

    @cached_property
    def _per_norm(self) -> np.ndarray:
        """One over the norm of each filter at all positions, for each column; 0 of a filter that is constant."""
        centred = self.plain - self.plain.mean(axis=0)
        square = (centred * centred).sum(axis=0).reshape(len(self.orientation), -1).sum(axis=1)
        seen = square > FAINT**2 * self.plain.size / len(self.orientation)
        return self._each(np.where(seen, 1 / np.sqrt(np.where(seen, square, 1.0)), 0.0))

    @cached_property
    def bank(self) -> np.ndarray:
        """F less its mean over the patch, in units of the norm of the filter at all positions."""
        return np.asarray((self.plain - self.plain.mean(axis=0)) * self._per_norm)

    def normed(self, slopes: np.ndarray) -> np.ndarray:
        """dbank of dF."""
        moved = (slopes - slopes.mean(axis=0)) * self._per_norm
        return np.asarray(moved - self.bank * self._along_bank(moved))

    def sizes(self, slopes: np.ndarray) -> np.ndarray:
        """The norm of dF of each filter at all positions, in units of that of F."""
        square = ((slopes * self._per_norm) ** 2).sum(axis=0).reshape(len(self.orientation), -1).sum(axis=1)
        return np.asarray(np.sqrt(square))

    def _along_bank(self, columns: np.ndarray) -> np.ndarray:
        """<columns, bank> of each filter, for each column."""
        shares = (columns * self.bank).sum(axis=0).reshape(len(self.orientation), -1).sum(axis=1)
        return self._each(shares)

    def derivatives(self, wanted: tuple[str, ...]) -> dict[str, np.ndarray]:
        """dF of each wanted parameter."""
        (z0, y0), f = self._turned, 2 * np.pi * self._each(self.frequency)
        along, across = self._each(self.along), self._each(self.across)
        wave = -self._envelope * np.sin(self._angle)
        make = {
            "orientation": lambda: self.plain * z0 * y0 * (across**-2 - along**-2) + wave * f * y0,
            "frequency": lambda: wave * 2 * np.pi * z0,
            "along": lambda: self.plain * z0**2 / along**3,
            "across": lambda: self.plain * y0**2 / across**3,
        }
        return {name: make[name]() for name in PARAMETERS if name in wanted}

    def pull(self, bank_bar: np.ndarray, wanted: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Of each wanted parameter: the slope of <bank_bar, bank>, filter by filter."""
        bar = (bank_bar - self.bank * self._along_bank(bank_bar)) * self._per_norm
        bar -= bar.mean(axis=0)
        slopes = self.derivatives(wanted).items()
        return {name: (bar * dF).sum(axis=0).reshape(len(self.orientation), -1).sum(axis=1) for name, dF in slopes}
