"""Weights d of a sum of kernels K = sum_j d_j K_j: generalised multiple kernel learning, equal to the group lasso.

    F(d) = sum d_j + max_a { <Y, a> - R(a) - 1/2 sum_j d_j q_j },   q_j = <a, K_j a>,   dF/dd_j = 1 - q_j / 2,   d >= 0

is C times  min sum of losses + alpha sum_j |w_j|  with alpha = sqrt2 / C and d_j = |w_j| / sqrt2. At the least point
q_j = 2 where d_j > 0, and q_j <= 2 elsewhere. Outputs share d; their q_j are added (Frobenius).

The problem is convex. It is solved by spectral projected gradient, an inner problem (learn/kernel_machines.py) for
each evaluation. s a with s = sqrt(2 / max q_j) is feasible for the dual, so that its value bounds F from below:

    gap = F(d) - [ s <Y, a> - R(s a) ],   KKT residual = max_j | d_j / D - max(0, d_j / D - (1 - q_j / 2)) |,  D = sum d
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dkl.engine.interrupt import check
from dkl.engine.threads import one_blas_thread
from dkl.learn.history import COUNTED, Column, History
from dkl.learn.kernel_machines import KernelLoss, Machine
from dkl.learn.run import STALLED, Method, Row, Run, Step
from dkl.solvers.spectral_gradient import Descent, begin, evaluated

MANY_ROWS = 3_000
"""From here on several BLAS threads are faster than one."""
SCALINGS = 5
"""Steps d_j <- d_j sqrt(q_j / 2), which find the size of d, before the descent."""


class Evaluation(NamedTuple):
    """F, its gradient and its bounds at some weights, and the machine there."""

    value: float
    gradient: np.ndarray
    gap: float  # relative
    machine: Machine


@dataclass(frozen=True)
class KernelSum:
    """F as a function of d, of rows of positive weight."""

    grams: tuple[np.ndarray, ...]  # r of (n, n)
    Y: np.ndarray  # (n, c)
    weight: np.ndarray  # (n,)
    loss: KernelLoss
    C: float
    fit_intercept: bool

    def matrix(self, d: np.ndarray) -> np.ndarray:
        """sum_j d_j K_j."""
        K = np.zeros((len(self.Y), len(self.Y)))
        for share, gram in zip(d, self.grams, strict=True):
            if share > 0:
                K += share * gram
        return K

    def machine(self, d: np.ndarray) -> Machine:
        """The best a and b0 of these weights."""
        with blas_threads(len(self.Y)):
            return self.loss.solve(self.matrix(d), self.Y, self.weight, self.C, self.fit_intercept)

    def at(self, d: np.ndarray) -> Evaluation:
        """F(d) with its gradient and its gap."""
        machine = self.machine(d)
        with blas_threads(len(self.Y)):
            q = energies(self.grams, machine.coef)
        energy, size = float(d @ q), float(d.sum())
        value = size + machine.linear - (machine.quadratic + energy) / 2
        primal = size + energy / 2 + machine.loss
        most = float(q.max())
        s = min(1.0, float(np.sqrt(2 / most))) if most > 0 else 1.0
        bound = s * machine.linear - s * s * machine.quadratic / 2
        gap = max(0.0, primal - bound) / primal if primal > 0 else 0.0
        return Evaluation(value, 1 - q / 2, gap, machine)

    def start(self) -> np.ndarray:
        """Equal weights, of a size that the data want; none, if alpha is so large that zero is best."""
        nothing = np.zeros(len(self.grams))
        if energies(self.grams, self.machine(nothing).coef).max() <= 2:
            return nothing
        total = sum(float(self.weight @ np.diagonal(gram)) for gram in self.grams)
        d = np.full(len(self.grams), 1.0 / (total * self.C) if total > 0 else 1.0)
        for _ in range(SCALINGS):
            q = energies(self.grams, self.machine(d).coef)
            d *= np.sqrt(q.mean() / 2)
        return d


def energies(grams: tuple[np.ndarray, ...], coef: np.ndarray) -> np.ndarray:
    """q_j = <a, K_j a>, never below zero."""
    return np.array([max(0.0, float((coef * (gram @ coef)).sum())) for gram in grams])


def largest_alpha(problem: KernelSum) -> float:
    """The alpha from which on all weights are zero: max_j sqrt <p, K_j p>, p of the best constant."""
    pull = problem.loss.pull(problem.Y, problem.weight, problem.fit_intercept)
    return float(np.sqrt(energies(problem.grams, pull).max()))


def kkt_residual(d: np.ndarray, gradient: np.ndarray) -> float:
    """How far d is from the least point, free of units; 0 there."""
    share = d / d.sum() if d.sum() > 0 else d
    return float(np.abs(share - np.maximum(0.0, share - gradient)).max())


class KernelWeights(NamedTuple):
    """The end of learning: weights, the KKT residual, the relative duality gap, and the machine."""

    d: np.ndarray
    residual: float
    gap: float
    machine: Machine


@dataclass(frozen=True)
class LearnKernelWeights(Method[Descent, KernelWeights]):
    """Spectral projected gradient on d >= 0, until the KKT residual is at most tol."""

    problem: KernelSum
    state: ClassVar[type] = Descent
    history: ClassVar[Mapping[str, Column]] = {
        "objective": Column("sum of losses + alpha sum_j |w_j|"),
        "gap": Column("relative duality gap"),
        "gradient_norm": Column("KKT residual"),
        **COUNTED,
        "kernel_weights": Column("weight of each kernel", dim="kernel"),
    }

    def begin(self, run: Run) -> Descent:
        """Equal weights."""
        d = self.problem.start()
        return begin(d, np.zeros(len(d)), np.full(len(d), np.inf), self.problem.loss.noise)

    def step(self, run: Run, state: Descent) -> Step[Descent]:
        """One evaluation."""
        check()
        run.meter.passes += 1
        found = self.problem.at(state.trial)
        after = evaluated(state, found.value, found.gradient)
        if after.iteration == state.iteration:
            return Step(after, saved=False, ended=STALLED if after.stalled else "")
        residual = kkt_residual(after.x, found.gradient)
        values = {"objective": after.value / self.problem.C, "gap": found.gap, "gradient_norm": residual}
        row = Row(f"iteration {after.iteration}", len(self.problem.Y), {**values, "kernel_weights": after.x})
        limited = "max_iter" if after.iteration >= run.limits.max_iter else ""
        done = residual <= run.limits.tol
        return Step(after, row, "converged" if done else STALLED if after.stalled else limited)

    def end(self, run: Run, state: Descent, history: History) -> KernelWeights:
        """The last weights, and their machine."""
        found = self.problem.at(state.x)
        return KernelWeights(state.x, kkt_residual(state.x, found.gradient), found.gap, found.machine)


def blas_threads(n: int) -> AbstractContextManager[None]:
    """One thread for few rows."""
    return one_blas_thread() if n < MANY_ROWS else nullcontext()
