"""Networks of cosines whose frequencies are trained: ContinuousKernelRegressor and ContinuousKernelClassifier.

    scores = sqrt(2 / D) cos(X Gam + b) V + c,   Gam, b, V, c by gradient steps on the mean loss

The kernel that the cosines stand for is learned with the weights; the spectrum of a kernel at sigma is where it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.engine.tables import Table
from dkl.estimators.classification import KernelClassifier
from dkl.estimators.continuous_search import Searches, check_search, learn_by_search, search_costs, searches
from dkl.estimators.family import Given, Linear
from dkl.estimators.fitted import KERNEL, restored_map
from dkl.estimators.fitted_loss import check_loss
from dkl.estimators.fourier import KernelMixin
from dkl.estimators.going_on import known_classes, known_map, known_start, one_epoch
from dkl.estimators.input_info import set_extent, set_or_delete
from dkl.estimators.labelled import Labelled
from dkl.estimators.learned_features import LearnedFeatures, learned_features
from dkl.estimators.linear_family import LinearFamily
from dkl.estimators.network_advice import empty_columns, warn_of_training
from dkl.estimators.registry import register
from dkl.estimators.regression import KernelRegressor
from dkl.estimators.spectrum import spectrum_of
from dkl.estimators.stored import Stored, Value
from dkl.features.fourier import fourier_cost
from dkl.kernels import find_kernel, is_for_histograms
from dkl.learn.cosine import (
    Candidate,
    bundle_of,
    first_intercept,
    found_map,
    linear_of,
    start_of,
    trained_data,
    training_of,
    units_of,
    with_kept_rows,
)
from dkl.learn.iterate import iterate
from dkl.learn.run import Limits, Run
from dkl.losses import Loss, find_loss, loss_of_scores
from dkl.options.continuous import EPOCHS, HELD_OUT, OF_NETWORKS
from dkl.options.docstrings import documented
from dkl.options.fields import parameter, parameters_of
from dkl.prepare.draw import check_map, draw
from dkl.prepare.folds import Split, held_split, is_share, read_folds
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn
from dkl.prepare.targets import label_targets, sum_small
from dkl.sums.cosine_networks import network_cost
from dkl.sums.networks import Parameters
from dkl.sums.targets import LabelProgram, Targets
from dkl.sums.tree import TreeProgram


@dataclass(eq=False, repr=False)
class ContinuousKernel(Searches, KernelMixin, LinearFamily):
    """A network of cosines."""

    family: ClassVar[str] = "continuous"
    FITTED: ClassVar[dict[str, Stored]] = {
        **KERNEL,
        "epochs_": Value("Epochs of training, those before a warm start too.", int),
        "spectrum_": Labelled(
            "Frequencies and phases, at the start and learned, as an xarray Dataset with the names of the inputs."
        ),
    }

    kernel: str = parameter("kernel", about="Kernel whose spectrum the frequencies begin with.")
    n_components: int = parameter("n_components", 256, about="Number of cosines.")
    _: KW_ONLY
    sigma: Any = parameter("sigma")
    groups: Any = parameter("groups")
    frequencies: str = parameter("frequencies")
    skew: float = parameter("skew")
    n_terms: int = parameter("n_terms")
    learning_rate: float = parameter(OF_NETWORKS["learning_rate"])
    momentum: float = parameter(OF_NETWORKS["momentum"])
    momentum_start: float = parameter(OF_NETWORKS["momentum_start"])
    momentum_ramp: int = parameter(OF_NETWORKS["momentum_ramp"])
    decay: float = parameter(OF_NETWORKS["decay"])
    max_norm: float | None = parameter(OF_NETWORKS["max_norm"])
    batch_size: int | None = parameter(OF_NETWORKS["batch_size"])
    validation: Any = parameter("validation", 0.1, **HELD_OUT)
    patience: int = parameter(OF_NETWORKS["patience"])
    max_iter: int = parameter("max_iter", 200, **EPOCHS)
    max_time: float | None = parameter("max_time")
    warm_start: bool = parameter(OF_NETWORKS["warm_start"])

    def _map_params(self, stored: dict[str, Any]) -> dict[str, Any] | None:
        return None

    def _restored(self) -> None:
        super()._restored()
        restored_map(self)

    def _check(self) -> None:
        super()._check()
        check_loss(self)
        if find_loss(self.loss).is_class != is_classifier(self):
            raise ValueError(f"loss={self.loss!r} is for numbers; use loss='log_loss'")
        check_search(parameters_of(self))

    def _check_inputs(self, X: Table) -> None:
        super()._check_inputs(X)
        check_map(self._params(), X.n_columns, X.input_coords)
        if not isinstance(self.sigma, str) and not np.all(np.asarray(self.sigma) > 0):
            raise ValueError(f"sigma={self.sigma!r} has a zero, and frequencies begin at sigma; leave that input out")

    def _params(self) -> dict[str, Any]:
        """Parameters of the map that training begins with."""
        return parameters_of(self) | {"form": "phase", "landmarks": None}

    def _split(self, X: Table, y: Table | None) -> Split:
        if self.cv is not None:
            return Split(read_folds(self.cv, X, y))
        none = self.validation is None or (is_share(self.validation) and not self.validation)
        return Split() if none else held_split(self.validation, X)

    def _limits(self) -> Limits:
        return Limits(int(self.max_iter), max_time=None if self.max_time is None else float(self.max_time))

    def _map_cost(self, sizes: Sizes) -> MapCost:
        terms = 1 if find_kernel(self.kernel).additive is None else self.n_terms
        return fourier_cost(sizes.inputs, self.n_components, "phase", terms, sizes.dtype)

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        of = self._map_cost(sizes)
        outputs = 1 if sizes.is_class and sizes.outputs == 2 else max(1, sizes.outputs)
        if searches(parameters_of(self)):
            terms, folds = of.columns // sizes.inputs, 1 if self.cv is None else split.n_folds
            return search_costs(parameters_of(self), sizes, outputs, terms, folds)
        passes = [network_cost(sizes, of, outputs).again()]
        return passes if split.n_folds == 1 else [*passes, network_cost(sizes, of, outputs, gradient=False).again()]

    def _plan_rows(
        self, engine: Engine, rows: Rows, dtype: np.dtype, split: Split, outputs: int, measure: bool = False
    ) -> Plan:  # fmt: skip
        """What a fit needs, with the prepared rows that stay between epochs."""
        plan = super()._plan_rows(engine, rows, dtype, split, outputs, measure)
        copies = 1 if self.cv is None else split.n_folds
        return with_kept_rows(plan, engine, self._map_cost(plan.sizes).columns, copies)

    def _drawing(
        self, given: Given, dtype: np.dtype, rng: np.random.Generator, progress: Progress
    ) -> Callable[[], Drawn]:  # fmt: skip
        def moments(program: TreeProgram) -> Any:
            return sum_small(program, [given.X, given.weight], ["X", "sample_weight"], progress)

        if self._goes_on:
            return lambda: known_map(self, int(rng.integers(2**62)), moments)
        return lambda: draw(self._params(), self.n_features_in_, given.X.input_coords, rng, moments, True)

    def _set_map(self, data: Prepared) -> None:
        self.groups_, self.sigma_ = data.groups, data.features.sigma
        set_extent(self, data.extent)

    def _loss_of(self, outputs: int) -> Loss:
        """The loss of so many scores."""
        return loss_of_scores(find_loss(self.loss), outputs)

    @property
    def _candidate(self) -> Candidate:
        """The network that the parameters ask for."""
        cap = np.inf if self.max_norm is None else float(self.max_norm)
        return Candidate(
            int(self.n_components), float(self.learning_rate), decay=float(self.decay), cap=cap,
            momentum=(float(self.momentum_start), float(self.momentum)), ramp=float(self.momentum_ramp),
        )  # fmt: skip

    @property
    def _goes_on(self) -> bool:
        """Whether fit begins where the last one ended."""
        return bool(self.warm_start) and hasattr(self, "features_")

    @property
    def _moves_frequencies(self) -> bool:
        return True

    def to_features(self) -> LearnedFeatures:
        """The learned features as a transformer that keeps them: for ridge, several kernels, or FeaturePCA."""
        check_is_fitted(self, "features_")
        return learned_features(self)

    def _shares(self, data: Prepared, given: Given, run: Run) -> np.ndarray | None:
        """Weight of each class, if y holds classes."""
        targets = data.targets
        if targets.classes is None:
            return None
        found = sum_small(LabelProgram(), [given.y, given.weight], ["y", "sample_weight"], run.progress)
        share = np.zeros(targets.n_targets)
        share[np.searchsorted(targets.classes, found.labels)] = found.weight
        return share if targets.class_weight is None else share * targets.class_weight

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        loss = self._loss_of(data.targets.n_outputs)
        data, candidate = trained_data(data, loss), self._candidate
        if searches(parameters_of(self)):
            return learn_by_search(self, run, data, self._first_intercept(run, data, given, loss), loss)
        set_or_delete(self, "search_results_", None)
        set_or_delete(self, "best_params_", None)
        start, velocity, before = self._start(run, data, given, loss)
        network = bundle_of(data, [candidate], [start], loss, bool(self.fit_intercept))
        patience = int(self.patience) if data.split.n_folds > 1 else None
        method = training_of(
            run.engine, run.rows, data, network, [candidate], epochs=int(self.max_iter), batch_size=self.batch_size,
            patience=patience, velocity=velocity, before=before,
        )  # fmt: skip
        done = iterate(run, method)
        warn_of_training(parameters_of(self), done, run.finish)
        self._set_history(done, data, empty_columns(done, is_classifier(self)))
        found, units = done.result, units_of(data)
        self.epochs_, self._seed = before + found.state.epoch, data.seed
        self._velocity = {n: v / units[n] for n, v in found.velocity.items()}
        features = found_map(data, network, found.parameters, 0)
        self.spectrum_ = spectrum_of(self, data, features)
        return Linear(data.with_map(features), *linear_of(data, network, found.parameters, 0))

    def _start(
        self, run: Run, data: Prepared, given: Given, loss: Loss
    ) -> tuple[Parameters, Parameters | None, int]:  # fmt: skip
        """Parameters and velocities at the start, and epochs before it."""
        if self._goes_on:
            return (*known_start(self, data), self.epochs_)
        intercept = self._first_intercept(run, data, given, loss)
        return start_of(data, data.features, intercept, np.random.default_rng([data.seed, 1])), None, 0

    def _first_intercept(self, run: Run, data: Prepared, given: Given, loss: Loss) -> np.ndarray:
        """Where the intercept begins."""
        intercept = first_intercept(loss, self._shares(data, given, run), data.targets.n_outputs)
        return intercept if self.fit_intercept else np.zeros_like(intercept)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = is_for_histograms(self.kernel)
        return tags


@register
@documented
@dataclass(eq=False, repr=False)
class ContinuousKernelRegressor(KernelRegressor, ContinuousKernel):
    """Regression with a network of cosines whose frequencies are trained with the weights."""

    _: KW_ONLY
    loss: str = parameter("loss", "square")

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train for one epoch on these rows, from where the model stands; no rows are held out."""
        one_epoch(self, X, y, sample_weight)
        return self


@register
@documented
@dataclass(eq=False, repr=False)
class ContinuousKernelClassifier(KernelClassifier, ContinuousKernel):
    """Classification with a network of cosines whose frequencies are trained with the weights."""

    _: KW_ONLY
    loss: str = parameter("loss", "log_loss")
    _classes: ClassVar[np.ndarray | None] = None  # that partial_fit knows before it sees y

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train for one epoch on these rows, from where the model stands; the first call names all classes."""
        one_epoch(self, X, y, sample_weight, _classes=known_classes(self, classes))
        return self

    def _targets(self, y: Table, weight: Table | None, progress: Progress) -> Targets:
        known = self._classes
        if known is None and self._goes_on:
            known = self.classes_
        if known is None or y.names is not None:
            targets = super()._targets(y, weight, progress)
            if known is not None and not np.array_equal(self.classes_, known):
                raise ValueError(f"classes of y are {self.classes_.tolist()}, those of the model {known.tolist()}")
            return targets
        self.classes_ = known
        return label_targets(y, weight, self.class_weight, progress, known)
