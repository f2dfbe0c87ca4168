"""The task of each row: a column beside the inputs, and the number of its value among those that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from dkl.features.refusal import Refusal
from dkl.features.sparse import as_csr

NEAR = 1e-6
"""Numbers that differ by this share are one task: a data set may have them in another precision."""


def columns_apart(X: Any, place: int) -> tuple[Any, np.ndarray]:
    """The other columns, and this one."""
    X = as_csr(X) if hasattr(X, "tocsr") else np.asarray(X)
    own = X[:, [place]]
    column = own.toarray().ravel() if hasattr(own, "toarray") else own.ravel()
    return X[:, np.delete(np.arange(X.shape[1]), place)], np.asarray(column)


def numbers_of(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The number of each row's task; an unknown one is refused with its row."""
    values = np.asarray(values)
    if labels.dtype.kind in "fiub" and values.dtype.kind in "fiub":
        wide, known = values.astype(np.float64), labels.astype(np.float64)
        right = np.clip(np.searchsorted(known, wide), 0, len(known) - 1)
        left = np.maximum(right - 1, 0)
        place = np.where(np.abs(wide - known[left]) < np.abs(wide - known[right]), left, right)
        same = np.abs(wide - known[place]) <= NEAR * np.maximum(np.abs(known[place]), 1e-30)
    else:
        texts, known = values.astype(str), labels.astype(str)
        order = np.argsort(known)
        place = order[np.clip(np.searchsorted(known, texts, sorter=order), 0, len(known) - 1)]
        same = known[place] == texts
    if not same.all():
        row = int(np.argmin(same))
        few = ", ".join(map(in_quotes, labels[:10]))
        raise Refusal(row, f"task {in_quotes(values[row])} at row {{row}} was not in the fit; the tasks are {few}")
    return place


def in_quotes(label: Any) -> str:
    """How a message shows a label."""
    return repr(label.item() if hasattr(label, "item") else label)
