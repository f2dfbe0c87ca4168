"""Several kernels of several channels, few of which are used: MultipleKernelRegressor and MultipleKernelClassifier.

    f(x) = sum_g w_g' psi_g(x) + b,     group g = one kernel on one channel
    least sum_i w_i |y_i - f(x_i)|^2 / 2 + alpha [sum_g eta_g |w_g| + ridge / 2 sum_g |w_g|^2]

One pass of sums, and from them the path of alpha with the errors of all folds (learn/group_path.py). eta_g is 1 if all
maps have the same number of features (or landmarks), else the root of that number over their mean; so d_g =
|w_g| / sqrt 2 are the kernel weights of dkl.exact.GMKL at the same alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import warn_user
from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.blocks import Rows
from dkl.engine.progress import Progress
from dkl.engine.reduce import engine_for
from dkl.engine.tables import Table
from dkl.estimators.advice import warn_of_early_end
from dkl.estimators.channel_inputs import side_by_side
from dkl.estimators.classification import KernelClassifier
from dkl.estimators.fitted_loss import check_loss
from dkl.estimators.group_advice import warn_of_missing_classes, warn_of_small_outputs
from dkl.estimators.group_layout import Layout, layout_of, takes_histograms
from dkl.estimators.group_learning import check_learning, costs_of, learn_sigmas, learns, split_of, widened
from dkl.estimators.group_model import GroupModel
from dkl.estimators.group_options import chooses, group_options, is_square
from dkl.estimators.group_paths import packed, path_dataset
from dkl.estimators.linear_family import Given, Linear
from dkl.estimators.registry import register
from dkl.estimators.regression import KernelRegressor
from dkl.features.projected import projected_cost
from dkl.features.side_by_side import side_by_side_cost
from dkl.learn.channels import along_axes
from dkl.learn.constant_groups import look_for_constant_groups
from dkl.learn.group_path import GroupOptions, GroupWeights, fit_groups, group_costs
from dkl.learn.iterate import Iterated
from dkl.learn.loss_path import group_loss_costs, group_loss_path
from dkl.learn.plan import axes_costs
from dkl.learn.run import Limits, Run
from dkl.losses import find_loss, loss_of_scores
from dkl.options.docstrings import documented
from dkl.options.fields import parameter, parameters_of
from dkl.options.multiple import GROUP_PENALTY, GROUPS_OF_SEVERAL, LEARN_SEVERAL, penalty_of
from dkl.options.table import OF_SEVERAL
from dkl.prepare.folds import Split, read_folds
from dkl.prepare.kernel_maps import MapOptions
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn
from dkl.sums.targets import Targets


@dataclass(eq=False, repr=False)
class MultipleKernel(GroupModel):
    """What the regressor and the classifier share."""

    family: ClassVar[str] = "multiple"

    kernels: Any = parameter(OF_SEVERAL["kernels"])
    n_components: int = parameter("n_components", 256, about="Features of each kernel on each channel.")
    _: KW_ONLY
    channels: Any = parameter(OF_SEVERAL["channels"])
    features: Any = parameter(
        "features",
        about="Transformers, each a group on each channel, in place of kernels.",
        takes="list or dict of transformers",
        doc="FourierFeatures, NystroemFeatures or Chi2Features; a dict gives names. A clone of each is fitted to each "
        "channel; n_components and the other parameters of kernels are not used then.",
    )
    per_channel: Any = parameter(OF_SEVERAL["per_channel"])
    frequencies: str = parameter("frequencies")
    form: str = parameter("form")
    skew: float = parameter("skew")
    n_terms: int = parameter("n_terms")
    loss: str = parameter("loss")
    penalty: str = parameter(GROUP_PENALTY)
    alpha: Any = parameter(
        "alpha",
        about="Penalty beside the losses; a list, or auto.",
        doc='"auto": n_alphas of them, from the least at which all weights are zero; the folds of cv choose (rule). A '
        "list: the same for those. A number: that one, without folds. It is the alpha of dkl.exact.GMKL, if all maps "
        "have as many features.",
    )
    n_alphas: int = parameter(OF_SEVERAL["n_alphas"])
    eps: float = parameter(OF_SEVERAL["eps"])
    cv: Any = parameter(
        "cv",
        5,
        doc="The folds that choose alpha, from the same pass: a number of them, the fold of each row, or a "
        "scikit-learn splitter. Their errors are in path_. One alpha needs none.",
    )
    rule: str = parameter(OF_SEVERAL["rule"])
    by_output: bool = parameter(OF_SEVERAL["by_output"])
    debias: Any = parameter(OF_SEVERAL["debias"])
    solver_tol: float = parameter(
        "solver_tol",
        1e-6,
        about="Duality gap at which weights are done.",
        doc="Over that of zero weights; of every alpha, and every fold.",
    )
    learn: str | None = parameter(LEARN_SEVERAL)
    learn_components: int | None = parameter(
        "learn_components",
        doc="Sigma is learned with so many features of each kernel; the weights have n_components of each at the "
        "learned sigmas, along principal axes if per_channel is given. None: n_components.",
    )
    groups: str | None = parameter(GROUPS_OF_SEVERAL)
    validation: Any = parameter("validation")
    sigma_l2: float = parameter("sigma_l2")
    starts: int = parameter("starts", 1)
    subsample: float | None = parameter("subsample")
    max_iter: int = parameter("max_iter", doc="An iteration is one accepted step.")
    tol: float = parameter("tol")
    max_time: float | None = parameter("max_time")

    def _check(self) -> None:
        super()._check()
        check_loss(self)
        check_learning(self)
        if self.features is not None and self.kernels is not None:
            raise ValueError(
                f"features={self.features!r} stands in place of kernels, got kernels={self.kernels!r}; give one of them"
            )
        if not isinstance(self.alpha, str) and not (np.asarray(self.alpha) > 0).all():
            raise ValueError(f"alpha={self.alpha!r} must be above 0; without penalty every kernel is used")
        if chooses(self) and self.cv is None and self.rule != "last":
            raise ValueError(
                f"alpha={self.alpha!r} is a path, from which folds choose (rule={self.rule!r}), and cv={self.cv} has "
                "none; use cv=5, one number as alpha, or rule='last'"
            )

    def _split(self, X: Table, y: Table | None) -> Split:
        if learns(self):
            return split_of(self, X, y)
        return Split(read_folds(self.cv, X, y)) if chooses(self) else Split()

    def _limits(self) -> Limits:
        return Limits(int(self.max_iter), float(self.tol), None if self.max_time is None else float(self.max_time))

    def _check_inputs(self, X: Table) -> None:
        super()._check_inputs(X)
        own = getattr(self, "_listed", None)
        if own is not None and self.channels is not None:
            raise ValueError(
                f"X is a list of {len(own.names)} channels, got channels={self.channels!r} too; leave it out"
            )
        common = self.n_components, self.frequencies, self.form, float(self.skew), int(self.n_terms)
        self._layout: Layout = layout_of(self.kernels, self.features, self.channels, MapOptions(*common), X, own)

    def _map_costs(self, sizes: Sizes) -> tuple[list[MapCost], list[MapCost]]:
        """What the map of each group costs, and along its principal axes if that is asked for."""
        own = self._layout.costs(sizes.dtype)
        if self.per_channel is None:
            return own, own
        counted = not isinstance(self.per_channel, str) and self.per_channel >= 1
        kept = [min(one.features, int(self.per_channel)) if counted else one.features for one in own]
        return own, [projected_cost(one, axes, sizes.dtype) for one, axes in zip(own, kept, strict=True)]

    def _map_cost(self, sizes: Sizes) -> MapCost:
        """What all maps cost together."""
        return side_by_side_cost(self._map_costs(sizes)[1])

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        own, kept = self._map_costs(sizes)
        tried = self.n_alphas if isinstance(self.alpha, str) else np.size(self.alpha)
        largest, penalty = max(one.features for one in kept), penalty_of(self.penalty)[0]
        if is_square(self):
            passes = group_costs(sizes, side_by_side_cost(kept), split.n_folds, tried, largest, penalty)
        else:
            loss = loss_of_scores(find_loss(self.loss), sizes.outputs)
            passes = group_loss_costs(sizes, side_by_side_cost(kept), split.n_folds, loss)
        inputs = sum(len(channel.inputs) for channel in self._layout.channels) * len(self._layout.kernels)
        few = self._layout.with_components(self.learn_components).costs(sizes.dtype)
        passes = [*passes, *costs_of(self, sizes, side_by_side_cost(few), split, inputs, max(m.features for m in few))]
        return passes if self.per_channel is None else [*passes, *axes_costs(sizes, own)]

    def _other_ways(self, sizes: Sizes, split: Split) -> Sequence[tuple[str, Sequence[Cost]]]:
        """Principal axes of each kernel: half of its features, a quarter and so on."""
        groups, most = len(self._layout.names.groups), max(one.features for one in self._map_costs(sizes)[1])
        ways, other = [], copy(self)
        while groups > 1 and (most := most // 2):
            other.per_channel = most
            words = f"principal axes of each of the {groups} kernels (per_channel={most})"
            ways.append((words, other._costs(sizes, split)))
        return ways

    def _drawing(
        self, given: Given, dtype: np.dtype, rng: np.random.Generator, progress: Progress
    ) -> Callable[[], Drawn]:
        def make() -> Drawn:
            layout = self._layout.with_components(self.learn_components)
            features = layout.draw(given.X, given.weight, rng, progress)
            names, seed = self._layout.names.groups, int(rng.integers(2**62))
            look_for_constant_groups(features, given.X, given.weight, dtype, names, progress)
            if self.per_channel is not None and not learns(self):
                engine, rows = engine_for(given.is_lazy, self.place), {"X": Rows([given.X], ["X"])}
                features = along_axes(engine, rows, features, dtype, self.per_channel, progress)
            return features, self._layout.channel_of_inputs(self.n_features_in_), seed, np.empty(0), None

        return make

    def _weigh(self, run: Run, data: Prepared, options: GroupOptions) -> tuple[GroupWeights, Iterated[Any] | None]:
        """The weights along the path, and those that are chosen; and the way there, if there was one."""
        if is_square(self):
            return fit_groups(run, data.gram(data.split), options), None
        loss = loss_of_scores(find_loss(self.loss), data.targets.n_outputs)
        steps = options.max_iter * (options.tried + 1)
        found, way = group_loss_path(run, data, replace(options, max_iter=steps), loss)
        warn_of_early_end(parameters_of(self) | {"tol": self.solver_tol}, way, run.finish)
        return found, way

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        options, done = group_options(self, data), None
        warn_of_small_outputs(data.targets, options, is_square(self))
        warn_of_missing_classes(data, given.y, getattr(self, "classes_", ()))
        if learns(self):
            run, data, options, done = learn_sigmas(self, run, data, options)
            data = widened(self, run, data, given)
            options = replace(group_options(self, data), alphas=options.alphas, rule=options.rule)
        found, way = self._weigh(run, data, options)
        self._set_history(way if done is None else done, data)
        if found.warning:
            warn_user(found.warning, UserWarning if found.converged else ConvergenceWarning)
        outputs = self._output_names(data.targets)
        self.path_, self.path_coef_ = path_dataset(found.paths, self._layout.names, outputs), packed(found.paths)
        self.features_ = data.features
        self._set_groups(self._layout.names, np.array([path.chosen for path in found.paths]))
        return Linear(data, found.coef, found.intercept)

    def _output_names(self, targets: Targets) -> np.ndarray:
        """What the outputs of y are called: classes, or numbers."""
        if not hasattr(self, "classes_"):
            return np.arange(targets.n_outputs)
        return self.classes_[1:] if len(self.classes_) == 2 else self.classes_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = takes_histograms(self.kernels, self.features)
        return tags


@register
@documented
@dataclass(eq=False, repr=False)
class MultipleKernelRegressor(MultipleKernel, KernelRegressor):
    """Regression with several kernels of several channels, few of which are used: a group lasso from one pass.

    Examples
    --------
    >>> import numpy as np, dkl
    >>> X = np.random.default_rng(0).normal(size=(400, 6))
    >>> y = np.sin(2 * X[:, 1])
    >>> model = dkl.MultipleKernelRegressor(["gaussian"], 50, channels="each", alpha=10.0).fit(X, y)
    >>> model.selected_groups_
    ['1']
    """

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions; 0 for a constant target that is not met. A data set brings its own y."""
        return super().score(side_by_side(X), y, sample_weight)


@register
@documented
@dataclass(eq=False, repr=False)
class MultipleKernelClassifier(MultipleKernel, KernelClassifier):
    """Classes by several kernels of several channels, few of which are used: a group lasso from one pass."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predictions. A data set brings its own y."""
        return super().score(side_by_side(X), y, sample_weight)
