"""Covtype, all rows: sigma learned with 1,000 features, weights of 4,000 to 32,000; HistGradientBoosting beside it.

The rows lie in Zarr. Each size is fitted in a process of its own, whose peak is printed. At 8,000 features the gram and
conjugate gradients are compared. Conjugate gradients end at a relative residual of TOL. --wide chooses the sizes. Needs
the data set: --data FOLDER, or DKL_DATA.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from argparse import Namespace
from pathlib import Path

import dask.array as da
import numpy as np

import dkl
from tests.benchmarks.data import SETS, split
from tests.benchmarks.report import own_peak, report

LEARN, BOTH, WIDEST, TOL = 1000, 8000, 32_000, 0.001
BARS = {"peak_gib": 2.0, "accuracy": 0.94}


def fitted(pipe, folder: str, size: int, how: dict) -> None:
    """One fit; what it found and took."""
    X, y = (da.from_zarr(f"{folder}/{name}") for name in ("X", "y"))
    begin = time.perf_counter()
    model = dkl.SingleKernelClassifier(n_components=size, random_state=0, solver_tol=TOL, verbose=1, **how).fit(X, y)
    minutes, peak = (time.perf_counter() - begin) / 60, own_peak()
    test = np.load(f"{folder}/test.npz")
    right = np.mean(model.predict(test["X"]) == test["y"])
    passes = int(model.history_.passes.values[-1]) if hasattr(model, "history_") else 1
    scales = getattr(model, "scales_", None)
    pipe.send((right, minutes, peak, model.sigma_, model.alpha_, model.factorisation_["method"], passes, scales))


def alone(*arguments) -> tuple:
    """What a fit finds in a process of its own."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=fitted, args=(there, *arguments))
    process.start()
    there.close()  # so that the end of the process ends the wait
    found = here.recv()
    process.join()
    return found


def standardised(options: Namespace) -> tuple:
    """80 % of the rows, and the others."""
    X, y = SETS["covtype"](options)
    return split(X, y, seed=0, cut=int(0.8 * len(y)))


def run(options: Namespace) -> None:
    """All sizes, then the boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y, X_test, y_test = standardised(options)
    sizes = [int(one) for one in (options.wide or f"4000,{BOTH},16000,{WIDEST}").split(",")]
    rows, figures = [("work", f"{len(X):,} rows, sigma learned with {LEARN:,} features")], {}
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        for name, array in (("X", X.astype(np.float32)), ("y", y)):
            da.from_array(array, chunks=(16_384, *array.shape[1:])).to_zarr(str(Path(folder) / name))
        np.savez(f"{folder}/test.npz", X=X_test.astype(np.float32), y=y_test)
        for size in sizes:
            how = {"learn": "log_loss", "learn_components": LEARN, "groups": "each"}
            right, minutes, peak, sigma, alpha, method, passes, scales = alone(folder, size, how)
            rows.append((f"{size:,} features", said(right, minutes, peak, alpha, method, passes)))
            print(*rows[-1], None if scales is None else scales, flush=True)
            figures |= {f"accuracy_{size}": right, f"minutes_{size}": minutes, f"peak_gib_{size}": peak / 2**30}
            figures |= {"accuracy": right, "peak_gib": peak / 2**30}
            if size == BOTH:
                for solver in ("cholesky", "cg"):
                    found = alone(folder, size, {"sigma": sigma, "groups": "each", "alpha": alpha, "solver": solver})
                    rows.append((f"  by {solver}", said(*found[:3], alpha, *found[5:7])))
                    print(*rows[-1], flush=True)
                    figures[f"accuracy_{size}_{solver}"] = found[0]
                pair = [figures[f"accuracy_{size}_{one}"] for one in ("cholesky", "cg")]
                figures["solvers_differ_by_points"] = 100 * abs(pair[0] - pair[1])
    begin = time.perf_counter()
    trees = HistGradientBoostingClassifier(max_iter=300, random_state=0).fit(X, y)
    figures["boosting_accuracy"] = float(trees.score(X_test, y_test))
    boosted = f"{figures['boosting_accuracy']:.4f} accuracy, {(time.perf_counter() - begin) / 60:.1f} minutes"
    rows.append(("HistGradientBoosting", boosted))
    report("wide", rows, figures, BARS)


def said(right: float, minutes: float, peak: float, alpha: float, method: str, passes: int) -> str:
    """A line of the table."""
    took = f"{minutes:.1f} minutes, {peak / 2**30:.2f} GiB, {passes} passes"
    return f"{right:.4f} accuracy, {took}, alpha {alpha:g}, {method}"
