"""`import dkl` loads nothing heavy."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

HEAVY = ["distributed", "matplotlib", "xarray", "zarr", "torch", "numba", "IPython", "dask.dataframe"]


def run(program):
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_loads_nothing_heavy():
    """Not one of the heavy packages, and no pandas that dask and scikit-learn do not bring themselves."""
    program = "import sys, json; import {}; print(json.dumps(sorted(sys.modules)))"
    loaded = set(run(program.format("dkl")))
    assert loaded & set(HEAVY) == set()
    base = set(run(program.format("dask.array, sklearn.linear_model")))
    assert loaded & {"pandas", "pyarrow"} <= base


def test_fit_of_numpy_loads_no_cluster_and_no_storage():
    """Small data in memory pay for none of it."""
    program = (
        "import sys, json, numpy as np, dkl\n"
        "X = np.random.default_rng(0).standard_normal((50, 3))\n"
        "dkl.SingleKernelRegressor(n_components=10).fit(X, X[:, 0]).predict(X)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert set(run(program)) & set(HEAVY) == set()


def test_import_is_hardly_slower_than_its_parts():
    """Median of three against `import dask.array, sklearn.linear_model`."""
    program = "import time, json; t = time.perf_counter(); import {}; print(json.dumps(time.perf_counter() - t))"
    ours, parts = [], []
    for _ in range(3):
        ours.append(run(program.format("dkl")))
        parts.append(run(program.format("dask.array, sklearn.linear_model")))
    assert statistics.median(ours) < 1.3 * statistics.median(parts) + 0.1
