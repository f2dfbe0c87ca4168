"""gradient: value and gradient of the validation objective against its value alone, at 100,000 x 128, d = 2048, c = 10.

The value is one pass and one solve; the gradient adds a pass of low rank and a triangular solve, for any number of
sigmas. Beside it the textbook way: for each sigma the derivative of the features, and dQ/dsigma = dPsi'Psi + Psi'dPsi.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.engine.threads import thread_count
from dkl.features.fourier import FourierMap
from dkl.kernels import find_kernel
from dkl.learn.bandwidth_steps import Problem, advance, judge
from dkl.learn.objectives import OBJECTIVES
from dkl.learn.parameters import Scales
from dkl.learn.search import Search
from dkl.solvers.lbfgs import begin
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets
from tests.benchmarks.report import alternate, median_ratio, report

N, M, D, C, ALPHA = 100_000, 128, 2048, 10, 1.0
BARS = {"cost_ratio": 1.6, "sigma_ratio": 1.1}


class Evaluation:
    """The objective at one point, through the library's own passes and solves, in this process."""

    def __init__(
        self, rows: Rows, targets: Targets, features: FourierMap, groups: np.ndarray, size: np.ndarray
    ) -> None:
        self.rows, self.engine, self.quiet = rows, Embedded(), Progress(0)
        self.parameters = Scales(features, groups)
        self.problem = Problem(OBJECTIVES["validation"], self.parameters, targets, True, ALPHA, size, 1e-3)
        x = self.parameters.begin(1.0)
        self.search = Search(begin(x, *self.parameters.box()))
        self.program = GramProgram(self.parameters.map(x).at(np.float32), targets, N, 2, 0, (1, 5))

    def value(self) -> dict:
        """One pass and one solve."""
        sums = self.engine.sum(self.program, self.rows, self.quiet)
        verdict = self.engine.solve(
            judge, sums, problem=self.problem, program=self.program, search=self.search
        )  # fmt: skip
        return verdict.kept

    def gradient(self) -> np.ndarray:
        """The value, one more pass, and the step."""
        kept = self.value()
        sums = self.engine.sum(kept["pullback"], self.rows, self.quiet)
        options = {"problem": self.problem, "program": self.program}
        move = self.engine.solve(advance, sums, **options, search=kept["search"], accepted=kept["accepted"])
        return move.kept["search"].descent.gradient


def one_by_one(X: np.ndarray, features: FourierMap, sigmas: int, step: int = 8192) -> list[np.ndarray]:
    """dQ/dsigma_j of the first sigmas by explicit products, block by block in float32 (its cheapest order of work)."""
    omega = (features.sigma[:, None] * features.unit).astype(np.float32)
    d, found = 2 * omega.shape[1], []
    for j in range(sigmas):
        dQ = np.zeros((d, d))
        for i in range(0, len(X), step):
            T = X[i : i + step]
            theta = T @ omega
            Psi = np.hstack([np.cos(theta), np.sin(theta)])
            inner = T[:, j, None] * features.unit[j].astype(np.float32)
            dPsi = np.hstack([-np.sin(theta) * inner, np.cos(theta) * inner])
            dQ += dPsi.T @ Psi
        found.append(dQ + dQ.T)
    return found


def run(options: argparse.Namespace) -> None:
    """Measure."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, M), dtype=np.float32), rng.integers(0, C, N)
    features = FourierMap(
        find_kernel("gaussian"), rng.standard_normal((M, D // 2)), np.full(M, M**-0.5), np.empty(0), 1.0, "paired"
    )
    targets, size = Targets(float(N), C, classes=np.arange(C)), np.sqrt((X.astype(np.float64) ** 2).sum(axis=0))
    rows = Rows([Table("memory", X), Table("memory", y), None, None], ["X", "y", "weight", "cv"])
    shared = Evaluation(rows, targets, features, np.zeros(M, int), size)
    each = Evaluation(rows, targets, features, np.arange(M), size)
    seconds = alternate(
        options.repeats, value=each.value, gradient_128=each.gradient, value_1=shared.value, gradient_1=shared.gradient
    )
    naive = []
    for sigmas in (1, 2):
        start = time.perf_counter()
        one_by_one(X, features, sigmas)
        naive.append(time.perf_counter() - start)
    cost = median_ratio(seconds["gradient_128"], seconds["value"])
    per_sigma = naive[1] - naive[0]
    whole = statistics.median(seconds["value"]) + M * per_sigma
    figures = {
        "cost_ratio": cost,
        "sigma_ratio": median_ratio(seconds["gradient_128"], seconds["gradient_1"]),
        "naive_ratio": whole / statistics.median(seconds["gradient_128"]),
    }
    lines = [("work", f"{N:,} x {M}, d = {D}, c = {C}, float32, {thread_count()} threads")]
    lines += [(name.replace("_", " "), f"{statistics.median(values):7.3f} s") for name, values in seconds.items()]
    lines += [
        ("dQ/dsigma, 1 and 2 sigmas", f"{naive[0]:7.3f} s, {naive[1]:7.3f} s"),
        (
            "the same for 128",
            f"{whole:7.0f} s, from {per_sigma:.2f} s for each: {figures['naive_ratio']:.0f} times ours",
        ),
    ]
    report("gradient", lines, figures, BARS)
