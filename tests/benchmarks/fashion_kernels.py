"""Fashion-MNIST by three descriptors that `dkl ingest` makes: accuracy of one kernel, several, and their average.

HOG with cells of 7 and of 4 pixels, and LBP. One kernel has one sigma (of all inputs, or of each descriptor) by five
folds; the others have gaussian kernels of each descriptor, at three fixed sigmas or at a learned one. The average gives
all features one ridge penalty.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import dkl
from tests.benchmarks.data import find

DESCRIPTORS = ("hog:7", "hog:4", "lbp")
SIZES, COMPONENTS = (2_500, 10_000, 60_000), 256
FIXED = ["gaussian:scale*0.5", "gaussian", "gaussian:scale*2"]


class Fitted(NamedTuple):
    """One model at one training size."""

    model: str
    n: int
    accuracy: float  # per cent
    kernels: int
    seconds: float
    cpu: float  # seconds of the processor


def ingested(options: argparse.Namespace, part: str) -> xr.Dataset:
    """A set with its descriptors, made by the command line; kept if --scratch is given."""
    path = Path(options.scratch or tempfile.mkdtemp(prefix="dkl-"), f"dkl-fashion-{part}.zarr")
    if not path.exists():
        source = find(options, f"fashion-mnist/{part}-images-idx3-ubyte.gz")
        ingest = [sys.executable, "-m", "dkl", "ingest", source, str(path), "--descriptor", ",".join(DESCRIPTORS)]
        subprocess.run(ingest, check=True, stderr=subprocess.DEVNULL)
    return xr.open_zarr(path, chunks=None, consolidated=False)[["X", "y"]].load()


def models() -> dict[str, Callable[[float], Any]]:
    """What is compared; the joint model takes the alpha that the path has chosen."""
    own = {"random_state": 0, "verbose": 0}
    one = {"n_components": 3 * COMPONENTS, "learn": "cv", **own}

    def several(kernels: list[str], **how: Any) -> Any:
        return dkl.MultipleKernelClassifier(kernels, COMPONENTS, channels="channel", **own, **how)

    return {
        "SKL": lambda alpha: dkl.SingleKernelClassifier(**one),
        "SKL, a sigma for each": lambda alpha: dkl.SingleKernelClassifier(groups="channel", **one),
        "average": lambda alpha: several(FIXED, penalty="l2"),
        "MKL": lambda alpha: several(FIXED),
        "MKL with l2": lambda alpha: several(FIXED, penalty="l21:ridge=1"),
        "MKL, joint": lambda alpha: several(["gaussian"], learn="joint", alpha=alpha),
        "MKL, cv": lambda alpha: several(["gaussian"], learn="cv"),
    }


def compare(options: argparse.Namespace) -> list[Fitted]:
    """Every model at every size, of the first rows."""
    train, test = ingested(options, "train"), ingested(options, "t10k")
    found, alpha = [], 1.0
    for n in (n for n in SIZES if n <= (options.rows or SIZES[-1])):
        some = train.isel(row=slice(n))
        for name, make in models().items():
            start, cpu = time.perf_counter(), time.process_time()
            model = make(alpha).fit(some.X, some.y)
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            alpha = model.alpha_ if name == "MKL" else alpha
            used = int((np.asarray(getattr(model, "kernel_weights_", 1)) > 0).sum())
            found.append(Fitted(name, n, 100 * model.score(test.X, test.y), used, seconds, cpu))
            told = "  {1:>7,} rows  {0:<22} {2:.2f} %  {3} kernels  {4:6.1f} s, {5:.1f} s of the processor"
            print(told.format(*found[-1]), flush=True)
    return found
