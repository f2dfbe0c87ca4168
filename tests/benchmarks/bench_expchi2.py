"""expchi2: classes of histograms by exp(-beta chi2), through eight maps and exactly, by the number of features.

HOG descriptors and visual words of Fashion-MNIST, rows summing to one; 20,000 random rows train, 10,000 others test,
accuracy as mean and standard deviation over seeds. beta is one over the mean distance, found without pairs. alpha is
chosen by three folds for each plain map; PCA takes that of `direct`. PCA keeps D axes of 3 D features; of more than
3,000 features only for the first seed, of more than 9,000 only if `--most 15000` says so: that needs 17 GiB and half an
hour. "exact" is on 3,000 of the rows, and `direct` is shown on the same ones beside it. `--sets words`,
`--sizes 1000`, `--seeds 1` run a part.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict

import numpy as np
from sklearn.linear_model import RidgeClassifierCV

import dkl
from tests.benchmarks.data import fashion_hog, fashion_words
from tests.benchmarks.report import report

SETS = {"hog": fashion_hog, "words": fashion_words}
ALPHAS, FOLDS = [1e-2, 1e-1, 1.0], 3
TRAIN, TEST, FEW = 20_000, 10_000, 3_000
SMALL = 1_000
"""Landmarks that are also drawn by leverage."""
SLOW = 3_000
"""Features of one PCA, above which only the first seed runs."""
QUIET = {"verbose": 0}
ORDER = (
    "chi2 (additive)", "skewed chi2", "Chebyshev", "homogeneous", "direct", "PCA-direct", "PCA with test rows",
    "Nystroem", "Nystroem, leverage", "direct, 3,000 rows", "exact, 3,000 rows",
)  # fmt: skip


def rows(X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to train and to test with, each summing to one."""
    order = np.random.default_rng(seed).permutation(len(y))
    X = X / np.maximum(X.sum(axis=1, keepdims=True), 1e-12)
    train, test = order[:TRAIN], order[TRAIN : TRAIN + TEST]
    return X[train], y[train], X[test], y[test]


def plain(A: np.ndarray, a: np.ndarray, **options: object) -> dkl.SingleKernelClassifier:
    """Any map, alpha by folds."""
    return dkl.SingleKernelClassifier(alpha=ALPHAS, cv=FOLDS, **QUIET, **options).fit(A, a)


def lifted(method: str, A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray, **options: object) -> float:
    """A gaussian of the features of another additive series."""
    series = dkl.Chi2Features(method, 5, **QUIET).fit(A)
    return plain(series.transform(A), a, kernel="gaussian", **options).score(series.transform(B), b)


def additive(A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray) -> float:
    """The chi2 kernel itself, linear in the features of its series; as many as there are."""
    series = dkl.Chi2Features("direct", 3, **QUIET).fit(A)
    few = slice(0, FEW)  # scikit-learn's leave-one-out is cubic
    best = RidgeClassifierCV(alphas=[alpha / 10 for alpha in ALPHAS]).fit(series.transform(A[few]), a[few]).alpha_
    scale = len(A) / FEW
    return RidgeClassifierCV(alphas=[best * scale], cv=2).fit(series.transform(A), a).score(series.transform(B), b)


def at_size(
    size: int, seed: int, most: int, A: np.ndarray, a: np.ndarray, B: np.ndarray, b: np.ndarray
) -> dict[str, float]:  # fmt: skip
    """Accuracy of each map with so many features."""
    options = {"n_components": size, "random_state": seed}
    direct = plain(A, a, kernel="exp_chi2", **options)
    found = {
        "skewed chi2": plain(A, a, kernel="skewed_chi2", skew=float(A.mean()), **options).score(B, b),
        "Chebyshev": lifted("chebyshev", A, a, B, b, **options),
        "homogeneous": lifted("homogeneous", A, a, B, b, **options),
        "direct": direct.score(B, b),
    }
    if 3 * size <= (most if seed == 0 else SLOW):
        more = {"n_components": 3 * size, "reduce": size, "alpha": direct.alpha_, "random_state": seed, **QUIET}
        model = dkl.SingleKernelClassifier("exp_chi2", **more)
        found["PCA-direct"] = model.fit(A, a).score(B, b)
        found["PCA with test rows"] = model.fit(A, a, X_unlabelled=B).score(B, b)
    for name, landmarks in (("Nystroem", "uniform"), ("Nystroem, leverage", "leverage"))[: 2 if size <= SMALL else 1]:
        found[name] = plain(A, a, kernel="exp_chi2", landmarks=landmarks, **options).score(B, b)
    found["direct, 3,000 rows"] = plain(A[:FEW], a[:FEW], kernel="exp_chi2", **options).score(B, b)
    return found


def run(options: argparse.Namespace) -> None:
    """Print a table for each set."""
    warnings.simplefilter("ignore", UserWarning)
    sizes = [int(word) for word in (options.sizes or "1000,3000,5000").split(",")]
    figures = {}
    for name in options.sets.split(",") if options.sets else SETS:
        X, y = SETS[name](options)
        cells: dict[tuple[str, int], list[float]] = defaultdict(list)
        for seed in range(options.seeds):
            A, a, B, b = rows(X, y, seed)
            cells["chi2 (additive)", sizes[0]].append(additive(A, a, B, b))
            exact = dkl.exact.KernelRidgeGDClassifier("exp_chi2", learn="none", alpha=ALPHAS, cv=FOLDS, **QUIET)
            exact.fit(A[:FEW], a[:FEW])
            cells["exact, 3,000 rows", sizes[0]].append(exact.score(B, b))
            for size in sizes:
                start = time.perf_counter()
                for method, accuracy in at_size(size, seed, options.most, A, a, B, b).items():
                    cells[method, size].append(accuracy)
                print(f"{name}, seed {seed}, {size:,} features: {time.perf_counter() - start:.0f} s", flush=True)
        _print(name, sizes, cells)
        for size in sizes:
            if cells["PCA-direct", size]:
                seeds = len(cells["PCA-direct", size])
                gain = np.mean(cells["PCA-direct", size]) - np.mean(cells["direct", size][:seeds])
                figures[f"{name}_pca_gain_{size}"] = 100 * float(gain)
    label = "points of accuracy by which D axes of 3 D features beat D features (first seed above 1,000)"
    report("expchi2", [("pca_gain", label)], figures, dict.fromkeys(figures, 0.0))


def _print(name: str, sizes: list[int], cells: dict[tuple[str, int], list[float]]) -> None:
    print(f"\n{name}: accuracy in % (seeds)\n{'':<20}" + "".join(f"{size:>20,}" for size in sizes))
    for method in ORDER:
        line = f"{method:<20}"
        for size in sizes:
            found = 100 * np.array(cells[method, size])
            line += f"{f'{found.mean():.2f} +- {found.std():.2f} ({len(found)})' if len(found) else '':>20}"
        print(line, flush=True)
