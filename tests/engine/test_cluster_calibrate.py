"""Calibration on a cluster of separate processes: the same bits as in one process."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr

import dkl
from tests.engine.conftest import assert_same_bits, cluster_of, embedded

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

RNG = np.random.default_rng(6)
X = RNG.normal(size=(9000, 6))
CODE = (X[:, :4] + RNG.normal(size=(9000, 4))).argmax(axis=1)
WEIGHT = (RNG.random(9000) < 0.8).astype(float)


def results(path: str) -> dict[str, np.ndarray]:
    """Thresholds by fit and by the method, of stored and of Dask rows, and scores from them."""
    model = dkl.SingleKernelClassifier(n_components=40, calibrate=300, random_state=0, verbose=0)
    found = {"fit": model.fit(path, sample_weight=WEIGHT).thresholds_, "coef": model.coef_}
    rows = da.from_zarr(f"{path}/X")
    found["lazy"] = np.asarray(model.decision_function(rows))
    found["figures"] = np.array(model.evaluate(path)["confusion"])
    found["dask"] = model.calibrate_scores(rows, 200).thresholds_
    two = dkl.SingleKernelClassifier(n_components=40, calibrate=300, random_state=0, verbose=0).fit(rows, CODE > 0)
    return found | {"two": two.thresholds_, "scores": np.asarray(two.decision_function(rows))}


def test_same_bits(tmp_path: Path) -> None:
    """Two workers, many blocks; the rows that a weight of 0 takes out are out on both."""
    path = str(tmp_path / "d.zarr")
    group = zarr.open_group(path, mode="w")
    group.create_array("X", data=X, chunks=(700, 6))
    group.create_array("y", data=CODE, chunks=(700,))
    with embedded():
        expected = results(path)
    with cluster_of(tmp_path, 2):
        found = results(path)
    assert_same_bits(found, expected)
