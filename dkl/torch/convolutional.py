"""ConvolutionalKernelClassifier: images by convolutions and a layer of cosines, trained together on the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from torch import nn

from dkl.cost import Cost, MapCost, Sizes
from dkl.engine.blocks import Rows
from dkl.engine.memory import Plan
from dkl.engine.progress import Progress
from dkl.engine.protocol import Engine
from dkl.engine.tables import Table
from dkl.estimators.classification import KernelClassifier
from dkl.estimators.linear_family import Given, Linear
from dkl.estimators.network_family import NetworkFamily
from dkl.estimators.registry import register
from dkl.estimators.stored import Stored
from dkl.kernels import find_kernel
from dkl.learn.network_steps import Rates
from dkl.learn.run import Run
from dkl.losses import Softmax
from dkl.options.continuous import EPOCHS, OF_NETWORKS
from dkl.options.convolutional import LAYER_SIGMA, OF_CONVOLUTIONAL
from dkl.options.docstrings import documented
from dkl.options.fields import parameter
from dkl.prepare.folds import Split
from dkl.prepare.prepared import Prepared
from dkl.prepare.saved_map import Drawn
from dkl.prepare.targets import sum_small
from dkl.sums.input_moments import MomentProgram
from dkl.torch.architecture import COEF, INTERCEPT, Architecture, as_tensor
from dkl.torch.cosine import check_kernel
from dkl.torch.feature_map import network_cost
from dkl.torch.network import ConvolutionalNetwork, convolutional_cost
from dkl.torch.threads import own_settings
from dkl.torch.training import drawn_map, first_parameters, shape_of_images, trained_map, training_of


@register
@documented
@dataclass(eq=False, repr=False)
class ConvolutionalKernelClassifier(KernelClassifier, NetworkFamily):
    """Classes of images by a convolutional network whose last layer is one of cosines, trained end to end.

    A row of X is an image, pixel by pixel. Layers: for each number of `filters` a convolution, a threshold and a pool;
    a dense layer; cosines (features_); softmax. Needs torch, on all workers and where the scheduler solves.
    """

    family: ClassVar[str] = "convolutional"
    FITTED: ClassVar[dict[str, Stored]] = {}
    _loss: ClassVar[Softmax] = Softmax()

    image_shape: Any = parameter(OF_CONVOLUTIONAL["image_shape"])
    n_components: int = parameter("n_components", 256, about="Number of cosines, or of units in their place.")
    _: KW_ONLY
    filters: Any = parameter(OF_CONVOLUTIONAL["filters"])
    filter_size: int = parameter(OF_CONVOLUTIONAL["filter_size"])
    dense: int = parameter(OF_CONVOLUTIONAL["dense"])
    layer: str = parameter(OF_CONVOLUTIONAL["layer"])
    learning_rate: float = parameter(OF_NETWORKS["learning_rate"], 0.05)
    momentum: float = parameter(OF_NETWORKS["momentum"], 0.9)
    momentum_start: float = parameter(OF_NETWORKS["momentum_start"], 0.9)
    patience: int = parameter(OF_NETWORKS["patience"], 5)
    max_iter: int = parameter("max_iter", 30, **EPOCHS)
    dtype: Any = parameter("dtype", doc="Of scores from features_; the layers are float32 whatever it is.")
    kernel: str = parameter("kernel", about="Kernel whose spectrum the frequencies begin with.")
    sigma: Any = parameter(LAYER_SIGMA)
    frequencies: str = parameter("frequencies")

    def _restored(self) -> None:
        super()._restored()
        self.n_features_in_ = self.features_.n_inputs

    def _check(self) -> None:
        super()._check()
        check_kernel(find_kernel(self.kernel))
        if self.layer != "cosine" and self.max_norm is not None:
            raise ValueError(
                f"max_norm={self.max_norm:g} is a cap on frequencies, and layer={self.layer!r} has none; leave it out"
            )
        if self.layer == "none" and self.decay:
            raise ValueError(f"decay={self.decay:g} is for the layer before the scores, and layer='none'; leave it out")

    def _check_inputs(self, X: Table) -> None:
        super()._check_inputs(X)
        shape = shape_of_images(self.image_shape, X)
        filters = tuple(map(int, self.filters))
        sizes = int(self.filter_size), int(self.dense)
        self._architecture = Architecture(shape, filters, *sizes, self.layer, int(self.n_components))

    def _map_cost(self, sizes: Sizes) -> MapCost:
        return network_cost(self._architecture)

    def _costs(self, sizes: Sizes, split: Split) -> Sequence[Cost]:
        outputs = 1 if sizes.outputs == 2 else max(1, sizes.outputs)
        gradients = (True,) if split.n_folds == 1 else (True, False)
        return [convolutional_cost(sizes, self._architecture, outputs, gradient).again() for gradient in gradients]

    def _plan_rows(
        self, engine: Engine, rows: Rows, dtype: np.dtype, split: Split, outputs: int, measure: bool = False
    ) -> Plan:  # fmt: skip
        """Images are kept, and layers computed, in float32."""
        return super()._plan_rows(engine, rows, np.dtype(np.float32), split, outputs, measure)

    def _drawing(
        self, given: Given, dtype: np.dtype, rng: np.random.Generator, progress: Progress
    ) -> Callable[[], Drawn]:  # fmt: skip
        def make() -> Drawn:
            program = MomentProgram(find_kernel("gaussian"), 1.0)
            moments = sum_small(program, [given.X, given.weight], ["X", "sample_weight"], progress)
            features = drawn_map(self._architecture, self.kernel, self.sigma, self.frequencies, moments, rng)
            return features, np.zeros(self.n_features_in_, int), int(rng.integers(2**62)), np.empty(0), None

        return make

    def _learn(self, run: Run, data: Prepared, given: Given) -> Linear:
        features: Any = data.features
        intercept = self._first_intercept(run, data, given, self._loss)
        start = first_parameters(features, intercept, np.random.default_rng([data.seed, 1]))
        network = ConvolutionalNetwork(features.of, start, float(self.decay), self._cap, bool(self.fit_intercept))
        values = self.learning_rate, self.momentum_start, self.momentum, self.momentum_ramp
        method = training_of(
            run.engine, run.rows, data, network, Rates(*(np.array([value], float) for value in values)),
            epochs=int(self.max_iter), batch_size=self.batch_size, patience=self._patience(data.split),
        )  # fmt: skip
        with own_settings():
            parameters = self._trained(run, method, data).parameters
        found = data.with_map(trained_map(features, parameters))  # type: ignore[arg-type]
        return Linear(found, parameters[COEF], parameters[INTERCEPT])

    def to_module(self) -> nn.Sequential:
        """The trained network as a torch module: images (n, colours, height, width), as they lie in X, to scores.

        Of two classes it has one score, whose sign decides; predict_proba is softmax of (-score, score).
        """
        of: Architecture = self.features_.of
        body = of.body().to_empty(device="cpu")
        body.load_state_dict({name.replace("_", "."): t for name, t in of.tensors(self.features_.arrays).items()})
        scores = nn.Linear(of.features, len(self.coef_))
        scores.load_state_dict({"weight": as_tensor(self.coef_), "bias": as_tensor(np.atleast_1d(self.intercept_))})
        return nn.Sequential(Standardise(self.features_.shift, self.features_.unit), *body, scores)


class Standardise(nn.Module):
    """(x - shift) / unit"""

    def __init__(self, shift: float, unit: float) -> None:
        super().__init__()
        self.shift, self.unit = shift, unit

    def forward(self, x: Any) -> Any:
        """What the first layer sees."""
        return (x - self.shift) / self.unit
