"""A direction of all groups that are not zero, by their second derivatives: conjugate gradients on

    H X = C - h V,   H = G + mu + h (I - v v'),   h_g = lam eta_g / |V_g|,   v_g = V_g / |V_g|

They are preconditioned by H without what is between groups. Where groups are alike (several bandwidths of the same
inputs) that takes many products; once these have cost what a Cholesky factor of G + mu + h costs, it takes their place.
h moves little from a lam to the next, so a factor serves many directions, until they too have cost as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dkl.solvers.factor import backward, forward
from dkl.solvers.group_blocks import Blocks

FORCING, MOST = 0.05, 200
"""A direction's system is solved to this share of its right-hand side, or in so many products."""
FEW = 6
"""Products of a direction that a factor would not spare, at least."""
PRICE = 0.07
"""Products that cost what a factor does, for each of its rows."""
SMALL = 0.05
"""A variance below this share of h is left out of a factor."""
Preconditioner = Callable[[np.ndarray], np.ndarray]


class Direction(NamedTuple):
    """X, (G + mu) X, and how many products with the gram it took."""

    X: np.ndarray
    GX: np.ndarray
    products: int


class Bent(NamedTuple):
    """H at some weights."""

    blocks: Blocks
    on: np.ndarray  # (groups that have entered,), whether not zero
    each: np.ndarray  # h of each group
    h: np.ndarray  # (rows, 1)
    unit: np.ndarray  # v
    ridge: float

    def times(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(G + mu) p and H p, on the rows that are not zero."""
        blocks, Gp = self.blocks, self.blocks.packed @ p + self.ridge * p
        bent = Gp + self.h * (p - self.unit * blocks.sums(self.unit * p)[blocks.row_group][:, None])
        return Gp, np.where(self.rows, bent, 0.0)

    @property
    def rows(self) -> np.ndarray:
        """(rows, 1), whether their group is not zero."""
        return np.asarray(self.on[self.blocks.row_group][:, None])

    @property
    def diagonal(self) -> np.ndarray:
        """(rows, 1), of G + mu + h."""
        return np.asarray(self.blocks.values[:, None] + self.ridge + self.h)

    def stiff(self) -> np.ndarray:
        """The rows where G counts beside h."""
        return np.flatnonzero(self.rows[:, 0] & (self.blocks.values + self.ridge > SMALL * self.h[:, 0]))

    def price(self) -> int:
        """How many products cost what a factor does."""
        all_rows = max(int(np.count_nonzero(self.rows)), 1)
        return int(PRICE * len(self.stiff()) ** 3 / all_rows**2)

    def by_group(self) -> Preconditioner:
        """The inverse of H without what is between groups."""
        blocks = self.blocks
        diagonal = self.diagonal
        part = self.unit / diagonal
        left = self.each / np.maximum(1 - self.each * blocks.sums(self.unit * part), 1e-12)

        def apply(r: np.ndarray) -> np.ndarray:
            return np.asarray(r / diagonal + part * (left * blocks.sums(part * r))[blocks.row_group][:, None])

        return apply


def bent_at(blocks: Blocks, V: np.ndarray, limits: np.ndarray, ridge: float) -> Bent:
    """H at V."""
    lengths = blocks.lengths(V)
    on = lengths > 0
    safe = np.where(on, lengths, 1.0)
    each = limits / safe
    return Bent(blocks, on, each, each[blocks.row_group][:, None], V / safe[blocks.row_group][:, None], ridge)


class Factor(NamedTuple):
    """Of G + mu + h of some rows, as they were once; of the others h is all that counts."""

    rows: np.ndarray
    lower: np.ndarray

    def over(self, bent: Bent) -> Preconditioner:
        """Its inverse, and that of the diagonal elsewhere."""
        rows, diagonal = bent.rows, bent.diagonal

        def apply(r: np.ndarray) -> np.ndarray:
            z = r / diagonal
            z[self.rows] = backward(self.lower, forward(self.lower, r[self.rows]))
            return np.where(rows, z, 0.0)

        return apply


def factor_of(bent: Bent) -> Factor | None:
    """A factor at H; None if rounding leaves none."""
    rows = bent.stiff()
    system = bent.blocks.packed[np.ix_(rows, rows)]
    system[np.diag_indices(len(rows))] += bent.ridge + bent.h[rows, 0]
    try:
        return Factor(rows, np.linalg.cholesky(system))
    except np.linalg.LinAlgError:
        return None


class Directions:
    """Directions one after the other, and the factor that serves them."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.factor: Factor | None = None
        self.few: int | None = FEW  # products of a direction when the factor was new; None until that is known
        self.spent = 0  # products beyond those

    def find(self, C: np.ndarray, V: np.ndarray, limits: np.ndarray, ridge: float) -> Direction:
        """The direction at V."""
        bent = bent_at(self.blocks, V, limits, ridge)
        right = np.where(bent.rows, C - bent.h * V, 0.0)
        X, GX, r, products = np.zeros_like(V), np.zeros_like(V), right, 0
        while products < MOST:
            apply = bent.by_group() if self.factor is None else self.factor.over(bent)
            few = MOST if self.few is None else self.few
            most = min(MOST - products, few + max(bent.price() - self.spent, 1))
            enough = FORCING * FORCING * float((right * apply(right)).sum())
            X, GX, r, used = _conjugate(bent, apply, X, GX, r, enough, most)
            products += used
            self.few = max(FEW, used) if self.few is None else self.few
            self.spent += max(used - self.few, 0)
            if used < most:
                break
            self.factor = None  # so that there are never two of them
            self.factor, self.few, self.spent = factor_of(bent), None, 0
        return Direction(X, GX, products)


def _conjugate(
    bent: Bent, apply: Preconditioner, X: np.ndarray, GX: np.ndarray, r: np.ndarray, enough: float, most: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:  # fmt: skip
    """X, (G + mu) X, the residual, and the products made, until the residual is small or after so many."""
    z = apply(r)
    p, size = z, float((r * z).sum())
    for used in range(most):
        if not size > enough:
            return X, GX, r, used
        Gp, Hp = bent.times(p)
        bend = float((p * Hp).sum())
        if not bend > 0:
            return X, GX, r, used
        a = size / bend
        X, GX, r = X + a * p, GX + a * Gp, r - a * Hp
        z = apply(r)
        size, before = float((r * z).sum()), size
        p = z + size / before * p
    return X, GX, r, most
