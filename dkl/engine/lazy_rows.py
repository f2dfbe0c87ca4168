"""Rows of which some are lazy, put below one another, or beside one another block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dkl.engine.apply import as_dask
from dkl.engine.tables import Table


def below(tables: Sequence[Table]) -> Table:
    """All rows, one table after the other; a table in memory is one chunk."""
    import dask.array as da

    return Table("dask", da.concatenate([_lazy(one) for one in tables]))


def columns_beside(
    function: Callable[..., np.ndarray], first: Table, second: Table, dtype: Any, token: str, **options: Any
) -> Table:
    """function(values of first, values of second, **options), two columns for each row, in the chunks of second."""
    import dask.array as da

    mine, theirs = as_dask(first) if first.is_lazy else da.from_array(first.array), _lazy(second)
    both = da.map_blocks(
        function, mine.rechunk({0: theirs.chunks[0]}), theirs, new_axis=1, chunks=(theirs.chunks[0], (2,)),
        dtype=dtype, token=token, **options,
    )  # fmt: skip
    return Table("dask", both)


def widened(
    function: Callable[..., Any], X: Table, column: Table, n_columns: int, token: str, **options: Any
) -> Any:  # fmt: skip
    """function(rows of X, column, **options), so many columns for each row, in the chunks of X."""
    import dask.array as da

    rows = as_dask(X)
    own = _lazy(column).rechunk({0: rows.chunks[0]})[:, None]
    return da.map_blocks(
        function, rows, own, chunks=(rows.chunks[0], (n_columns,)),
        dtype=rows.dtype if rows.dtype.kind == "f" else float, meta=rows._meta, token=token, **options,
    )  # fmt: skip


def _lazy(table: Table) -> Any:
    import dask.array as da

    if table.is_lazy:
        return as_dask(table)
    whole = np.asarray(table.array)
    return da.from_array(whole, chunks=(len(whole),) + (-1,) * (whole.ndim - 1))
