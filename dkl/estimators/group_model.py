"""What a fitted model of several kernels answers: scores of the kernels that are used, and any point of its path."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkl.engine.memory import Plan
from dkl.engine.tables import Table
from dkl.estimators.channel_inputs import Listed, listed, side_by_side
from dkl.estimators.fitted import INPUTS
from dkl.estimators.group_paths import GroupNames, PathPoints, kernel_weights, names_of, weights_in_words
from dkl.estimators.labelled import Labelled
from dkl.estimators.linear_family import LinearFamily
from dkl.estimators.stored import Array, Stored, Value, as_list
from dkl.features.channel import Channel
from dkl.features.projected import ProjectedMap
from dkl.features.side_by_side import SideBySide
from dkl.learn.model import Scores
from dkl.learn.thresholds import offset_of
from dkl.learn.weight_solvers import Certificate

SQUARE = "square"
"""The loss whose certificate is a duality gap; that of the others is the KKT residual."""
FITTED: dict[str, Stored] = {
    "n_features_in_": Value(INPUTS["n_features_in_"].about, int, told=False),
    "features_": Stored("The maps of all groups, side by side."),
    "groups_": Stored("Names of the groups: of the channel, the kernel, or both."),
    "selected_groups_": Stored("Those that are used."),
    "kernel_weights_": Labelled(
        "Weight of each kernel on each channel, |w_g| / sqrt(2), as those of dkl.exact.GMKL; of each output too, if "
        "by_output. A labelled array.",
        single=True,
        tells=weights_in_words,
    ),
    "sigmas_": Stored("Sigma of the inputs of each group, by its name; nothing of transformers that have none."),
    "path_": Labelled(
        "The path as an xarray Dataset, alpha x group: norm of the weights, gap, active groups, objective, intercept, "
        "error of each fold.",
        told=False,
    ),
    "path_coef_": Array("Weights of the groups that are used, alpha after alpha; see `at`.", ("weight",), told=False),
    "alpha_": Array("The penalty used.", ("penalty",), single=True, tells=as_list),
    "certificate_": Value(
        "The duality gap of the weights (of other losses the KKT residual), and whether it met solver_tol.", dict
    ),
}


class GroupModel(LinearFamily):
    """A fitted model of several kernels."""

    FITTED: ClassVar[dict[str, Stored]] = {name: one for name, one in FITTED.items() if name != "features_"}

    path_: Any
    path_coef_: np.ndarray
    kernel_weights_: Any
    alpha_: Any
    solver_tol: float
    loss: str

    def _set_groups(self, names: GroupNames, step: np.ndarray) -> None:
        """The attributes that follow from a place on the path."""
        points = self._points()
        at = np.arange(len(step)), step
        norms, alphas = points.norms[at], points.alphas[at]
        outputs = np.asarray(self.path_["output"]) if points.own else None
        self.alpha_ = alphas if points.own else float(alphas[0])
        self.kernel_weights_ = kernel_weights(norms, names, outputs)
        gaps = np.asarray(self.path_["gap"]).reshape(points.alphas.shape)[at]
        kind = "duality gap" if self.loss == SQUARE else "KKT residual"
        self.certificate_ = Certificate(kind, float(gaps.max()), float(self.solver_tol)).told()
        self._name_groups()

    def _name_groups(self) -> None:
        """groups_ and selected_groups_, of kernel_weights_."""
        weights = self.kernel_weights_.values.reshape(-1, len(self.features_.channels))
        self.groups_ = list(names_of(self.kernel_weights_).groups)
        of: list[Any] = [one.of if isinstance(one, ProjectedMap) else one for one in self.features_.channels]
        known = {name: getattr(one.of, "sigma", None) for name, one in zip(self.groups_, of, strict=True)}
        self.sigmas_ = {name: sigma for name, sigma in known.items() if sigma is not None}
        self.selected_groups_ = [name for name, on in zip(self.groups_, weights.any(axis=0), strict=True) if on]

    def _points(self) -> PathPoints:
        """The path, point by point."""
        return PathPoints(self.path_, self.path_coef_, self.features_.column_group)

    def at(self, alpha: Any) -> Self:
        """The model at another point of its path: a number of path_.alpha, "best", "one_se" or "last".

        A fitted model of its own, which predicts, scores and saves. Its weights are those of the path: debias and
        calibrate do not apply to it. With by_output alpha may be one number for each output.
        """
        check_is_fitted(self, "path_")
        points = self._points()
        step = points.step(alpha)
        coef, intercept = points.weights(step)
        other = copy(self)
        flat = np.ndim(self.coef_) == 1
        other.coef_ = coef[:, 0] if flat else np.ascontiguousarray(coef.T)
        other.intercept_ = float(intercept[0]) if flat else intercept
        if hasattr(other, "thresholds_"):
            del other.thresholds_
        other._set_groups(names_of(self.kernel_weights_), step)
        return other

    def _restored(self) -> None:
        super()._restored()
        groups = len(self.features_.channels)
        if self.kernel_weights_.size % groups or self.path_.sizes["group"] != groups:
            raise ValueError(f"{self.kernel_weights_.size} kernel weights do not belong to {groups} maps")
        points = self._points()
        if self.path_coef_.shape != (points.total,):
            raise ValueError(f"path_coef has {self.path_coef_.shape} weights, and the path says {points.total}")
        self._name_groups()

    def _map_params(self, stored: dict[str, Any]) -> dict[str, Any] | None:
        return None

    def _scores(self) -> Scores:
        """Of the maps that are used; the others are left out, so that a prediction costs what it needs."""
        coef, groups = np.atleast_2d(self.coef_).T, self.features_.column_group
        used = np.unique(groups[coef.any(axis=1)])
        used = used if len(used) else np.zeros(1, int)
        kept = SideBySide(tuple(self.features_.channels[g] for g in used.tolist()))
        blocks = kept.at(np.dtype(self.dtype_))
        own = np.ascontiguousarray(coef[np.isin(groups, used)] * kept.scale, blocks.dtype)
        return Scores(blocks, own, np.atleast_1d(self.intercept_), offset_of(getattr(self, "thresholds_", None)))

    def _channels(self) -> list[np.ndarray]:
        """The inputs of each channel."""
        maps, each = self.features_.channels, len(names_of(self.kernel_weights_).kernels)
        found = []
        for one in maps[::each]:
            channel = one.of if isinstance(one, ProjectedMap) else one
            assert isinstance(channel, Channel)
            found.append(channel.inputs)
        return found

    def _together(self, X: Any) -> Any:
        """X, with a list of channels side by side."""
        if listed(X) is None or not hasattr(self, "kernel_weights_"):
            return side_by_side(X)
        channels = self._channels()
        if np.concatenate(channels).tolist() != list(range(self.n_features_in_)):
            raise ValueError(f"X is a list of {len(X)} arrays, but the fit had one array; give its columns in order")
        names = names_of(self.kernel_weights_).channels
        return side_by_side(X, Listed(names, tuple(len(inputs) for inputs in channels)))

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_unlabelled: Any, resume: bool | str | None) -> None:
        self._listed = listed(X)
        super()._fit(side_by_side(X), y, sample_weight, X_unlabelled, resume)

    def _open(self, X: Any) -> Table:
        return super()._open(self._together(X))

    def plan(self, X: Any, y: Any = None, calibrate: bool = True) -> Plan:
        """What fit(X, y) will need: bytes, flops, seconds. Without y one output is assumed.

        calibrate=False does not measure the speed of this machine, and says nothing of seconds.
        """
        fresh = copy(self)
        fresh._listed = listed(X)
        return super(GroupModel, fresh).plan(side_by_side(X), y, calibrate)

    def evaluate(self, X: Any, y: Any = None) -> dict[str, Any]:
        """Figures of the predictions for X against y, block by block, as plain values. A data set brings its own y."""
        return super().evaluate(self._together(X), y)
