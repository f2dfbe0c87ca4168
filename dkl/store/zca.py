"""ZCA whitening: inputs without correlation, as close to those that were given as such inputs can be.

    z = (x - mean) U (S + eps s I)^(-1/2) U',     U S U' the covariance of the training rows, s = trace(S) / m

One pass sums the covariance. eps is in units of the mean variance s, so any unit of x gives the same directions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dkl.sources.batch import SourceError
from dkl.store.column_constants import TINY
from dkl.store.equal_blocks import EqualBlocks
from dkl.sums.exact_product import Digits, digits_of, exact_product

MOST_INPUTS = 8192
"""Inputs beyond which the matrix (512 MiB here) and its eigenvectors take too long."""
MATRICES, TILES = 6, 2**26
"""Matrices of the size of W that exist at once (sums, eigenvectors, LAPACK's work space); bytes of tiles of rows."""


def zca_bytes(inputs: int) -> int:
    """Peak bytes of the matrices of so many inputs, with the rows that they are applied to."""
    return 8 * MATRICES * inputs * inputs + TILES


def check_inputs(name: str, inputs: int, room: int | None) -> None:
    """Refuse more inputs than there is time or memory for; room=None: any memory."""
    need = zca_bytes(inputs)
    if inputs > MOST_INPUTS:
        raise SourceError(
            f"zca of the {inputs:,} inputs of {name!r} needs matrices of {inputs:,} x {inputs:,} ({need:,} bytes); it "
            f"takes at most {MOST_INPUTS:,} inputs, so use smaller images (--resize 32x32), fewer columns (--drop), or "
            "standard"
        )
    if room is not None and need > room:
        raise SourceError(
            f"zca of the {inputs:,} inputs of {name!r} needs {need:,} bytes, but {room:,} are free; use smaller images "
            "(--resize 32x32), fewer columns (--drop), or standard"
        )


@dataclass(frozen=True)
class Whitening:
    """Mean and W of so many inputs; `values` is None if only their digest is known."""

    inputs: int
    digest: str
    values: np.ndarray | None = field(default=None, compare=False, repr=False)  # (m + 1, m): the mean, then W

    @classmethod
    def of(cls, mean: np.ndarray, W: np.ndarray) -> Whitening:
        """The record of a mean and a matrix."""
        values = np.vstack([mean, W])
        return cls(len(mean), digest_of(values), values)

    def with_values(self, values: np.ndarray | None) -> Whitening:
        """The same with its numbers, if they are those that the digest is of."""
        if values is None:
            return self
        if values.shape != (self.inputs + 1, self.inputs) or digest_of(values) != self.digest:
            raise ValueError(
                f"the whitening matrix {values.shape} is not that of the recipe ({self.inputs} inputs, digest "
                f"{self.digest[:12]}); copy the data set or the model again, or ingest the source again"
            )
        return Whitening(self.inputs, self.digest, values)

    @cached_property
    def _digits(self) -> Digits:
        assert self.values is not None
        return digits_of(self.values[1:], self.inputs, 0)

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Whitened rows; the bits of a row do not depend on the others."""
        if self.values is None:
            raise ValueError(
                f"the recipe lacks its whitening matrix (digest {self.digest[:12]}); give the path of the data set or "
                "of the model"
            )
        return exact_product(X - self.values[0], self._digits)


def digest_of(values: np.ndarray) -> str:
    """sha256 of the bytes of a matrix."""
    return hashlib.sha256(np.ascontiguousarray(values, "<f8").tobytes()).hexdigest()


class Covariance(EqualBlocks):
    """Count, mean and centred products of columns: blocks merge without cancellation."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.count, self.mean, self.square = 0, np.zeros(width), np.zeros((width, width))

    def _add(self, X: np.ndarray) -> None:
        mean = X.sum(axis=0) / len(X)
        centred = X - mean
        self._merge(len(X), mean, centred.T @ centred)

    def merge(self, after: Covariance) -> None:
        """Add the sums of the rows that follow."""
        self._merge(after.count, after.mean, after.square)

    def _merge(self, n: int, mean: np.ndarray, square: np.ndarray) -> None:
        self.square += square
        step, share = mean - self.mean, n / (self.count + n)
        self.square += np.outer(step * (self.count * share), step)
        self.mean += step * share
        self.count += n

    def whitening(self, eps: float) -> Whitening:
        """The mean and (S + eps s I)^(-1/2); inputs that do not vary at all are only centred."""
        variance = float(np.trace(self.square)) / (max(1, self.count) * len(self.mean))
        if not np.isfinite(variance):
            raise SourceError(
                f"zca: the variance of the inputs is {variance}, beyond float64; put minmax or standard in front of it"
            )
        if variance <= TINY:
            return Whitening.of(self.mean, np.eye(len(self.mean)))
        values, root = np.linalg.eigh(self.square / (self.count * variance))
        root *= (np.maximum(values, 0.0) + eps) ** -0.25
        W = root @ root.T
        W /= np.sqrt(variance)
        return Whitening.of(self.mean, W)
