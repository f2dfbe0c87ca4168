"""Sums larger than a frame of the wire: distributed cuts arrays above `comm.shard` into pieces, here at 16 kiB.

In use the limit is 64 MiB, which a gram of 3,000 features passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.array as da
import numpy as np
import pytest

from dkl import SingleKernelClassifier
from tests.engine.conftest import Machines, assert_same_bits, cluster_of, embedded, learned

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4))
Y = np.digitize(np.sin(X[:, 0]) + X[:, 1], [-0.5, 0.5])
HOW: dict[str, dict[str, Any]] = {
    "gram": {"n_components": 100},
    "rows": {"n_components": 900},
    "cg": {"n_components": 120, "solver": "cg", "alpha": [0.1, 1.0], "cv": 2},
    "learned": {"n_components": 100, "learn": "cv", "max_iter": 2, "starts": 1, "tol": 0.5},
    "loss": {"n_components": 100, "loss": "log_loss", "solver_tol": 0.01},
}


@pytest.fixture(scope="module")
def cutting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two workers; no process sends more than 16 kiB in a piece."""
    folder = tmp_path_factory.mktemp("cutting")
    with cluster_of(folder, 2, DASK_DISTRIBUTED__COMM__SHARD="16kiB") as machines:
        yield machines


@pytest.mark.parametrize("case", HOW)
def test_same_bits(cutting: Machines, case: str) -> None:
    """What has travelled in pieces is what one process finds."""
    how = {"alpha": 1.0, "random_state": 0, "verbose": 0, **HOW[case]}
    rows = da.from_array(X, chunks=(100, -1)), da.from_array(Y, chunks=100)
    with embedded():
        alone = SingleKernelClassifier(**how).fit(*rows)
    assert_same_bits(learned(SingleKernelClassifier(**how).fit(*rows)), learned(alone))
