"""X_unlabelled: rows without y, which help to find the axes that `reduce` keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.protocol import Ref
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, with_known_rows
from dkl.estimators.inputs import read_inputs
from dkl.learn.unlabelled import NAME, sum_unlabelled
from dkl.prepare.prepared import Prepared
from dkl.sums.scatter import ScatterSums


def read_unlabelled(model: Any, X_unlabelled: Any) -> Table | None:
    """The rows, if there are any, of the width of X."""
    if X_unlabelled is None:
        return None
    if model.reduce is None:
        raise ValueError(
            f"{NAME} helps to find principal axes, and reduce={model.reduce!r} keeps all; use e.g. reduce=500"
        )
    return with_known_rows(read_inputs(model, X_unlabelled, reset=False, name=NAME))


@contextmanager
def unlabelled_sums(
    more: Table | None, is_lazy: bool, place: str, data: Prepared, progress: Progress
) -> Iterator[Ref[ScatterSums] | None]:
    """A reference to their sums while inside, by the engine that adds up X; None without rows."""
    if more is None:
        yield None
        return
    engine = engine_for(is_lazy, place)
    try:
        yield sum_unlabelled(engine, Rows([more], [NAME]), data.features, data.dtype, progress)
    finally:
        engine.forget()
