"""Features written by workers: each its own chunks of the array `X` of a Zarr group, which a fit takes as rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkl.store.regions import ZarrRegions

FEATURES = "dkl-features"
LEAST, MOST = 256, 2048
"""Rows of a chunk, if some number between them divides a block."""


@dataclass(frozen=True)
class FeatureRegions(ZarrRegions):
    """Rows of that many features of one type."""

    FORMAT = FEATURES

    columns: int
    dtype: np.dtype

    def _lay_out(self) -> None:
        group, d = self.create(), self.columns
        chunk = max((rows for rows in range(LEAST, MOST + 1) if self.block % rows == 0), default=self.block)
        group.create_array(
            "X", shape=(self.rows, d), dtype=self.dtype, chunks=(chunk, d), dimension_names=["row", "feature"]
        )

    def _put(self, start: int, block: np.ndarray) -> None:
        import zarr

        zarr.open_group(self.place, mode="r+")["X"][start : start + len(block)] = block
