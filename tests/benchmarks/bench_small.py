"""small: digits with 512 components against the same scikit-learn pipeline; small data must not be taxed."""

from __future__ import annotations

import argparse
import statistics

from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import dkl
from tests.benchmarks.report import alternate, median_ratio, report

D, SIGMA = 512, 0.03
BARS = {"time_ratio": 1.5}


def run(options: argparse.Namespace) -> None:
    """Measure."""
    X, y = load_digits(return_X_y=True)
    sampler = RBFSampler(gamma=SIGMA**2 / 2, n_components=D, random_state=0)
    theirs = make_pipeline(sampler, RidgeClassifier(solver="cholesky"))
    ours = dkl.SingleKernelClassifier(n_components=D, sigma=SIGMA, random_state=0)
    seconds = alternate(10 * options.repeats, dkl=lambda: ours.fit(X, y), sklearn=lambda: theirs.fit(X, y))
    rows = [("work", f"digits {X.shape}, {D} components")]
    rows += [(name, f"{1e3 * statistics.median(values):7.1f} ms") for name, values in seconds.items()]
    report("small", rows, {"time_ratio": median_ratio(seconds["dkl"], seconds["sklearn"])}, BARS)
