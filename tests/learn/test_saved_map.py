"""The map of a resumed fit is the one that was drawn, bit for bit, for one map and for several."""

from __future__ import annotations

import numpy as np
import pytest
from dkl.learn.saved_map import kept_map

from dkl.prepare.input_ranges import Extent
from dkl.store.checkpoint import Checkpoint
from tests.features.test_stored import MAPS, OVERLAPPING, PARTED, params_of, written

X = np.random.default_rng(0).random((7, 6))


@pytest.mark.parametrize(
    ("features", "inputs"),
    [(MAPS["odd"], 3), (MAPS["nystroem"], 3), (PARTED, 6), (OVERLAPPING, 6)],
    ids=["fourier", "nystroem", "parted", "overlapping"],
)
def test_taken_from_the_checkpoint(features, inputs, tmp_path):
    """Drawn once; the second time nothing is drawn."""
    extent = Extent(np.ones(inputs), np.zeros(inputs), np.ones(inputs))
    drawn = features, np.arange(inputs), 7, np.ones(inputs), extent
    params, path = params_of(MAPS["nystroem"] if features is MAPS["nystroem"] else MAPS["odd"]), str(tmp_path / "c")
    first = kept_map(Checkpoint(path, {"fit": 1}), params, lambda: drawn)
    again = kept_map(Checkpoint(path, {"fit": 1}), params, lambda: pytest.fail("drawn twice"))
    assert first[0] is features
    rows = X[:, :inputs]
    assert written(again[0], rows).tobytes() == written(features, rows).tobytes()
    assert again[2] == 7
    for found, expected in ((again[1], drawn[1]), (again[3], drawn[3]), (again[4].low, extent.low)):
        np.testing.assert_array_equal(found, expected)
