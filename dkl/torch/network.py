"""A convolutional network as the method that trains networks sees it (learn/network.py): parameters, and their sums.

torch gives the gradient of a block in float32. No bound of it is known before the pass, so gradients are added in a
fixed tree over the blocks of the step (sums/tree.py): any number of workers and threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import Cost, Sizes
from dkl.sums.networks import NetworkTotal, Parameters, TreeSums
from dkl.torch.architecture import COEF, INTERCEPT, Architecture
from dkl.torch.block import IMAGES, TorchParameters

BACKWARD = 2.0
"""What the way back costs, in units of the way forward."""
LIBRARY = 288 * 2**20
"""Bytes of torch itself, which a worker loads with its first block, and of what it keeps for the layers."""
SUBTREES = 4
"""Sums of a task that wait for their neighbours, about."""


def convolutional_cost(sizes: Sizes, of: Architecture, outputs: int, gradient: bool = True) -> Cost:
    """What a pass costs: the layers of a few images, and float64 gradients of every parameter."""
    numbers = of.size + (of.features + 1) * outputs
    return Cost(
        "training" if gradient else "validation",
        rows_wanted=IMAGES,
        features=of.features,
        columns=of.inputs,
        row_bytes=sizes.target_bytes,
        thread_bytes=4 * IMAGES * of.activations * (1 + gradient) + (2 * 4 + 8) * numbers * gradient + 4 * numbers,
        sums_bytes=8 * (SUBTREES * numbers * gradient + 3),
        parameter_bytes=LIBRARY + 8 * numbers,
        flops=(1 + BACKWARD * gradient) * (of.flops + 2.0 * of.features * outputs),
        cosines=(1 + gradient) * of.features * (of.layer == "cosine"),
    )


@dataclass(frozen=True)
class ConvolutionalProgram:
    """The pass: the layers and their parameters in, TreeSums out."""

    of: Architecture
    parameters: Parameters
    gradient: bool = True
    task = "network"
    rows_wanted = IMAGES

    def cost(self) -> Cost:
        """What the pass costs."""
        outputs = self.parameters[COEF].shape[1]
        sizes = Sizes(self.rows_wanted, self.of.inputs, np.dtype(np.float32), outputs, True)
        return convolutional_cost(sizes, self.of, outputs, self.gradient)

    def start(self) -> TreeSums:
        """Zero."""
        return TreeSums()

    def workspace(self) -> TorchParameters:
        """The parameters as tensors."""
        return TorchParameters.of_arrays(self.of, self.parameters)

    def add(self, sums: TreeSums, workspace: TorchParameters, block: int, start: int, data: tuple[Any, ...]) -> None:
        """sums += prepared rows (X, codes, weight)."""
        X, codes, weight = data
        if not len(codes):
            return
        found = workspace.total(X, codes, weight, self.gradient)
        loss, wrong = np.array([found.loss]), np.array([found.wrong])
        sums.tree.add(block, NetworkTotal(loss, wrong, found.weight, found.gradients))


@dataclass(frozen=True)
class ConvolutionalNetwork:
    """One network, the parameters that training begins with, and what they may become."""

    of: Architecture
    start: Parameters
    decay: float = 0.0  # of what is behind the dense layer: frequencies, or the weights in their place
    cap: float = np.inf  # the largest norm of a frequency, in radians
    fit_intercept: bool = True
    count = 1

    @property
    def owner(self) -> Mapping[str, np.ndarray]:
        """All numbers belong to the one network."""
        return {name: np.zeros((1,) * values.ndim, int) for name, values in self.start.items()}

    @property
    def decays(self) -> tuple[str, ...]:
        """Parameters that decay."""
        return tuple(name for name in ("cosine_omega", "hidden_weight") if name in self.start)

    def program(self, parameters: Parameters, gradient: bool = True) -> ConvolutionalProgram:
        """The pass at these parameters."""
        return ConvolutionalProgram(self.of, parameters, gradient)

    def bent(self, parameters: Parameters, gradients: Parameters) -> Parameters:
        """Gradients with those of the decay; an intercept that is not fitted stays."""
        if not self.fit_intercept:
            gradients[INTERCEPT] = np.zeros_like(gradients[INTERCEPT])
        for name in self.decays if self.decay else ():
            gradients[name] = gradients[name] + self.decay * parameters[name]
        return gradients

    def allowed(self, parameters: Parameters) -> Parameters:
        """Frequencies no longer than the cap."""
        if "cosine_omega" in parameters and np.isfinite(self.cap):
            norm = np.linalg.norm(parameters["cosine_omega"], axis=0)
            far = norm > self.cap
            if far.any():
                parameters["cosine_omega"] = parameters["cosine_omega"] * np.where(far, self.cap / norm, 1.0)
        return parameters

    def taken(self, candidates: np.ndarray) -> ConvolutionalNetwork:
        """The network itself: there is no other."""
        return self
