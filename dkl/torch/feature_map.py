"""The trained layers before the scores as a feature map: images in, the numbers that scores are made of out.

So predictions, probabilities, evaluation, saving and the command line see one more linear model of features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import DTypeLike

from dkl.checks import check_choice, check_positive
from dkl.cost import MapCost
from dkl.features.map import Arrays, Fixed, FixedBlocks
from dkl.features.rows import dense, finite_inputs
from dkl.features.stored import KINDS, Plain, Values
from dkl.options.convolutional import LAYERS
from dkl.torch.architecture import Architecture
from dkl.torch.block import IMAGES
from dkl.torch.threads import one_torch_thread


def network_cost(of: Architecture) -> MapCost:
    """What the layers before the scores cost, known before they are drawn."""
    return MapCost(
        features=of.features,
        columns=of.inputs,
        parameter_bytes=(8 + 4) * of.size,
        flops=of.flops,
        cosines=of.features if of.layer == "cosine" else 0,
        scratch_bytes=4 * IMAGES * of.activations,
    )


@dataclass(frozen=True)
class ConvolutionalMap(Fixed):
    """The layers and their parameters."""

    of: Architecture
    arrays: Mapping[str, np.ndarray]
    shift: float = 0.0  # images less this, over `unit`, are what the first layer sees
    unit: float = 1.0
    scale: float = 1.0
    kind: ClassVar[str] = "convolutional"

    def __post_init__(self) -> None:
        for name, shape in self.of.shapes.items():
            if self.arrays[name].shape != shape:
                raise ValueError(f"{name} has shape {self.arrays[name].shape}; its network needs {shape}")

    @property
    def n_inputs(self) -> int:
        return self.of.inputs

    @property
    def n_columns(self) -> int:
        return self.of.inputs

    @property
    def n_features(self) -> int:
        return self.of.features

    @property
    def column_group(self) -> np.ndarray:
        """One group: every layer mixes."""
        return np.zeros(self.n_features, int)

    def cost(self, dtype: Any) -> MapCost:
        """What the map costs; it is computed in float32, whatever the rows are."""
        return network_cost(self.of)

    def at(self, dtype: DTypeLike) -> ConvolutionalBlocks:
        """The map ready to be applied."""
        return ConvolutionalBlocks(self, np.dtype(dtype))

    def stored(self) -> tuple[dict[str, Any], Arrays]:
        """The sizes of the layers as plain values, and the arrays of parameters."""
        arrays: Arrays = {}
        for name, shape in self.of.shapes.items():
            arrays[f"network_{name}"] = tuple(f"{name}_{i}" for i in range(len(shape))), self.arrays[name]
        return {"map": {"kind": self.kind, "shift": self.shift, "unit": self.unit, **asdict(self.of)}}, arrays


@dataclass(frozen=True)
class ConvolutionalBlocks(FixedBlocks):
    """The map applied to blocks of rows."""

    map: ConvolutionalMap
    dtype: np.dtype

    def prepare(self, X: Any) -> np.ndarray:
        """Rows as the first layer sees them, dense float32; entries that are not finite are refused."""
        T = dense(finite_inputs(X, np.dtype(np.float32)))
        return np.asarray((T - np.float32(self.map.shift)) / np.float32(self.map.unit))

    def write(self, T: np.ndarray, out: np.ndarray, slope: np.ndarray | None = None) -> None:
        """Features of prepared rows into out (rows, d)."""
        of = self.map.of
        with one_torch_thread(), torch.no_grad():
            layers = of.tensors(self.map.arrays)
            for i in range(0, len(T), IMAGES):
                rows = slice(i, i + IMAGES)
                out[rows] = of.apply(layers, of.images(T[rows])).numpy()


def restored(about: Plain, arrays: Values, params: Plain | None) -> ConvolutionalMap:
    """The map that `stored` described."""
    said = about["map"]
    height, width, colours = map(int, said["image_shape"])
    filters, sizes = tuple(map(int, said["filters"])), (int(said["filter_size"]), int(said["dense"]))
    layer = check_choice("layer", said["layer"], LAYERS)
    of = Architecture((height, width, colours), filters, *sizes, layer, int(said["components"]))
    values = {name: arrays[f"network_{name}"] for name in of.shapes}
    return ConvolutionalMap(of, values, float(said["shift"]), check_positive("unit", said["unit"]))


KINDS[ConvolutionalMap.kind] = restored
