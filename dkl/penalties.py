"""Penalties of weights v (d,) or (d, c): value, proximal step and dual norm.

    l2          1/2 |v|^2
    l1          sum |v_j|
    group_l21   sum_g eta_g |v_g|_2,      over the rows of a group and all outputs
    l1_linf     sum_g eta_g |v_g|_inf
    elastic     another penalty + ridge / 2 |v|^2

    prox(v, step) = argmin_p 1/2 |p - v|^2 + step value(p)
    |<u, v>| <= norm(u) dual_norm(v)

`norm` is the value itself, or the norm that the penalty is made of. So 0 minimises f(v) + lam value(v) if the dual norm
of f's gradient at 0 is at most lam (not for l2, which is smooth). `PENALTIES` is the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dkl.checks import check_choice, check_positive


class Penalty(Protocol):
    """A frozen record of the parameters of a penalty."""

    def value(self, v: np.ndarray) -> float:
        """The penalty, at least 0."""

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """argmin over p of 1/2 |p - v|^2 + step value(p), in the shape of v."""

    def norm(self, v: np.ndarray) -> float:
        """The norm beneath."""

    def dual_norm(self, v: np.ndarray) -> float:
        """The largest <u, v> of norm(u) <= 1."""


@dataclass(frozen=True)
class L2:
    """Half the squared length."""

    def value(self, v: np.ndarray) -> float:
        """1/2 |v|^2."""
        return 0.5 * float(np.square(v).sum())

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """v / (1 + step)."""
        return np.asarray(v / (1 + step))

    def norm(self, v: np.ndarray) -> float:
        """|v|."""
        return float(np.sqrt(np.square(v).sum()))

    def dual_norm(self, v: np.ndarray) -> float:
        """|v|."""
        return self.norm(v)


@dataclass(frozen=True)
class L1:
    """The sum of absolute values."""

    def value(self, v: np.ndarray) -> float:
        """sum |v_j|."""
        return float(np.abs(v).sum())

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """Every entry nearer to zero by step."""
        return np.asarray(np.sign(v) * np.maximum(np.abs(v) - step, 0.0))

    def norm(self, v: np.ndarray) -> float:
        """sum |v_j|."""
        return self.value(v)

    def dual_norm(self, v: np.ndarray) -> float:
        """max |v_j|."""
        return float(np.abs(v).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of rows of v; None: every row is a group. `factor` is eta, None: 1."""

    groups: np.ndarray | None = None  # (d,), numbers 0 .. r-1
    factor: np.ndarray | None = None  # (r,)

    def __post_init__(self) -> None:
        groups, factor = self.groups, self.factor
        if groups is not None and (groups.ndim != 1 or groups.dtype.kind not in "iu" or groups.min(initial=0) < 0):
            raise ValueError(f"groups={groups!r} must be whole numbers from 0 on, one for each row of the weights")
        if factor is not None and not bool((np.isfinite(factor) & (factor > 0)).all()):
            raise ValueError(f"factor={factor!r} must be finite numbers above 0, one for each group")

    def _parts(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The group of every entry of v, flat, and eta of every group."""
        groups = np.arange(len(v)) if self.groups is None else self.groups
        if len(groups) != len(v):
            raise ValueError(f"groups has {len(groups)} entries for {len(v)} rows of weights")
        count = int(groups.max(initial=-1)) + 1
        factor = np.ones(count) if self.factor is None else self.factor
        if len(factor) < count:
            raise ValueError(f"factor has {len(factor)} entries for {count} groups")
        return np.repeat(groups, v.size // max(1, len(v))), factor

    def _sums(self, values: np.ndarray, of: np.ndarray, factor: np.ndarray) -> np.ndarray:
        return np.bincount(of, values.ravel(), minlength=len(factor))

    def _largest(self, v: np.ndarray, of: np.ndarray, factor: np.ndarray) -> np.ndarray:
        largest = np.zeros(len(factor))
        np.maximum.at(largest, of, np.abs(v).ravel())
        return largest


@dataclass(frozen=True, eq=False)
class GroupL21(_Groups):
    """The sum of the lengths of groups: whole groups are zero."""

    def value(self, v: np.ndarray) -> float:
        """sum_g eta_g |v_g|."""
        of, factor = self._parts(v)
        return float(factor @ np.sqrt(self._sums(np.square(v), of, factor)))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """Every group shorter by step eta_g."""
        of, factor = self._parts(v)
        length = np.sqrt(self._sums(np.square(v), of, factor))
        kept = np.maximum(length - step * factor, 0.0) / np.where(length > 0, length, 1.0)
        return np.asarray(v * kept[of].reshape(v.shape))

    def norm(self, v: np.ndarray) -> float:
        """The value."""
        return self.value(v)

    def dual_norm(self, v: np.ndarray) -> float:
        """max_g |v_g| / eta_g."""
        of, factor = self._parts(v)
        return float((np.sqrt(self._sums(np.square(v), of, factor)) / factor).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class L1Linf(_Groups):
    """The sum of the largest entries of groups: whole groups are zero, others have several entries of one size."""

    def value(self, v: np.ndarray) -> float:
        """sum_g eta_g max |v_g|."""
        of, factor = self._parts(v)
        return float(factor @ self._largest(v, of, factor))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """v less its projection on the l1 ball of radius step eta_g: entries are cut at one height for each group."""
        of, factor = self._parts(v)
        flat, radius = np.abs(v).ravel(), step * factor
        order = np.lexsort((-flat, of))
        sizes, group = flat[order], of[order]
        first = np.searchsorted(group, np.arange(len(factor)))
        rank = np.arange(len(sizes)) - first[group] + 1
        excess = _running_sums(sizes, rank) - radius[group]
        above = rank * sizes > excess
        count = np.bincount(group, above, minlength=len(factor)).astype(int)
        last = np.minimum(first + np.maximum(count, 1) - 1, max(0, len(sizes) - 1))
        height = np.maximum(excess[last] / rank[last], 0.0) if len(sizes) else np.zeros(len(factor))
        inside = self._sums(flat, of, factor) <= radius
        cut = np.where(inside, 0.0, height)[of].reshape(v.shape)
        return np.asarray(np.clip(v, -cut, cut))

    def norm(self, v: np.ndarray) -> float:
        """The value."""
        return self.value(v)

    def dual_norm(self, v: np.ndarray) -> float:
        """max_g |v_g|_1 / eta_g."""
        of, factor = self._parts(v)
        return float((self._sums(np.abs(v), of, factor) / factor).max(initial=0.0))


def _running_sums(values: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Sums from the first of each group on; rank counts from 1 within a group. By doubling: no group sees another."""
    total, shift = values.copy(), 1
    while shift < rank.max(initial=0):
        total[shift:] += np.where(rank[shift:] > shift, total[:-shift], 0.0)
        shift *= 2
    return total


@dataclass(frozen=True)
class Elastic:
    """Another penalty, and ridge / 2 |v|^2."""

    of: Penalty
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.ridge < float("inf"):
            raise ValueError(f"ridge={self.ridge!r} must be a finite number of at least 0")

    def value(self, v: np.ndarray) -> float:
        """The sum of both."""
        return self.of.value(v) + 0.5 * self.ridge * float(np.square(v).sum())

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """The other's step, of v and step over 1 + step ridge."""
        shrink = 1 + step * self.ridge
        return self.of.prox(v / shrink, step / shrink)

    def norm(self, v: np.ndarray) -> float:
        """That of the other penalty."""
        return self.of.norm(v)

    def dual_norm(self, v: np.ndarray) -> float:
        """That of the other penalty: the ridge is flat at 0."""
        return self.of.dual_norm(v)


PENALTIES: dict[str, Penalty] = {
    "l2": L2(),
    "l1": L1(),
    "group_l21": GroupL21(),
    "l1_linf": L1Linf(),
    "elastic": Elastic(L1()),
}
"""Penalties by name, with their default parameters."""


def find_penalty(text: str) -> Penalty:
    """The penalty that a text names; "l1:ridge=0.5" adds half of l2 to it."""
    name, colon, rest = str(text).partition(":")
    penalty = PENALTIES[check_choice("penalty", name, PENALTIES)]
    if not colon:
        return penalty
    key, _, value = rest.partition("=")
    if key != "ridge" or isinstance(penalty, L2):
        raise ValueError(
            f"penalty={text!r}: behind the colon of a penalty that makes zeros stands ridge, e.g. l1:ridge=0.5"
        )
    try:
        ridge = check_positive("ridge", float(value))
    except ValueError:
        raise ValueError(f"penalty={text!r}: ridge={value!r} must be a number above 0") from None
    return Elastic(penalty.of if isinstance(penalty, Elastic) else penalty, ridge)
