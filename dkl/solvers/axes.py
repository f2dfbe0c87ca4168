"""Principal axes of features from their sums.

    Hc = G - m m'/w = U diag(D) U',   D descending;   axis i has the share D_i / tr Hc of the variance

Ridge on the first r axes is diagonal, U'Rc / (D + lam), and U folds it back into weights of the features themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dkl.cost import SolveCost
from dkl.solvers.evidence import likely_rank
from dkl.solvers.factor import MATRICES, Factor

LEAST, LEAST_NARROW = 1e-12, 1e-6
"""Axes below this share of the first one are rounding: of float64 sums, of sums of float32 blocks."""


def axes_cost(widths: Sequence[int]) -> SolveCost:
    """Eigendecompositions of grams of those widths, one after the other; the axes of all of them are kept."""
    kept = sum(d * d for d in widths) if len(widths) > 1 else 0
    return SolveCost(8 * (MATRICES * max(widths) ** 2 + kept), 9.0 * sum(d**3 for d in widths))


class Axes(NamedTuple):
    """The axes that are kept, what each holds, and what all of them would."""

    vectors: np.ndarray  # (d, r)
    energies: np.ndarray  # (r,), descending
    total: float

    @property
    def share(self) -> float:
        """Of the variance."""
        return float(self.energies.sum() / self.total) if self.total > 0 else 1.0

    def turned(self, gram: np.ndarray) -> Axes:
        """Axes of the same span along which another centred gram is diagonal: U P with U'Hc U = P diag(E) P'."""
        energies, rotation = np.linalg.eigh(self.vectors.T @ gram @ self.vectors)
        vectors = np.ascontiguousarray((self.vectors @ rotation)[:, ::-1])
        return Axes(vectors, np.maximum(energies[::-1], 0.0), float(np.trace(gram)))

    def factor(self, lam: float) -> Factor:
        """(Hc + lam I)^-1 on the axes."""
        return Factor("axes", 0.0, None, self.vectors, self.energies + lam)


def principal_axes(
    gram: np.ndarray, wanted: float | str, narrow: bool, rows: float, removed: float, total: float | None = None
) -> Axes:
    """The first axes of the centred gram of so many rows.

    wanted: so many axes, as many as have that share (below 1) of the variance, or "mle": those of most evidence.
    removed: |m|^2 / w, the size of what centring took away: axes that are its rounding are not kept.
    total: what a share is taken of, if something was left out before.
    """
    energies, vectors = np.linalg.eigh(gram)
    energies, vectors = np.maximum(energies[::-1], 0.0), vectors[:, ::-1]
    total = float(energies.sum()) if total is None else total
    least = LEAST_NARROW if narrow else LEAST
    sound = max(1, int((energies > least * max(energies[0], removed)).sum()))
    if isinstance(wanted, str):
        wanted = likely_rank(energies, rows, sound, least)
    elif wanted < 1:
        wanted = 1 + int(np.searchsorted(np.cumsum(energies), wanted * total))
    count = min(int(wanted), sound)
    return Axes(np.ascontiguousarray(vectors[:, :count]), energies[:count], total)
