"""The penalty of a model of groups, and what it says of groups that the model does not have.

    l21      sum_j eta_j |W_j|            violation  |C_j| / eta_j
    l1linf   sum_j eta_j max |W_j|                   sum |C_j| / eta_j
    l1       sum_j eta_j sum |W_j|                   max |C_j| / eta_j
    shared   sum_j eta_j least over s of ratio |s| + |W_j - s 1'|      max(|C_j 1| / ratio, |C_j|) / eta_j

C_j = sum w dl/dz psi_j / w is the slope of a group of weight zero. Its violation is the largest alpha / w at which the
group would have a weight. eta_j is the root mean square of the group: a group is no better for being longer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dkl.checks import check_choice
from dkl.features.groups import GroupMap
from dkl.solvers.group_norms import GroupNorm, check_ridge
from dkl.solvers.shared_norm import SharedGroups, SharedNorm

KINDS = ("l21", "l1linf", "l1", "shared")


@dataclass(frozen=True)
class Sparsity:
    """kind: of KINDS. ridge: share of half the squares beside it. ratio: of solvers/shared_norm.py."""

    kind: str = "l21"
    ridge: float = 0.0
    ratio: float | None = None

    def __post_init__(self) -> None:
        check_choice("penalty", self.kind, KINDS)
        check_ridge(self.ridge)

    def norm(self, groups: np.ndarray, eta: np.ndarray, outputs: int) -> GroupNorm:
        """The norm of weights (d, outputs); groups (d,): of each feature."""
        if self.kind == "l1":
            return GroupNorm("l21", np.arange(len(groups)), eta[groups], self.ridge, by_output=outputs > 1)
        if self.kind == "shared":
            return SharedGroups("l21", groups, eta, self.ridge, ratio=self.ratio)
        return GroupNorm(self.kind, groups, eta, self.ridge)

    def violations(self, C: np.ndarray, groups: np.ndarray, eta: np.ndarray) -> np.ndarray:
        """Of every group, from slopes C (d, outputs)."""
        return np.asarray(self._sizes(C, groups, len(eta)) / eta)

    def uphill(self, C: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
        """d violation / dC (d, outputs) of groups with eta = 1."""
        size = self._sizes(C, groups, count)[groups][:, None]
        if self.kind == "l21":
            return np.asarray(C / np.where(size > 0, size, 1.0))
        if self.kind == "l1linf":
            return np.asarray(np.sign(C))
        if self.kind == "shared":
            return SharedNorm(groups, np.ones(count), self.ratio).steepest(C)
        return np.where(np.abs(C) == size, np.sign(C), 0.0)

    def _sizes(self, C: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
        """The dual norm of every group."""
        if self.kind == "shared":
            return SharedNorm(groups, np.ones(count), self.ratio).duals(C)
        if self.kind == "l21":
            return np.asarray(np.sqrt(np.bincount(groups, np.square(C).sum(axis=1), minlength=count)))
        if self.kind == "l1linf":
            return np.asarray(np.bincount(groups, np.abs(C).sum(axis=1), minlength=count))
        found = np.zeros(count)
        np.maximum.at(found, groups, np.abs(C).max(axis=1))
        return found


def lengths_of_groups(features: GroupMap, square: np.ndarray, weight: float) -> np.ndarray:
    """eta: the root mean square of each group, 1 of one that is zero everywhere."""
    if features.is_even:
        return np.ones(features.n_groups)
    own = np.bincount(features.column_group, square, minlength=features.n_groups) / weight
    return np.sqrt(np.where(own > 0, own, 1.0))
