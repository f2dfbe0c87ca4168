"""Which task each row belongs to: labels beside X, or an input of X.

Afterwards y has two columns, the value (or the code of one of two classes) and the number of the task, and X has no
column of tasks: sums/task_targets.py and losses/tasks.py do the rest. Lazy rows stay lazy.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.apply import take_inputs
from dkl.engine.labels import refuse_other_rows
from dkl.engine.lazy_rows import columns_beside, widened
from dkl.engine.progress import Progress
from dkl.engine.tables import Table, open_table, with_known_rows
from dkl.features.refusal import Refusal
from dkl.features.task_column import in_quotes, numbers_of
from dkl.prepare.targets import sum_small
from dkl.sums.targets import LabelProgram, LabelWeights

MOST = 1000
"""Tasks at most: a column with more values says something else."""


class Beside(NamedTuple):
    """Rows, and the task of each: one label for each row, or one for all; what is known of data sets put together."""

    X: Any
    tasks: Any
    about: dict | None = None


def column_of(table: Table, place: int) -> Table:
    """One column as a table of one dimension."""
    own = take_inputs(table, np.array([place]))
    if own.kind == "dask":
        flat = own.array.map_blocks(_flat, dtype=own.array.dtype, drop_axis=1, token="dkl-column")
        return Table("dask", flat)
    return Table("memory", _flat(own.array))


def without(table: Table, place: int) -> Table:
    """All other columns."""
    keep = np.delete(np.arange(table.n_columns), place)
    coords = {name: np.asarray(values)[keep] for name, values in table.input_coords.items()}
    taken = take_inputs(table, keep)
    return replace(table, kind=taken.kind, array=taken.array, input_coords=coords)


def _flat(block: Any) -> np.ndarray:
    dense = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
    return dense.reshape(len(dense))


def labels_of(tasks: Table, weight: Table | None, progress: Progress) -> np.ndarray:
    """The tasks there are, in order; each has a row that counts."""
    try:
        found: LabelWeights = sum_small(LabelProgram(), [tasks, weight], ["tasks", "sample_weight"], progress)
    except ValueError as error:  # the pass calls what it looks at y
        raise ValueError(re.sub(r"^y\b|\by (?=mixes)", "tasks ", str(error)).replace("  ", " ")) from None
    if len(found.labels) < 2:
        raise ValueError(f"tasks has one task, {found.labels.tolist()[0]!r}; leave tasks out, or give two or more")
    if len(found.labels) > MOST:
        raise ValueError(
            f"tasks has {len(found.labels):,} different values, such as {found.labels.tolist()[:3]}; at most {MOST:,} "
            "tasks are possible: is that the right column?"
        )
    if not (found.weight > 0).all():
        which = found.labels[int(np.argmin(found.weight))]
        raise ValueError(f"task {in_quotes(which)} has no row of positive weight; leave its rows out")
    return found.labels


def with_tasks(y: Table, tasks: Table, classes: np.ndarray | None, labels: np.ndarray) -> Table:
    """(rows, 2): the value, or the code of its class, and the number of the task."""
    if y.array.shape[0] != tasks.array.shape[0]:
        raise ValueError(f"y has {y.array.shape[0]} rows, tasks has {tasks.array.shape[0]}; give one for each row")
    if not y.is_lazy and not tasks.is_lazy:
        return Table("memory", _both(np.asarray(y.array), np.asarray(tasks.array), classes=classes, labels=labels))
    return columns_beside(_both, y, tasks, float, "dkl-tasks", classes=classes, labels=labels)


def _both(y: np.ndarray, tasks: np.ndarray, *, classes: np.ndarray | None, labels: np.ndarray) -> np.ndarray:
    values = y if classes is None else np.searchsorted(classes, y)
    return np.column_stack([np.asarray(values, np.float64).ravel(), numbers_of(tasks, labels)])


def is_one(tasks: Any) -> bool:
    """Whether there is one label for all rows."""
    return isinstance(tasks, (str, bytes)) or (not hasattr(tasks, "shape") and np.ndim(tasks) == 0)


def labels_beside(X: Table, tasks: Any) -> Table:
    """One label for each row of X."""
    if is_one(tasks):
        raise ValueError(
            f"tasks={tasks!r} is one label for all rows, and a fit needs two tasks; give one label for each row, or "
            "the parameter tasks: the input that says it"
        )
    found = with_known_rows(open_table(tasks, "tasks"))
    refuse_other_rows(X, found, "tasks")
    n = X.array.shape[0]
    if found.array.ndim != 1 or found.array.shape[0] != n:
        raise ValueError(f"X has {n} rows, tasks has shape {tuple(found.array.shape)}; give one task for each row")
    return found


def beside(X: Table, tasks: Any, labels: np.ndarray) -> Table:
    """X with the number of the task as its last column; `tasks` has one label for each row, or is one for all."""
    n = X.array.shape[0]
    one = Table("memory", np.broadcast_to(np.asarray(tasks), (n,))) if is_one(tasks) else None
    given = one or labels_beside(X, tasks)
    if not X.is_lazy:
        return replace(X, array=_joined(X.array, _values(given), labels=labels))
    wide = widened(_joined, X, given, X.n_columns + 1, "dkl-beside", labels=labels)
    return replace(X, kind="dask", array=wide)


def _values(table: Table) -> np.ndarray:
    return np.asarray(table.array.compute() if table.kind == "dask" else table.array[:])


def _joined(X: Any, tasks: np.ndarray, *, labels: np.ndarray) -> Any:
    try:
        numbers = numbers_of(np.asarray(tasks).ravel(), labels)[:, None]
    except Refusal as refusal:
        raise ValueError(refusal.at(0)[1]) from None
    X = X if np.dtype(X.dtype).kind == "f" else X.astype(np.float64)  # a small integer has no room for many tasks
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array, hstack

        return hstack([csr_array(X), csr_array(numbers.astype(X.dtype))], format="csr")
    return np.hstack([np.asarray(X), numbers.astype(np.asarray(X).dtype)])
