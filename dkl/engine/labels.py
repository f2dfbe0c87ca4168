"""Row labels: whether y, weights and folds have the same rows as X.

xarray aligns by label, so labels that disagree are refused. pandas users often align by position (a fresh index, a
shifted target), so there only the same labels in another order are refused: position and label then contradict each
other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

UNNAMED_DIM = re.compile(r"dim_\d+")
"""xarray's name of an unnamed dimension."""


@dataclass(frozen=True)
class RowLabels:
    """Labels of rows: dimensions (rows first), the index along the rows, and their other coordinates."""

    kind: str  # xarray, pandas or zarr
    dims: tuple[str, ...] = ()
    index: Any = None  # a pandas.Index
    others: Mapping[str, Any] = field(default_factory=dict)


def pandas_rows(X: Any) -> RowLabels | None:
    """The index of a pandas object; None for anything else."""
    if not hasattr(X, "index") or not hasattr(X, "iloc") or hasattr(X, "__dask_graph__"):
        return None
    return RowLabels("pandas", (), X.index)


def xarray_rows(array: Any) -> RowLabels:
    """Dimensions and labels of a DataArray."""
    dims = tuple(map(str, array.dims))
    index = array.indexes.get(array.dims[0]) if array.dims else None
    mine = {str(k): c for k, c in array.coords.items() if array.dims and c.dims == (array.dims[0],)}
    known = {} if index is not None else {k: c for k, c in mine.items() if not hasattr(c.data, "__dask_graph__")}
    return RowLabels("xarray", dims, index, known)


def refuse_other_rows(X: Any, other: Any, name: str, whose: str = "X") -> None:
    """Refuse a table whose rows are not those of X, or are along another dimension."""
    if other is None or X.rows is None:
        return
    if X.rows.dims:
        _refuse_dims(X, other, name, whose)
    if other.rows is None:
        return
    mine, theirs = X.rows, other.rows
    if mine.index is not None and theirs.index is not None:
        if mine.kind == theirs.kind == "xarray":
            _refuse_labels(mine.index, theirs.index, mine.dims[0], name, whose)
        else:
            _refuse_order(mine.index, theirs.index, name, whose)
    for key in mine.others:
        if key in theirs.others:
            _refuse_coordinate(mine.others[key], theirs.others[key], key, name, whose)


def _refuse_dims(X: Any, other: Any, name: str, whose: str) -> None:
    """Refuse rows that are not the first dimension, or have another dimension name than those of X."""
    dims = X.rows.dims
    given = () if other.rows is None else other.rows.dims
    if len(dims) == 2 and not given and other.array.shape[0] == X.array.shape[1] != X.array.shape[0]:
        raise ValueError(
            f"{whose} has dims ({', '.join(dims)}) and shape {X.array.shape}, {name} has {other.array.shape[0]} rows; "
            f"rows come first: {_transposed(whose, dims)}"
        )
    if not given or given[0] == dims[0]:
        return
    if len(dims) == 2 and given[0] == dims[1]:
        raise ValueError(
            f"{whose} has dims ({', '.join(dims)}), and {name} is along {given[0]!r}, so rows are {given[0]!r}; rows "
            f"come first: {_transposed(whose, dims)}"
        )
    if dims[0] in given:
        raise ValueError(
            f"{name} has dims ({', '.join(given)}), and rows of {whose} are {dims[0]!r}; rows come first: "
            f"{_transposed(name, given)}"
        )
    named = X.rows.kind == other.rows.kind == "xarray" and not any(map(UNNAMED_DIM.fullmatch, (dims[0], given[0])))
    if named:
        raise ValueError(
            f"rows of {whose} are along {dims[0]!r}, those of {name} along {given[0]!r}; if they are the same rows, "
            f"use {name}.rename({{{given[0]!r}: {dims[0]!r}}})"
        )


def _transposed(name: str, dims: tuple[str, ...]) -> str:
    return f"use {name}.transpose({', '.join(map(repr, dims[::-1]))})"


def _refuse_labels(mine: Any, theirs: Any, dim: str, name: str, whose: str) -> None:
    if mine.equals(theirs):
        return
    align = f"use {whose}, {name} = xr.align({whose}, {name}, join='inner')"
    if len(mine) != len(theirs):
        raise ValueError(
            f"{whose} has {len(mine)} rows along {dim!r}, {name} has {len(theirs)}: inconsistent numbers of samples; "
            f"{align}"
        )
    place = _first(mine, theirs)
    where = f"at row {place} {whose} has {dim}={_shown(mine[place])} and {name} has {dim}={_shown(theirs[place])}"
    if _same_set(mine, theirs):
        align = f"they are the same labels in another order: use {name}.reindex_like({whose}[{dim!r}])"
    raise ValueError(f"rows of {whose} and {name} disagree: {where}; {align}, or {name}.data to align by position")


def _refuse_order(mine: Any, theirs: Any, name: str, whose: str) -> None:
    if len(mine) != len(theirs) or mine.equals(theirs) or not _same_set(mine, theirs):
        return
    place = _first(mine, theirs)
    raise ValueError(
        f"rows of {whose} and {name} have the same index labels in another order: at row {place} {whose} has "
        f"{_shown(mine[place])} and {name} has {_shown(theirs[place])}; use {name}.reindex({whose}.index), or "
        f"{name}.to_numpy() to align by position"
    )


def _refuse_coordinate(mine: Any, theirs: Any, key: str, name: str, whose: str) -> None:
    """Compare a row coordinate that is not an index."""
    import pandas as pd

    a, b = pd.Index(mine.values), pd.Index(theirs.values)
    if len(a) != len(b) or a.equals(b):
        return
    place = _first(a, b)
    raise ValueError(
        f"rows of {whose} and {name} disagree: at row {place} {whose} has {key}={_shown(a[place])} and {name} has "
        f"{key}={_shown(b[place])}; put them in the same order, or use {name}.drop_vars({key!r}) if they already are"
    )


def _same_set(mine: Any, theirs: Any) -> bool:
    return bool(mine.is_unique and theirs.is_unique and mine.isin(theirs).all())


def _first(mine: Any, theirs: Any) -> int:
    """Where two indexes of the same length first differ; missing labels are equal."""
    for place, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a is not b and not (a == b or (a != a and b != b)):
            return place
    return int(np.argmax(np.asarray(mine != theirs)))


def _shown(label: Any) -> str:
    return repr(label) if isinstance(label, (str, tuple)) else str(label)
