"""What a fitted model of few features answers: which ones it has, its path, and itself as a plain pipeline."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.estimators.fitted import INPUTS
from dkl.estimators.infinite_export import as_pipeline
from dkl.estimators.labelled import Labelled
from dkl.estimators.linear_family import Linear
from dkl.estimators.stored import Array, Map, Stored, Value, check_finite
from dkl.estimators.tasks import TaskModel
from dkl.features.groups import GroupMap
from dkl.learn.columns_state import Growth, Problem
from dkl.learn.weight_solvers import Certificate
from dkl.losses import find_loss
from dkl.options.infinite import sparsity_of
from dkl.solvers.group_norms import lengths_of
from dkl.solvers.shared_norm import SharedNorm
from dkl.sums.targets import Targets

FITTED: dict[str, Stored] = {
    "n_features_in_": Value(INPUTS["n_features_in_"].about, int, told=False),
    "features_": Map("The features that have a weight."),
    "lengths_": Array("Root mean square of each feature, by which the penalty weighs it.", ("feature",), told=False),
    "n_features_used_": Stored("How many there are.", tells=int),
    "shared_coef_": Stored("Weights that all outputs share, of penalty='shared'.", told=False, optional=True),
    "task_coef_": Stored("Those of each output beside.", told=False, optional=True),
    "selected_": Stored(
        "The features as an xarray Dataset, the largest weight first: their frequencies and weights.", told=False
    ),
    "alpha_": Array("The penalty used.", ("penalty",), single=True, tells=float),
    "path_": Labelled(
        "The path as an xarray Dataset by alpha: objective, mean held-out loss, KKT residual, features used.",
        told=False,
    ),
    "certificate_": Value(
        "The KKT residual of the weights over the largest violation of the first round, and whether it met solver_tol.",
        dict,
    ),
}
MEANINGS = {
    "objective": "mean loss of the rows that train, and penalty",
    "error": "mean loss of the rows that are held out",
    "residual": "KKT residual, over the largest violation of the first round",
    "used": "features that have a weight",
}
"""Columns of path_."""


class InfiniteModel(TaskModel):
    """A fitted model of few features."""

    FITTED: ClassVar[dict[str, Stored]] = FITTED

    features_: GroupMap
    lengths_: np.ndarray
    path_: Any
    alpha_: float
    solver_tol: float
    loss: str
    penalty: str

    @property
    def n_features_used_(self) -> int:
        """Features that have a weight."""
        check_is_fitted(self, "coef_")
        return int(np.count_nonzero(self._sizes()))

    @property
    def selected_(self) -> Any:
        """The features as an xarray Dataset, the largest weight first."""
        import xarray as xr

        check_is_fitted(self, "coef_")
        sizes = self._sizes()
        order = np.argsort(-sizes, kind="stable")[: self.n_features_used_]
        about = {name: (dims, values[..., order]) for name, (dims, values) in self.features_.described.items()}
        names = getattr(self, "feature_names_in_", None)
        if names is not None and self._has_tasks and self.task_input_ >= 0:
            names = np.delete(names, self.task_input_)
        along = {} if names is None or "input" not in about["frequency"][0] else {"input": np.array(names, np.str_)}
        return xr.Dataset(
            {"weight": (("feature",), sizes[order], {"long_name": "length of the weights, over all outputs"}), **about},
            coords=along,
        )

    @property
    def shared_coef_(self) -> np.ndarray:
        """Weights that all outputs share (d,), of penalty="shared": coef_ is their sum with task_coef_."""
        return self._parts()[0]

    @property
    def task_coef_(self) -> np.ndarray:
        """Weights of each output (outputs, d) beside those that all share."""
        return np.ascontiguousarray(self._parts()[1].T)

    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self, "coef_")
        sparsity = sparsity_of(self.penalty)
        if sparsity.kind != "shared":
            raise AttributeError(f"penalty={self.penalty!r} shares no weights; fit with penalty='shared'")
        groups = self.features_.column_group
        norm = SharedNorm(groups, np.ones(self.features_.n_groups), sparsity.ratio)
        return norm.split(np.atleast_2d(self.coef_).T)

    def to_ridge(self, task: Any = None) -> Any:
        """The model as a scikit-learn pipeline: FourierFeatures, and a linear model of its features; of one task."""
        check_is_fitted(self, "coef_")
        if self._has_tasks == (task is None):
            few = self.tasks_[:10].tolist() if self._has_tasks else []
            raise ValueError(
                f"task={task!r}: " + (f"give one of {few}" if few else "the model has no tasks; leave it out")
            )
        return as_pipeline(self if task is None else self._of_task(task))

    def _check_targets(self, targets: Targets) -> None:
        super()._check_targets(targets)
        joins = find_loss(self.loss).joins(targets.n_outputs) and not self._has_tasks
        if joins and sparsity_of(self.penalty).kind == "shared":
            raise ValueError(
                f"loss={self.loss!r} joins the scores of {targets.n_outputs} classes, and penalty={self.penalty!r} "
                "needs a loss of each; use loss='logistic' or 'squared_hinge'"
            )

    def _sizes(self) -> np.ndarray:
        """|w_j| of each feature."""
        coef = np.atleast_2d(self.coef_).T
        return lengths_of(coef, self.features_.column_group, self.features_.n_groups)

    def _set_model(self, problem: Problem, growth: Growth) -> Linear:
        """The attributes of what was learned; without any feature the first candidate stands there, its weight zero."""
        point = growth.final or growth.best or growth.point
        some = len(point.eta) > 0
        features, weights = problem.map_of(point.parameters) if some else problem.placeholder, point.weights
        if not some:
            weights = np.vstack([np.zeros((features.n_features, weights.shape[1])), weights])
        self.alpha_ = problem.alpha(growth, point.place)
        self.lengths_ = point.eta if some else np.ones(features.n_groups)
        self.certificate_ = Certificate("KKT residual", float(point.residual), float(self.solver_tol)).told()
        self.path_ = path_dataset(problem, growth)
        self.features_ = features
        targets = problem.data.targets
        return Linear(problem.data.with_map(features), weights[:-1], weights[-1] + targets.score_shift)  # type: ignore[arg-type]

    def _restored(self) -> None:
        super()._restored()
        check_finite("lengths", self.lengths_, (self.features_.n_groups,))
        own = self._has_tasks and self.task_input_ >= 0
        self.n_features_in_ = self.features_.n_inputs + own
        if self._has_tasks and len(self.tasks_) != len(np.atleast_2d(self.coef_)):
            raise ValueError(f"{len(np.atleast_2d(self.coef_))} rows of coef for {len(self.tasks_)} tasks")

    def _map_params(self, stored: dict[str, Any]) -> dict[str, Any] | None:
        return None


def path_dataset(problem: Problem, growth: Growth) -> Any:
    """path_."""
    import xarray as xr

    columns = {
        name: (("alpha",), np.array([getattr(one, name) for one in growth.path]), {"long_name": text})
        for name, text in MEANINGS.items()
        if name != "error" or problem.tests >= 0
    }
    alphas = np.array([problem.alpha(growth, one.place) for one in growth.path], float)
    return xr.Dataset(columns, coords={"alpha": alphas})
