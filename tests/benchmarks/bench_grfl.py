"""grfl: few features out of infinitely many against the published accuracy of column generation (GrFL-M).

adult (a9a and its test file) and ijcnn1 (both files), random 70 / 30 splits; 10, 50, 100 and 500 frequencies. The model
is InfiniteFeatureClassifier with the squared hinge, its alpha chosen by held-out rows, everything else at its default
but `improve`. Beside it models of as many features (two for a frequency), alpha by five folds: random frequencies,
Nystroem, and random frequencies whose sigma is learned. Inputs of ijcnn1 are standardised; those of adult are 0 or 1.
`below` counts entries whose mean is below the published one by more than a standard error of ours.

--sets a9a,ijcnn1  --sizes 10,50,100  --splits 5  --improve 2  --without-peers
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import report

PUBLISHED = {
    "a9a": {10: 83.77, 50: 84.86, 100: 85.00, 500: 85.30},
    "ijcnn1": {10: 91.96, 50: 96.97, 100: 98.02},
}
BARS = {"below": 0.0}


def parts(name: str, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Training and test rows of a split."""
    if name != "a9a":
        return split(X, y, seed)
    order, cut = np.random.default_rng(seed).permutation(len(y)), int(0.7 * len(y))
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def models(size: int, seed: int, improve: int, peers: bool) -> dict[str, object]:
    """Ours, and others with as many features."""
    common = {"random_state": seed, "verbose": 0}
    found: dict[str, object] = {
        "ours": dkl.InfiniteFeatureClassifier(max_features=size, loss="squared_hinge", improve=improve, **common)
    }
    if peers:
        single = {"n_components": 2 * size, "cv": 5, **common}
        found["random"] = dkl.SingleKernelClassifier(**single)
        found["nystroem"] = dkl.SingleKernelClassifier(**single, landmarks="uniform")
        found["learned"] = dkl.SingleKernelClassifier(**single, learn="cv", starts=1)
    return found


def run(options: argparse.Namespace) -> None:
    """Every set, size and split."""
    warnings.simplefilter("ignore")
    names = options.sets.split(",") if options.sets else list(PUBLISHED)
    asked = None if options.sizes is None else [int(size) for size in options.sizes.split(",")]
    rows, below, worst = [], 0, 0.0
    for name in names:
        X, y = SETS[name](options)
        for size, published in PUBLISHED[name].items():
            if asked is not None and size not in asked:
                continue
            accuracy: dict[str, list[float]] = {}
            seconds: dict[str, list[float]] = {}
            used = []
            for seed in range(options.splits or 5):
                A, ya, B, yb = parts(name, X, y, seed)
                for kind, model in models(size, seed, options.improve, not options.without_peers).items():
                    start = time.perf_counter()
                    model.fit(A, ya)
                    seconds.setdefault(kind, []).append(time.perf_counter() - start)
                    accuracy.setdefault(kind, []).append(100 * model.score(B, yb))
                    if kind == "ours":
                        used.append(model.n_features_used_)
            ours = np.array(accuracy["ours"])
            error = ours.std(ddof=1) / len(ours) ** 0.5 if len(ours) > 1 else 0.0
            below += bool(ours.mean() < published - error)
            worst = max(worst, np.mean(seconds["ours"]))
            others = ", ".join(
                f"{kind} {np.mean(values):.2f} ({np.mean(seconds[kind]):.1f} s)"
                for kind, values in accuracy.items()
                if kind != "ours"
            )
            told = f"{ours.mean():.2f} +- {error:.2f} ({np.mean(used):.0f} used, {np.mean(seconds['ours']):.1f} s)"
            rows.append((f"{name}, {size}", f"{told}, published {published:.2f}{'; ' * bool(others)}{others}"))
            print(rows[-1], flush=True)
    report("grfl", rows, {"below": float(below), "slowest": worst}, BARS)
