"""Several data sets with the same columns, each a task: put below one another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dkl.engine.lazy_rows import below
from dkl.engine.tables import Table, with_known_rows


def are_sets(X: Any) -> bool:
    """Whether X is a list of data sets, not rows."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(map(_is_set, X))


def _is_set(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike)) or getattr(X, "ndim", 0) == 2 or hasattr(X, "data_vars")


def names_of_sets(count: int, tasks: Any) -> list:
    """One label for each data set: those given, or 0, 1 ..."""
    labels = list(range(count)) if tasks is None else list(tasks)
    if len(labels) != count or len(set(labels)) != count or len(np.unique(np.array(labels))) != count:  # 1 and "1"
        raise ValueError(f"tasks={tasks!r} must have a label of its own for each of {count} data sets, or be left out")
    return labels


def put_below(tables: Sequence[Table], name: str) -> Table:
    """The rows of tables, one after the other."""
    widths = [table.n_columns for table in tables]
    if len(set(widths)) > 1:
        raise ValueError(f"the data sets have {widths} columns in {name}; they must have the same ones")
    first, labels = tables[0], [_names(table) for table in tables]
    if any(one is not None and labels[0] is not None and one != labels[0] for one in labels):
        raise ValueError(f"the data sets have different columns in {name}: {labels}; give the same in the same order")
    if any(table.is_lazy for table in tables):
        array, kind = below([with_known_rows(table) for table in tables]).array, "dask"
    elif any(table.is_sparse for table in tables):
        from scipy.sparse import csr_array, vstack

        array, kind = vstack([csr_array(table.array) for table in tables], format="csr"), "memory"
    else:
        array, kind = np.concatenate([np.asarray(table.array) for table in tables]), "memory"
    return replace(first, kind=kind, array=array, labels=None, rows=None)


def _names(table: Table) -> list | None:
    return None if table.input_labels is None else list(map(str, np.asarray(table.input_labels).tolist()))
