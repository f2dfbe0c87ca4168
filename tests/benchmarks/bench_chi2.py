"""chi2: error of the additive chi2 maps against scikit-learn's AdditiveChi2Sampler on the same histograms.

Mean and largest |k_hat - k| over 200 x 200 pairs of Dirichlet(0.25) histograms with 64 bins, by the number of terms for
each input; then the time to map a matrix of them in float64, ours and theirs in turn, for each value that comes out.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.metrics.pairwise import additive_chi2_kernel

import dkl
from dkl.engine.threads import one_blas_thread
from tests.benchmarks.report import alternate, median_ratio, report

BINS, CONCENTRATION, PAIRS, ROWS = 64, 0.25, 200, 20_000
BARS = {"accuracy_ratio": 10.0, "speed_ratio": 2.0}
METHODS = {
    "direct": ("direct", "fitted"),
    "greedy": ("greedy", "fitted"),
    "zolotarev": ("zolotarev", "fitted"),
    "chebyshev": ("chebyshev", "fitted"),
    "uniform": ("homogeneous", "uniform"),
    "rectangular": ("homogeneous", "rectangular"),
    "fitted": ("homogeneous", "fitted"),
}


def theirs(terms: int) -> AdditiveChi2Sampler:
    """scikit-learn's map with so many terms; it has intervals for 1 to 3 steps, for more one must be given."""
    steps = terms // 2 + 1
    return AdditiveChi2Sampler(sample_steps=steps, sample_interval=None if steps <= 3 else 0.3)


def run(options: argparse.Namespace) -> None:
    """Print the table and the two ratios."""
    rng = np.random.default_rng(1)
    X = rng.dirichlet(np.full(BINS, CONCENTRATION), 2 * PAIRS)
    A, B = X[:PAIRS], X[PAIRS:]
    exact = 1 + additive_chi2_kernel(A, B) / 2  # rows sum to one
    print(f"{'terms':<6}" + "".join(f"{name:>18}" for name in (*METHODS, "sklearn")))
    means = {}
    for terms in (1, 3, 5, 7, 9):
        line = f"{terms:<6}"
        models = {
            name: dkl.Chi2Features(method, terms, window=window, verbose=0).fit(X)
            for name, (method, window) in METHODS.items()
        }
        for name, model in {**models, "sklearn": theirs(terms).fit(X)}.items():
            error = np.abs(model.transform(A) @ model.transform(B).T - exact)
            means[name, terms] = error.mean()
            line += f"{error.mean():>10.1e}{error.max():>8.0e}"
        print(line)
    many = rng.dirichlet(np.full(BINS, CONCENTRATION), ROWS)
    ours, other = dkl.Chi2Features(n_terms=5, verbose=0).fit(many), theirs(5).fit(many)
    narrow = many.astype(np.float32)
    with one_blas_thread():
        seconds = alternate(
            options.repeats,
            dkl=lambda: [ours.transform(many[i : i + 2000]) for i in range(0, ROWS, 2000)],
            float32=lambda: [ours.transform(narrow[i : i + 2000]) for i in range(0, ROWS, 2000)],
            sklearn=lambda: [other.transform(many[i : i + 2000]) for i in range(0, ROWS, 2000)],
        )
    values = ROWS * BINS * 5
    rows = [("work", f"{ROWS:,} x {BINS} histograms, 5 terms, blocks of 2,000 rows, one thread")]
    rows += [(name, f"{1e9 * statistics.median(times) / values:.2f} ns a value") for name, times in seconds.items()]
    figures = {
        "accuracy_ratio": means["sklearn", 5] / means["direct", 5],
        "speed_ratio": median_ratio(seconds["sklearn"], seconds["dkl"]),
    }
    report("chi2", rows, figures, BARS)
