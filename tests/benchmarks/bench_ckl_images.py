"""ckl_images: a convolutional network with a layer of cosines on Fashion-MNIST, against two that have none.

The same network with thresholds in place of the cosines (as many numbers, the same steps), and kernel ridge on HOG
descriptors. The networks see the 60,000 x 784 bytes as they are, for EPOCHS epochs; a tenth of the rows is held out,
and the best epoch counts. Needs torch. Minutes are those of all CPUs together.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

import dkl
from tests.benchmarks.data import fashion_hog, fashion_images
from tests.benchmarks.report import report

TRAIN, EPOCHS, COSINES, RIDGE = 60_000, 20, 256, 3_000
SAME = {"learning_rate": 0.05, "batch_size": 128, "n_components": COSINES}
BARS = {"minutes": 30.0, "over_hog": 0.0}


class Fitted(NamedTuple):
    """One model."""

    accuracy: float  # per cent
    minutes: float  # of all CPUs
    wall: float  # minutes


def measure(model: Any, X: np.ndarray, y: np.ndarray, T: np.ndarray, t: np.ndarray) -> Fitted:
    """A fit and its accuracy on other rows."""
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    used = (time.process_time() - cpu) / 60, (time.perf_counter() - wall) / 60
    return Fitted(100 * model.score(T, t), *used)


def run(options: argparse.Namespace) -> None:
    """Print a line for each model as it is done."""
    from dkl.torch import ConvolutionalKernelClassifier

    warnings.simplefilter("ignore", UserWarning)
    begun, n = time.process_time(), min(TRAIN, options.rows or TRAIN)
    images, y = fashion_images(options)
    hog, _ = fashion_hog(options)
    own = {"random_state": 0, "verbose": 0}
    models = {
        "ridge on HOG": (dkl.SingleKernelClassifier(n_components=RIDGE, cv=5, **own), hog),
        "cosines": (ConvolutionalKernelClassifier((28, 28), max_iter=EPOCHS, **SAME, **own), images),
        "no cosines": (ConvolutionalKernelClassifier((28, 28), max_iter=EPOCHS, layer="relu", **SAME, **own), images),
    }
    found: dict[str, Fitted] = {}
    for name, (model, X) in models.items():
        found[name] = measure(model, X[:n], y[:n], X[TRAIN:], y[TRAIN:])
        print(f"  {name:<14}{found[name].accuracy:6.2f} %  {found[name].minutes:5.1f} CPU minutes", flush=True)
    rows = [(name, f"{one.accuracy:.2f} %, {one.minutes:.1f} minutes of CPU") for name, one in found.items()]
    figures = {
        "cosine_accuracy": found["cosines"].accuracy,
        "relu_accuracy": found["no cosines"].accuracy,
        "hog_accuracy": found["ridge on HOG"].accuracy,
        "over_relu": found["cosines"].accuracy - found["no cosines"].accuracy,
        "over_hog": found["cosines"].accuracy - found["ridge on HOG"].accuracy,
        "minutes": (time.process_time() - begun) / 60,
    }
    report("ckl_images", rows, figures, BARS if n == TRAIN else {})
