"""Which rows the passes of a fit tell apart: folds, rows held out, and rows that nothing sees before the end.

Membership is a hash of a row's number, so that chunks and workers cannot change it; or what the user gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dkl.checks import check_count
from dkl.engine.labels import refuse_other_rows
from dkl.engine.tables import Table, open_table
from dkl.sums.folds import fold_of, held_out

UNSEEN, ENOUGH = 0.1, 30
"""Share of the rows for early stopping by default, and the least number of such rows that says anything."""
Share = tuple[int, int]
"""p of every q rows."""


@dataclass(frozen=True)
class Folds:
    """How many folds, and the fold of each row if the user chose them."""

    count: int
    labels: Table | None


class Split(NamedTuple):
    """The folds of the passes, and the shares that a hash holds out; `unseen` is a fold more, for early stopping."""

    folds: Folds = Folds(1, None)
    held: Share | None = None
    unseen: Share | None = None
    taken: Share | None = None  # the rows that take part at all; None: every one

    @property
    def n_folds(self) -> int:
        """Folds of a pass of learning."""
        return self.folds.count + (self.unseen is not None)

    def check(self, n: int) -> None:
        """Refuse more folds than rows."""
        if self.folds.labels is None and self.held is None and self.folds.count > n:
            raise ValueError(
                f"cv={self.folds.count} folds need at least {self.folds.count} rows, X has {n} sample(s); use fewer"
            )

    def fewest(self, n: int) -> float:
        """Rows of the smallest fold."""
        if self.folds.labels is not None:
            return int(np.bincount(np.asarray(self.folds.labels.array), minlength=self.folds.count).min())
        if self.held is not None:
            return n * min(self.held[0], self.held[1] - self.held[0]) / self.held[1]
        return n / self.folds.count

    def fold_of(self, n: int, seed: int) -> np.ndarray:
        """The fold of each row: what the user gave, or a hash of its number."""
        if self.folds.labels is not None:
            return np.asarray(self.folds.labels.array)
        return held_out(0, n, self.held, seed) if self.held else fold_of(0, n, self.folds.count, seed)


def read_folds(cv: Any, X: Table, y: Table | None) -> Folds:
    """cv as None, a number of folds, the fold of each row, or (train, test) pairs as scikit-learn's splitters give."""
    if cv is None:
        return Folds(1, None)
    if isinstance(cv, (int, np.integer, float, str)):
        return Folds(check_count("cv", cv, least=2), None)
    n = X.array.shape[0]
    if hasattr(cv, "dtype") and hasattr(cv, "shape"):
        table = open_table(cv, "cv")
        refuse_other_rows(X, table, "cv")
        cv = as_array(table)
    if hasattr(cv, "split"):
        try:
            cv = list(cv.split(np.zeros(n), None if y is None or y.is_lazy else y.array))
        except (TypeError, ValueError) as error:
            raise ValueError(f"cv={cv} cannot split these rows ({error}); give the fold of each row instead") from None
    cv = list(cv)
    if not cv:
        raise ValueError(f"cv={cv!r} names no fold; give a number of folds, a fold for each row, or a splitter")
    if not isinstance(cv[0], (tuple, list)):
        names, fold = np.unique(np.asarray(cv), return_inverse=True)
        if len(names) < 2:
            raise ValueError(f"cv puts every row into fold {names[0].item()!r}; give at least two folds")
        return Folds(len(names), Table("memory", fold))
    fold = np.full(n, -1)
    for k, (train, test) in enumerate(cv):
        fold[test] = k
        if len(train) + len(test) != n:
            raise ValueError(
                f"split {k} of cv has {len(train)} + {len(test)} rows, X has {n}; every row must be in one of the two"
            )
    if (fold < 0).any() or sum(len(test) for _, test in cv) != n:
        held = sum(len(test) for _, test in cv)
        raise ValueError(f"the test sets of cv hold {held} of {n} rows, not each once; use KFold or the like")
    return Folds(len(cv), Table("memory", fold))


def unseen_share(share: Any, n: int, split: Split, needed: bool) -> Share | None:
    """The share of the rows that early stopping sets aside; "auto": a tenth where it is needed and says something."""
    if share == "auto":
        share = UNSEEN if needed and min(n * UNSEEN, split.fewest(n)) >= ENOUGH else None
    if not share:
        return None
    part = Fraction(share).limit_denominator(100)
    if n * part < 1:
        raise ValueError(f"early_stopping={share} of {n} rows sets none aside; give more rows, or early_stopping=None")
    return part.numerator, part.denominator


def is_share(validation: Any) -> bool:
    """Whether rows are held out by their share, not by a mask."""
    return not hasattr(validation, "shape") and np.ndim(validation) == 0


def held_split(validation: Any, X: Table) -> Split:
    """The rows held out: a share of them by a hash, or those that a mask names."""
    if is_share(validation):
        n, share = X.array.shape[0], Fraction(validation).limit_denominator(100)
        if n < 2 or n * share < 1:
            raise ValueError(
                f"validation={validation} of {n} rows (n_samples={n}) leaves none to hold out; give more rows, or hold "
                "out a larger share"
            )
        if n <= 100:
            share = Fraction(min(n - 1, round(n * share)), n)
        return Split(Folds(2, None), (share.numerator, share.denominator))
    mask = open_table(validation, "validation")
    refuse_other_rows(X, mask, "validation")
    values = as_array(mask)
    if values.dtype != bool or values.shape != (X.array.shape[0],):
        raise ValueError(
            f"validation has dtype {values.dtype} and shape {values.shape}; give a share such as 0.2, or True or False "
            f"for each of {X.array.shape[0]} rows (True: held out)"
        )
    if values.all() or not values.any():
        raise ValueError(f"validation holds out {int(values.sum())} of {len(values)} rows; hold out some, not all")
    return Split(Folds(2, Table("memory", values.astype(int))))


def as_array(table: Table) -> np.ndarray:
    """The values of a short table, here."""
    return np.asarray(table.array.compute() if table.kind == "dask" else table.array[:])
