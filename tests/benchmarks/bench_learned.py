"""learned: a sigma learned for each input, from the default start, against the best of a cross-validated grid.

Real data, random 70 / 30 splits, 1000 features, mean and standard deviation of the test accuracy over five seeds. The
grid has ten shared sigmas (from a tenth to ten times the default) and five alphas; one pass of the library serves all
folds and alphas of a sigma. Learning is for the log loss, with everything else at its default; `--learn cv` learns for
the squared error. `--sets covtype,mfeat` runs some of the sets only.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import report

SEEDS, COMPONENTS, MOST = 5, 1000, 50_000
FACTORS, ALPHAS = np.logspace(-1, 1, 10), [0.01, 0.1, 1.0, 10.0, 100.0]
BARS = {"covtype": 3.0, "a9a": 0.0, "ijcnn1": 0.0, "mfeat": 0.0, "fashion_hog": 0.0}
"""Points of accuracy by which learning must be better."""


def grid(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[dkl.SingleKernelClassifier, int]:
    """The best model of the grid by cross-validated squared error, and the passes over X."""
    start, models = 1 / np.sqrt(X.var(axis=0, dtype=np.float64).sum()), []
    for factor in FACTORS:
        model = dkl.SingleKernelClassifier(
            n_components=COMPONENTS, sigma=start * factor, alpha=ALPHAS, cv=5, random_state=seed, verbose=0
        )
        models.append(model.fit(X, y))
    return max(models, key=lambda model: model.cv_results_["mean_test_score"].max()), len(models) + 1


def learned(X: np.ndarray, y: np.ndarray, seed: int, learn: str) -> tuple[dkl.SingleKernelClassifier, float]:
    """Everything at its default but groups and learn; passes in units of all rows."""
    model = dkl.SingleKernelClassifier(
        n_components=COMPONENTS, groups="each", learn=learn, random_state=seed, verbose=0
    ).fit(X, y)
    history = model.history_
    passes = np.diff(history.passes.values, prepend=0) * history.rows.values / len(y)
    return model, float(passes.sum()) + 2  # and the look at X before, and the weights after


def run(options: argparse.Namespace) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UserWarning)
    names = options.sets.split(",") if options.sets else list(SETS)
    print(f"{'set':<12} {'train':>7} {'inputs':>6}   {'grid':>14} {'passes':>7} {'s':>6}   "
          f"{'learned':>14} {'passes':>7} {'s':>6}   {'gain':>14}")  # fmt: skip
    figures = {}
    for name in names:
        X, y = SETS[name](options)
        rows = []
        for seed in range(SEEDS):
            A, a, B, b = split(X, y, seed, MOST)
            first = time.perf_counter()
            by_grid, grid_passes = grid(A, a, seed)
            second = time.perf_counter()
            model, passes = learned(A, a, seed, options.learn)
            third = time.perf_counter()
            accuracy = 100 * by_grid.score(B, b), 100 * model.score(B, b)
            rows.append((*accuracy, accuracy[1] - accuracy[0], grid_passes, passes, second - first, third - second))
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
        figures[name] = float(mean[2])
        print(
            f"{name:<12} {len(a):>7,} {A.shape[1]:>6,}   {mean[0]:>6.2f} +- {spread[0]:<4.2f} {mean[3]:>7.0f} "
            f"{mean[5]:>6.0f}   {mean[1]:>6.2f} +- {spread[1]:<4.2f} {mean[4]:>7.1f} {mean[6]:>6.0f}   "
            f"{mean[2]:>+6.2f} +- {spread[2]:<4.2f}",
            flush=True,
        )
    report("learned", [("gain", "points of accuracy, mean of 5 seeds")], figures, {name: BARS[name] for name in names})
