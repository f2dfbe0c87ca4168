"""Weights of a fixed map by any loss (losses/): the objective and its gradient from one pass.

    J(B, b) = 1/w [sum_i w_i l(B' psi_i + b, y_i) + alpha / 2 |B|^2],   w = sum_i w_i

Weights are one array (d + 1, c): the rows of B, and b last. The intercept is not penalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dkl.losses import Loss
from dkl.prepare.prepared import Prepared
from dkl.sums.curvature import CurvatureProgram, is_joint
from dkl.sums.gram import GramProgram
from dkl.sums.line_search import LineProgram
from dkl.sums.losses import LossProgram, LossSums


class Slope(NamedTuple):
    """The objective at some weights, and its gradient in their shape."""

    value: float
    gradient: np.ndarray


@dataclass(frozen=True)
class PenalisedLoss:
    """The objective of one loss and one alpha, on all rows."""

    gram: GramProgram
    loss: Loss
    alpha: float
    fit_intercept: bool = True

    @classmethod
    def of(cls, data: Prepared, loss: Loss, alpha: float, fit_intercept: bool) -> PenalisedLoss:
        """That of prepared data; parameters of the loss are in the units of y."""
        return cls(data.in_units_of_y().gram(data.split), loss, float(alpha), bool(fit_intercept))

    @property
    def zero(self) -> np.ndarray:
        """Weights of zero."""
        return np.zeros((self.gram.features.map.n_features + 1, self.gram.targets.n_outputs))

    @property
    def lam(self) -> float:
        """alpha in the unit of the row weights, over all of them."""
        return self.alpha / self.gram.targets.weight_unit / self.gram.targets.weight

    @property
    def most_curved(self) -> float:
        """A bound of the eigenvalues of J's second derivative: |psi|^2 <= 2 d scale^2."""
        features, outputs = self.gram.features.map, self.gram.targets.n_outputs
        row = 2 * features.n_features * features.scale**2 + self.fit_intercept
        return self.loss.most_curved(outputs) * row + self.lam

    @property
    def is_joint(self) -> bool:
        """Whether a Newton step has one quadratic of all outputs."""
        return is_joint(self.loss, self.gram.features.map.n_features, self.gram.targets.n_outputs)

    def program(self, weights: np.ndarray) -> LossProgram:
        """The pass that scores all rows with these weights."""
        coef = self.gram.features.map.scale * weights[:-1]
        return LossProgram(self.gram, coef[None], weights[None, -1], (self.loss,))

    def curvature(self, weights: np.ndarray, floor: float) -> CurvatureProgram:
        """The pass of one Newton step from these weights."""
        coef = self.gram.features.map.scale * weights[:-1]
        return CurvatureProgram(self.gram, coef, weights[-1], self.loss, floor, self.is_joint)

    def along(self, weights: np.ndarray, step: np.ndarray) -> LineProgram:
        """The pass that tries several lengths of a step."""
        scale = self.gram.features.map.scale
        return LineProgram(self.gram, scale * weights[:-1], weights[-1], scale * step[:-1], step[-1], self.loss)

    def slope(self, sums: LossSums, weights: np.ndarray) -> Slope:
        """J and its gradient at the weights of the pass."""
        total, penalty = self.gram.targets.weight, self.lam * weights
        penalty[-1] = 0.0
        pulled = np.vstack([self.gram.features.map.scale * sums.slope[0].T, self.fit_intercept * sums.slope_sum])
        value = float(sums.loss.sum()) / total + 0.5 * float((penalty * weights).sum())
        return Slope(value, pulled / total + penalty)

    def linear(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coef, intercept) for the values of y as they were given."""
        return weights[:-1], weights[-1] + self.gram.targets.shift
