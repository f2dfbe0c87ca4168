"""The gram of some groups of features, in the axes of each: G_gg = U_g diag(values) U_g'.

    packed = U' G U,   U = diag(U_g) over the groups that have entered, in their order

A group enters once, and what it takes then is three products. In its own axes a step of one group is an equation of
one unknown, and G_gg + h I is divided by as a diagonal. A direction without variance has the value 0 and no weight.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

EPS = float(np.finfo(np.float64).eps)


class Groups:
    """Where the features of each group are, if they are sorted by group."""

    def __init__(self, groups: np.ndarray, eta: np.ndarray | None, features: int) -> None:
        groups = np.asarray(groups)
        if groups.shape != (features,) or groups.dtype.kind not in "iu" or groups.min(initial=0) < 0:
            raise ValueError(f"groups={groups!r} must be {features} whole numbers from 0 on, one for each feature")
        self.count = int(groups.max(initial=-1)) + 1
        self.sizes = np.bincount(groups, minlength=self.count)
        if not features or not self.sizes.all():
            empty = np.flatnonzero(self.sizes == 0).tolist()
            raise ValueError(f"groups {empty} of {self.count} have no feature; number them without gaps")
        self.eta = np.sqrt(self.sizes) if eta is None else np.asarray(eta, np.float64)
        if self.eta.shape != (self.count,) or not bool((np.isfinite(self.eta) & (self.eta > 0)).all()):
            raise ValueError(f"eta={eta!r} must be {self.count} finite numbers above 0, one for each group")
        self.order: np.ndarray | None = None if (np.diff(groups) >= 0).all() else np.argsort(groups, kind="stable")
        self.bounds = np.concatenate([[0], np.cumsum(self.sizes)])

    def sorted(self, values: np.ndarray, axes: int = 1) -> np.ndarray:
        """Rows (and columns) by group; no copy, if they are so already."""
        if self.order is None:
            return values
        return np.asarray(values[self.order] if axes == 1 else values[np.ix_(self.order, self.order)])

    def features(self, some: Iterable[int]) -> np.ndarray:
        """The features of some groups, as they were given, group by group."""
        parts = [np.arange(self.bounds[g], self.bounds[g + 1]) for g in some]
        at = np.concatenate([np.empty(0, np.intp), *parts])
        return np.asarray(at if self.order is None else self.order[at])

    def lengths(self, values: np.ndarray) -> np.ndarray:
        """|v_g| of all sorted features (D, c)."""
        return np.asarray(np.sqrt(np.add.reduceat(np.square(values).sum(axis=1), self.bounds[:-1])))


class Blocks:
    """The packed gram, and what a vector in its axes is."""

    def __init__(self, gram: np.ndarray, groups: Groups) -> None:
        self.gram, self.groups = gram, groups
        self.entered: list[int] = []
        self.turns: list[np.ndarray | None] = []  # U_g; None of a single feature
        self.bounds = np.zeros(1, np.intp)
        self.space = np.empty((0, 0))
        self.values, self.cols = np.empty(0), np.empty(0, np.intp)
        self.row_group = np.empty(0, np.intp)  # the place in `entered` of each row

    @property
    def packed(self) -> np.ndarray:
        """U' G U."""
        m = int(self.bounds[-1])
        return self.space[:m, :m]

    @property
    def eta(self) -> np.ndarray:
        """Of the groups that have entered."""
        return np.asarray(self.groups.eta[self.entered])

    def enter(self, some: Iterable[int]) -> None:
        """Take in some groups that are not there yet."""
        for g in some:
            rows = slice(int(self.groups.bounds[g]), int(self.groups.bounds[g + 1]))
            before, size = int(self.bounds[-1]), rows.stop - rows.start
            self._make_room(before + size)
            values, turn = _axes(self.gram[rows, rows])
            beside = self.gram[rows][:, self.cols]
            if turn is not None:
                beside = turn.T @ beside
            self._turn_columns(beside)
            here = slice(before, before + size)
            self.space[here, :before] = beside
            self.space[:before, here] = beside.T
            self.space[here, here] = np.diag(values)
            self.row_group = np.append(self.row_group, np.full(size, len(self.entered)))
            self.entered.append(g)
            self.turns.append(turn)
            self.bounds = np.append(self.bounds, before + size)
            self.values = np.append(self.values, values)
            self.cols = np.append(self.cols, np.arange(rows.start, rows.stop))

    def _make_room(self, wanted: int) -> None:
        if wanted > len(self.space):
            most = min(len(self.gram), max(2 * len(self.space), wanted))
            space, m = np.empty((most, most)), int(self.bounds[-1])
            space[:m, :m] = self.packed
            self.space = space

    def _turn_columns(self, beside: np.ndarray) -> None:
        for k, turn in enumerate(self.turns):
            if turn is not None:
                at = slice(int(self.bounds[k]), int(self.bounds[k + 1]))
                beside[:, at] = beside[:, at] @ turn

    def into(self, values: np.ndarray) -> np.ndarray:
        """U' v of the groups that have entered; v of all sorted features. Directions without variance are left out."""
        turned = values[self.cols]
        for k, turn in enumerate(self.turns):
            if turn is not None:
                at = slice(int(self.bounds[k]), int(self.bounds[k + 1]))
                turned[at] = turn.T @ turned[at]
        turned[self.values <= 0] = 0.0
        return turned

    def out_of(self, turned: np.ndarray, k: int) -> np.ndarray:
        """The features of the k-th group that entered."""
        part, turn = turned[self.bounds[k] : self.bounds[k + 1]], self.turns[k]
        return np.asarray(part.copy() if turn is None else turn @ part)

    def lengths(self, turned: np.ndarray) -> np.ndarray:
        """|v_g| of the groups that have entered."""
        return np.asarray(np.sqrt(self.sums(turned * turned)))

    def sums(self, products: np.ndarray) -> np.ndarray:
        """Sums over the rows of each group that has entered, and over the outputs."""
        if not self.entered:
            return np.empty(0)
        return np.asarray(np.add.reduceat(products.sum(axis=1), self.bounds[:-1]))


def _axes(block: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Eigenvalues, those of rounding as 0, and eigenvectors."""
    if len(block) == 1:
        return np.maximum(block[0], 0.0), None
    values, vectors = np.linalg.eigh(block)
    return np.where(values > len(block) * EPS * max(values[-1], 0.0), values, 0.0), vectors
