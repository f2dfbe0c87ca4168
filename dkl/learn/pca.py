"""Principal axes of a feature map: one pass over the rows, one eigendecomposition where the solve runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.features.fourier import FourierBlocks, FourierMap
from dkl.solvers.axes import principal_axes
from dkl.sums.scatter import ScatterProgram, ScatterSums
from dkl.sums.symmetric import unpack


class Principal(NamedTuple):
    """What comes back from the solve, for scaled features."""

    mean: np.ndarray  # (d,)
    axes: np.ndarray  # (d, r)
    variances: np.ndarray  # (r,)
    total: float  # variance of all features together


class Projected:
    """The block function (psi(x) - mean) U."""

    def __init__(self, features: FourierBlocks, mean: np.ndarray, axes: np.ndarray) -> None:
        self.features = features
        self.axes = np.ascontiguousarray(axes * features.map.scale, features.dtype)
        self.offset = (mean @ axes).astype(features.dtype)

    def __call__(self, X: Any) -> np.ndarray:
        T = self.features.prepare(X)
        Psi = np.empty((T.shape[0], self.features.map.n_features), self.features.dtype)
        self.features.write(T, Psi)
        return Psi @ self.axes - self.offset


def learn_axes(
    engine: Any, tables: list[Rows], features: FourierMap, dtype: np.dtype, wanted: float | str, progress: Progress
) -> Principal:
    """One pass over each of the tables; their sums are one."""
    sums, total = None, sum(rows.n_rows for rows in tables)
    for rows in tables:
        program = ScatterProgram(features.at(dtype), rows.n_rows, total)
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
