"""Probabilities: log loss and calibration error against LogisticRegression on the same features at the same penalty.

The penalty is the same: scikit-learn's C is 1 / alpha. Needs the data sets: --data FOLDER, or DKL_DATA. --sets chooses
some of a9a, covtype, fashion_hog; --rows is the most training rows of each. One JSON line for each set.
"""

from __future__ import annotations

import time
from argparse import Namespace

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import report

NAMES, D, ALPHA, BINS, MOST = ("a9a", "covtype", "fashion_hog"), 500, 1.0, 10, 50_000
BARS = {"log_loss_ratio": 1.001}


def calibration_error(p: np.ndarray, codes: np.ndarray) -> float:
    """The mean of |confidence - share right| of ten bins of the highest probability, by their rows."""
    top, right = p.max(axis=1), p.argmax(axis=1) == codes
    place = np.minimum((top * BINS).astype(int), BINS - 1)
    gaps = np.bincount(place, top, BINS) - np.bincount(place, right, BINS)
    return float(np.abs(gaps).sum() / len(top))


def run(options: Namespace) -> None:
    """Each set in turn."""
    for name in options.sets.split(",") if options.sets else NAMES:
        X, y = SETS[name](options)
        one(name, *split(X, y, seed=0, most=options.rows or MOST))


def one(name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    """Fit both, print both."""
    how = {"n_components": D, "alpha": ALPHA, "random_state": 0, "verbose": 0}
    begin = time.perf_counter()
    ours = dkl.SingleKernelClassifier(loss="log_loss", **how).fit(X, y)
    between = time.perf_counter()
    blocks = ours.features_.at(np.dtype(ours.dtype_))
    Psi, Psi_test = blocks.transform(X), blocks.transform(X_test)
    theirs = LogisticRegression(C=1 / ALPHA, solver="lbfgs", max_iter=2000, tol=1e-6).fit(Psi, y)
    seconds = {"dkl": between - begin, "sklearn": time.perf_counter() - between}
    found = {"dkl": ours.predict_proba(X_test), "sklearn": theirs.predict_proba(Psi_test)}
    codes, rows, figures = np.searchsorted(ours.classes_, y_test), [("work", f"{len(y):,} rows, {D} features")], {}
    for who, p in found.items():
        loss, gap = log_loss(codes, p, labels=np.arange(p.shape[1])), calibration_error(p, codes)
        figures |= {f"{who}_log_loss": loss, f"{who}_calibration_error": gap, f"{who}_seconds": seconds[who]}
        rows.append((who, f"log loss {loss:.4f}, calibration error {gap:.4f}, {seconds[who]:.1f} s"))
    figures["log_loss_ratio"] = figures["dkl_log_loss"] / figures["sklearn_log_loss"]
    figures["largest_difference"] = float(np.abs(found["dkl"] - found["sklearn"]).max())
    report(f"proba {name}", rows, figures, BARS)
