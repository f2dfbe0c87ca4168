"""table: accuracy and time of the Fourier and of the exact method against the training size, sigma and alpha learned.

Fashion-MNIST HOG descriptors and covtype, 2,500 to 60,000 training rows, 2000 features; the exact method, whose kernel
matrix is n x n, up to 10,000. Both learn for the same objective (rows held out), from one start, five iterations at
most. How many evaluations that takes differs from size to size, so the plot shows the seconds of one evaluation of
value and gradient on all rows, and the exponents of its growth between the two largest sizes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import report

SIZES, EXACT_MOST, TEST, COMPONENTS = (2_500, 5_000, 10_000, 20_000, 60_000), 10_000, 10_000, 2000
HOW = {"learn": "validation", "starts": 1, "max_iter": 5, "random_state": 0}


def measure(model: Any, data: tuple) -> tuple[float, float, float]:
    """Accuracy in per cent, seconds of the fit, and seconds for each evaluation, in units of all rows."""
    A, a, B, b = data
    start = time.perf_counter()
    model.fit(A, a)
    seconds = time.perf_counter() - start
    history = model.history_
    share = history.rows.values / len(a)
    trials = np.diff(history.passes.values, prepend=0)
    if isinstance(model, dkl.SingleKernelClassifier):
        trials = trials - 1  # the second pass of an iteration belongs to its last trial
    return 100 * model.score(B, b), seconds, float(history.seconds[-1]) / float((trials * share).sum())


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log time in log size, between the two largest."""
    return float(np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2]))


def draw(found: dict[str, dict[str, list]], path: Path) -> None:
    """Time of an evaluation against size, a panel for each set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(found), 4), layout="constrained")
    for ax, (name, methods) in zip(np.atleast_1d(figure.subplots(1, len(found))), found.items(), strict=True):
        for method, rows in methods.items():
            sizes, seconds = [row[0] for row in rows], [row[3] for row in rows]
            ax.loglog(sizes, seconds, "o-", label=f"{method}: n^{exponent(sizes, seconds):.1f}")
        ax.set(title=name, xlabel="training rows", ylabel="seconds of one evaluation")
        ax.set_xticks(SIZES, [f"{size:,}" for size in SIZES], minor=False)
        ax.set_xticks([], minor=True)
        ax.legend()
    figure.savefig(path)


def run(options: argparse.Namespace) -> None:
    """Print the table, write the plot."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list]] = {}
    print(f"{'set':<12} {'rows':>7}   {'Fourier %':>9} {'s':>7} {'each':>7}   {'exact %':>9} {'s':>7} {'each':>7}")
    for name in options.sets.split(",") if options.sets else ("fashion_hog", "covtype"):
        X, y = SETS[name](options)
        found[name] = {"Fourier": [], "exact": []}
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        for size in SIZES:
            A, a, B, b = split(X[: size + TEST], y[: size + TEST], 0, cut=size)
            fourier = dkl.SingleKernelClassifier(n_components=COMPONENTS, verbose=0, **HOW)
            found[name]["Fourier"].append((size, *measure(fourier, (A, a, B, b))))
            line = f"{name:<12} {size:>7,}   " + "{1:>9.2f} {2:>7.1f} {3:>7.2f}".format(*found[name]["Fourier"][-1])
            if size <= EXACT_MOST:
                exact = dkl.exact.KernelRidgeGDClassifier(**HOW)
                found[name]["exact"].append((size, *measure(exact, (A, a, B, b))))
                line += "   {1:>9.2f} {2:>7.1f} {3:>7.2f}".format(*found[name]["exact"][-1])
            print(line, flush=True)
    path = Path(options.scratch or ".", "dkl-table.png")
    draw(found, path)
    figures, rows = {}, [("plot", str(path))]
    for name, methods in found.items():
        for method, lines in methods.items():
            figures[f"{name}_{method.lower()}_exponent"] = exponent(
                [row[0] for row in lines], [row[3] for row in lines]
            )
        gap = [f[1] - e[1] for f, e in zip(methods["Fourier"], methods["exact"], strict=False)]
        rows.append((name, "Fourier less exact, points: " + ", ".join(f"{g:+.2f}" for g in gap)))
    report("table", rows, figures, {})
