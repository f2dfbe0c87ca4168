"""Labelled arrays on disk: an xarray Dataset or DataArray whose numbers are arrays, and whose texts are JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.estimators.stored import ABSENT, Record, Stored


@dataclass(frozen=True)
class Labelled(Stored):
    """A Dataset, or (single=True) a DataArray. Its variables and coordinates go under its own name."""

    single: bool = False

    def write(self, attribute: str, value: Any, to: Record) -> None:
        """Numbers as arrays, texts and meanings as JSON."""
        key = self.key(attribute)
        table = value.to_dataset(name="values") if self.single else value
        about: dict[str, Any] = {"coords": [str(name) for name in table.coords], "texts": {}, "meanings": {}}
        for name, column in table.variables.items():
            if column.dtype.kind in "fiub":
                to.add(f"{key}_{name}", tuple(map(str, column.dims)), column.values)
            else:
                texts = list(map(str, column.values.ravel().tolist()))
                about["texts"][str(name)] = [list(map(str, column.dims)), texts]
            if "long_name" in column.attrs:
                about["meanings"][str(name)] = str(column.attrs["long_name"])
        about["dims"] = {str(n): list(map(str, c.dims)) for n, c in table.variables.items() if c.dtype.kind in "fiub"}
        to.fitted[key] = about

    def read(self, attribute: str, record: Record) -> Any:
        """The same again."""
        import xarray as xr

        key = self.key(attribute)
        if self.optional and key not in record.fitted:
            return ABSENT
        about = record.fitted[key]
        found = {str(name): (tuple(dims), record.arrays[f"{key}_{name}"]) for name, dims in about["dims"].items()}
        found |= {str(name): (tuple(dims), np.array(texts, np.str_)) for name, (dims, texts) in about["texts"].items()}
        meanings, coords = about["meanings"], set(about["coords"])
        said = {n: (*v, {"long_name": meanings[n]} if n in meanings else {}) for n, v in found.items()}
        table = xr.Dataset(
            {name: v for name, v in said.items() if name not in coords},
            coords={name: v for name, v in said.items() if name in coords},
        )
        return table["values"].rename(None) if self.single else table
