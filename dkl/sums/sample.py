"""A sample of rows without replacement, with chances proportional to their worth w, in one pass:

    key_i = log(-log(u_i)) - log(w_i),   u_i in (0, 1) from a hash of the row's number;   the least keys are kept

The least of a union are the least of the parts' least, so the sample does not depend on blocks, workers or order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dkl.cost import Cost, Sizes
from dkl.features.kernel_inputs import kernel_inputs
from dkl.features.rows import Refusal, dense
from dkl.kernels import Kernel
from dkl.kernels.values import TILE
from dkl.sums.folds import hash_rows
from dkl.sums.targets import check_weights
from dkl.sums.tree import RunningSum, TreeTotal


class Worth(Protocol):
    """What rows are worth as landmarks, by the so many rows that they are compared with."""

    @property
    def compared(self) -> int: ...

    def __call__(self, T: Any) -> np.ndarray:
        """Of prepared rows (rows,)."""


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


ROWS = 8192
"""Rows that should come together."""


def sample_cost(sizes: Sizes, most: int, compared: int = 0) -> Cost:
    """What the pass costs: two samples of so many rows, and kernel values of a tile with so many rows compared with."""
    m = sizes.inputs
    values = 6 * TILE * compared + 2 * (TILE + compared) * m if compared else 0
    return Cost(
        "landmarks",
        rows_wanted=ROWS,
        features=most,
        columns=m,
        row_bytes=40,
        thread_bytes=8 * (values + 2 * most * (m + 2)),
        sparse_bytes=TILE * m * sizes.item,
        sums_bytes=8 * most * (m + 2),
        parameter_bytes=compared * (m + compared) * (8 + sizes.item),
        flops=2.0 * compared * (m + compared) + 20.0,
        cosines=compared,
    )


@dataclass(frozen=True)
class SampleProgram:
    """The pass over X, of so many inputs, and the weights, which multiply what `worth` says of prepared rows.

    worth=None: all rows are worth the same; otherwise it knows how many rows it compares with.
    """

    kernel: Kernel
    skew: float
    dtype: np.dtype
    most: int
    seed: int
    inputs: int
    worth: Worth | None = None
    rows_wanted = ROWS
    task = "landmarks"

    def cost(self) -> Cost:
        """What the pass costs."""
        compared = 0 if self.worth is None else self.worth.compared
        return sample_cost(Sizes(0, self.inputs, self.dtype), self.most, compared)

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
