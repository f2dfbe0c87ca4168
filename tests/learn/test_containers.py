"""What is learned does not depend on how the rows come: the same bits from numpy, Dask and Zarr, in any chunks."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
import zarr

import dkl
from dkl.learn import stages

N, M = 12_003, 3
CHUNKS = [(N,), (3000, 3000, 3000, 3003), (1, 0, 699, 11_300, 3), (370,) * 32 + (163,)]
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, M))
X = X[np.argsort(X[:, 0])]  # sorted, as data often are
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=N)
WEIGHT = RNG.random(N)


@pytest.fixture(autouse=True)
def small_stages(monkeypatch):
    """Several stages of these few rows."""
    monkeypatch.setattr(stages, "FEW_ROWS", 200)
    monkeypatch.setattr(stages, "ROWS_PER_FEATURE", 1)
    monkeypatch.setattr(stages, "FEW_BLOCKS", 2)


def containers(folder, y):
    """The same rows three ways, Dask in several chunkings."""
    yield X, y, WEIGHT
    for sizes in CHUNKS:
        lazy = da.from_array(X, chunks=(sizes, M)) + 0.0
        yield lazy, da.from_array(y, chunks=2500), da.from_array(WEIGHT, chunks=(sizes,))
    for i, rows in enumerate((900, 5000)):
        group = zarr.open_group(folder / f"{i}.zarr", mode="w")
        for name, values in (("X", X), ("y", y), ("w", WEIGHT)):
            stored = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=(rows, *values.shape[1:]))
            stored[:] = values
        yield group["X"], group["y"], group["w"]


@pytest.mark.parametrize("learn", ["gcv", "cv", "validation", "log_loss"])
@pytest.mark.parametrize("subsample", [None, 0.5])
def test_the_same_sigma(tmp_path, learn, subsample):
    """sigma, and the history of its steps, in the last bit."""
    is_class = learn == "log_loss"
    kind = dkl.SingleKernelClassifier if is_class else dkl.SingleKernelRegressor
    y = (Y > 0).astype(int) if is_class else Y
    found = []
    for rows, target, weight in containers(tmp_path, y):
        model = kind(n_components=16, learn=learn, max_iter=2, groups="each", random_state=0, subsample=subsample)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two iterations are few
            model.fit(rows, target, sample_weight=weight)
        found.append((model.sigma_, model.history_["objective"].values, model.history_["rows"].values))
    assert len(found) == 1 + len(CHUNKS) + 2
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    if not is_class and subsample is None:
        assert len(np.unique(found[0][2])) > 1  # stages
