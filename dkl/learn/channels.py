"""Principal axes of several channels in two passes, without the gram of all features together.

pass 1   H_i = U_i D_i U_i' of every channel by itself (l d^2 numbers, not (l d)^2)
pass 2   Z = [(psi_i - mean_i) U_i], the gram of all of them is V D V'
axes     diag(U_1, U_2 ...) V: those of all features together if every channel keeps all of its own
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.features.projected import ProjectedMap
from dkl.features.side_by_side import SideBySide
from dkl.learn.pca import Principal, find_axes


def learn_channel_axes(
    engine: Engine,
    tables: dict[str, Rows],
    features: SideBySide,
    dtype: np.dtype,
    wanted: float | str,
    per_channel: float | str,
    progress: Progress,
    promise: Callable[[int], None],
) -> Principal:
    """Two passes over each of the tables; `promise` is told the width of the second before it runs."""
    own = find_axes(engine, tables, features.channels, dtype, per_channel, progress.name("adding up each channel"))
    total = sum(one.total for one in own)
    unit = _unit(own, sum(rows.n_rows for rows in tables.values()))
    projected = SideBySide(
        tuple(
            ProjectedMap(channel, one.mean, one.axes, unit) for channel, one in zip(features.channels, own, strict=True)
        )
    )
    promise(projected.n_features)
    together = progress.name("adding up all channels")
    [joint] = find_axes(engine, tables, (projected,), dtype, wanted, together, total)
    cuts = np.cumsum([len(one.variances) for one in own])[:-1]
    turned = zip(own, np.split(joint.axes, cuts), strict=True)
    axes = np.concatenate([one.axes @ rotation for one, rotation in turned])
    return Principal(np.concatenate([one.mean for one in own]), axes, joint.variances, total)


def _unit(own: list[Principal], n: int) -> float:
    """The root mean square of the largest axis: by Cauchy-Schwarz |sum z_i z_j| <= n in this unit, over any rows."""
    largest = max(float(one.variances[0]) for one in own)
    return float(np.sqrt(largest * (n - 1) / n)) or 1.0


def along_axes(
    engine: Engine,
    tables: dict[str, Rows],
    features: SideBySide,
    dtype: np.dtype,
    per_channel: float | str,
    progress: Progress,
) -> SideBySide:
    """Every map along its own principal axes, from one pass; their unit holds whatever the rows weigh."""
    own = find_axes(engine, tables, features.channels, dtype, per_channel, progress.name("adding up each channel"))
    maps = zip(features.channels, own, strict=True)
    return SideBySide(
        tuple(ProjectedMap(one, found.mean, found.axes, 2 * one.scale * one.n_features**0.5) for one, found in maps)
    )
