"""classes: one-against-all ridge of 1000 classes against 10, at the same rows and features.

Labels are never expanded: a class's sum is the sum of its feature rows, and the solves share one factorisation. What
grows is the triangular solves, d x d x c, and the sums, d x c. Whole fits, in turn.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

import dkl
from tests.benchmarks.report import alternate, median_ratio, report

ROWS, INPUTS, COMPONENTS, CLASSES = 100_000, 128, 2000, (10, 1000)
BARS = {"time_ratio": 1.3}


def run(options: argparse.Namespace) -> None:
    """Measure."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, INPUTS), dtype=np.float32)
    code = rng.integers(0, CLASSES[1], ROWS)
    model = dkl.SingleKernelClassifier(n_components=COMPONENTS, sigma=0.1, alpha=1.0, random_state=0, verbose=0)
    few, many = (lambda c=c: model.fit(X, code % c) for c in CLASSES)
    seconds = alternate(options.repeats, few=few, many=many)
    rows = [("work", f"{ROWS:,} x {INPUTS} float32, {COMPONENTS:,} components")]
    rows += [
        (f"{c:,} classes", f"{statistics.median(seconds[name]):.2f} s")
        for c, name in zip(CLASSES, seconds, strict=True)
    ]
    report("classes", rows, {"time_ratio": median_ratio(seconds["many"], seconds["few"])}, BARS)
