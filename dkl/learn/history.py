"""What happened while something was learned: one row for each iteration, kept as columns and shown as xarray.

A method says which columns it fills (`Method.history`); the loop adds seconds, rows and passes to every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Column(NamedTuple):
    """What a column holds; `dim` names the dimension of a column of vectors."""

    meaning: str
    dim: str | None = None
    whole: bool = False  # whether it holds whole numbers
    optional: bool = False  # whether a row may lack it; NaN then


COUNTED: dict[str, Column] = {
    "seconds": Column("time since the beginning of the fit's learning"),
    "rows": Column("rows of the passes", whole=True),
    "passes": Column("passes over those rows so far", whole=True),
}
"""Columns that the loop fills for every method."""


class History:
    """Rows that are appended to, and columns to keep or to show."""

    def __init__(self, columns: Mapping[str, Column], values: Mapping[str, np.ndarray] | None = None) -> None:
        self.about = {**columns, **{name: column for name, column in COUNTED.items() if name not in columns}}
        self.columns: dict[str, list[Any]] = {
            name: [] if values is None else list(values[name]) for name in self.about
        }  # fmt: skip

    def __len__(self) -> int:
        return len(self.columns["rows"])

    @property
    def last(self) -> dict[str, Any]:
        """The last row."""
        return {name: values[-1] for name, values in self.columns.items()}

    def append(self, row: Mapping[str, Any]) -> None:
        """One iteration."""
        for name, values in self.columns.items():
            values.append(row.get(name, float("nan")) if self.about[name].optional else row[name])

    def end_at(self, objective: float) -> None:
        """Let the last row be the one that was kept: of several starts it may have been another."""
        column = self.columns["objective"]
        if column[-1] != objective:
            kept = column.index(objective)
            for name, values in self.columns.items():
                values.append(values[-1] if name in ("seconds", "passes") else values[kept])

    def arrays(self) -> dict[str, np.ndarray]:
        """Columns as arrays."""
        return {name: np.asarray(values, np.float64) for name, values in self.columns.items()}


def history_dataset(
    about: Mapping[str, Column], arrays: Mapping[str, np.ndarray], coords: Mapping[str, Mapping[str, Any]]
) -> Any:
    """The columns as an xarray Dataset; `coords` has, for a dimension, coordinates along it: names of inputs, say."""
    import xarray as xr

    variables: dict[str, Any] = {}
    for name, values in arrays.items():
        column = about.get(name) or COUNTED.get(name) or Column(name.replace("_", " "))
        dims = ("iteration",) if values.ndim == 1 else ("iteration", column.dim or f"{name}_index")
        variables[name] = dims, values.astype(int) if column.whole else values, {"long_name": column.meaning}
    along = {name: ((dim,), np.asarray(values)) for dim, some in coords.items() for name, values in some.items()}
    count = len(next(iter(arrays.values())))
    return xr.Dataset(variables, coords={"iteration": np.arange(count), **along})
