"""Small problems for conjugate gradients: rows, prepared data, and fits in one process or on a cluster."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np

from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table, open_table
from dkl.features.fourier import FourierMap
from dkl.features.frequencies import draw_unit
from dkl.kernels import KERNELS
from dkl.learn.conjugate import Fitted, fit_conjugate
from dkl.learn.conjugate_steps import ConjugateOptions
from dkl.learn.run import Run
from dkl.prepare.folds import Folds, Split
from dkl.prepare.prepared import Prepared
from dkl.prepare.targets import label_targets, number_targets

N, M, D, K, SEED = 400, 3, 41, 3, 7
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, M))
NUMBERS = np.column_stack([3 + np.sin(2 * X[:, 0]), 1e3 * X[:, 1] * X[:, 2]]) + RNG.normal(size=(N, 2)) * [0.3, 100]
CODES = {2: (NUMBERS[:, 0] > 3).astype(int), 3: np.digitize(NUMBERS[:, 0], [2.5, 3.5])}
WEIGHT = 10 * RNG.integers(0, 3, N).astype(float)
ALPHAS = np.array([1e-2, 1.0, 100.0])
UNIT, PHASE = draw_unit(KERNELS["gaussian"], M, (D + 1) // 2, "iid", RNG), RNG.random(1)
FEATURES = FourierMap(KERNELS["gaussian"], UNIT, np.full(M, 0.7), PHASE, 1.0, "paired")


def prepared(
    y: np.ndarray = NUMBERS, weight: np.ndarray | None = None, folds: int = 1, centre: bool = True, chunk: int = 0,
    dtype: Any = np.float64,
) -> Prepared:  # fmt: skip
    """What a fit would start from; with `chunk`, rows in chunks of dask."""

    def table(values: np.ndarray, name: str) -> Table:
        return open_table(da.from_array(values, chunks=(chunk, *values.shape[1:])), name) if chunk else Table(
            "memory", values
        )  # fmt: skip

    rows, target = table(X, "X"), table(y, "y")
    weights = None if weight is None else table(weight, "sample_weight")
    targets = (
        label_targets(target, weights, None, Progress(0))
        if y.ndim == 1
        else number_targets(target, weights, centre, Progress(0))
    )
    every = Rows([rows, target, weights, None], ["X", "y", "sample_weight", "cv"])
    split, none = Split(Folds(folds, None)), np.empty(0)
    return Prepared(rows, every, targets, FEATURES, np.arange(M), SEED, np.dtype(dtype), split, none, None)


def fit(data: Prepared, alpha: Any, checkpoint: Any = None, intercept: bool = True, **options: Any) -> Fitted:
    """Weights of prepared data, wherever the rows are."""
    run = Run(engine_for(data.rows.is_lazy), data.rows, Progress(0), checkpoint=checkpoint)
    return fit_conjugate(run, data, ConjugateOptions(np.atleast_1d(alpha), intercept, **options))


def fit_given(**options: Any) -> Fitted:
    """One alpha."""
    return fit(prepared(weight=WEIGHT), 0.5, **{"sample": 4, "tol": 1e-9, **options})


def fit_chosen(**options: Any) -> Fitted:
    """One of three alphas, by folds."""
    return fit(prepared(CODES[3], folds=K), ALPHAS, **{"sample": 4, "choose": True, "tol": 1e-9, **options})
