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
from dkl.engine.progress import Progress
from dkl.engine.tables import Table
from dkl.estimators.classification import KernelClassifier
from dkl.estimators.continuous_search import Searches, check_search, learn_by_search, search_costs, searches, solve_cost
from dkl.estimators.family import Given, Linear
from dkl.estimators.fitted import KERNEL, restored_map
from dkl.estimators.fitted_loss import check_loss
from dkl.estimators.fourier import KernelMixin
from dkl.estimators.going_on import known_classes, known_map, known_start, one_epoch
from dkl.estimators.input_info import set_extent, set_or_delete
from dkl.estimators.labelled import Labelled
from dkl.estimators.learned_features import LearnedFeatures, learned_features
from dkl.estimators.network_family import NetworkFamily
from dkl.estimators.registry import register
from dkl.estimators.regression import KernelRegressor
from dkl.estimators.spectrum import spectrum_of
from dkl.estimators.stored import Stored, Value
from dkl.features.fourier import fourier_cost
from dkl.kernels import find_kernel, is_for_histograms
from dkl.learn.cosine import (
    Candidate,
    bundle_of,
    found_map,
    linear_of,
    start_of,
    trained_loss,
    training_of,
    units_of,
)
from dkl.learn.run import Run
from dkl.losses import Loss, find_loss, loss_of_scores
from dkl.options.continuous import OF_NETWORKS
from dkl.options.docstrings import documented
from dkl.options.fields import parameter, parameters_of
from dkl.prepare.draw import check_map, draw
from dkl.prepare.folds import Split, read_folds
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn
from dkl.prepare.targets import label_targets, sum_small
from dkl.sums.cosine_networks import network_cost
from dkl.sums.networks import Parameters
from dkl.sums.targets import Targets
from dkl.sums.tree import TreeProgram


@dataclass(eq=False, repr=False)
class ContinuousKernel(Searches, KernelMixin, NetworkFamily):
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
    warm_start: bool = parameter(OF_NETWORKS["warm_start"])

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
        return super()._split(X, y) if self.cv is None else Split(read_folds(self.cv, X, y))

    def _copies(self, split: Split) -> int:
        return 1 if self.cv is None else split.n_folds

    def _map_cost(self, sizes: Sizes) -> MapCost:
        terms = 1 if find_kernel(self.kernel).additive is None else self.n_terms
        return fourier_cost(sizes.inputs, self.n_components, "phase", terms, sizes.dtype)

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        of = self._map_cost(sizes)
        outputs = 1 if sizes.is_class and sizes.outputs == 2 else max(1, sizes.outputs)
        if searches(parameters_of(self)):
            terms, folds = of.columns // sizes.inputs, 1 if self.cv is None else split.n_folds
            return search_costs(parameters_of(self), sizes, outputs, terms, folds)
        steps = solve_cost((of.columns + 1 + outputs) * of.features)
        passes = [network_cost(sizes, of, outputs).then(steps).again()]
        return passes if split.n_folds == 1 else [*passes, network_cost(sizes, of, outputs, gradient=False).again()]

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
        return Candidate(
            int(self.n_components), float(self.learning_rate), decay=float(self.decay), cap=self._cap,
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

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        loss, candidate = trained_loss(data, self._loss_of(data.targets.n_outputs)), self._candidate
        if searches(parameters_of(self)):
            return learn_by_search(self, run, data, self._first_intercept(run, data, given, loss), loss)
        set_or_delete(self, "search_results_", None)
        set_or_delete(self, "best_params_", None)
        start, velocity, before = self._start(run, data, given, loss)
        network = bundle_of(data, [candidate], [start], loss, bool(self.fit_intercept))
        method = training_of(
            run.engine, run.rows, data, network, [candidate], epochs=int(self.max_iter), batch_size=self.batch_size,
            patience=self._patience(data.split), velocity=velocity, before=before,
        )  # fmt: skip
        found, units = self._trained(run, method, data), units_of(data)
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
