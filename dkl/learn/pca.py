"""Principal axes of a feature map: one pass over the rows, one eigendecomposition where the solve runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.features.blocks import FeatureMap
from dkl.solvers.axes import principal_axes
from dkl.sums.scatter import ScatterProgram, ScatterSums
from dkl.sums.symmetric import unpack


class Principal(NamedTuple):
    """What comes back from the solve, for scaled features."""

    mean: np.ndarray  # (d,)
    axes: np.ndarray  # (d, r)
    variances: np.ndarray  # (r,)
    total: float  # variance of all features together


def learn_axes(
    engine: Any, tables: dict[str, Rows], features: FeatureMap, dtype: np.dtype, wanted: float | str, progress: Progress
) -> Principal:
    """One pass over each of the tables, which go by their names; their sums are one."""
    sums, total = None, sum(rows.n_rows for rows in tables.values())
    for name, rows in tables.items():
        program = ScatterProgram(features.at(dtype), rows.n_rows, total, name)
        part = engine.sum(program, rows, progress.name("adding up features"))
        sums = part if sums is None else engine.combine(sums, part)
    narrow = dtype == np.float32
    with progress.waiting(f"finding the axes of {features.n_features:,} features"):
        return engine.solve(solve_axes, sums, scale=features.scale, wanted=wanted, narrow=narrow)


def solve_axes(sums: ScatterSums, *, scale: float, wanted: float | str, narrow: bool) -> Principal:
    """Mean, axes and variances, as scikit-learn's PCA counts them: over n - 1."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    n = float(sums.rows[0])
    mean = sums.feature_sum * (scale / n)
    gram = unpack(sums.gram, len(mean)) * (scale * scale) - n * np.outer(mean, mean)
    axes = principal_axes(gram, wanted, narrow, n)
    return Principal(mean, axes.vectors, axes.energies / (n - 1), axes.total / (n - 1))
