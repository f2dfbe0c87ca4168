"""path: 50 alphas x 5 folds of 16 kernels x 256 features against one ridge fit; its solver alone against others.

time_ratio: MultipleKernelRegressor.fit over one pass without folds and one Cholesky solve of the same features.
solver_ratio: dkl's path over adelie's `gaussian_cov` on the same gram, at a largest and a median duality gap that are
not larger; the worst of two grams (channels of their own; bandwidths of the same inputs), tolerances and one thread
(seconds of the processor) or all of them (seconds on the wall). celer and skglm refit from features in memory, of fewer
rows and a shorter path. What is not installed is said.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import dkl
from dkl.engine.blocks import Rows
from dkl.engine.embedded import Embedded
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.features.side_by_side import SideBySide
from dkl.learn.moments import moments_of
from dkl.learn.ridge import RidgeOptions, fit_ridge
from dkl.learn.run import Run
from dkl.solvers.group_path import group_path, lam_grid, largest_lam
from dkl.solvers.ridge import centred
from dkl.sums.gram import GramProgram
from dkl.sums.targets import Targets
from tests.benchmarks.group_peers import FROM_FEATURES, PEERS, adelie, installed
from tests.benchmarks.report import alternate, median_ratio, report

N, GROUPS, SIZE, CHANNEL, FOLDS, ALPHAS = 200_000, 16, 256, 4, 5, 50
SOLVER_ROWS, REFIT_ROWS, REFIT_ALPHAS, REFIT_LEAST = 20_000, 2_000, 10, 0.1
TOLS = {"channels": (1e-7, 1e-9, 1e-11), "bandwidths": (1e-7, 1e-8)}
BARS = {"time_ratio": 1.5, "solver_ratio": 1.0}
EXACT = 1e-12
OWN: dict[str, Any] = {"n_components": SIZE, "random_state": 0, "verbose": 0}


class Problem(NamedTuple):
    """What a path needs, over the number of rows."""

    gram: np.ndarray
    cross: np.ndarray
    energy: float

    def gaps(self, weights: np.ndarray, lams: np.ndarray) -> np.ndarray:
        """The duality gap of each lam's weights, over the energy of y."""
        found = []
        for w, lam in zip(weights, lams, strict=True):
            C, left = self.cross - self.gram @ w, self.energy - w @ self.cross
            rr, slopes = left - w @ C, np.linalg.norm(C.reshape(GROUPS, -1), axis=1)
            most = lam / max(slopes.max(), 1e-300)
            s = float(np.clip(left / rr, -most, most))
            norm = lam * np.linalg.norm(w.reshape(GROUPS, -1), axis=1).sum()
            found.append(max(0.0, rr / 2 + norm - (s * left - s * s * rr / 2)))
        return np.array(found) / self.energy

    def path(self, lams: np.ndarray, tol: float) -> np.ndarray:
        """dkl's weights (lams, features)."""
        groups = np.repeat(np.arange(GROUPS), SIZE)
        path = group_path(
            self.gram, self.cross[:, None], self.energy, groups, eta=np.ones(GROUPS), lams=lams, tol=tol
        )  # fmt: skip
        return np.array([path.coef(i)[:, 0] for i in range(len(lams))])

    def lams(self, count: int = ALPHAS, least: float = 0.01) -> np.ndarray:
        """From the least lam with no weights."""
        groups = np.repeat(np.arange(GROUPS), SIZE)
        return lam_grid(largest_lam(self.cross[:, None], groups, np.ones(GROUPS)), count, least)


def draw(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of 16 channels, four of which tell of y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, CHANNEL * GROUPS), dtype=np.float32)
    f = sum(np.sin(2 * X[:, i]) * np.cos(X[:, i + 1]) + X[:, i + 2] * X[:, i + 3] / 2 for i in range(0, 16, 4))
    return X, f / f.std() + 0.5 * rng.standard_normal(n)


def models() -> dict[str, Any]:
    """The models of both grams."""
    channels = [slice(i, i + CHANNEL) for i in range(0, CHANNEL * GROUPS, CHANNEL)]
    sigmas = [f"gaussian:{sigma:g}" for sigma in np.geomspace(0.05, 3, GROUPS)]
    return {
        "channels": dkl.MultipleKernelRegressor(["gaussian:0.7"], channels=channels, cv=FOLDS, **OWN),
        "bandwidths": dkl.MultipleKernelRegressor(sigmas, channels=[slice(0, 6)], cv=FOLDS, **OWN),
    }


def features_of(model: Any) -> SideBySide:
    """The maps that a fit draws; they do not depend on the rows, as sigma is given."""
    X, y = draw(100)
    maps: SideBySide = model.set_params(cv=None, alpha=1e9).fit(X, y).features_
    model.set_params(cv=FOLDS, alpha="auto")
    return maps


def pass_of(features: SideBySide, X: np.ndarray, y: np.ndarray, dtype: Any) -> tuple[GramProgram, Rows]:
    """The pass of sums without folds."""
    one = np.ones(1)
    bounds = {"absolute": np.abs(y).sum() * one, "square": (y * y).sum() * one}
    targets = Targets(float(len(y)), 1, shift=0 * one, **bounds)
    rows = Rows([Table("memory", X), Table("memory", y), None, None], ["X", "y", "weight", "cv"])
    return GramProgram(features.at(dtype), targets, len(y)), rows


