"""Mean and centred square sum of columns: (w, mean, M2) records that merge without cancellation.

M2 = M2_a + M2_b + (w_a w_b / w) (mean_b - mean_a)^2

A spread of less than 1e-12 of the mean is rounding: of the mean itself, which is a sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-12
"""Spread over mean below which columns are constant."""


class Spread(NamedTuple):
    """Weight, mean and centred square sum of each column."""

    weight: float
    mean: np.ndarray
    m2: np.ndarray

    def __add__(self, other: Spread) -> Spread:  # type: ignore[override]
        w = self.weight + other.weight
        if w == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.weight / w)
        return Spread(w, mean, self.m2 + other.m2 + step * step * (self.weight * (other.weight / w)))

    @property
    def variance(self) -> np.ndarray:
        """Of each column, 0 where it is rounding."""
        if not self.weight:
            return np.zeros_like(self.m2)
        variance = self.m2 / self.weight
        return np.where(np.sqrt(variance) > ROUNDING * np.abs(self.mean), variance, 0.0)


def spread_of(columns: np.ndarray, weight: np.ndarray) -> Spread:
    """The record of a block (rows, columns)."""
    total, none = float(weight.sum()), np.zeros(columns.shape[1])
    if not total:
        return Spread(0.0, none, none)
    mean = columns.T @ weight / total
    centred = columns - mean
    centred *= centred
    return Spread(total, mean, weight @ centred)
