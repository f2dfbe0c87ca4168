"""Principal axes of a feature map: one pass over the rows, one eigendecomposition where the solve runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.features.map import FeatureMap
from dkl.solvers.axes import principal_axes
from dkl.sums.scatter import ScatterProgram, ScatterSums
from dkl.sums.symmetric import packed_size, unpack


class Principal(NamedTuple):
    """What comes back from the solve, for scaled features."""

    mean: np.ndarray  # (d,)
    axes: np.ndarray  # (d, r)
    variances: np.ndarray  # (r,)
    total: float  # variance of all features together


def learn_axes(
    engine: Engine,
    tables: dict[str, Rows],
    features: FeatureMap,
    dtype: np.dtype,
    wanted: float | str,
    progress: Progress,
) -> Principal:
    """One pass over each of the tables, which go by their names."""
    [found] = find_axes(engine, tables, (features,), dtype, wanted, progress.name("adding up features"))
    return found


def find_axes(
    engine: Engine,
    tables: dict[str, Rows],
    maps: tuple[FeatureMap, ...],
    dtype: np.dtype,
    wanted: float | str,
    progress: Progress,
    total: float | None = None,
) -> list[Principal]:
    """The axes of each map by itself, from one pass over each of the tables; their sums are one."""
    sums, n = None, sum(rows.n_rows for rows in tables.values())
    blocks = tuple(one.at(dtype) for one in maps)
    for name, rows in tables.items():
        part = engine.sum(ScatterProgram(blocks, rows.n_rows, n, name), rows, progress)
        sums = part if sums is None else engine.combine(sums, part)
    widths, scales = [one.n_features for one in maps], [one.scale for one in maps]
    asked = {"wanted": wanted, "narrow": dtype == np.float32, "total": total}
    assert sums is not None  # there is at least one table
    with progress.waiting(f"finding the axes of {sum(widths):,} features"):
        found: list[Principal] = engine.solve(solve_axes, sums, widths=widths, scales=scales, **asked)
    return found


def solve_axes(
    sums: ScatterSums,
    *,
    widths: list[int],
    scales: list[float],
    wanted: float | str,
    narrow: bool,
    total: float | None,
) -> list[Principal]:
    """Mean, axes and variances of each map, as scikit-learn's PCA counts them: over n - 1."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    n, found, start, begin = float(sums.rows[0]), [], 0, 0
    for d, scale in zip(widths, scales, strict=True):
        mean = sums.feature_sum[begin : begin + d] * (scale / n)
        packed = sums.gram[start : start + packed_size(d)]
        gram = unpack(packed, d) * (scale * scale) - n * np.outer(mean, mean)
        removed = n * float(mean @ mean)
        axes = principal_axes(gram, wanted, narrow, n, removed, None if total is None else total * (n - 1))
        found.append(Principal(mean, axes.vectors, axes.energies / (n - 1), axes.total / (n - 1)))
        start, begin = start + len(packed), begin + d
    return found
