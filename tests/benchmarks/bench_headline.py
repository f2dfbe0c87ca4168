"""headline: 100,000 samples, 3000 features, the kernel parameter learned. The paper took under 15 minutes.

One shared sigma (as there) and, beside it, one for each input; covtype if --data has it, else the same shape at random.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np

import dkl
from tests.benchmarks.data import covtype, split
from tests.benchmarks.report import own_peak, report

ROWS, COMPONENTS = 100_000, 3000


def rows_of(options: argparse.Namespace) -> tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Name, training rows and test rows."""
    folder = options.data or os.environ.get("DKL_DATA")
    if folder is not None and Path(folder, "covtype.csv.xz").exists():
        return "covtype", *split(*covtype(options), 0, ROWS)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * ROWS, 54)).astype(np.float32)
    y = np.digitize(np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3], [-1.0, 0.0, 1.0])
    return "made at random", X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]


def run(options: argparse.Namespace) -> None:
    """Twice: sigma shared, sigma of each input."""
    warnings.simplefilter("ignore")
    name, A, a, B, b = rows_of(options)
    rows, minutes = [("work", f"{name}, {len(a):,} rows, {COMPONENTS:,} features, alpha learned too")], {}
    plain = dkl.SingleKernelClassifier(n_components=COMPONENTS, cv=5, random_state=0, verbose=0).fit(A, a)
    rows.append(("default sigma", f"accuracy {plain.score(B, b):.4f}"))
    for groups in (None, "each"):
        start = time.perf_counter()
        model = dkl.SingleKernelClassifier(
            n_components=COMPONENTS, groups=groups, learn="validation", random_state=0, verbose=0
        ).fit(A, a)
        minutes[groups] = (time.perf_counter() - start) / 60
        passes = int(model.history_.passes[-1])
        which = "one sigma" if groups is None else f"{A.shape[1]} sigmas"
        rows.append((which, f"accuracy {model.score(B, b):.4f} in {minutes[groups]:.2f} minutes, {passes} passes"))
    rows.append(("peak memory", f"{own_peak() / 2**30:.2f} GiB"))
    report("headline", rows, {"minutes": minutes[None], "minutes_each": minutes["each"]}, {"minutes": 15.0})
