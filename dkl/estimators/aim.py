"""What a fit learns, and which rows its passes tell apart: folds, rows held out, and rows that nothing sees."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dkl.engine.labels import refuse_other_rows
from dkl.engine.tables import Table, open_table
from dkl.estimators.inputs import Folds, as_array, read_folds
from dkl.options.rules import is_share
from dkl.prepare.scales import group_index
from dkl.sums.folds import fold_of, held_out

UNSEEN, FEW, ENOUGH = 0.1, 10, 30
"""Share of the rows for early stopping by default, for more learned sigmas than FEW, and at least ENOUGH such rows."""


class Aim(NamedTuple):
    """The objective (None: nothing is learned), the folds of its passes, and the shares that a hash holds out.

    `unseen` is the share of the rows for early stopping, a fold more.
    """

    objective: str | None
    folds: Folds
    held: tuple[int, int] | None = None
    unseen: tuple[int, int] | None = None

    @property
    def fold_count(self) -> int:
        """Folds of a pass of learning."""
        return self.folds.count + (self.unseen is not None)


def learning_of(learn: str | None) -> Any:
    """What `learn` asks for; None is "none"."""
    return "none" if learn is None else learn


def read_aim(params: dict, X: Table, y: Table | None) -> Aim:
    """What is learned, and with which folds."""
    learn, cv = learning_of(params["learn"]), params["cv"]
    if learn == "validation":
        aim = Aim("validation", *_held(params["validation"], X))
    elif learn in ("none", "joint", "gcv"):
        aim = Aim(None if learn == "none" else learn, read_folds(cv, X, y))
    else:
        aim = Aim("log_loss" if learn == "log_loss" else "cv", read_folds(5 if cv is None else cv, X, y))
    return aim._replace(unseen=_unseen(params, aim, X))


def _unseen(params: dict, aim: Aim, X: Table) -> tuple[int, int] | None:
    """The share of the rows that early stopping sets aside: a few sigmas cannot overfit, a few rows say nothing."""
    share, n = params["early_stopping"], X.array.shape[0]
    if share == "auto":
        share = UNSEEN if _can_overfit(params, aim, X) and min(n * UNSEEN, _fewest(aim, n)) >= ENOUGH else None
    if not share:
        return None
    part = Fraction(share).limit_denominator(100)
    if n * part < 1:
        raise ValueError(f"early_stopping={share} of {n} rows sets none aside; give more rows, or early_stopping=None")
    return part.numerator, part.denominator


def _can_overfit(params: dict, aim: Aim, X: Table) -> bool:
    """Whether many numbers are learned, with nothing else that guards them."""
    if aim.objective in (None, "joint", "log_loss") or params["sigma_l1"]:
        return False
    groups = group_index(params["groups"], X.n_columns, X.input_coords)
    return params["learn"] == "frequencies" or len(np.unique(groups)) > FEW


def _fewest(aim: Aim, n: int) -> float:
    """Rows of the smallest fold."""
    if aim.folds.labels is not None:
        return int(np.bincount(np.asarray(aim.folds.labels.array), minlength=aim.folds.count).min())
    if aim.held is not None:
        return n * min(aim.held[0], aim.held[1] - aim.held[0]) / aim.held[1]
    return n / aim.folds.count


def _held(validation: Any, X: Table) -> tuple[Folds, tuple[int, int] | None]:
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
        return Folds(2, None), (share.numerator, share.denominator)
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
    return Folds(2, Table("memory", values.astype(int))), None


def fold_numbers(aim: Aim, n: int, seed: int) -> np.ndarray:
    """The fold of each row: what the user gave, or a hash of its number."""
    if aim.folds.labels is not None:
        return np.asarray(aim.folds.labels.array)
    return held_out(0, n, aim.held, seed) if aim.held else fold_of(0, n, aim.folds.count, seed)
