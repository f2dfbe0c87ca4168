"""A sample of rows without replacement, with chances proportional to their worth w, in one pass:

    key_i = log(-log(u_i)) - log(w_i),   u_i in (0, 1) from a hash of the row's number;   the least keys are kept

The least of a union are the least of the parts' least, so the sample does not depend on blocks, workers or order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dkl.features.kernel_inputs import kernel_inputs
from dkl.features.rows import Refusal, dense
from dkl.kernels import Kernel
from dkl.sums.folds import hash_rows
from dkl.sums.targets import check_weights
from dkl.sums.tree import RunningSum, TreeTotal


class RowSample(NamedTuple):
    """At most `most` rows with their numbers and keys, the least key first."""

    most: int
    keys: np.ndarray
    numbers: np.ndarray
    rows: np.ndarray  # (k, m) in the kernel's variables

    def __add__(self, other: RowSample) -> RowSample:  # type: ignore[override]
        joined = (np.concatenate(pair) for pair in zip(self[1:], other[1:], strict=True))
        return least(self.most, *joined)


def least(most: int, keys: np.ndarray, numbers: np.ndarray, rows: Any) -> RowSample:
    """The record of some rows; those that are worth nothing, whose key is infinite, are left out."""
    order = np.lexsort((numbers, keys))[:most]
    order = order[np.isfinite(keys[order])]
    return RowSample(most, keys[order], numbers[order], dense(rows[order]).astype(np.float64))


def draw_keys(numbers: np.ndarray, seed: int, worth: np.ndarray) -> np.ndarray:
    """log(-log(u)) - log(w), infinite where w is zero."""
    u = np.minimum(((hash_rows(numbers, seed) >> np.uint64(11)) + 0.5) * 2.0**-53, 1 - 2.0**-53)
    return np.asarray(np.log(-np.log(u)) - np.log(worth, out=np.full(len(u), -np.inf), where=worth > 0))


@dataclass(frozen=True)
class SampleProgram:
    """The pass over X and the weights, which multiply what `worth` says of prepared rows (None: all the same)."""

    kernel: Kernel
    skew: float
    dtype: np.dtype
    most: int
    seed: int
    worth: Callable[[Any], np.ndarray] | None = None
    rows_wanted = 8192
    task = "landmarks"

    def start(self) -> TreeTotal[RowSample]:
        """Nothing yet."""
        return TreeTotal(RunningSum())

    def workspace(self) -> None:
        """Nothing."""

    def add(self, sums: TreeTotal[RowSample], workspace: None, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += the rows of one block; rows that cannot be used are noted, the first one wins."""
        X, weight = data
        if not X.shape[0]:
            return
        try:
            T = kernel_inputs(X, self.kernel, self.skew, self.dtype)
            worth = check_weights(weight, T.shape[0])
        except Refusal as refusal:
            sums.refusal = min(filter(None, (sums.refusal, refusal.at(start))))
            return
        if self.worth is not None:
            worth = worth * self.worth(T)
        numbers = np.arange(start, start + T.shape[0])
        sums.tree.add(block, least(self.most, draw_keys(numbers, self.seed, worth), numbers, T))
