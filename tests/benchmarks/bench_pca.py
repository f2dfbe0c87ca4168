"""pca: principal axes of a feature matrix that would take 20 GB, out of core, in one pass.

2,000,000 rows of 16 inputs in Zarr, 2500 features in float32. The peak is that of this process, which does everything.
First the axes are compared with scikit-learn's PCA of stored features on rows that fit.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr
from scipy.linalg import subspace_angles
from sklearn.decomposition import PCA

import dkl
from tests.benchmarks.report import own_peak, report

ROWS, INPUTS, COMPONENTS, AXES, CHUNK, FEW = 2_000_000, 16, 2500, 200, 20_000, 3000
BARS = {"peak_gib": 2.0, "angle": 1e-6}


def make_rows(path: Path) -> None:
    """Correlated inputs, chunk by chunk."""
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((INPUTS, INPUTS)).astype(np.float32) / 4
    rows = zarr.create_array(path, shape=(ROWS, INPUTS), chunks=(CHUNK, INPUTS), dtype="f4")
    for start in range(0, ROWS, CHUNK):
        rows[start : start + CHUNK] = rng.standard_normal((CHUNK, INPUTS), dtype=np.float32) @ mix


def angle() -> float:
    """The largest angle between our axes and scikit-learn's, in float64."""
    X = np.random.default_rng(1).standard_normal((FEW, 8))
    features = dkl.FourierFeatures(n_components=200, sigma=0.3, random_state=0, verbose=0)
    ours = dkl.FeaturePCA(features, 20, verbose=0).fit(X)
    theirs = PCA(20).fit(features.fit(X).transform(X))
    return float(subspace_angles(ours.components_.T, theirs.components_.T).max())


def run(options: argparse.Namespace) -> None:
    """Measure."""
    folder = Path(tempfile.mkdtemp(dir=options.scratch))
    try:
        make_rows(folder / "X.zarr")
        features = dkl.FourierFeatures(n_components=COMPONENTS, random_state=0, verbose=0)
        start = time.perf_counter()
        model = dkl.FeaturePCA(features, AXES).fit(str(folder / "X.zarr"))
        seconds = time.perf_counter() - start
    finally:
        shutil.rmtree(folder)
    peak = own_peak() / 2**30
    rows = [
        ("work", f"{ROWS:,} x {INPUTS} float32, {COMPONENTS:,} features: {4e-9 * ROWS * COMPONENTS:.0f} GB if stored"),
        ("time", f"{seconds:.0f} s, {ROWS / seconds:,.0f} rows/s"),
        ("axes", f"{model.n_components_}, {model.explained_variance_ratio_.sum():.1%} of the variance"),
    ]
    report("pca", rows, {"peak_gib": peak, "angle": angle()}, BARS)
