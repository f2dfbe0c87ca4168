"""A convolutional network with a layer of cosines: what it is made of, as a torch module and as named numpy arrays.

    image -> (convolution - relu - max pool) for each number of filters -> dense - relu -> cosines -> scores

Parameters are named as torch names them, with _ for its dots, and have torch's shapes. `coef` (d, c) and `intercept`
(c,) make scores of the d features before them. One score z of two classes stands for the pair (-z, z).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from dkl.torch.cosine import CosineLayer, draw_map

COEF, INTERCEPT = "coef", "intercept"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Architecture:
    """Sizes of the layers before the scores; image_shape is (height, width, colours), as rows hold their pixels."""

    image_shape: tuple[int, int, int]
    filters: tuple[int, ...]
    filter_size: int
    dense: int
    layer: str
    components: int

    def __post_init__(self) -> None:
        if min(self.pooled) < 1:
            height, width, _ = self.image_shape
            raise ValueError(
                f"filters={self.filters} halve an image of {height} x {width} pixels {len(self.filters)} times, which "
                f"leaves none; use at most {int(np.log2(min(height, width)))} of them"
            )

    @property
    def inputs(self) -> int:
        """Numbers of an image."""
        return prod(self.image_shape)

    @property
    def pooled(self) -> tuple[int, int]:
        """Height and width after the last pool."""
        height, width, _ = self.image_shape
        return height >> len(self.filters), width >> len(self.filters)

    @property
    def features(self) -> int:
        """Numbers that scores are made of."""
        return self.dense if self.layer == "none" else self.components

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of every parameter before the scores."""
        k, before = self.filter_size, (self.image_shape[2], *self.filters)
        found: dict[str, tuple[int, ...]] = {}
        for i, filters in enumerate(self.filters):
            found |= {f"conv{i}_weight": (filters, before[i], k, k), f"conv{i}_bias": (filters,)}
        found |= {"dense_weight": (self.dense, prod(self.pooled) * before[-1]), "dense_bias": (self.dense,)}
        if self.layer == "cosine":
            found |= {"cosine_omega": (self.dense, self.components), "cosine_phase": (self.components,)}
        elif self.layer == "relu":
            found |= {"hidden_weight": (self.components, self.dense), "hidden_bias": (self.components,)}
        return found

    @property
    def size(self) -> int:
        """How many numbers that are."""
        return sum(map(prod, self.shapes.values()))

    @property
    def flops(self) -> float:
        """Of one image, forwards."""
        (height, width, _), total = self.image_shape, 0.0
        for name, shape in self.shapes.items():
            if name.startswith("conv") and len(shape) > 1:
                total += 2.0 * prod(shape) * height * width
                height, width = height // 2, width // 2
            elif len(shape) == 2:
                total += 2.0 * prod(shape)
        return total

    @property
    def activations(self) -> int:
        """Numbers that one image leaves in all layers: before and after each relu, and pooled, with its position."""
        (height, width, colours), total = self.image_shape, 2 * self.inputs
        for filters in self.filters:
            total += 2 * height * width * max(filters, colours)
            height, width, colours = height // 2, width // 2, filters
            total += 3 * height * width * filters  # positions are int64
        return total + 2 * self.dense + 3 * self.features

    def body(self) -> nn.Sequential:
        """The layers as a torch module, without values of their own; its names are ours with dots for _."""
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        before = (self.image_shape[2], *self.filters)
        with torch.device("meta"):
            for i, filters in enumerate(self.filters):
                layers[f"conv{i}"] = nn.Conv2d(before[i], filters, self.filter_size, padding="same")
                layers[f"conv{i}_relu"], layers[f"pool{i}"] = nn.ReLU(), nn.MaxPool2d(2)
            layers["flat"] = nn.Flatten()
            layers["dense"] = nn.Linear(prod(self.pooled) * before[-1], self.dense)
            layers["dense_relu"] = nn.ReLU()
            if self.layer == "cosine":
                layers["cosine"] = CosineLayer(self.dense, self.components, sigma=0.0, frequencies="iid", seed=0)
            elif self.layer == "relu":
                layers["hidden"], layers["hidden_relu"] = nn.Linear(self.dense, self.components), nn.ReLU()
        return nn.Sequential(layers)

    def tensors(self, arrays: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
        """The parameters before the scores, copied into memory that torch has aligned."""
        return {name: as_tensor(arrays[name]) for name in self.shapes}

    def apply(self, p: Mapping[str, torch.Tensor], images: torch.Tensor) -> torch.Tensor:
        """Features (n, d) of images (n, colours, height, width): what `body` computes, as a function of its parameters.

        A module that threads share cannot take parameters of each of them.
        """
        z = images
        for i in range(len(self.filters)):
            z = F.conv2d(z, p[f"conv{i}_weight"], p[f"conv{i}_bias"], padding=self.filter_size // 2)
            z = F.max_pool2d(F.relu(z), 2)
        z = F.relu(F.linear(z.flatten(1), p["dense_weight"], p["dense_bias"]))
        if self.layer == "cosine":
            return (2.0 / self.components) ** 0.5 * torch.cos(z @ p["cosine_omega"] + p["cosine_phase"])
        return z if self.layer == "none" else F.relu(F.linear(z, p["hidden_weight"], p["hidden_bias"]))

    def images(self, X: np.ndarray) -> torch.Tensor:
        """Rows (n, inputs) as images (n, colours, height, width)."""
        return as_tensor(X.reshape(-1, *self.image_shape)).permute(0, 3, 1, 2).contiguous()

    def draw(self, kernel: str, sigma: Any, frequencies: str, rng: np.random.Generator) -> Arrays:
        """Where training begins: He's normal draws, no bias, and the spectrum of a kernel in the layer of cosines."""
        found: Arrays = {}
        for name, shape in self.shapes.items():
            if name == "cosine_omega":
                of = draw_map(self.dense, self.components, kernel, sigma, frequencies, "phase", rng)
                found |= {name: of.sigma[:, None] * of.unit, "cosine_phase": 2 * np.pi * of.phase}
            elif name.endswith("weight"):
                found[name] = rng.standard_normal(shape) * np.sqrt(2.0 / prod(shape[1:]))
            elif name.endswith("bias"):
                found[name] = np.zeros(shape)
        return found


def as_tensor(values: np.ndarray) -> torch.Tensor:
    """A float32 copy: torch's own memory is aligned alike everywhere, and so are the bits of its products."""
    return torch.tensor(np.ascontiguousarray(values, np.float32))


def paired(scores: torch.Tensor) -> torch.Tensor:
    """A score for each class: of one score z the pair (-z, z)."""
    return torch.cat([-scores, scores], dim=1) if scores.shape[1] == 1 else scores
