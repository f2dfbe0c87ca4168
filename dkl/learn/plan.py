"""What a fit will need, before it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan, make_plan
from dkl.engine.shape import Shape
from dkl.kernels import find_kernel
from dkl.sums.gram import most_rows, tile_rows


def plan_sums(
    engine: Any,
    rows: Rows,
    inputs: int,
    outputs: int,
    params: dict,
    dtype: np.dtype,
    is_class: bool,
    calibrate: bool = False,
) -> Plan:
    """The promise for one pass of sums and its solve."""
    d, folds = params["n_components"], params["cv"]
    tile = tile_rows(rows.n_rows, d, dtype)
    column = rows.columns[0]
    shape = Shape(
        rows=rows.n_rows,
        inputs=inputs,
        features=d,
        outputs=outputs,
        folds=folds,
        block=rows.largest_block(tile * folds),
        tile=most_rows(tile),
        paired=params["form"] == "paired",
        is_class=is_class,
        is_lazy=rows.is_lazy,
        dtype=dtype,
        row_bytes=_row_bytes(column.array, inputs),
        alphas=params["alphas"],
        objective=params["objective"],
        by_frequency=params["learn"] == "frequencies",
        reduced=params["reduce"] is not None,
        kept=min(rows.n_rows, params.get("calibrate") or 0),
        terms=1 if find_kernel(params["kernel"]).additive is None else params["n_terms"],
    )
    return make_plan(engine, shape, calibrate)


def _row_bytes(array: Any, inputs: int) -> int:
    """Bytes of a stored row; of sparse rows the mean."""
    if hasattr(array, "row_bytes"):
        return array.row_bytes
    if hasattr(array, "indptr"):
        return -(-(array.data.nbytes + array.indices.nbytes) // array.shape[0])
    return inputs * np.dtype(array.dtype).itemsize
