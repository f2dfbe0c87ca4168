"""relevance: 5 inputs that matter and 45 of noise; a sigma learned for each input against an oracle that knows the 5.

`gain_share` is the share of the oracle's gain in accuracy over one shared sigma that learning reaches; `shrink` is by
how much the largest sigma of a noise input, and the median one, fell from the start. Means over seeds.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import dkl
from tests.benchmarks.report import report

RELEVANT, INPUTS, ROWS = 5, 50, 20_000
BARS = {"gain_share": 0.9, "shrink": 10.0}
FACTORS = np.logspace(-1, 1, 10)


def draw(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and classes by the sign of a smooth function of the first five."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, INPUTS)).astype(np.float32)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.cos(2 * X[:, 3]) + X[:, 4] ** 2
    return X, (score > 1.0).astype(int)


def best_shared(X: np.ndarray, y: np.ndarray, seed: int) -> dkl.SingleKernelClassifier:
    """The best of ten shared sigmas and six alphas by five folds."""
    start = 1 / np.sqrt(X.var(axis=0).sum())
    models = [
        dkl.SingleKernelClassifier(n_components=500, sigma=start * f, cv=5, random_state=seed, verbose=0).fit(X, y)
        for f in FACTORS
    ]
    return max(models, key=lambda model: model.cv_results_["mean_test_score"].max())


def run(options: argparse.Namespace) -> None:
    """Three seeds."""
    warnings.simplefilter("ignore", UserWarning)
    found = []
    for seed in range(3):
        X, y = draw(ROWS, seed)
        X_test, y_test = draw(ROWS, seed + 100)
        plain = best_shared(X, y, seed).score(X_test, y_test)
        oracle = best_shared(X[:, :RELEVANT], y, seed).score(X_test[:, :RELEVANT], y_test)
        start = time.perf_counter()
        learned = dkl.SingleKernelClassifier(
            n_components=500, groups="each", learn="validation", random_state=seed, verbose=0
        ).fit(X, y)
        seconds = time.perf_counter() - start
        begun = 1 / np.sqrt(X.var(axis=0).sum())
        noise = begun / np.maximum(learned.sigma_[RELEVANT:], 1e-12)
        found.append((plain, oracle, learned.score(X_test, y_test), noise.min(), np.median(noise), seconds))
    plain, oracle, accuracy, shrink, median, seconds = np.mean(found, axis=0)
    figures = {"gain_share": (accuracy - plain) / (oracle - plain), "shrink": min(row[3] for row in found)}
    rows = [
        ("work", f"{ROWS:,} rows, {RELEVANT} of {INPUTS} inputs matter, 500 features, 2 classes, 3 seeds"),
        ("one sigma, grid", f"accuracy {plain:.4f}"),
        ("oracle, grid on the 5", f"accuracy {oracle:.4f}"),
        ("learned", f"accuracy {accuracy:.4f} in {seconds:.1f} s"),
        ("noise sigmas", f"smaller by {shrink:.0f} times (the largest), {median:.0f} times (the median)"),
    ]
    report("relevance", rows, figures, BARS)
