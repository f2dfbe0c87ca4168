"""Which passes a fit says that it makes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import dkl
from dkl.cost import Sizes
from dkl.engine.blocks import Rows
from dkl.engine.memory import make_plan
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.features.fourier import fourier_cost
from dkl.learn import redrawn_steps
from dkl.learn.plan import (
    axes_costs,
    fourier_map_cost,
    landmark_costs,
    learning_costs,
    nystroem_map_cost,
    plan_axes,
    single_kernel_costs,
    sizes_of,
)
from dkl.sums.tiles import tile_rows

X = np.zeros((300, 4), np.float32)
WIDE = np.dtype(np.float64)
SIZES = Sizes(300, 4, WIDE, outputs=2, row_bytes=16)
MAP = fourier_cost(4, 10, "paired", 1, WIDE)


def rows_of(array=X):
    return Rows([Table("memory", array)], ["X"])


def test_sizes_of_features():
    """Waves in pairs or not, terms of exponentiated kernels alone; landmarks, swept unless of the norm."""
    params = {"kernel": "gaussian", "form": "paired", "n_terms": 5, "n_components": 10}
    assert fourier_map_cost(params, 4, WIDE) == MAP
    lifted = fourier_map_cost(params | {"kernel": "exp_chi2", "form": "phase"}, 4, WIDE)
    assert lifted == fourier_cost(4, 10, "phase", 5, WIDE)
    assert (lifted.columns, lifted.features) == (20, 10)
    radial, swept = (nystroem_map_cost({"kernel": k, "n_components": 9}, 4, WIDE) for k in ("gaussian", "laplacian"))
    assert radial.features == swept.features == 9
    assert swept.flops > 10 * radial.flops


def test_what_is_known_of_rows():
    """Rows, blocks, and the bytes of a stored row."""
    sizes = sizes_of(rows_of(), 4, WIDE, 2, True)
    assert (sizes.rows, sizes.inputs, sizes.outputs, sizes.is_class) == (300, 4, 2, True)
    assert (sizes.row_bytes, sizes.is_lazy, sizes.dtype, sizes.is_sparse) == (16, False, WIDE, False)
    assert sizes.block_of(100) == 100
    assert sizes.block_of(299) == 150
    sparse = sp.random_array((300, 40), density=0.05, format="csr", dtype=np.float64, rng=np.random.default_rng(0))
    assert sparse.data.nbytes + sparse.indices.nbytes == 600 * 12
    found = sizes_of(rows_of(sparse), 40, WIDE)
    assert (found.row_bytes, found.is_sparse) == (24, True)
    sparse = sparse[:299]
    stored = sparse.data.nbytes + sparse.indices.nbytes
    assert sizes_of(rows_of(sparse), 40, WIDE).row_bytes == int(np.ceil(stored / 299))


def test_a_fixed_kernel():
    """The gram and its solve."""
    [one] = single_kernel_costs(SIZES, MAP, folds=3, alphas=7)
    assert (one.name, one.folds, one.features, one.repeated) == ("gram", 3, 10, False)
    assert one.rows_wanted == 3 * tile_rows(300, 10, WIDE)
    assert one.solve.flops == pytest.approx(22 * (10**3 / 3 + 4 * 10**2 * 2))
    [turned] = single_kernel_costs(SIZES, MAP, folds=3, alphas=7, reduced=True)
    assert turned.solve.flops - one.solve.flops == pytest.approx(3 * 9 * 10**3)


def test_learning():
    """Every iteration: the gram with its systems, and the gradient; a log loss scores rows, and tries alphas."""
    gram, gradient = learning_costs(SIZES, MAP, folds=3, systems=3)
    assert (gram.name, gradient.name, gram.repeated, gradient.repeated) == ("gram", "gradient", True, True)
    assert gram.solve.flops == pytest.approx(9 * (10**3 / 3 + 4 * 10**2 * 2) + 120 * 4)
    assert gradient.sums_bytes == 8 * (4 + 1)
    by_frequency = learning_costs(SIZES, MAP, folds=3, systems=3, by_frequency=True)
    assert by_frequency[1].sums_bytes == 8 * (4 + 4 * 5 + 5 + 1)
    assert by_frequency[0].solve.bytes - gram.solve.bytes == 60 * 8 * (4 * 5 + 5)
    curved = learning_costs(SIZES, MAP, curvature=True)[1]
    assert curved.parameter_bytes - learning_costs(SIZES, MAP)[1].parameter_bytes == 16 * 100
    passes = learning_costs(SIZES, MAP, folds=3, systems=3, trials=5, sharpnesses=12)
    assert [(cost.name, cost.repeated) for cost in passes[2:]] == [("scores", True), ("scores", False)]
    assert passes[2].sums_bytes == 8 * 3 * (1 + 1 + 2 * 11)
    assert passes[3].sums_bytes == 8 * 3 * (5 * 12 + 5)


def test_landmarks():
    """One draw; with rows to compare with, or with a pilot's gram before it."""
    of = nystroem_map_cost({"kernel": "gaussian", "n_components": 9}, 4, WIDE)
    [uniform] = landmark_costs(SIZES, of)
    [far] = landmark_costs(SIZES, of, compares=True)
    assert uniform.name == far.name == "landmarks"
    assert uniform.rows_wanted == tile_rows(300, 9, WIDE)
    assert far.thread_bytes > uniform.thread_bytes
    assert [cost.name for cost in landmark_costs(SIZES, of, compares=True, pilot=True)] == ["scatter", "landmarks"]


