"""X as a list of arrays, each a channel: their columns side by side, of rows that are the same.

The result has the kind of the arrays: numpy, scipy.sparse, Dask, xarray or a dataframe, pandas or Dask. Labels of rows
are compared (estimators/channel_labels.py); names of inputs are kept, with that of their channel before them if two
channels have an input of one name. A DataArray's own name is that of its channel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dkl.engine.labels import refuse_other_rows
from dkl.engine.tables import labelled_rows
from dkl.estimators.channel_labels import input_names, refuse_other_channels, refuse_other_index, unique_names


class Listed(NamedTuple):
    """What the arrays of a list are called, and how many columns each has."""

    names: tuple[str, ...]
    widths: tuple[int, ...]


def is_channels(X: Any) -> bool:
    """Whether X is a list of two-dimensional arrays; a list of rows is not."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(len(getattr(one, "shape", ())) == 2 for one in X)


def listed(X: Any) -> Listed | None:
    """The channels of a list of arrays; None if X is one array."""
    if not is_channels(X):
        return None
    names = [str(one.name) for one in X if hasattr(one, "dims") and one.name is not None]
    if len(set(names)) < len(X):
        names = [str(i) for i in range(len(X))]
    return Listed(tuple(names), tuple(int(one.shape[1]) for one in X))


def side_by_side(X: Any, expected: Listed | None = None) -> Any:
    """All columns of a list of arrays, as one array of their kind; anything else as it is.

    expected: the channels of the fit.
    """
    found = listed(X)
    if found is None:
        return X
    if 0 in found.widths:
        raise ValueError(f"X[{found.widths.index(0)}] has no column; leave it out, or give a channel one input or more")
    if expected is not None:
        refuse_other_channels(found, expected)
    _refuse_other_rows(X)
    if any(_is_dask_frame(one) for one in X):
        return _dask_frames(X, found.names)
    if any(hasattr(one, "dims") for one in X):
        return _labelled(X, found.names)
    if all(hasattr(one, "columns") for one in X):
        return _frames(X, found.names)
    return _arrays(X)


def _is_dask_frame(one: Any) -> bool:
    return hasattr(one, "dask") and hasattr(one, "columns")


def _refuse_other_rows(X: Any) -> None:
    """Refuse channels of different lengths, or whose rows have other labels."""
    counts = [None if _is_dask_frame(one) else one.shape[0] for one in X]
    for i, count in enumerate(counts):
        if count is not None and count != counts[0] and counts[0] is not None:  # of Dask, nan is not even itself
            raise ValueError(f"X[0] has {counts[0]} rows and X[{i}] has {count}; all channels need the same rows")
    frames = [(i, one) for i, one in enumerate(X) if hasattr(one, "iloc") and not _is_dask_frame(one)]
    for i, frame in frames[1:]:
        refuse_other_index(frames[0][1].index, frame.index, frames[0][0], i)
    tables = [labelled_rows(one) for one in X]
    first = next((i for i, table in enumerate(tables) if table.rows is not None), 0)
    for i, table in enumerate(tables):
        if i != first:
            refuse_other_rows(tables[first], table, f"X[{i}]", f"X[{first}]")


def _arrays(X: Any) -> Any:
    """Numpy, Dask or sparse arrays beside each other."""
    if any(hasattr(one, "dask") for one in X):
        import dask.array as da

        rows = next(one for one in X if hasattr(one, "dask")).chunks[0]
        lazy = [(one if hasattr(one, "dask") else da.from_array(one)).rechunk((rows, -1)) for one in X]
        return da.concatenate(lazy, axis=1).rechunk({1: -1})
    if any(hasattr(one, "tocsr") for one in X):
        import scipy.sparse as sp

        return sp.hstack([sp.csr_array(one) for one in X], format="csr")
    return np.hstack([np.asarray(one) for one in X])


def _labelled(X: Any, channels: tuple[str, ...]) -> Any:
    """One DataArray, with the labels of the rows of the first that has some, and the names of all inputs."""
    import xarray as xr

    known = [one for one in X if hasattr(one, "dims")]
    row = known[0].dims[0]
    inputs = {one.dims[1] for one in known}
    column = inputs.pop() if len(inputs) == 1 else "input"
    indexed = next((one for one in known if row in one.indexes), known[0])
    coords = {name: each for name, each in indexed.coords.items() if each.dims == (row,)}
    together = _arrays([one.data if hasattr(one, "dims") else one for one in X])
    found = xr.DataArray(together, dims=(row, column), coords=coords)
    names = input_names(X)
    return found if names is None else found.assign_coords({column: unique_names(names, channels)})


def _renamed(X: Any, channels: tuple[str, ...]) -> list[Any]:
    """Dataframes whose columns have names of their own."""
    names = [list(one.columns) for one in X]
    if not all(isinstance(name, str) for own in names for name in own):
        return list(X)
    flat, found, begin = unique_names(names, channels), [], 0
    for one, own in zip(X, names, strict=True):
        new = dict(zip(own, flat[begin : begin + len(own)], strict=True))
        found.append(one.rename(columns=new))
        begin += len(own)
    return found


def _frames(X: Any, channels: tuple[str, ...]) -> Any:
    """Dataframes with the same rows, beside each other."""
    import pandas as pd

    return pd.concat(_renamed(X, channels), axis=1)


def _dask_frames(X: Any, channels: tuple[str, ...]) -> Any:
    """Dask dataframes, partition by partition; rows are compared when a partition is read."""
    import dask.dataframe as dd
    from dask.dataframe.utils import make_meta

    for i, one in enumerate(X):
        if not _is_dask_frame(one):
            raise ValueError(
                f"X[{i}] is a {type(one).__name__} beside Dask dataframes; use .to_dask_array(lengths=True) of those, "
                "or make all channels Dask dataframes"
            )
        if one.npartitions != X[0].npartitions:
            raise ValueError(
                f"X[0] has {X[0].npartitions} partitions and X[{i}] has {one.npartitions}; use "
                f"X[{i}].repartition(divisions=X[0].divisions), so that they have the same rows"
            )
    renamed = _renamed(X, channels)
    meta = _beside(*(make_meta(one).iloc[:0].reset_index(drop=True) for one in renamed))
    return dd.map_partitions(_beside, *renamed, meta=meta, align_dataframes=False)


def _beside(*parts: Any) -> Any:
    """Partitions of the same rows, beside each other, without their index."""
    import pandas as pd

    for i, one in enumerate(parts):
        refuse_other_index(parts[0].index, one.index, 0, i)
    return pd.concat([one.reset_index(drop=True) for one in parts], axis=1)
