"""table: accuracy and time of the Fourier and of the exact method against the training size, sigma and alpha learned.

Fashion-MNIST HOG descriptors and covtype, 2,500 to 60,000 training rows, 2000 features; the exact method, whose kernel
matrix is n x n, up to 10,000. Both learn for the same objective (rows held out), from one start, five iterations, so
that times compare. The plot shows time against size, with the exponents of the last doublings.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import report

SIZES, EXACT_MOST, TEST, COMPONENTS = (2_500, 5_000, 10_000, 20_000, 60_000), 10_000, 10_000, 2000
HOW = {"learn": "validation", "starts": 1, "max_iter": 5, "random_state": 0}


def measure(model: object, data: tuple) -> tuple[float, float, float]:
    """Accuracy in per cent, seconds, and seconds for each evaluation of value and gradient."""
    A, a, B, b = data
    start = time.perf_counter()
    model.fit(A, a)
    seconds = time.perf_counter() - start
    return 100 * model.score(B, b), seconds, seconds / model.n_iter_


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log time in log size, over the upper half."""
    half = max(2, (len(sizes) + 1) // 2)
    return float(np.polyfit(np.log(sizes[-half:]), np.log(seconds[-half:]), 1)[0])


def draw(found: dict[str, dict[str, list]], path: Path) -> None:
    """Time against size, a panel for each set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5 * len(found), 4), layout="constrained")
    for ax, (name, methods) in zip(np.atleast_1d(figure.subplots(1, len(found))), found.items(), strict=True):
        for method, rows in methods.items():
            sizes, seconds = [row[0] for row in rows], [row[2] for row in rows]
            ax.loglog(sizes, seconds, "o-", label=f"{method}: n^{exponent(sizes, seconds):.1f}")
        ax.set(title=name, xlabel="training rows", ylabel="seconds")
        ax.legend()
    figure.savefig(path)


def run(options: argparse.Namespace) -> None:
    """Print the table, write the plot."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, list]] = {}
    print(f"{'set':<12} {'rows':>7}   {'Fourier %':>9} {'s':>7}   {'exact %':>8} {'s':>7}")
    for name in options.sets.split(",") if options.sets else ("fashion_hog", "covtype"):
        X, y = SETS[name](options)
        found[name] = {"Fourier": [], "exact": []}
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        for size in SIZES:
            A, a, B, b = split(X[: size + TEST], y[: size + TEST], 0, cut=size)
            fourier = dkl.SingleKernelClassifier(n_components=COMPONENTS, verbose=0, **HOW)
            found[name]["Fourier"].append((size, *measure(fourier, (A, a, B, b))))
            line = (
                f"{name:<12} {size:>7,}   {found[name]['Fourier'][-1][1]:>9.2f} {found[name]['Fourier'][-1][2]:>7.1f}"
            )
            if size <= EXACT_MOST:
                exact = dkl.exact.KernelRidgeGDClassifier(**HOW)
                found[name]["exact"].append((size, *measure(exact, (A, a, B, b))))
                line += f"   {found[name]['exact'][-1][1]:>8.2f} {found[name]['exact'][-1][2]:>7.1f}"
            print(line, flush=True)
    path = Path(options.scratch or ".", "dkl-table.png")
    draw(found, path)
    figures, rows = {}, [("plot", str(path))]
    for name, methods in found.items():
        for method, lines in methods.items():
            figures[f"{name}_{method.lower()}_exponent"] = exponent(
                [row[0] for row in lines], [row[2] for row in lines]
            )
        gap = [f[1] - e[1] for f, e in zip(methods["Fourier"], methods["exact"], strict=False)]
        rows.append((name, "Fourier less exact, points: " + ", ".join(f"{g:+.2f}" for g in gap)))
    report("table", rows, figures, {})