def problem_of(features: SideBySide, X: np.ndarray, y: np.ndarray) -> Problem:
    """The gram of some rows."""
    y = y - y.mean()
    program, rows = pass_of(features, X.astype(np.float64), y, np.float64)
    engine = Embedded()
    sums = engine.fetch(engine.sum(program, rows, Progress(0)))
    S = centred(moments_of(sums, [0], features.scale, program.targets), True)
    n = len(y)
    return Problem(np.ascontiguousarray(S.gram) / n, S.cross[:, 0] / n, float(y @ y) / n)


def against_ridge(repeats: int, n: int) -> dict[str, list[float]]:
    """Seconds of the whole fit and of a ridge fit."""
    model, (X, y) = models()["channels"], draw(n)
    program, rows = pass_of(features_of(model), X, y, np.float32)
    one = RidgeOptions(np.ones(1), True)
    ridge = lambda: fit_ridge(Run(Embedded(), rows, Progress(0)), program, one)  # noqa: E731
    return alternate(repeats, path=lambda: model.fit(X, y), ridge=ridge)


def against_adelie(problem: Problem, tol: float, threads: int, repeats: int) -> tuple[str, float]:
    """What was found, and the ratio of times."""
    lams = problem.lams()

    def theirs() -> np.ndarray:
        return adelie(problem.gram, problem.cross, GROUPS, lams, tol, threads)

    gaps = problem.gaps(theirs(), lams)
    ask = max(float(gaps.max()), EXACT)
    while True:
        found = problem.gaps(problem.path(lams, ask), lams)
        if (found.max() <= gaps.max() and np.median(found) <= np.median(gaps)) or ask <= EXACT:
            break
        ask = max(ask / 10, EXACT)
    with threadpool_limits(threads):
        clock = time.process_time if threads == 1 else time.perf_counter  # other work of the machine adds to the last
        seconds = alternate(repeats, clock, dkl=lambda: problem.path(lams, ask), adelie=theirs)
    own, other = (statistics.median(seconds[name]) for name in ("dkl", "adelie"))
    told = f"dkl {own:.2f} s (gap {found.max():.0e}, median {np.median(found):.0e}), "
    told += f"adelie {other:.2f} s ({gaps.max():.0e}, {np.median(gaps):.0e})"
    if found.max() > gaps.max() or np.median(found) > np.median(gaps):
        told += "; dkl's gap is larger"
        return told, np.inf
    return told, median_ratio(seconds["dkl"], seconds["adelie"])


def refits(features: SideBySide, names: list[str]) -> list[tuple[str, str]]:
    """A short path from the features of few rows, by each peer, beside dkl's from their gram."""
    X, y = draw(REFIT_ROWS)
    y = y - y.mean()
    blocks, Psi = features.at(np.float64), np.empty((len(y), features.n_features))
    blocks.write(blocks.prepare(X.astype(np.float64)), Psi)
    Psi *= features.scale
    Psi = np.asfortranarray(Psi - Psi.mean(axis=0))

    def made() -> Problem:
        return Problem(Psi.T @ Psi, Psi.T @ y, float(y @ y))

    problem = made()
    lams, size = problem.lams(REFIT_ALPHAS, REFIT_LEAST), f"{REFIT_ROWS:,} rows, {REFIT_ALPHAS} alphas"
    jobs: dict[str, Callable[[], np.ndarray]] = {"dkl with its gram": lambda: made().path(lams, 1e-6)}
    for name in names:
        FROM_FEATURES[name](Psi[:200], y[:200], GROUPS, lams[:2], 1e-3)  # compiles
        jobs[name] = lambda name=name: FROM_FEATURES[name](Psi, y, GROUPS, lams, 1e-6)
    rows = []
    for name, job in jobs.items():
        start = time.perf_counter()
        gap = problem.gaps(job(), lams).max()
        rows.append((f"{size} once: {name}", f"{time.perf_counter() - start:.2f} s (gap {gap:.0e})"))
    return rows


def run(options: argparse.Namespace) -> None:
    """Measure; solver_ratio is left out if adelie is not installed."""
    n, missing = options.rows or N, [name for name in PEERS if not installed(name)]
    rows = [("work", f"{n:,} rows, {GROUPS} kernels x {SIZE} features, {ALPHAS} alphas, {FOLDS} folds")]
    if missing:
        rows.append(("not installed", ", ".join(missing)))
    figures, maps = {}, {name: features_of(model) for name, model in models().items()}
    if "adelie" not in missing:
        X, y = draw(SOLVER_ROWS)
        ratios = []
        for name, tols in TOLS.items():
            problem = problem_of(maps[name], X, y)
            for threads in sorted({1, os.cpu_count() or 1}):
                for tol in tols:
                    told, ratio = against_adelie(problem, tol, threads, options.repeats)
                    rows.append((f"{name}, tol {tol:g}, {threads} thread{'s' * (threads > 1)}", f"{ratio:.2f}: {told}"))
                    print(f"  {rows[-1][0]}  {rows[-1][1]}", flush=True)
                    ratios.append(ratio)
        figures["solver_ratio"] = max(ratios)
    rows += refits(maps["channels"], [name for name in FROM_FEATURES if name not in missing])
    seconds = against_ridge(options.repeats, n)
    rows += [(name, f"{statistics.median(values):.1f} s") for name, values in seconds.items()]
    figures["time_ratio"] = median_ratio(seconds["path"], seconds["ridge"])
    report("path", rows, figures, {name: bar for name, bar in BARS.items() if name in figures})
