"""python -m dkl.quickstart [FOLDER]: the handwritten digits from Zarr to a saved kernel model, beside its rivals.

Real data that scikit-learn ships are written to Zarr, a model is fitted out of core on the embedded engine, and its
accuracy is printed beside a linear model and beside the exact kernel machine.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dkl


def timed(label: str, model: Any, data: tuple, test: tuple) -> Any:
    """Fit, score, and print one line."""
    start = time.perf_counter()
    model.fit(*data)
    seconds = time.perf_counter() - start
    print(f"  {label:<42} accuracy {model.score(*test):.4f}   fitted in {seconds:.2f} s")
    return model


def main(folder: str = "output") -> None:
    """The main job."""
    import zarr
    from sklearn.linear_model import RidgeClassifier

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    data = dkl.ingest("sklearn:digits", target / "digits.zarr", scale="minmax", split={"test": 0.25}, overwrite=True)
    train, test = f"{data}/train", f"{data}/test"
    y_test = zarr.open_group(test, mode="r")["y"][:]
    print(f"digits in {train} and {test}\n")

    model = dkl.SingleKernelClassifier(n_components=2000, alpha=[0.001, 0.01, 0.1, 1.0], cv=5, random_state=0)
    print(dkl.plan(train, model, y=zarr.open_group(train, mode="r")["y"]), "\n")
    timed("dkl, gaussian kernel, 2000 components", model, (train,), (test, y_test))

    X, y = (zarr.open_group(train, mode="r")[name][:] for name in ("X", "y"))
    X_test = zarr.open_group(test, mode="r")["X"][:]
    timed("linear ridge", RidgeClassifier(alpha=model.alpha_), (X, y), (X_test, y_test))
    accuracy = exact_accuracy(model, X, y, X_test, y_test)
    print(f"  {'exact kernel machine, same sigma and alpha':<42} accuracy {accuracy:.4f}")

    path = target / "digits-model.zarr"
    model.save(path, overwrite=True)
    same = np.array_equal(dkl.load(path).decision_function(X_test), model.decision_function(X_test))
    print(f"\nsigma {model.sigma_[0]:.4f}, alpha {model.alpha_:g}; saved to {path}")
    print(f"reloaded scores are {'the same, bit for bit' if same else 'NOT the same'}")


def exact_accuracy(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> float:
    """Accuracy of kernel ridge with the exact kernel that the model approximates."""
    from sklearn.kernel_ridge import KernelRidge

    codes = 2.0 * (y[:, None] == model.classes_) - 1
    mean = codes.mean(axis=0)
    exact = KernelRidge(alpha=model.alpha_, kernel="precomputed")
    exact.fit(model.kernel_matrix(X, exact=True), codes - mean)
    scores = exact.predict(model.kernel_matrix(X_test, X, exact=True)) + mean
    return float((model.classes_[scores.argmax(axis=1)] == y_test).mean())


if __name__ == "__main__":
    main(*sys.argv[1:2])
