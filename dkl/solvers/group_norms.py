"""Norms of groups of weights: what a path looks at group by group, whatever its penalty.

l21       |W_g|          over the features of a group and all outputs,    dual  |C_g|
l1linf    max |W_g|                                                       dual  sum |C_g|

penalty = sum_g eta_g norm(W_g) + ridge / 2 |W|^2;    W = 0 from lam_max = max_g dual(C_g) / eta_g on
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dkl.checks import check_choice
from dkl.penalties import Elastic, GroupL21, L1Linf, Penalty
from dkl.solvers.group_blocks import Groups

GROUP_PENALTIES = ("l21", "l1linf", "l2")
"""Penalties of a path: two that make whole groups zero, and half the square, which makes none."""


@dataclass(frozen=True, eq=False)
class GroupNorm:
    """groups: the number 0 .. r-1 of each feature. eta: of each group, the root of its size if None."""

    kind: str
    groups: np.ndarray  # (d,)
    eta: np.ndarray | None = None
    ridge: float = 0.0
    by_output: bool = False
    factor: np.ndarray = field(init=False, repr=False)  # (r,), eta

    def __post_init__(self) -> None:
        check_choice("penalty", self.kind, GROUP_PENALTIES[:2])
        check_ridge(self.ridge)
        object.__setattr__(self, "factor", Groups(self.groups, self.eta, len(self.groups)).eta)

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.factor)

    def lengths(self, W: np.ndarray) -> np.ndarray:
        """|W_g| of each group (r,)."""
        return lengths_of(W, self.groups, self.count)

    def duals(self, C: np.ndarray) -> np.ndarray:
        """The dual norm of each C_g (r,)."""
        if self.by_output:
            return np.asarray(np.max([self._duals(C[:, [j]]) for j in range(C.shape[1])], axis=0))
        return self._duals(C)

    def _duals(self, C: np.ndarray) -> np.ndarray:
        if self.kind == "l21":
            return self.lengths(C)
        return np.bincount(self.groups, np.abs(C).sum(axis=1), minlength=self.count)

    def largest_lam(self, C: np.ndarray) -> float:
        """lam_max."""
        return float((self.duals(C) / self.factor).max())

    @property
    def penalty(self) -> Penalty:
        """The penalty of all groups."""
        return self.of(np.arange(self.count))

    def of(self, some: np.ndarray) -> Penalty:
        """The penalty of some groups alone, on the rows `features(some)`."""
        place = np.full(self.count, -1)
        place[some] = np.arange(len(some))
        groups = place[self.groups[self.features(some)]]
        norm = self._plain(some, groups)
        norm = EachOutput(norm) if self.by_output else norm
        return Elastic(norm, self.ridge) if self.ridge else norm

    def _plain(self, some: np.ndarray, groups: np.ndarray) -> Penalty:
        """The norm of some groups on rows that have these numbers, without a ridge."""
        return (GroupL21 if self.kind == "l21" else L1Linf)(groups, self.factor[some])

    def part(self, some: np.ndarray, of: np.ndarray, outputs: int) -> GroupNorm:
        """The norm of some groups, of features `of`; with more outputs, of weights that stand output by output in one
        column.
        """
        apart = self.by_output and outputs > 1
        groups = np.concatenate([of + len(some) * j * apart for j in range(outputs)])
        eta = np.tile(self.factor[some], outputs if apart else 1)
        return GroupNorm(self.kind, groups, eta, self.ridge, self.by_output and outputs == 1)

    @property
    def is_smooth(self) -> bool:
        """Whether the norm of a group is smooth but at zero."""
        return self.kind == "l21"

    def features(self, some: np.ndarray) -> np.ndarray:
        """The features of some groups, in order."""
        return np.flatnonzero(np.isin(self.groups, some))


@dataclass(frozen=True, eq=False)
class EachOutput:
    """A norm of every column, added up."""

    of: Penalty

    def value(self, v: np.ndarray) -> float:
        """The sum of values."""
        return float(sum(self.of.value(v[:, [j]]) for j in range(v.shape[1])))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """Column by column."""
        return np.hstack([self.of.prox(v[:, [j]], step) for j in range(v.shape[1])])

    def norm(self, v: np.ndarray) -> float:
        """The value."""
        return self.value(v)

    def dual_norm(self, v: np.ndarray) -> float:
        """The largest."""
        return max((self.of.dual_norm(v[:, [j]]) for j in range(v.shape[1])), default=0.0)


def lengths_of(W: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """|W_g| of each of so many groups."""
    return np.asarray(np.sqrt(np.bincount(groups, np.square(W).sum(axis=1), minlength=count)))


def check_ridge(ridge: float) -> None:
    """Refuse what is no ridge."""
    if not (np.isfinite(ridge) and ridge >= 0):
        raise ValueError(f"ridge={ridge!r} must be a finite number of at least 0")


def check_lams(lams: np.ndarray) -> np.ndarray:
    """The lams of a path, from large to small."""
    lams = np.asarray(lams, np.float64)
    falls = lams.ndim == 1 and len(lams) > 0 and bool(np.isfinite(lams).all()) and bool((np.diff(lams) < 0).all())
    if not falls or not lams[-1] > 0:
        raise ValueError(f"lams={lams!r} must be finite numbers above 0, each below the one before")
    return lams
