"""What a data set says of itself: ranges, spans and counts against numpy; which targets are classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from tests.store.made import ingest

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("low", "high"), [(-9, -2), (3, 8), (-4, 5)])
def test_ranges_of_dense_channels(tmp_path, low, high):
    """Least and greatest value of each channel, of any sign, and of the target."""
    parts = RNG.uniform(low, high, (40, 3)), RNG.uniform(low - 1, high + 1, (40, 2))
    y = RNG.uniform(low, high, 40)
    for name, X in zip("ab", parts, strict=True):
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    made = ingest([tmp_path / "a.npz", tmp_path / "b.npz"], tmp_path / "d.zarr", dtype="float64")
    for found, X in zip(made.attrs["channels"], parts, strict=True):
        assert (found["inputs"], found["low"], found["high"]) == (X.shape[1], X.min(), X.max())
    assert made.attrs["target_range"] == [y.min(), y.max()]
    assert made.attrs["rows"] == 40


@pytest.mark.parametrize(("low", "high"), [(-9, -2), (3, 8), (-4, 5)])
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_ranges_of_sparse_rows(tmp_path, low, high, density):
    """Entries that are not stored count as zeros, if there are any."""
    X = sp.random_array(
        (30, 4), density=density, rng=RNG, data_sampler=lambda size: RNG.uniform(low, high, size)
    ).tocsr()
    dump_svmlight_file(X, np.arange(30) % 3, str(tmp_path / "t.svm"), zero_based=False)
    made = ingest(tmp_path / "t.svm", tmp_path / "d.zarr", dtype="float64", layout="sparse")
    found = made.attrs["channels"][0]
    np.testing.assert_allclose([found["low"], found["high"]], [X.toarray().min(), X.toarray().max()], rtol=1e-12)
    assert made.attrs["class_counts"] == {"0": 10, "1": 10, "2": 10}
    np.testing.assert_array_equal(made["X"]["indptr"][:], X.indptr)
    np.testing.assert_array_equal(made["X"]["indices"][:], X.indices)


@pytest.mark.parametrize(
    ("rows", "distinct", "kind"), [(100, 20, "int64"), (100, 21, "float64"), (440, 21, "float64"), (441, 21, "int64")]
)
def test_few_whole_numbers_are_classes(tmp_path, rows, distinct, kind):
    """Up to 20 values, or as many as the root of the rows."""
    np.savez(tmp_path / "t.npz", X=RNG.standard_normal((rows, 2)), y=(np.arange(rows) % distinct).astype(float))
    made = ingest(tmp_path / "t.npz", tmp_path / "d.zarr")
    assert made["y"].dtype == kind
    np.testing.assert_array_equal(made["y"][:], np.arange(rows) % distinct)
    for task, forced in (("regression", "float64"), ("classification", "int64")):
        assert ingest(tmp_path / "t.npz", tmp_path / f"{task}.zarr", task=task)["y"].dtype == forced
