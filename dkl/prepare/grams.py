"""Precomputed gram matrices K_1 .. K_r, side by side as one table: rows (n, r n), the kernels in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

NOT_SYMMETRIC = 1e-6
"""|K - K'| over the largest entry, above which a matrix is not a gram matrix."""


def side_by_side(X: Any) -> Any:
    """A list of r matrices of the same shape (or an array of three dimensions) as one; a table stays as it is."""
    if isinstance(X, (list, tuple)):
        shapes = [np.shape(one) for one in X]
        if not shapes or len(shapes[0]) != 2:
            return X
        if len(set(shapes)) > 1:
            raise ValueError(f"X has gram matrices of shapes {shapes}; give all for the same rows")
        return np.hstack([np.asarray(one) for one in X])
    if getattr(X, "ndim", None) == 3 and isinstance(X, np.ndarray):
        return np.hstack(list(X))
    return X


def grams_of(X: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, ...]:
    """The gram matrices of a table (n, r n), of the rows that are kept; views if all are."""
    n, columns = X.shape
    if columns % n:
        raise ValueError(
            f"X has {n} rows and {columns} columns; kernels='precomputed' needs gram matrices of {n} x {n} side by side"
        )
    found = []
    for j in range(columns // n):
        gram = X[:, j * n : (j + 1) * n]
        lean, size = np.abs(gram - gram.T), float(np.abs(gram).max())
        if lean.max() > NOT_SYMMETRIC * size:
            a, b = np.unravel_index(int(lean.argmax()), lean.shape)
            raise ValueError(
                f"gram matrix {j} is not symmetric: its entries ({a}, {b}) and ({b}, {a}) are {gram[a, b]:g} and "
                f"{gram[b, a]:g}; give k(X, X) of the rows of the fit"
            )
        low = int(np.diagonal(gram).argmin())
        if gram[low, low] < 0:
            raise ValueError(f"gram matrix {j} has {gram[low, low]:g} on its diagonal, at row {low}; use a kernel")
        found.append(gram if kept.all() else gram[np.ix_(kept, kept)])
    return tuple(found)
