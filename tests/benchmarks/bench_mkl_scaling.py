"""mkl_scaling: time against n of several kernels by one pass (linear) and of exact GMKL (n x n matrices), with a plot.

Six channels, one gaussian kernel each, two of which tell of y. Ours follows the path of 50 alphas with five folds;
GMKL has one alpha, the one that our folds chose, and at most 10,000 rows. --rows is the most rows of ours. Both have
one thread, and exponents are those of seconds of the processor, as other work of the machine adds to those on the wall.
With --data, the accuracy of several models on descriptors of Fashion-MNIST follows (fashion_kernels.py).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import dkl
from dkl.exact import GMKL
from tests.benchmarks import fashion_kernels
from tests.benchmarks.data import is_given
from tests.benchmarks.report import report

SIZES, EXACT_MOST, TEST = (2_500, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000), 10_000, 10_000
CHANNELS, WIDTH, COMPONENTS, SIGMA = 6, 3, 512, 0.7
SLICES = [slice(i, i + WIDTH) for i in range(0, CHANNELS * WIDTH, WIDTH)]
HEAD = "{:<12} {:>8} {:>8} {:>8} {:>6} {:>7}".format("model", "rows", "wall s", "CPU s", "R2", "kernels")
BARS = {"ours_exponent": 1.2}


class Line(NamedTuple):
    """One fit."""

    n: int
    seconds: float
    cpu: float  # seconds of the processor
    r2: float
    kernels: int


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and a target of two channels with noise of a quarter of its variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, CHANNELS * WIDTH), dtype=np.float32)
    f = np.sin(2 * X[:, 0]) * X[:, 1] + np.cos(1.5 * X[:, 3] + X[:, 4])
    return X, f / 0.8 + 0.5 * rng.standard_normal(n)


def measure(name: str, model: Any, X: np.ndarray, y: np.ndarray) -> Line:
    """A fit, scored on other rows, and told."""
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    used = int((np.asarray(model.kernel_weights_) > 0).sum())
    line = Line(len(y), seconds, cpu, model.score(*draw(TEST, 1)), used)
    print("{:<12} {:>8,} {:>8.1f} {:>8.1f} {:>6.3f} {:>7}".format(name, *line), flush=True)
    return line


def exponent(lines: list[Line]) -> float:
    """Slope of log seconds of the processor in log n, between the two largest."""
    before, last = lines[-2:]
    return float(np.log(last.cpu / before.cpu) / np.log(last.n / before.n))


def plot(found: dict[str, list[Line]], path: Path) -> None:
    """Both, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    ax = figure.subplots()
    for name, lines in found.items():
        label = f"{name}: n^{exponent(lines):.1f}" if len(lines) > 1 else name
        ax.loglog([line.n for line in lines], [line.cpu for line in lines], "o-", label=label)
    ax.set(xlabel="rows", ylabel="seconds of the processor")
    ax.legend()
    figure.savefig(path)


def run(options: argparse.Namespace) -> None:
    """Print the table, write the plot."""
    warnings.simplefilter("ignore")
    sizes = [n for n in SIZES if n <= (options.rows or SIZES[-1])]
    X, y = draw(sizes[-1], 0)
    kernel = [("gaussian", SIGMA)]
    found: dict[str, list[Line]] = {"ours": [], "exact GMKL": []}
    how: dict[str, Any] = {"channels": SLICES, "verbose": 0}
    with threadpool_limits(1), dask.config.set(num_workers=1):
        ours = dkl.MultipleKernelRegressor(kernel, COMPONENTS, eps=1e-3, random_state=0, **how)
        clone(ours).set_params(n_components=8).fit(X[:1000], y[:1000])  # loads what a first fit loads
        print(HEAD, flush=True)
        alphas = {}
        for n in sizes:
            found["ours"].append(measure("ours", ours, X[:n], y[:n]))
            alphas[n] = ours.alpha_
        for n in (n for n in sizes if n <= EXACT_MOST):
            exact = GMKL(kernel, alpha=alphas[n], **how)
            found["exact GMKL"].append(measure("exact GMKL", exact, X[:n].astype(float), y[:n]))
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
