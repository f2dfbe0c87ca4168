"""What a fitted model of few features answers: which ones it has, its path, and itself as plain features and weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dkl.estimators.fitted import INPUTS
from dkl.estimators.labelled import Labelled
from dkl.estimators.linear_family import Linear, LinearFamily
from dkl.estimators.stored import Array, Map, Stored, Value
from dkl.features.groups import GroupMap
from dkl.learn.columns_state import Growth, Problem
from dkl.learn.weight_solvers import Certificate

FITTED: dict[str, Stored] = {
    "n_features_in_": Value(INPUTS["n_features_in_"].about, int, told=False),
    "features_": Map("The features that have a weight."),
    "lengths_": Array("Root mean square of each feature, by which the penalty weighs it.", ("feature",), told=False),
    "n_features_used_": Stored("How many there are.", tells=int),
    "selected_": Stored("The features as an xarray Dataset: their frequencies, bandwidths and weights.", told=False),
    "alpha_": Array("The penalty used.", ("penalty",), single=True, tells=float),
    "path_": Labelled(
        "The path as an xarray Dataset by alpha: objective, mean held-out loss, KKT residual, features used.",
        told=False,
    ),
    "certificate_": Value("The KKT residual of the weights, and whether it met solver_tol.", dict),
}  # fmt: skip


class InfiniteModel(LinearFamily):
    """A fitted model of few features."""

    FITTED: ClassVar[dict[str, Stored]] = FITTED

    features_: GroupMap
    lengths_: np.ndarray
    path_: Any
    alpha_: float
    solver_tol: float

    def _set_model(self, problem: Problem, growth: Growth) -> Linear:
        """The attributes of what was learned."""
        point = growth.final or growth.best or growth.point
        features = problem.map_of(point.parameters) if len(point.eta) else problem.placeholder
        weights = point.weights
        if not len(point.eta):
            weights = np.vstack([np.zeros((features.n_features, weights.shape[1])), weights])
        assert growth.lams is not None
        self.alpha_ = float(growth.lams[point.place]) * problem.unit
        self.lengths_ = point.eta if len(point.eta) else np.ones(1)
        self.certificate_ = Certificate("KKT residual", float(point.residual), float(self.solver_tol)).told()
        self.path_ = path_dataset(problem, growth)
        self.features_ = features
        targets = problem.data.targets
        shift = np.zeros(1) if targets.is_class else targets.shift
        return Linear(problem.data.with_map(features), weights[:-1], weights[-1] + shift)  # type: ignore[arg-type]


def path_dataset(problem: Problem, growth: Growth) -> Any:
    """path_."""
    import xarray as xr

    meanings = {
        "objective": "mean loss of the rows that train, and penalty",
        "error": "mean loss of the rows that are held out",
        "residual": "KKT residual, over the largest violation of the first round",
        "used": "features that have a weight",
    }
    columns = {
        name: (("alpha",), np.array([getattr(one, name) for one in growth.path]), {"long_name": text})
        for name, text in meanings.items()
    }
    alphas = np.array([one.lam for one in growth.path], float) * problem.unit
    return xr.Dataset(columns, coords={"alpha": alphas})