def asked(learn="none", **options):
    """The passes that an estimator's parameters ask for."""
    model = dkl.SingleKernelClassifier(n_components=10, learn=learn, **options)
    return [*model._costs(SIZES, model._split(Table("memory", X), None)), *model._other_costs(SIZES)]


def names(*args, **options):
    """Their names."""
    return [cost.name for cost in asked(*args, **options)]


def test_what_parameters_ask_for():
    """Every parameter that memory depends on."""
    [cost] = asked(cv=3, alpha=[1.0, 2.0])
    assert (cost.name, cost.folds) == ("gram", 3)
    assert cost.solve.flops == pytest.approx(7 * (10**3 / 3 + 4 * 10**2 * 2))
    assert asked(alpha=1.0)[0].solve.flops == pytest.approx(10**3 / 3 + 4 * 10**2 * 2)
    assert asked(reduce=5)[0].solve.flops > asked()[0].solve.flops
    assert [asked(calibrate=k)[1].sums_bytes for k in (5, 1000)] == [8 * 2 * 5, 8 * 2 * 300]
    assert names(landmarks="uniform") == names(landmarks="kmeans++") == ["gram", "landmarks"]
    assert names(landmarks="leverage") == ["gram", "scatter", "landmarks"]
    gradients = {}
    for learn in ("validation", "cv", "joint", "gcv", "frequencies"):
        assert names(learn) == ["gram", "gram", "gradient"]
        gradients[learn] = asked(learn)[2]
    assert names("log_loss") == ["gram", "gram", "gradient", "scores", "scores"]
    assert gradients["joint"].flops < gradients["validation"].flops < gradients["cv"].flops
    assert gradients["gcv"].thread_bytes > gradients["validation"].thread_bytes
    assert gradients["frequencies"].sums_bytes > gradients["cv"].sums_bytes


def test_no_more_trials_than_are_counted():
    """The longest list of alphas that a pass of scores takes side by side."""
    tried = redrawn_steps.FIRST, redrawn_steps.LATER, redrawn_steps.LAST
    assert max(map(len, tried)) == redrawn_steps.TRIALS


def test_axes_are_planned_for_the_table_that_needs_most():
    """Whichever comes first."""
    small, large = rows_of(X[:50]), rows_of(np.zeros((40_000, 4)))
    for tables in ([small, large], [large, small]):
        plan = plan_axes(engine_for(False), tables, 4, WIDE, [MAP])
        assert plan.sizes.rows == 40_000
    [cost] = axes_costs(SIZES, [MAP, MAP])
    assert (cost.maps, cost.features) == (2, 20)
    assert cost.solve.flops == pytest.approx(2 * 9 * 10**3)


@pytest.mark.parametrize("measure", [False, True])
def test_times_are_measured_if_asked_for(measure):
    """Of a pass and of axes."""
    passes = single_kernel_costs(SIZES, MAP) + learning_costs(SIZES, MAP)
    plans = [
        make_plan(engine_for(False), SIZES, passes, measure),
        plan_axes(engine_for(False), [rows_of()], 4, WIDE, [MAP], measure),
    ]
    assert all((plan.seconds is not None) == measure for plan in plans)
    assert (plans[0].iteration_seconds is not None) == measure
    assert plans[1].iteration_seconds is None
    assert plan_axes(engine_for(False), [rows_of()], 4, WIDE, [MAP]).seconds is None
