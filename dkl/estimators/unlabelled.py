"""X_unlabelled at the door: rows without y, which shape the axes that `reduce` keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.inputs import read_inputs
from dkl.features.blocks import FeatureMap
from dkl.learn.unlabelled import NAME, sum_unlabelled


def read_unlabelled(model: Any, X_unlabelled: Any, X: Table) -> Table | None:
    """The rows, if there are any, of the width of X and as lazy as it is."""
    if X_unlabelled is None:
        return None
    if model.reduce is None:
        raise ValueError(f"{NAME} shapes principal axes, and reduce=None keeps all; say how many: reduce=500")
    table = with_known_rows(read_inputs(model, X_unlabelled, reset=False, name=NAME))
    check_alike(X, table)
    return table


def check_alike(X: Table, more: Table) -> None:
    """Both in memory, or both on disk or in a graph: one engine adds them up."""
    if more.is_lazy != X.is_lazy:
        raise ValueError(f"X and {NAME} must both be in memory, or both lazy (Dask, Zarr)")


@contextmanager
def unlabelled_sums(
    more: Table | None, place: str, features: FeatureMap, dtype: np.dtype, progress: Progress
) -> Iterator[Any]:
    """A handle of their sums while inside; None without rows."""
    if more is None:
        yield None
        return
    engine = engine_for(more.is_lazy, place)
    try:
        yield sum_unlabelled(engine, Rows([more], [NAME]), features, dtype, progress)
    finally:
        engine.forget()
