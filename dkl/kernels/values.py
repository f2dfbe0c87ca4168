"""Kernel matrices k(A, B) by tiles of rows, in the dtype of the rows.

A radial kernel, a function of |sigma (a - b)|, takes one matrix product in float64. A product over the inputs, or an
exponentiated sum of histogram distances, takes one sweep per input over tiles that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dkl.kernels.additive import ADDITIVE
from dkl.kernels.kernel import Kernel

TILE = 512
"""Rows whose temporaries exist at the same time."""
CACHED = 2**16
"""Entries of a tile that is swept once per input."""
SAME_ROW_ULPS = 32.0
"""A squared distance below this many ulps of the sum of squared norms is rounding error: the rows are equal."""


def is_radial(kernel: Kernel) -> bool:
    """Whether the kernel is a function of |sigma delta|; the gaussian is one, and also a product."""
    return kernel.isotropic or kernel.name == "gaussian"


def kernel_values(kernel: Kernel, sigma: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(n, n') matrix of kernel values between rows A (n, m) and B (n', m) in the kernel's variables."""
    dtype = np.result_type(A, B, np.float32)
    out = np.empty((len(A), len(B)), dtype)
    centre = B.mean(axis=0, dtype=np.float64).astype(dtype) if kernel.additive is None else dtype.type(0)
    A, B, scale = A - centre, B - centre, sigma.astype(dtype)
    if is_radial(kernel):
        A, B = A.astype(np.float64, copy=False), B * sigma  # |a|^2 + |b|^2 - 2 a'b cancels, so float32 is not enough
        for rows in tiles(len(A)):
            out[rows] = kernel.profile(distances(A[rows] * sigma, B))
        return out
    if kernel.additive is None:
        A, B = A * scale, B * scale
    inputs = np.ascontiguousarray(B.T)
    for rows in tiles(len(A), max(1, CACHED // max(1, len(B)))):
        out[rows] = _sweep(kernel, scale, A[rows], inputs)
    return out


def _sweep(kernel: Kernel, sigma: np.ndarray, A: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    """One sweep per input over A (rows, m) and the other rows, transposed (m, n')."""
    shape = len(A), inputs.shape[1]
    if kernel.additive is not None:
        distance, exponent = ADDITIVE[kernel.additive].distance, np.zeros(shape, A.dtype)
        for j, s in enumerate(sigma):
            step = distance(A[:, j, None], inputs[j])
            step *= -s * s
            exponent += step
        return np.exp(exponent, out=exponent)
    product = np.ones(shape, A.dtype)
    for j, column in enumerate(inputs):
        gap = A[:, j, None] - column
        product *= kernel.profile(np.abs(gap, out=gap))
    return product


def distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """|a - b| by one matrix product; equal rows have distance exactly zero."""
    square = A @ B.T
    square *= -2
    size = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1)
    square += size
    size *= SAME_ROW_ULPS * np.finfo(size.dtype).eps
    square[square <= size] = 0.0
    return np.sqrt(square, out=square)


def tiles(n: int, size: int | None = None) -> Iterator[slice]:
    """Slices of `size` rows (default TILE)."""
    size = size or TILE
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
