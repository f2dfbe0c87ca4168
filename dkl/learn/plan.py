"""What a fit will need, before it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan, make_plan
from dkl.engine.shape import Shape
from dkl.kernels import find_kernel
from dkl.kernels.values import is_radial
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
    shape = shape_of(
        rows,
        inputs,
        params["n_components"],
        dtype,
        outputs=outputs,
        folds=params["cv"],
        is_class=is_class,
        alphas=params["alphas"],
        objective=params["objective"],
        by_frequency=params["learn"] == "frequencies",
        reduced=params["reduce"] is not None,
        kept=min(rows.n_rows, params.get("calibrate") or 0),
        **(fourier_size(params) if params["landmarks"] is None else nystroem_size(params)),
    )
    return make_plan(engine, shape, calibrate)


def fourier_size(params: dict) -> dict[str, Any]:
    """What the promise must know of Fourier features."""
    exponentiated = find_kernel(params["kernel"]).additive is not None
    return {"paired": params["form"] == "paired", "terms": params["n_terms"] if exponentiated else 1}


def nystroem_size(params: dict) -> dict[str, Any]:
    """What the promise must know of Nystroem features."""
    swept = not is_radial(find_kernel(params["kernel"]))
    return {"drawn": False, "landmarks": params["n_components"], "swept": swept}


def shape_of(rows: Rows, inputs: int, features: int, dtype: np.dtype, folds: int = 1, **options: Any) -> Shape:
    """The shape of a pass over those rows; options are those of Shape."""
    tile = tile_rows(rows.n_rows, features, dtype)
    return Shape(
        rows=rows.n_rows,
        inputs=inputs,
        features=features,
        folds=folds,
        block=rows.largest_block(tile * folds),
        tile=most_rows(tile),
        is_lazy=rows.is_lazy,
        dtype=dtype,
        row_bytes=_row_bytes(rows.columns[0].array, inputs),
        **options,
    )


def plan_axes(
    engine: Any, tables: Iterable[Rows], inputs: int, features: int, dtype: np.dtype, calibrate: bool = False,
    **options: Any,
) -> Plan:  # fmt: skip
    """The promise for the gram of features and its eigendecomposition: that of the table which needs most."""
    shapes = [shape_of(rows, inputs, features, dtype, reduced=True, **options) for rows in tables]
    return max((make_plan(engine, shape, calibrate) for shape in shapes), key=lambda plan: plan.tightness)


def _row_bytes(array: Any, inputs: int) -> int:
    """Bytes of a stored row; of sparse rows the mean."""
    if hasattr(array, "row_bytes"):
        return array.row_bytes
    if hasattr(array, "indptr"):
        return -(-(array.data.nbytes + array.indices.nbytes) // array.shape[0])
    return inputs * np.dtype(array.dtype).itemsize
