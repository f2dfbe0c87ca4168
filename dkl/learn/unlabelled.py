"""Rows without y that help to shape the axes: their gram, kept where the solve runs until the weights are solved for.

U from H_a = G_a - m_a m_a'/w_a of all rows;   ridge of the labelled rows within U
"""

from __future__ import annotations

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.handles import Reply
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine, Ref
from dkl.features.map import FeatureMap
from dkl.solvers.ridge import Moments
from dkl.sums.scatter import ScatterProgram, ScatterSums
from dkl.sums.symmetric import unpack

NAME = "X_unlabelled"


def sum_unlabelled(
    engine: Engine, rows: Rows, features: FeatureMap, dtype: np.dtype, progress: Progress
) -> Ref[ScatterSums]:
    """A reference to the sums of one pass."""
    program = ScatterProgram((features.at(dtype),), rows.n_rows, rows.n_rows, NAME)
    sums = engine.sum(program, rows, progress.name(f"adding up {NAME}"))
    reply: Reply[None] = engine.solve(hold, sums)
    kept: Ref[ScatterSums] = reply.kept["unlabelled"]
    return kept


def hold(sums: ScatterSums) -> Reply[None]:
    """The sums stay where they are; a row that was refused is raised here."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    return Reply(None, {"unlabelled": sums})


def with_unlabelled(S: Moments, more: ScatterSums | None, scale: float, unit: float) -> Moments:
    """S with the features of rows that weigh one each, in units of weight; targets are left as they are."""
    if more is None:
        return S
    gram = unpack(more.gram, len(S.feature_sum)) * (scale * scale / unit)
    feature_sum = more.feature_sum * (scale / unit)
    return S._replace(
        weight=S.weight + float(more.rows[0]) / unit, gram=S.gram + gram, feature_sum=S.feature_sum + feature_sum
    )
