"""What a user gives as tasks: lists of data sets become rows with a label beside, and a name becomes an input."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.checks import check_choice
from dkl.engine.labels import refuse_other_rows
from dkl.engine.tables import Table, open_table, with_known_rows
from dkl.estimators.inputs import read_targets
from dkl.prepare.data_sets import are_sets, names_of_sets, put_below
from dkl.prepare.tasks import Beside


def put_together(X: Any, y: Any, weight: Any, tasks: Any, join: bool = True) -> tuple[Any, Any, Any]:
    """X, y and weights as one; X has its tasks beside it if there are any. join=False leaves data sets a list."""
    if not are_sets(X):
        return (X if tasks is None else Beside(X, tasks)), y, weight
    if not join:
        return list(X), y, weight
    names = names_of_sets(len(X), tasks)
    for name, given in (("y", y), ("sample_weight", weight)):
        if given is not None and (not isinstance(given, (list, tuple)) or len(given) != len(X)):
            size = len(given) if hasattr(given, "__len__") else type(given).__name__
            raise ValueError(f"X has {len(X)} data sets, {name} has {size}; give a list with one for each")
    tables = [with_known_rows(open_table(one)) for one in X]
    rows = [int(table.array.shape[0]) for table in tables]
    labels = np.repeat(np.array(names), rows)
    own = Beside(_frames(X) if _are_frames(X) else _rows(tables), labels, _recipe(tables))
    return own, _targets(X, y, tables), _weights(weight, tables)


def _are_frames(X: Any) -> bool:
    return all(hasattr(one, "iloc") and hasattr(one, "columns") for one in X)


def _frames(X: Any) -> Any:
    """Dataframes of the same columns as one."""
    import pandas as pd

    first = list(X[0].columns)
    for i, one in enumerate(X):
        if list(one.columns) != first:
            raise ValueError(f"data set {i} has the columns {list(one.columns)}, the first one {first}; give the same")
    return pd.concat(X, ignore_index=True)


def _rows(tables: list[Table]) -> Any:
    return put_below(tables, "X").array


def _recipe(tables: list[Table]) -> dict | None:
    """What ingest did to the rows, which must be the same for all."""
    recipes = [table.about.get("recipe") for table in tables]
    other = next((i for i, one in enumerate(recipes) if one != recipes[0]), None)
    if other is not None:
        raise ValueError(
            f"data set {other} was prepared by ingest in another way than data set 0; ingest it with like=the first"
        )
    return dict(tables[0].about) if recipes[0] is not None else None


def _targets(X: Any, y: Any, tables: list[Table]) -> Any:
    """The y of all data sets, or None if a single answer is asked for."""
    found = []
    for i, table in enumerate(tables):
        if (
            y is None
            and not isinstance(X[i], str)
            and not hasattr(X[i], "data_vars")
            and not hasattr(X[i], "__fspath__")
        ):
            return None
        own = with_known_rows(read_targets(X[i], None if y is None else y[i], "the model"))
        n, k = table.array.shape[0], own.array.shape[0]
        if n != k:
            raise ValueError(f"data set {i} has {n} rows in X and {k} in y: inconsistent numbers of samples")
        refuse_other_rows(table, own, f"y[{i}]", f"X[{i}]")
        found.append(own)
    if any(own.names is not None for own in found):
        return np.concatenate(
            [own.names[all_values(own)] if own.names is not None else all_values(own) for own in found]
        )
    return put_below(found, "y").array


def _weights(weight: Any, tables: list[Table]) -> Any:
    """Weights of all data sets; None among them are ones."""
    if weight is None:
        return None
    parts = []
    for i, (one, table) in enumerate(zip(weight, tables, strict=True)):
        n = int(table.array.shape[0])
        own = Table("memory", np.ones(n)) if one is None else open_table(one, "sample_weight")
        refuse_other_rows(table, own, f"sample_weight[{i}]", f"X[{i}]")
        parts.append(all_values(own))
        if len(parts[-1]) != n:
            raise ValueError(f"data set {i} has {n} rows in X and {len(parts[-1])} in sample_weight")
    return np.concatenate(parts)


def all_values(table: Table) -> np.ndarray:
    """The values of a table of one dimension, here."""
    return np.asarray(table.array.compute() if table.kind == "dask" else table.array[:])


def place_of(task: Any, X: Table, names: Any) -> int:
    """The number of the input that says the task."""
    m = X.n_columns
    if m < 2:
        raise ValueError(f"tasks={task!r} names an input, but X has {m}; there must be another one to learn from")
    known = names if names is not None else X.input_labels
    known = [] if known is None else list(map(str, known))
    if isinstance(task, str) and not (task.lstrip("-").isdigit() and task not in known):
        if not known:
            raise ValueError(
                f"tasks={task!r} names an input, but those of X have no names; give its number, 0 to {m - 1}"
            )
        if task not in known and (one_hot := [name for name in known if name.startswith(f"{task}=")]):
            raise ValueError(
                f"tasks={task!r} is {len(one_hot)} columns here ({one_hot[0]!r} ...); the task takes one column of "
                "numbers: write 0, 1, ... for the names, or give them to fit(X, y, tasks=names)"
            )
        return known.index(check_choice("tasks", task, known))
    place = int(task)
    if not -m <= place < m:
        raise ValueError(f"tasks={task!r} is no input of X; they are 0 to {m - 1}")
    return place % m
