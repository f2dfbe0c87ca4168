"""One small solve: function(sums, **options) on one BLAS thread, for sums of rows that could all be taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dkl.engine.protocol import R, Sums
from dkl.engine.threads import one_blas_thread


def solve_sums(function: Callable[..., R], sums: Sums, options: Mapping[str, object]) -> R:
    """function(sums, **options); a row that the pass has refused is raised instead."""
    if sums.refusal is not None:
        raise ValueError(sums.refusal[1])
    with one_blas_thread():
        return function(sums, **options)
