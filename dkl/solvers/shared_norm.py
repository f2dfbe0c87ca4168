"""Weights of several tasks, one column each: a part that all tasks share, and a part of each task.

    norm(V) = least over s of  sum_g eta_g [ ratio |s_g| + |V_g - s_g 1'| ]        g: the features of a group

It is made of two norms, so its dual norm is the larger of theirs: |C_g 1| / ratio and |C_g|. With V_g = a e' + P,
e = 1 / root of the tasks and P e = 0, both are functions of |a| and |P| alone, and so are the norm and its prox:

    rho = ratio / root of the tasks,   r = |(|a|, |P|)|
    norm_g = r  if |a| <= rho r,  else  rho |a| + root(1 - rho^2) |P|
    prox_g = V_g less its projection on |(|a|, |P|)| <= step, |a| <= rho step

A shared weight costs `ratio` times as much as one of a single task. From the root of the tasks on nothing is shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.checks import check_positive
from dkl.solvers.group_norms import GroupNorm

DEFAULT = 0.25
"""ratio is this power of the number of tasks, if it is not given: between that of one task and that of all."""


class Parts(NamedTuple):
    """Of V: a (d,), P (d, tasks), and their lengths by group."""

    mean: np.ndarray
    rest: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


@dataclass(frozen=True, eq=False)
class SharedNorm:
    """groups (d,): of each feature; factor: eta of each group."""

    groups: np.ndarray
    factor: np.ndarray
    ratio: float | None = None

    def rho(self, tasks: int) -> float:
        """ratio over the root of the tasks, at most one."""
        ratio = tasks**DEFAULT if self.ratio is None else self.ratio
        return float(min(1.0, ratio / np.sqrt(tasks)))

    def parts(self, V: np.ndarray) -> Parts:
        """What all columns have in common, and the rest."""
        mean = V.sum(axis=1) / np.sqrt(V.shape[1])
        rest = V - (mean / np.sqrt(V.shape[1]))[:, None]
        alpha = np.sqrt(self._sums(mean * mean))
        return Parts(mean, rest, alpha, np.sqrt(self._sums((rest * rest).sum(axis=1))))

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.bincount(self.groups, values, minlength=len(self.factor)))

    def norms(self, V: np.ndarray) -> np.ndarray:
        """Of every group, without eta."""
        rho, (_, _, alpha, beta) = self.rho(V.shape[1]), self.parts(V)
        r = np.hypot(alpha, beta)
        return np.asarray(np.where(alpha <= rho * r, r, rho * alpha + np.sqrt(1 - rho * rho) * beta))

    def duals(self, C: np.ndarray) -> np.ndarray:
        """The dual norm of every group, without eta."""
        _, _, alpha, beta = self.parts(C)
        return np.asarray(np.maximum(alpha / self.rho(C.shape[1]), np.hypot(alpha, beta)))

    def steepest(self, C: np.ndarray) -> np.ndarray:
        """d dual_g / dC (d, tasks)."""
        rho, (mean, _, alpha, beta) = self.rho(C.shape[1]), self.parts(C)
        r = np.hypot(alpha, beta)
        shared = mean / (rho * np.where(alpha > 0, alpha, 1.0)[self.groups]) / np.sqrt(C.shape[1])
        alone = C / np.where(r > 0, r, 1.0)[self.groups][:, None]
        return np.asarray(np.where((alpha > rho * r)[self.groups][:, None], shared[:, None], alone))

    def value(self, v: np.ndarray) -> float:
        """sum_g eta_g norm_g."""
        return float(self.factor @ self.norms(v))

    def norm(self, v: np.ndarray) -> float:
        """The value."""
        return self.value(v)

    def dual_norm(self, v: np.ndarray) -> float:
        """max_g dual_g / eta_g."""
        return float((self.duals(v) / self.factor).max(initial=0.0))

    def prox(self, v: np.ndarray, step: float) -> np.ndarray:
        """v less its projection on the dual ball of radius step eta_g."""
        rho, (mean, rest, alpha, beta) = self.rho(v.shape[1]), self.parts(v)
        radius, r = step * self.factor, np.hypot(alpha, beta)
        most = rho * radius
        onto = np.minimum(1.0, radius / np.where(r > 0, r, 1.0))
        on_arc = alpha * onto <= most
        a = np.where(on_arc, alpha * onto, most)
        b = np.where(on_arc, beta * onto, np.minimum(beta, radius * np.sqrt(1 - rho * rho)))
        left = [1 - part / np.where(whole > 0, whole, 1.0) for part, whole in ((a, alpha), (b, beta))]
        kept = (mean * left[0][self.groups] / np.sqrt(v.shape[1]))[:, None]
        return np.asarray(kept + rest * left[1][self.groups][:, None])

    def split(self, V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The shared part (d,) and that of each task (d, tasks) that the norm is the least over."""
        root, rho, (mean, rest, alpha, beta) = np.sqrt(V.shape[1]), self.rho(V.shape[1]), self.parts(V)
        left = beta * rho / np.sqrt(1 - rho * rho) if rho < 1 else np.full_like(beta, np.inf)
        share = np.maximum(0.0, 1 - left / np.where(alpha > 0, alpha, 1.0)) * (alpha > 0)
        shared = mean * share[self.groups] / root
        return shared, np.asarray(rest + ((mean / root) - shared)[:, None])


@dataclass(frozen=True, eq=False)
class SharedGroups(GroupNorm):
    """The norm of groups, for paths and masters; ratio: of SharedNorm."""

    ratio: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ratio is not None:
            check_positive("ratio", self.ratio)

    def _plain(self, some: np.ndarray, groups: np.ndarray) -> SharedNorm:
        return SharedNorm(groups, self.factor[some], self.ratio)

    def _duals(self, C: np.ndarray) -> np.ndarray:
        return SharedNorm(self.groups, self.factor, self.ratio).duals(C)

    @property
    def is_smooth(self) -> bool:
        """No: a shared part may be zero by itself."""
        return False

    def part(self, some: np.ndarray, of: np.ndarray, outputs: int) -> SharedGroups:
        """The norm of some groups."""
        if outputs > 1:
            raise ValueError(f"{outputs} scores of a row share a loss; shared weights need one for each output")
        return SharedGroups(self.kind, of, self.factor[some], self.ridge, ratio=self.ratio)
