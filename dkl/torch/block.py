"""Loss and gradients of the images of one block, by torch's autograd:

    loss = sum w l(z, y),   l = log sum_j exp(z_j) - z_y,   z = psi(x) coef + intercept

float32 inside, a few images at a time; their sums in float64, in the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from dkl.torch.architecture import COEF, INTERCEPT, Architecture, Arrays, as_tensor, paired
from dkl.torch.threads import one_torch_thread

IMAGES = 64
"""Images whose layers exist at the same time."""


class BlockTotal(NamedTuple):
    """Of the rows of one block."""

    loss: float
    wrong: float  # weight of the rows whose class was not chosen
    weight: float
    gradients: Arrays  # empty, if none were asked for


@dataclass(frozen=True)
class TorchParameters:
    """The network with its parameters as tensors: made once by each thread for a pass."""

    of: Architecture
    layers: dict[str, torch.Tensor]
    coef: torch.Tensor
    intercept: torch.Tensor

    @classmethod
    def of_arrays(cls, of: Architecture, arrays: Arrays) -> TorchParameters:
        """Copies of the arrays, of which gradients may be asked."""
        found = cls(of, of.tensors(arrays), as_tensor(arrays[COEF]), as_tensor(arrays[INTERCEPT]))
        for tensor in found.leaves:
            tensor.requires_grad_()
        return found

    @property
    def leaves(self) -> list[torch.Tensor]:
        """Every parameter, in the order of `names`."""
        return [*self.layers.values(), self.coef, self.intercept]

    @property
    def names(self) -> list[str]:
        return [*self.of.shapes, COEF, INTERCEPT]

    def scores(self, images: torch.Tensor) -> torch.Tensor:
        """(n, c)"""
        return self.of.apply(self.layers, images) @ self.coef + self.intercept

    def total(self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, gradient: bool) -> BlockTotal:
        """Sums over the rows of a block."""
        ones = np.ones(len(codes)) if weight is None else weight
        gradients = [np.zeros(leaf.shape) for leaf in self.leaves] if gradient else []
        loss = wrong = 0.0
        with one_torch_thread(), torch.set_grad_enabled(gradient):
            for i in range(0, len(codes), IMAGES):
                rows = slice(i, i + IMAGES)
                scores = paired(self.scores(self.of.images(X[rows])))
                y = torch.tensor(codes[rows], dtype=torch.int64)
                each = cross_entropy(scores, y, reduction="none")
                if gradient:
                    found = torch.autograd.grad((each * as_tensor(ones[rows])).sum(), self.leaves)
                    for total, part in zip(gradients, found, strict=True):
                        total += part.numpy()
                loss += float(ones[rows] @ each.detach().numpy().astype(np.float64))
                wrong += float(ones[rows] @ (scores.detach().argmax(dim=1) != y).numpy())
        by_name = dict(zip(self.names, gradients, strict=True)) if gradient else {}
        return BlockTotal(loss, wrong, float(ones.sum()), by_name)
