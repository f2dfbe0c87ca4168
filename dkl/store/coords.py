"""Coordinates of a source, copied to its data set: along the inputs at once, along the rows block by block."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dkl.sources.batch import SourceError
from dkl.sources.coords import NO_COORDS, TEXT_KINDS, Coords
from dkl.store.dataset import Appender, create_rows

RESERVED = ("X", "y", "row", "channel", "input", "recipe")
"""Names of the arrays and groups that every data set may have."""


def coords_beside(sources: list[Any]) -> list[Coords]:
    """The coordinates of each channel, if each is one source; a channel of several files has none."""
    channels = [file.channel for file in sources]
    if len(set(channels)) < len(channels):
        return []
    return [getattr(file.source, "coords", NO_COORDS) for file in sources]


def renamed(name: str) -> str:
    """The name of a coordinate in the data set."""
    return f"source_{name}" if name in RESERVED else name


class RowCoords:
    """The coordinates of the rows, from the first channel that has them; other channels must agree."""

    def __init__(self, beside: list[Coords]) -> None:
        self.arrays: dict[str, Any] = {}
        self.others: list[tuple[str, Any]] = []
        for coords in beside:
            for name, array in coords.rows.items():
                if name in self.arrays:
                    self.others.append((name, array))
                else:
                    self.arrays[name] = array

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Coordinate values of some rows, by their name in the data set."""
        found = {name: np.asarray(array[start:stop]) for name, array in self.arrays.items()}
        for name, array in self.others:
            mine, other = found[name], np.asarray(array[start:stop])
            differ = np.array([a != b and (a == a or b == b) for a, b in zip(mine, other, strict=True)], bool)
            if differ.any():
                row = int(np.argmax(differ))
                raise SourceError(
                    f"row {start + row} has {name} {mine[row]} in one source and {other[row]} in another; channels are "
                    "the same rows in the same order (use --rows if the sources are further rows of one table)"
                )
        return {renamed(name): values for name, values in found.items()}


def create_coords(
    group: Any, beside: list[Coords], rows: RowCoords, n: int, cut: tuple
) -> tuple[dict[str, Any], list[str]]:  # fmt: skip
    """The empty coordinates of the rows of a split, and the names of all; those of the inputs are written."""
    inputs = beside[0].inputs if len(beside) == 1 else {}
    for name, values in inputs.items():
        write_inputs(group, renamed(name), values)
    arrays = {renamed(name): _create(group, renamed(name), like, n, cut) for name, like in rows.arrays.items()}
    return arrays, [*map(renamed, inputs), *arrays]


def _create(group: Any, name: str, like: Any, n: int, cut: tuple) -> Any:
    dtype = storable(np.asarray(like[:1])).dtype
    array = create_rows(group, name, (n,), dtype, cut, ["row"])
    array.attrs.update({k: v for k, v in dict(like.attrs).items() if k in ("units", "calendar", "long_name")})
    return array


class CoordWriter:
    """Coordinates of one split while they are written in row order."""

    def __init__(self, arrays: dict[str, Any], pool: ThreadPoolExecutor) -> None:
        self.appenders = {name: Appender(array, pool) for name, array in arrays.items()}

    def add(self, values: dict[str, np.ndarray], mask: np.ndarray) -> None:
        """Append the values of this split's rows."""
        for name, appender in self.appenders.items():
            if mask.any():
                appender.add(storable(values[name][mask]))

    def close(self) -> None:
        """Write the remaining values."""
        for appender in self.appenders.values():
            appender.close()


def write_inputs(group: Any, name: str, values: np.ndarray) -> Any:
    """Write an array along the inputs."""
    values = storable(values)
    array = create_rows(group, name, values.shape, values.dtype, (max(1, len(values)), None), ["input"])
    array[:] = values
    return array


def storable(values: np.ndarray) -> np.ndarray:
    """Texts as variable-length strings, which Zarr 3 stores; numbers unchanged."""
    return values.astype(np.dtypes.StringDType()) if values.dtype.kind in TEXT_KINDS else values
