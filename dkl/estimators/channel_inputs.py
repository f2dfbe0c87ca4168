"""X as a list of arrays, each a channel: their columns side by side."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_channels(X: Any) -> bool:
    """Whether X is a list of two-dimensional arrays; a list of rows is not."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(len(getattr(one, "shape", ())) == 2 for one in X)


def widths_of(X: Any) -> tuple[int, ...] | None:
    """Columns of each channel; None if X is one array."""
    return tuple(int(one.shape[1]) for one in X) if is_channels(X) else None


def side_by_side(X: Any, expected: tuple[int, ...] | None = None) -> Any:
    """All columns of a list of arrays, as one array of their kind; anything else as it is.

    expected: the columns of each channel of the fit.
    """
    widths = widths_of(X)
    if widths is None:
        return X
    if 0 in widths:
        raise ValueError(f"X[{widths.index(0)}] has no column; leave it out, or give a channel one input or more")
    if expected is not None and widths != expected:
        raise ValueError(
            f"X has {len(widths)} arrays of {list(widths)} columns; the fit had {len(expected)} channels of "
            f"{list(expected)}"
        )
    _refuse_other_rows(X)
    if any(hasattr(one, "dask") and not hasattr(one, "chunks") for one in X) or any(hasattr(one, "dims") for one in X):
        raise ValueError(
            f"X is a list of {type(X[0]).__name__}; give one array, with channels as the name of a coordinate of its "
            "inputs"
        )
    if any(hasattr(one, "dask") for one in X):
        import dask.array as da

        rows = next(one for one in X if hasattr(one, "dask")).chunks[0]
        lazy = [(one if hasattr(one, "dask") else da.from_array(one)).rechunk((rows, -1)) for one in X]
        return da.concatenate(lazy, axis=1).rechunk({1: -1})
    if any(hasattr(one, "tocsr") for one in X):
        import scipy.sparse as sp

        return sp.hstack([sp.csr_array(one) for one in X], format="csr")
    if all(hasattr(one, "columns") for one in X):
        return _frames(X)
    return np.hstack([np.asarray(one) for one in X])


def _refuse_other_rows(X: Any) -> None:
    """Refuse channels of different lengths."""
    counts = [one.shape[0] for one in X]
    for i, count in enumerate(counts):
        if count != counts[0]:  # of Dask, nan is not even itself
            raise ValueError(f"X[0] has {counts[0]} rows and X[{i}] has {count}; all channels need the same rows")


def _frames(X: Any) -> Any:
    """Dataframes with the same rows, beside each other."""
    import pandas as pd

    for i, one in enumerate(X):
        if not one.index.equals(X[0].index):
            raise ValueError(f"X[{i}] has other rows than X[0] (its index differs); use X[{i}].loc[X[0].index]")
    return pd.concat(X, axis=1)
