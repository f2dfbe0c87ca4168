"""What a loss is to a pass and to a solver, and what losses of single scores have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dkl.checks import check_positive


class ScoreSizes(NamedTuple):
    """What is known before a pass: the largest |score|, the sum of weights, and the sums of w |y| and w y^2."""

    score: float
    weight: float
    outputs: int
    absolute: Any = 0.0  # of all outputs alike, or by output
    square: Any = 0.0


class Loss(Protocol):
    """A frozen record of the parameters of a loss."""

    @property
    def is_class(self) -> bool:
        """Whether y are codes of classes."""

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each row (rows,)."""

    def slope(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """dl/dz, in the shape of z."""

    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The diagonal of d2l/dz2, in the shape of z."""

    def curved(self, z: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
        """d2l/dz2 times v, in the shape of z."""

    def joins(self, outputs: int) -> bool:
        """Whether scores of a row share a loss; the rows of d2l/dz2 then add up to zero."""

    def shared(self, z: np.ndarray) -> np.ndarray:
        """u with d2l/dz_j dz_k = -u_j u_k for j != k, in the shape of z; zeros, if scores share nothing."""

    def steepest(self, outputs: int) -> float:
        """The most that |dl/dz| of one score can be; inf, if there is no bound."""

    def most_curved(self, outputs: int) -> float:
        """The largest eigenvalue that d2l/dz2 of a row can have."""

    def most_value(self, sizes: ScoreSizes) -> float:
        """A bound of the weighted sum of values."""

    def most_slope(self, sizes: ScoreSizes) -> np.ndarray:
        """A bound of the weighted sum of |dl/dz|: one for all scores, or one for each (outputs,)."""


@runtime_checkable
class Probabilistic(Protocol):
    """A loss whose scores stand for probabilities of classes."""

    def shares(self, z: np.ndarray) -> np.ndarray:
        """The probability of each class (rows, classes)."""

    def log_shares(self, z: np.ndarray) -> np.ndarray:
        """Their logarithms, which stay finite where a probability is too small for a number."""


class OfOneScore(ABC):
    """A loss that is a sum of a function of one number for each score: its second derivative is a diagonal."""

    is_class: ClassVar[bool]

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            check_positive(one.name, getattr(self, one.name))

    @abstractmethod
    def at(self, x: np.ndarray) -> np.ndarray:
        """The function."""

    @abstractmethod
    def slope_at(self, x: np.ndarray) -> np.ndarray:
        """Its derivative."""

    @abstractmethod
    def curvature_at(self, x: np.ndarray) -> np.ndarray:
        """Its second derivative."""

    @abstractmethod
    def curvature(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The diagonal."""

    @abstractmethod
    def steepest(self, outputs: int) -> float:
        """The most that its derivative can be."""

    @abstractmethod
    def most_curved(self, outputs: int) -> float:
        """The most that its second derivative can be."""

    def curved(self, z: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The diagonal times v."""
        return np.asarray(self.curvature(z, y) * v)

    def joins(self, outputs: int) -> bool:
        """No."""
        return False

    def shared(self, z: np.ndarray) -> np.ndarray:
        """Zeros."""
        return np.zeros_like(z)

    def most_slope(self, sizes: ScoreSizes) -> np.ndarray:
        """The steepest slope of all rows."""
        return np.asarray(self.steepest(sizes.outputs) * sizes.weight)


def is_wrong(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether the class with the highest score is another one."""
    chosen = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.asarray(chosen != codes)
