"""grfl: few features out of infinitely many against the published accuracy of column generation (GrFL-M).

adult (a9a and its test file) and ijcnn1 (both files), random 70 / 30 splits; 10, 50, 100 and 500 frequencies. The model
is InfiniteFeatureClassifier with the squared hinge; the alpha, and one of two ranges of bandwidths, are chosen by
held-out training rows, everything else is at its default but `improve`. Beside it models of as many features (two for a
frequency), alpha by five folds: random frequencies, Nystroem, and random frequencies whose sigma is learned. Inputs of
ijcnn1 are standardised; those of adult are 0 or 1. `below` counts entries whose mean is below the published one by more
than a standard error of ours.

--sets a9a,ijcnn1  --sizes 10,50,100  --splits 5  --improve 2  --without-peers
--resume FILE: fits that stand there are not repeated, so that a run can be cut in pieces
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import report

PUBLISHED = {
    "a9a": {10: 83.77, 50: 84.86, 100: 85.00, 500: 85.30},
    "ijcnn1": {10: 91.96, 50: 96.97, 100: 98.02},
}
BARS = {"below": 0.0}
RANGES = ("0.1:3", "0.03:0.5")
"""Factors of sigma: the default, and one for kernels that are nearly linear."""


class Ours:
    """The model of the range whose mean held-out loss is least."""

    def __init__(self, **how: object) -> None:
        self.models = [dkl.InfiniteFeatureClassifier(bandwidths=each, **how) for each in RANGES]

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        """All of them; the held-out rows are the same."""
        self.best = min((one.fit(X, y) for one in self.models), key=lambda one: float(one.path_["error"].min()))
        self.n_features_used_ = self.best.n_features_used_

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        """Accuracy."""
        return float(self.best.score(X, y))


def parts(name: str, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Training and test rows of a split."""
    if name != "a9a":
        return split(X, y, seed)
    order, cut = np.random.default_rng(seed).permutation(len(y)), int(0.7 * len(y))
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def models(size: int, seed: int, improve: int, peers: bool) -> dict[str, object]:
    """Ours, and others with as many features."""
    common = {"random_state": seed, "verbose": 0}
    found: dict[str, object] = {"ours": Ours(max_features=size, loss="squared_hinge", improve=improve, **common)}
    if peers:
        single = {"n_components": 2 * size, "cv": 5, **common}
        found["random"] = dkl.SingleKernelClassifier(**single)
        found["nystroem"] = dkl.SingleKernelClassifier(**single, landmarks="uniform")
        found["learned"] = dkl.SingleKernelClassifier(**single, learn="cv", starts=1)
    return found


class Known:
    """Accuracy, seconds and features of fits, kept in a file of JSON lines if there is one."""

    def __init__(self, path: str | None):
        self.path = None if path is None else Path(path)
        lines = self.path.read_text().splitlines() if self.path is not None and self.path.exists() else []
        self.found = {tuple(key): values for key, values in map(json.loads, lines)}

    def fitted(self, key: tuple, model: object, rows: tuple[np.ndarray, ...]) -> list[float]:
        """Of one fit, or what is known of it."""
        if key not in self.found:
            A, ya, B, yb = rows
            start = time.perf_counter()
            model.fit(A, ya)
            seconds = time.perf_counter() - start
            used = float(model.n_features_used_ if isinstance(model, Ours) else model.n_components)
            self.found[key] = [100 * float(model.score(B, yb)), seconds, used]
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([key, self.found[key]]) + "\n")
        return self.found[key]


def run(options: argparse.Namespace) -> None:
    """Every set, size and split."""
    warnings.simplefilter("ignore")
    names = options.sets.split(",") if options.sets else list(PUBLISHED)
    asked = None if options.sizes is None else [int(size) for size in options.sizes.split(",")]
    rows, below, worst, known = [], 0, 0.0, Known(options.resume)
    for name in names:
        X, y = SETS[name](options)
        for size, published in PUBLISHED[name].items():
            if asked is not None and size not in asked:
                continue
            found: dict[str, list[list[float]]] = {}
            for seed in range(options.splits or 5):
                own = parts(name, X, y, seed)
                for kind, model in models(size, seed, options.improve, not options.without_peers).items():
                    key = (name, size, seed, kind, options.improve if kind == "ours" else 0)
                    found.setdefault(kind, []).append(known.fitted(key, model, own))
            means = {kind: np.mean(each, axis=0) for kind, each in found.items()}
            ours, (_, seconds, used) = np.array(found["ours"])[:, 0], means["ours"]
            error = ours.std(ddof=1) / len(ours) ** 0.5 if len(ours) > 1 else 0.0
            below += bool(ours.mean() < published - error)
            worst = max(worst, seconds)
            others = ", ".join(
                f"{kind} {mean[0]:.2f} ({mean[1]:.1f} s)" for kind, mean in means.items() if kind != "ours"
            )
            told = f"{ours.mean():.2f} +- {error:.2f} ({used:.0f} used, {seconds:.1f} s)"
            rows.append((f"{name}, {size}", f"{told}, published {published:.2f}{'; ' * bool(others)}{others}"))
            print(rows[-1], flush=True)
    report("grfl", rows, {"below": float(below), "slowest": worst}, BARS)
