"""What a promise is told of a fit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dkl.engine.blocks import Rows
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.learn.plan import fourier_size, nystroem_size, plan_axes, plan_sums, shape_of
from dkl.sums.gram import most_rows, tile_rows

X = np.zeros((300, 4), np.float32)
WIDE = np.dtype(np.float64)


def rows_of(array=X):
    return Rows([Table("memory", array)], ["X"])


def test_sizes_of_features():
    """Waves in pairs or not, terms of exponentiated kernels alone; landmarks, swept unless of the norm."""
    assert fourier_size({"kernel": "gaussian", "form": "paired", "n_terms": 5}) == {"paired": True, "terms": 1}
    assert fourier_size({"kernel": "exp_chi2", "form": "phase", "n_terms": 5}) == {"paired": False, "terms": 5}
    found = nystroem_size({"kernel": "gaussian", "n_components": 9})
    assert found == {"drawn": False, "landmarks": 9, "swept": False}
    assert nystroem_size({"kernel": "laplacian", "n_components": 9})["swept"]


def test_the_shape_of_a_pass():
    """Rows, tiles, the largest block, and the bytes of a stored row."""
    shape = shape_of(rows_of(), 4, 10, WIDE, folds=3, outputs=2)
    tile = tile_rows(300, 10, WIDE)
    assert (shape.rows, shape.inputs, shape.features, shape.folds, shape.outputs) == (300, 4, 10, 3, 2)
    assert shape.tile == most_rows(tile)
    assert shape.block == rows_of().largest_block(3 * tile)
    assert (shape.row_bytes, shape.is_lazy, shape.dtype) == (16, False, WIDE)
    assert shape_of(rows_of(), 4, 10, WIDE).folds == 1
    sparse = sp.random_array((300, 4), density=0.5, format="csr", dtype=np.float64, rng=np.random.default_rng(0))
    stored = sparse.data.nbytes + sparse.indices.nbytes
    assert stored == 600 * 12
    assert shape_of(rows_of(sparse), 4, 10, WIDE).row_bytes == 24
    sparse = sparse[:299]
    stored = sparse.data.nbytes + sparse.indices.nbytes
    assert shape_of(rows_of(sparse), 4, 10, WIDE).row_bytes == int(np.ceil(stored / 299))


PARAMS = {
    "n_components": 10, "cv": 3, "alphas": 7, "objective": "cv", "learn": "frequencies", "reduce": 5,
    "landmarks": None, "kernel": "gaussian", "form": "paired", "n_terms": 5,
}  # fmt: skip


def planned(**changes):
    return plan_sums(engine_for(False), rows_of(), 4, 2, PARAMS | changes, WIDE, True).shape


def test_what_a_fit_is_like():
    """Every parameter that memory depends on."""
    shape = planned()
    assert (shape.folds, shape.alphas, shape.objective, shape.outputs, shape.is_class) == (3, 7, "cv", 2, True)
    assert (shape.by_frequency, shape.reduced, shape.kept, shape.paired, shape.drawn) == (True, True, 0, True, True)
    assert not planned(learn="sigma").by_frequency
    assert not planned(reduce=None).reduced
    assert [planned(calibrate=k).kept for k in (None, 5, 1000)] == [0, 5, 300]
    assert (planned(landmarks="uniform").landmarks, planned(landmarks="uniform").drawn) == (10, False)


def test_axes_are_planned_for_the_table_that_needs_most():
    """Whichever comes first."""
    small, large = rows_of(X[:50]), rows_of(np.zeros((40_000, 4)))
    for tables in ([small, large], [large, small]):
        plan = plan_axes(engine_for(False), tables, 4, 10, WIDE)
        assert plan.tightness == max(plan_axes(engine_for(False), [one], 4, 10, WIDE).tightness for one in tables)
        assert plan.shape.reduced


@pytest.mark.parametrize("calibrate", [False, True])
def test_times_are_measured_if_asked_for(calibrate):
    """Of a pass and of axes."""
    plans = [
        plan_sums(engine_for(False), rows_of(), 4, 2, PARAMS, WIDE, True, calibrate),
        plan_axes(engine_for(False), [rows_of()], 4, 10, WIDE, calibrate),
    ]
    assert all((plan.seconds is not None) == calibrate for plan in plans)
    assert plan_sums(engine_for(False), rows_of(), 4, 2, PARAMS, WIDE, True).seconds is None
    assert plan_axes(engine_for(False), [rows_of()], 4, 10, WIDE).seconds is None
