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
    kinds, common = labels.dtype.kind + values.dtype.kind, np.result_type(labels, values)
    if "f" in kinds and set(kinds) <= set("fiub"):
        place, same = _nearest(values.astype(np.float64), labels.astype(np.float64))
    elif set(kinds) <= set("iub") and common.kind != "f":  # float64 has no room for long numbers
        known, wide = labels.astype(common), values.astype(common)
        place = np.clip(np.searchsorted(known, wide), 0, len(known) - 1)
        same = known[place] == wide
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


def _nearest(wide: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest known number, and whether it is the same; whole numbers count something, so none is near another."""
    right = np.clip(np.searchsorted(known, wide), 0, len(known) - 1)
    left = np.maximum(right - 1, 0)
    place = np.where(np.abs(wide - known[left]) < np.abs(wide - known[right]), left, right)
    found = known[place]
    near = np.abs(wide - found) <= NEAR * np.maximum(np.abs(found), 1e-30)
    whole = (wide == np.floor(wide)) & (found == np.floor(found))
    return place, near & (~whole | (wide == found))


def in_quotes(label: Any) -> str:
    """How a message shows a label."""
    return repr(label.item() if hasattr(label, "item") else label)
