"""mkl_scaling: time against n of several kernels by one pass (linear) and of exact GMKL (n x n matrices), with a plot.

Six channels, one gaussian kernel each, two of which tell of y. Ours follows the path of 50 alphas with five folds;
GMKL has one alpha, the one that our folds chose, and at most 10,000 rows. --rows is the most rows of ours. With --data,
the accuracy of several models on descriptors of Fashion-MNIST follows (fashion_kernels.py).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dkl
from dkl.exact import GMKL
from tests.benchmarks import fashion_kernels
from tests.benchmarks.data import is_given
from tests.benchmarks.report import report

SIZES, EXACT_MOST, TEST = (2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000), 10_000, 10_000
CHANNELS, WIDTH, COMPONENTS, SIGMA = 6, 3, 512, 0.7
SLICES = [slice(i, i + WIDTH) for i in range(0, CHANNELS * WIDTH, WIDTH)]
BARS = {"ours_exponent": 1.2}


class Line(NamedTuple):
    """One fit."""

    n: int
    seconds: float
    r2: float
    kernels: int


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and a target of two channels with noise of a quarter of its variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, CHANNELS * WIDTH), dtype=np.float32)
    f = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(1.5 * X[:, 3] + X[:, 4])
    return X, f / 0.8 + 0.5 * rng.standard_normal(n)


def measure(model: Any, X: np.ndarray, y: np.ndarray) -> Line:
    """A fit, scored on other rows."""
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return Line(len(y), seconds, model.score(*draw(TEST, 1)), int((np.asarray(model.kernel_weights_) > 0).sum()))


def exponent(lines: list[Line]) -> float:
    """Slope of log time in log n, between the two largest."""
    before, last = lines[-2:]
    return float(np.log(last.seconds / before.seconds) / np.log(last.n / before.n))


def plot(found: dict[str, list[Line]], path: Path) -> None:
    """Both, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    ax = figure.subplots()
    for name, lines in found.items():
        label = f"{name}: n^{exponent(lines):.1f}" if len(lines) > 1 else name
        ax.loglog([line.n for line in lines], [line.seconds for line in lines], "o-", label=label)
    ax.set(xlabel="rows", ylabel="seconds of a fit")
    ax.legend()
    figure.savefig(path)


def run(options: argparse.Namespace) -> None:
    """Print the table, write the plot."""
    warnings.simplefilter("ignore")
    sizes = [n for n in SIZES if n <= (options.rows or SIZES[-1])]
    X, y = draw(sizes[-1], 0)
    kernel, found = [("gaussian", SIGMA)], {"ours": [], "exact GMKL": []}
    print(f"{'rows':>8}   {'ours s':>8} {'R2':>6} {'kernels':>7}   {'exact s':>8} {'R2':>6} {'kernels':>7}")
    how = {"channels": SLICES, "random_state": 0, "verbose": 0}
    dkl.MultipleKernelRegressor(kernel, 8, **how).fit(X[:1000], y[:1000])  # loads what a first fit loads
    for n in sizes:
        ours = dkl.MultipleKernelRegressor(kernel, COMPONENTS, eps=1e-3, **how)
        found["ours"].append(measure(ours, X[:n], y[:n]))
        told = "{:>8,}   {:>8.1f} {:>6.3f} {:>7}".format(*found["ours"][-1])
        if n <= EXACT_MOST:
            exact = GMKL(kernel, channels=SLICES, alpha=ours.alpha_, verbose=0)
            found["exact GMKL"].append(measure(exact, X[:n].astype(float), y[:n]))
            told += "   {1:>8.1f} {2:>6.3f} {3:>7}".format(*found["exact GMKL"][-1])
        print(told, flush=True)
    path = Path(options.scratch or ".", "dkl-mkl-scaling.png")
    plot(found, path)
    figures = {}
    for name, lines in found.items():
        if len(lines) > 1:
            figures[f"{name.split()[0]}_exponent"] = exponent(lines)
    rows = [("plot", str(path))]
    if is_given(options):
        rows += [(f"{one.n:,} rows: {one.model}", f"{one.accuracy:.2f} %") for one in fashion_kernels.compare(options)]
    report("mkl_scaling", rows, figures, BARS if len(sizes) == len(SIZES) else {})
