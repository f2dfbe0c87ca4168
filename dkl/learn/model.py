"""A fitted model: score(x) = psi(x)' coef + intercept - offset, block by block; the offset is that of calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dkl.cost import MapCost, Sizes
from dkl.features.kernel_inputs import prepare_inputs
from dkl.features.map import Blocks
from dkl.features.rows import Refusal
from dkl.kernels import Kernel
from dkl.kernels.values import kernel_values
from dkl.losses import Probabilistic

TILE = 2048
"""Rows whose features exist at the same time."""


@dataclass(frozen=True)
class Scores:
    """Scores of a block (rows, c) in float64; features are made in tiles and forgotten."""

    features: Blocks
    coef: np.ndarray  # (d, c), scaled, in the compute dtype
    intercept: np.ndarray  # (c,)
    offset: np.ndarray | float = 0.0  # (c,) if the model is calibrated

    def __call__(self, X: Any) -> np.ndarray:
        out = self.plain(X)
        out -= self.offset
        return out

    @property
    def sizes(self) -> Sizes:
        """Inputs and outputs of a block of any rows."""
        return Sizes(TILE, self.map_cost.columns, self.features.dtype, len(self.intercept))

    @property
    def map_cost(self) -> MapCost:
        """What the features cost."""
        return self.features.map.cost(self.features.dtype)

    def by_class(self, X: Any) -> np.ndarray:
        """Scores of each class before calibration."""
        return each_class(self.plain(X))

    def plain(self, X: Any) -> np.ndarray:
        """Scores before calibration."""
        n = X.shape[0]
        out = np.empty((n, len(self.intercept)))
        space = np.empty((min(n, TILE), self.features.map.n_features), self.features.dtype)
        for i in range(0, n, TILE):
            try:
                T = self.features.prepare(X[i : i + TILE])
            except Refusal as refusal:
                raise refusal.after(i) from None
            Psi = space[: T.shape[0]]
            self.features.write(T, Psi)
            out[i : i + TILE] = Psi @ self.coef
        out += self.intercept
        return out


@dataclass(frozen=True)
class Column:
    """The only score of each row."""

    scores: Scores

    def __call__(self, X: Any) -> np.ndarray:
        return self.scores(X)[:, 0]


@dataclass(frozen=True)
class Choice:
    """The class with the highest score; the sign decides between two."""

    scores: Scores
    classes: np.ndarray

    def __call__(self, X: Any) -> np.ndarray:
        return np.asarray(self.classes[chosen(self.scores(X))])


@dataclass(frozen=True)
class Probabilities:
    """p (rows, classes) of the scores before calibration, which are those that the loss was fitted with; or log p."""

    scores: Scores
    loss: Probabilistic
    log: bool = False

    def __call__(self, X: Any) -> np.ndarray:
        z = self.scores.plain(X)
        return self.loss.log_shares(z) if self.log else self.loss.shares(z)


@dataclass(frozen=True)
class ScoresAndProbabilities:
    """Scores after calibration, and beside them probabilities: (rows, outputs + classes)."""

    scores: Scores
    loss: Probabilistic

    def __call__(self, X: Any) -> np.ndarray:
        z = self.scores.plain(X)
        return np.hstack([z - self.scores.offset, self.loss.shares(z)])


def chosen(scores: np.ndarray) -> np.ndarray:
    """The number of the class with the highest score; of two classes, which have one score, by its sign."""
    return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)


def each_class(scores: np.ndarray) -> np.ndarray:
    """A score for each class; two classes, which have one score s, get -s and s."""
    return np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores


@dataclass(frozen=True)
class Transform:
    """The features themselves."""

    features: Any  # blocks of a map, which give it whole

    def __call__(self, X: Any) -> np.ndarray:
        return np.asarray(self.features.transform(X))


@dataclass(frozen=True)
class DualScores:
    """Scores k(x, X) a + b0 of a block (rows, c)."""

    kernel: Kernel
    skew: float
    sigma: np.ndarray
    T: np.ndarray  # (n, m), of the rows of the fit
    coef: np.ndarray  # (n, c)
    intercept: np.ndarray  # (c,)

    def __call__(self, X: Any) -> np.ndarray:
        T = prepare_inputs(X, self.kernel, self.skew, np.dtype(np.float64))
        T = T.toarray() if hasattr(T, "toarray") else T
        return np.asarray(kernel_values(self.kernel, self.sigma, T, self.T) @ self.coef + self.intercept)
