"""Which passes and solves a fit makes, as a list of costs, before it runs.

    costs = single_kernel_costs(sizes, map_cost, folds=5, alphas=17)
    plan  = make_plan(engine, sizes, costs)

The first cost is that of the pass which the plan is named after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan, make_plan
from dkl.engine.protocol import Engine
from dkl.features.fourier import fourier_cost
from dkl.features.nystroem import nystroem_cost
from dkl.kernels import find_kernel
from dkl.learn.dual import dual_fits
from dkl.solvers.axes import axes_cost
from dkl.solvers.dual_ridge import dual_ridge_cost
from dkl.solvers.hypergradient import adjoint_cost
from dkl.solvers.lbfgs import descent_cost
from dkl.solvers.ridge import ridge_cost
from dkl.solvers.whiten import whitening_cost
from dkl.sums.feature_rows import feature_rows_cost
from dkl.sums.gram import gram_cost
from dkl.sums.losses import loss_cost
from dkl.sums.pullback import gradient_cost
from dkl.sums.sample import sample_cost
from dkl.sums.scatter import scatter_cost
from dkl.sums.tiles import tile_rows


def sizes_of(rows: Rows, inputs: int, dtype: np.dtype, outputs: int = 0, is_class: bool = False) -> Sizes:
    """What is known of the rows before anything is drawn."""
    stored = _row_bytes(rows.columns[0].array, inputs)
    return Sizes(rows.n_rows, inputs, dtype, outputs, is_class, stored, rows.is_lazy, rows.largest_block)


def fourier_map_cost(params: Mapping[str, Any], inputs: int, dtype: np.dtype) -> MapCost:
    """What the Fourier map of an estimator's parameters will cost."""
    terms = 1 if find_kernel(params["kernel"]).additive is None else params["n_terms"]
    return fourier_cost(inputs, params["n_components"], params["form"], terms, dtype)


def nystroem_map_cost(params: Mapping[str, Any], inputs: int, dtype: np.dtype) -> MapCost:
    """What the Nystroem map of an estimator's parameters will cost: no landmark is left out yet."""
    count = params["n_components"]
    return nystroem_cost(find_kernel(params["kernel"]), inputs, count, count, dtype)


def single_kernel_costs(
    sizes: Sizes, of: MapCost, *, folds: int = 1, alphas: int = 0, reduced: bool = False
) -> list[Cost]:
    """Weights of a fixed kernel: the gram, and its solve with each alpha and fold that is tried.

    With fewer rows than features: the rows, and the solve with their kernel (learn/dual.py).
    """
    if dual_fits(sizes.rows, of.features, reduced):
        solve = dual_ridge_cost(sizes.rows, of.features, sizes.outputs, folds, alphas)
        return [feature_rows_cost(sizes, of, folds).then(solve)]
    return [gram_cost(sizes, of, folds).then(ridge_cost(of.features, sizes.outputs, folds, alphas, reduced))]


def learning_costs(
    sizes: Sizes,
    of: MapCost,
    *,
    folds: int = 1,
    systems: int = 1,
    by_frequency: bool = False,
    adjoints: bool = True,
    curvature: bool = False,
    trials: int = 0,
    sharpnesses: int = 1,
) -> list[Cost]:
    """What every iteration of learning adds: the gram with so many systems, the gradient, and scores of a log loss.

    trials: alphas that are tried side by side, with so many sharpnesses; 0 if errors follow from the gram.
    """
    d, c = of.features, sizes.outputs
    pulled = sizes.inputs + by_frequency * of.movable
    solve = adjoint_cost(d, c, systems, trials, curvature) + descent_cost(pulled)
    passes = [
        gram_cost(sizes, of, folds).then(solve).again(),
        gradient_cost(sizes, of, systems * c, pulled, folds, adjoints, curvature).again(),
    ]
    if trials:
        passes += [loss_cost(sizes, of, folds).again(), loss_cost(sizes, of, folds, trials, sharpnesses)]
    return passes


def landmark_costs(sizes: Sizes, of: MapCost, *, compares: bool = False, pilot: bool = False) -> list[Cost]:
    """Passes that draw landmarks, perhaps by comparing rows with those drawn before, or by the gram of a pilot."""
    count = of.features
    sample = replace(
        sample_cost(sizes, count, count if compares else 0), rows_wanted=tile_rows(sizes.rows, count, sizes.dtype)
    )
    passes = [sample.then(whitening_cost(count, sizes.inputs))]
    if pilot:
        passes.insert(0, scatter_cost(sizes, [of]).then(axes_cost([count])))
    return passes


def axes_costs(sizes: Sizes, maps: Sequence[MapCost]) -> list[Cost]:
    """The gram of each map, and its principal axes."""
    return [scatter_cost(sizes, maps).then(axes_cost([of.features for of in maps]))]


def plan_axes(
    engine: Engine, tables: Iterable[Rows], inputs: int, dtype: np.dtype, maps: Sequence[MapCost], measure: bool = False
) -> Plan:
    """The promise for the principal axes of maps: that of the table which needs most."""
    sizes = [sizes_of(rows, inputs, dtype) for rows in tables]
    plans = (make_plan(engine, one, axes_costs(one, maps), measure) for one in sizes)
    return max(plans, key=lambda plan: plan.tightness)


def _row_bytes(array: Any, inputs: int) -> int:
    """Bytes of a stored row; of sparse rows the mean."""
    if hasattr(array, "row_bytes"):
        return int(array.row_bytes)
    if hasattr(array, "indptr"):
        return int(-(-(array.data.nbytes + array.indices.nbytes) // array.shape[0]))
    return inputs * int(np.dtype(array.dtype).itemsize)
