"""Softmax on covtype: time and memory against scikit-learn's LogisticRegression (lbfgs) on features in memory.

Both at the same penalty, each in a process of its own; the objectives have to agree within 1e-5. scikit-learn is not
charged for making the features. Memory is what a fit adds after one of a few rows has loaded the libraries. Needs the
data set: --data FOLDER, or DKL_DATA.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from argparse import Namespace

import numpy as np
from scipy.special import log_softmax

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import own_peak, report

ROWS, D, ALPHA = 200_000, 1000, 1.0
BARS = {"speed": 3.0, "memory_ratio": 0.2}
HOW = {"n_components": D, "alpha": ALPHA, "random_state": 0, "verbose": 0, "solver_tol": 5e-5}
FEW = 500
"""Rows of the fit that comes before."""


def objective(Psi: np.ndarray, codes: np.ndarray, coef: np.ndarray, intercept: np.ndarray) -> float:
    """Mean log loss and penalty."""
    total = 0.0
    for start in range(0, len(Psi), 10_000):
        rows = slice(start, start + 10_000)
        logs = log_softmax(Psi[rows].astype(np.float64) @ coef.T + intercept, axis=1)
        total -= logs[np.arange(len(logs)), codes[rows]].sum()
    return (total + 0.5 * ALPHA * float((coef**2).sum())) / len(Psi)


def ours(pipe, folder: str) -> None:
    """Fit from the rows."""
    few = np.load(f"{folder}/X.npy", mmap_mode="r")[:FEW], np.load(f"{folder}/y.npy", mmap_mode="r")[:FEW]
    dkl.SingleKernelClassifier(loss="log_loss", **{**HOW, "n_components": 10}).fit(*map(np.array, few))
    before = own_peak()
    X, y = np.load(f"{folder}/X.npy"), np.load(f"{folder}/y.npy")
    begin = time.perf_counter()
    model = dkl.SingleKernelClassifier(loss="log_loss", **HOW).fit(X, y)
    seconds = time.perf_counter() - begin
    pipe.send((seconds, own_peak() - before, model.coef_, model.intercept_, model.n_iter_, model.certificate_["value"]))


def theirs(pipe, folder: str) -> None:
    """Fit from the features."""
    from sklearn.linear_model import LogisticRegression

    few = np.load(f"{folder}/Psi.npy", mmap_mode="r")[:FEW], np.load(f"{folder}/y.npy", mmap_mode="r")[:FEW]
    LogisticRegression(max_iter=5000).fit(*map(np.array, few))
    before = own_peak()
    Psi, y = np.load(f"{folder}/Psi.npy"), np.load(f"{folder}/y.npy")
    begin = time.perf_counter()
    model = LogisticRegression(C=1 / ALPHA, max_iter=5000, tol=2e-6).fit(Psi, y)
    seconds = time.perf_counter() - begin
    pipe.send((seconds, own_peak() - before, model.coef_, model.intercept_, int(model.n_iter_[0]), float("nan")))


def alone(job, folder: str) -> tuple:
    """What a job finds in a process of its own."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=job, args=(there, folder))
    process.start()
    found = here.recv()
    process.join()
    return found


def run(options: Namespace) -> None:
    """Measure both."""
    X, y, _, _ = split(*SETS["covtype"](options), seed=0, most=ROWS)
    codes = np.unique(y, return_inverse=True)[1]
    features = dkl.FourierFeatures(n_components=D, random_state=0)
    Psi = np.asarray(features.fit_transform(X), np.float32)
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        for name, array in (("X", X), ("y", codes), ("Psi", Psi)):
            np.save(f"{folder}/{name}.npy", array)
        found = {"dkl": alone(ours, folder), "sklearn": alone(theirs, folder)}
    rows, values = [("work", f"{len(X):,} rows, {D:,} features, {codes.max() + 1} classes, alpha {ALPHA:g}")], {}
    for who, (seconds, peak, coef, intercept, steps, _) in found.items():
        values[who] = objective(Psi, codes, coef, intercept)
        said = f"{seconds:7.1f} s, {peak / 2**30:.2f} GiB, {steps} iterations, objective {values[who]:.7f}"
        rows.append((who, said))
    figures = {
        "speed": found["sklearn"][0] / found["dkl"][0],
        "memory_ratio": found["dkl"][1] / found["sklearn"][1],
        "objective_excess": values["dkl"] / min(values.values()) - 1,
        "sklearn_excess": values["sklearn"] / min(values.values()) - 1,
        "certificate": found["dkl"][5],
    }
    report("logistic", rows, figures, BARS)
