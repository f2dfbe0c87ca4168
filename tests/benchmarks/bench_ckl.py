"""ckl: the small table of the paper on continuous kernel learning: seven sets, random 75 / 25 splits, random search.

Inputs are scaled to [-1, 1] by the training part, but for adult and mushroom, which are one-hot (a '?' is a category of
its own). Breast cancer has its 683 complete rows. The search sees the training part alone: on small sets the candidates
are compared over five folds of it, on large ones on a fifth of it, and the test part is scored once, by the winner.
Beside it are ridge (sigma and alpha from a grid by five folds), learn="log_loss" and learn="frequencies" on the same
splits. `below`: sets where our mean is below the published one by more than our standard deviation over the splits;
`published_or_better`: sets where it is not below. Needs --data; --sets, --splits and --search run less.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dkl
from tests.benchmarks.data import _ingested, a9a
from tests.benchmarks.report import report

BARS = {"below": 0.0, "published_or_better": 4.0}
GRID = np.geomspace(0.1, 10, 7)
"""Multiples of the default sigma that ridge tries."""
RIDGE, FREQUENCIES = 500, 64
"""Components of ridge and of sigma learned for the log loss; and of frequencies learned by variable projection."""
Load = Callable[[argparse.Namespace], tuple[np.ndarray, np.ndarray]]


class Table(NamedTuple):
    """A set, what was published for it, and how it is searched."""

    load: Load
    ckl: float
    gmkl: float
    scaled: bool = True
    splits: int = 20
    search: int = 100
    how: dict[str, Any] = {"cv": 5}


def _file(name: str, **how: Any) -> Load:
    return lambda options: _ingested(options, [name], **how)


LARGE = {"validation": 0.2}
SETS = {
    "liver": Table(_file("liver.csv"), 66.45, 67.78),
    "diabetes": Table(_file("diabetes.csv"), 76.08, 77.06),
    "cod-rna": Table(_file("cod-rna.svm.xz"), 85.7, 87.31, splits=5, search=40, how=LARGE),
    "breast": Table(_file("breast-cancer.csv", drop=["Id"], missing="drop"), 96.87, 97.14),
    "german": Table(_file("german.svm.xz"), 76.14, 73.05),
    "mushroom": Table(_file("mushroom.csv.xz", categorical=["auto"]), 100.0, 99.80, scaled=False, search=40, how=LARGE),
    "adult": Table(a9a, 84.80, 83.94, scaled=False, splits=5, search=40, how=LARGE),
}
"""In the order of the paper's table."""


def parts(
    X: np.ndarray, y: np.ndarray, seed: int, scaled: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """75 per cent that train, 25 that test; [-1, 1] by those that train."""
    order = np.random.default_rng(seed).permutation(len(y))
    cut = round(0.75 * len(y))
    A, B = X[order[:cut]], X[order[cut:]]
    if scaled:
        low, high = A.min(axis=0), A.max(axis=0)
        A, B = (2 * (part - low) / np.where(high > low, high - low, 1) - 1 for part in (A, B))
    return A.astype(np.float32), y[order[:cut]], B.astype(np.float32), y[order[cut:]]


def ridge(A: np.ndarray, a: np.ndarray, seed: int) -> Any:
    """The best sigma and alpha of a grid by five folds."""
    start = 1 / np.sqrt(A.var(axis=0, dtype=np.float64).sum())
    models = [
        dkl.SingleKernelClassifier(n_components=RIDGE, sigma=start * factor, cv=5, random_state=seed, verbose=0)
        for factor in GRID
    ]
    fitted = [model.fit(A, a) for model in models]
    return max(fitted, key=lambda model: model.cv_results_["mean_test_score"].max())


def methods(table: Table, candidates: int) -> dict[str, Callable[[np.ndarray, np.ndarray, int], Any]]:
    """What is compared: from the rows that train and a seed to a fitted model."""

    def continuous(A: np.ndarray, a: np.ndarray, seed: int) -> Any:
        model = dkl.ContinuousKernelClassifier(
            sigma=1.0, search=candidates, dtype="float32", random_state=seed, verbose=0, **table.how
        )
        return model.fit(A, a)

    def single(**how: Any) -> Callable[[np.ndarray, np.ndarray, int], Any]:
        return lambda A, a, seed: dkl.SingleKernelClassifier(random_state=seed, verbose=0, **how).fit(A, a)

    return {
        "ckl": continuous,
        "ridge": ridge,
        "log_loss": single(n_components=RIDGE, learn="log_loss", groups="each"),
        "frequencies": single(n_components=FREQUENCIES, learn="frequencies", max_iter=20),
    }


def measure(name: str, options: argparse.Namespace) -> tuple[dict[str, np.ndarray], dict[str, float], tuple[int, int]]:
    """Accuracy in per cent and CPU seconds of every method, over the splits of one set; its shape."""
    table = SETS[name]
    X, y = table.load(options)
    accuracy: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    for seed in range(min(table.splits, options.splits or table.splits)):
        A, a, B, b = parts(X, y, seed, table.scaled)
        for method, fit in methods(table, options.search or table.search).items():
            start = time.process_time()
            accuracy.setdefault(method, []).append(100 * fit(A, a, seed).score(B, b))
            seconds[method] = seconds.get(method, 0.0) + time.process_time() - start
        told = ", ".join(f"{method} {found[-1]:.2f}" for method, found in accuracy.items())
        print(f"  {name} {seed}: {told}", flush=True)
    return {method: np.array(found) for method, found in accuracy.items()}, seconds, X.shape


def run(options: argparse.Namespace) -> None:
    """All sets."""
    warnings.simplefilter("ignore")
    names = options.sets.split(",") if options.sets else list(SETS)
    rows, below, better, minutes = [], 0, 0, 0.0
    for name in names:
        accuracy, seconds, shape = measure(name, options)
        ours, table = accuracy["ckl"], SETS[name]
        spread = float(ours.std(ddof=1)) if len(ours) > 1 else 0.0
        below += bool(ours.mean() < table.ckl - spread)
        better += bool(ours.mean() >= table.ckl)
        minutes += sum(seconds.values()) / 60
        own = "   ".join(
            f"{method} {found.mean():6.2f} +- {found.std(ddof=len(found) > 1):.2f}"
            for method, found in accuracy.items()
        )
        rows.append((f"{name} {shape[0]:,} x {shape[1]}", f"{own}   published: CKL {table.ckl:g}, GMKL {table.gmkl:g}"))
        cpu = "   ".join(f"{method} {second / len(ours):.1f}" for method, second in seconds.items())
        rows.append(("  CPU seconds of a split", f"{cpu}   ({len(ours)} splits)"))
    rows.append(("CPU minutes", f"{minutes:.1f}"))
    report("ckl", rows, {"below": float(below), "published_or_better": float(better)}, BARS)
