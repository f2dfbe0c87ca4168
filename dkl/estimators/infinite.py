"""Infinitely many features, few of which are used: InfiniteFeatureRegressor and InfiniteFeatureClassifier.

    f(x) = sum_j w_j' psi_j(x) + b,     psi_j = [cos(omega_j' t(x)), sin(omega_j' t(x))]
    least sum_i w_i l(f(x_i), y_i) + alpha sum_j |w_j|,   over every frequency omega_j that there is

Rounds of pricing and solving (learn/columns.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from dkl.checks import warn_user
from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.advice import warn_of_early_end
from dkl.estimators.classification import KernelClassifier
from dkl.estimators.fitted_loss import check_loss
from dkl.estimators.infinite_gabor import check_features, draw_first, filter_cost
from dkl.estimators.infinite_model import InfiniteModel
from dkl.estimators.linear_family import Given, Linear
from dkl.estimators.probabilities import IfProbabilistic
from dkl.estimators.registry import register
from dkl.estimators.regression import KernelRegressor
from dkl.features.fourier import fourier_cost
from dkl.features.gabor_groups import GaborGroups
from dkl.features.groups import take
from dkl.features.waves import WaveMap
from dkl.kernels import find_kernel
from dkl.learn.admm_master import AdmmMaster
from dkl.learn.columns import Columns, columns_costs
from dkl.learn.columns_state import Problem, Settings
from dkl.learn.iterate import iterate
from dkl.learn.masters import Master, NewtonMaster, SquareMaster
from dkl.learn.run import Limits, Run
from dkl.losses import Loss, Square, SquaredMargin, find_loss, loss_of_scores
from dkl.losses.tasks import OfTask
from dkl.options.docstrings import documented
from dkl.options.fields import parameter, parameters_of
from dkl.options.infinite import HELD_OUT, SOLVER, SPARSITY, sparsity_of
from dkl.prepare.candidates import Source, WaveSource, read_bandwidths
from dkl.prepare.draw import check_map, draw
from dkl.prepare.folds import Split, held_split
from dkl.prepare.gabor import shape_of
from dkl.prepare.gabor_candidates import GaborSource
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn
from dkl.prepare.targets import sum_small
from dkl.sums.tree import TreeProgram

HELD = 0.2
"""The share of rows that chooses alpha by default."""


@dataclass(eq=False, repr=False)
class InfiniteFeatures(InfiniteModel):
    """What the regressor and the classifier share."""

    family: ClassVar[str] = "infinite"

    kernel: str = parameter("kernel")
    max_features: int = parameter("max_features")
    _: KW_ONLY
    features: Any = parameter(
        "features",
        about="Transformer whose features are the candidates.",
        doc="GaborFeatures: filters drawn at random in every round. None: frequencies of the kernel.",
    )
    bandwidths: Any = parameter("bandwidths")
    candidates: int = parameter("candidates")
    per_round: Any = parameter("per_round")
    improve: int = parameter("improve")
    sigma: Any = parameter("sigma")
    groups: Any = parameter("groups")
    frequencies: str = parameter("frequencies")
    form: str = parameter("form")
    tasks: Any = parameter("tasks")
    skew: float = parameter("skew")
    n_terms: int = parameter("n_terms")
    loss: str = parameter("loss")
    penalty: str = parameter(SPARSITY)
    solver: str = parameter(SOLVER)
    solver_tol: float = parameter(
        "solver_tol",
        1e-5,
        about="KKT residual at which weights are done.",
        doc="Over the largest violation of the first round.",
    )
    alpha: Any = parameter(
        "alpha",
        about="Penalty beside the sum of losses; or a list, or auto.",
        doc='"auto": a path of n_alphas, from the least at which no candidate of the first round has a weight; the '
        "rows of `validation` choose. A list: the same for those. A number: that one.",
    )
    n_alphas: int = parameter("n_alphas", 20)
    eps: float = parameter("eps")
    validation: Any = parameter(HELD_OUT)
    max_iter: int = parameter("max_iter", 200, about="Most rounds.", doc="")
    tol: float = parameter(
        "tol",
        about="Violation that counts as none, over alpha.",
        doc="Three rounds in a row without a larger one end the search.",
    )
    max_time: float | None = parameter("max_time", doc="No round begins after this time.")

    def _check(self) -> None:
        super()._check()
        check_loss(self)
        if self.features is not None:
            check_features(self)
        if not isinstance(self.alpha, str) and not (np.asarray(self.alpha) > 0).all():
            raise ValueError(f"alpha={self.alpha!r} must be above 0; without penalty every feature has a weight")

    @property
    def _chooses(self) -> bool:
        """Whether there is a path to choose from."""
        return isinstance(self.alpha, str) or np.size(self.alpha) > 1

    def _split(self, X: Table, y: Table | None) -> Split:
        share = self.validation
        if isinstance(share, str):
            share = HELD if self._chooses else None
        return Split() if share is None else held_split(share, X)

    def _limits(self) -> Limits:
        return Limits(int(self.max_iter), float(self.tol), None if self.max_time is None else float(self.max_time))

    def _check_inputs(self, X: Table) -> None:
        super()._check_inputs(X)
        if self.features is None:
            check_map(parameters_of(self), X.n_columns, X.input_coords)
        else:
            shape_of(self.features.image_shape, X.n_columns)

    def _group_cost(self, sizes: Sizes, groups: int) -> MapCost:
        """What a map of so many groups costs."""
        if self.features is not None:
            return filter_cost(self.features, sizes.inputs, groups, sizes.dtype)
        terms = 1 if find_kernel(self.kernel).additive is None else self.n_terms
        return fourier_cost(sizes.inputs, groups * self._width, self.form, terms, sizes.dtype)

    def _map_cost(self, sizes: Sizes) -> MapCost:
        return self._group_cost(sizes, int(self.max_features))

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        sizes = self._task_sizes(sizes)
        settings, drawn = self._settings(max(1, sizes.outputs)), int(self.candidates) * self._families
        short = self._group_cost(sizes, min(drawn, 3 * settings.per_round))
        return columns_costs(
            sizes, self._map_cost(sizes), self._group_cost(sizes, drawn), short, split.n_folds, settings
        )

    @property
    def _width(self) -> int:
        """Features of a group."""
        return 2 if self.form == "paired" else 1

    @property
    def _families(self) -> int:
        found = read_bandwidths(self.bandwidths)
        return 1 if found.is_range or self.features is not None else len(found.values)

    def _drawing(
        self, given: Given, dtype: np.dtype, rng: np.random.Generator, progress: Progress
    ) -> Callable[[], Drawn]:  # fmt: skip
        inputs = given.X.n_columns
        if self.features is not None:
            return draw_first(self.features, inputs, given, rng, progress, self.improve > 0)
        params = {**parameters_of(self), "n_components": self._width}

        def moments(program: TreeProgram) -> Any:
            return sum_small(program, [given.X, given.weight], ["X", "sample_weight"], progress)

        def make() -> Drawn:
            features, *others = draw(
                params, inputs, given.X.input_coords, rng, moments, self.improve > 0
            )  # fmt: skip
            return WaveMap.of(features), *others  # type: ignore[return-value]

        return make

    def _loss(self, outputs: int) -> Loss:
        """The loss of so many scores."""
        loss = find_loss(self.loss)
        if isinstance(loss, Square) and isinstance(self, ClassifierMixin):
            loss = SquaredMargin()
        return OfTask(loss_of_scores(loss, 1)) if self._has_tasks else loss_of_scores(loss, outputs)

    def _master(self) -> Master:
        """How weights are found."""
        is_square = isinstance(find_loss(self.loss), Square) and not self._has_tasks
        if self.solver == "admm":
            return AdmmMaster()
        return SquareMaster() if is_square and self.solver == "auto" else NewtonMaster()

    def _settings(self, outputs: int) -> Settings:
        """What is asked for, without the candidates."""
        asked = self.per_round
        alphas = None if isinstance(self.alpha, str) else np.atleast_1d(np.asarray(self.alpha, float))
        return Settings(
            source=None,  # type: ignore[arg-type]
            loss=self._loss(outputs),
            sparsity=sparsity_of(self.penalty),
            master=self._master(),
            fit_intercept=bool(self.fit_intercept),
            alphas=alphas,
            count=int(self.n_alphas),
            least=float(self.eps),
            budget=int(self.max_features),
            per_round=min(10, max(1, self.max_features // 10)) if isinstance(asked, str) else int(asked),
            candidates=int(self.candidates),
            improve=int(self.improve),
            solver_tol=float(self.solver_tol),
        )

    def _source(self, data: Prepared) -> Source[Any]:
        """Where candidates come from."""
        like: Any = data.features
        if isinstance(like, GaborGroups):
            return GaborSource(like)
        assert isinstance(like, WaveMap)
        return WaveSource(take(like, np.zeros(1, int)), read_bandwidths(self.bandwidths), self.frequencies)

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        data = data.in_units_of_y()
        settings = replace(
            self._settings(data.targets.n_outputs),
            source=self._source(data),
            seed=data.seed,
            input_size=np.sqrt(data.input_squares) if self.improve else None,
        )
        problem = Problem(settings, data, 1 if data.split.n_folds > 1 else -1)
        done = iterate(run, Columns(problem))
        warn_of_early_end(parameters_of(self), done, run.finish)
        point = done.result.final
        if point is not None and point.residual > self.solver_tol:
            warn_user(
                f"the last weights ended at a KKT residual of {point.residual:.1e}, above solver_tol="
                f"{self.solver_tol:g}; raise solver_tol or alpha, or use dtype='float64'",
                ConvergenceWarning,
            )
        self._set_history(done, data)
        return self._set_model(problem, done.result)


@register
@documented
@dataclass(eq=False, repr=False)
class InfiniteFeatureRegressor(InfiniteFeatures, KernelRegressor):
    """Regression with few features out of infinitely many, found by column generation.

    Examples
    --------
    >>> import numpy as np, dkl
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> y = np.cos(2 * X[:, 0] + X[:, 2])
    >>> model = dkl.InfiniteFeatureRegressor(max_features=5, improve=10, alpha=0.1, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """


@register
@documented
@dataclass(eq=False, repr=False)
class InfiniteFeatureClassifier(InfiniteFeatures, KernelClassifier):
    """Classes by few features out of infinitely many, found by column generation."""

    def decision_function(self, X: Any, tasks: Any = None) -> Any:
        """Scores (n,) of the second of two classes, or (n, classes); with tasks that of the task of each row."""
        return self._each(X, tasks, super().decision_function)

    @IfProbabilistic
    def predict_proba(self, X: Any, tasks: Any = None) -> Any:
        """Probability of each class (n, classes), in the order of classes_. Only with a log loss."""
        return self._each(X, tasks, lambda rows: self._probabilities(rows, log=False))

    @IfProbabilistic
    def predict_log_proba(self, X: Any, tasks: Any = None) -> Any:
        """Logarithm of predict_proba (n, classes)."""
        return self._each(X, tasks, lambda rows: self._probabilities(rows, log=True))
