"""X W with the same bits for any rows at a time, threads and machine: a product of whole numbers is exact.

    X = (A + a 2^-b) u_i,   W = (B + b' 2^-b) v_j       A, a, B, b' whole numbers below 2^b,   m 2^2b <= 2^53
    X W = u_i v_j (A B + (A b' + a B) 2^-b)             to about m 2^-2b of max |x_i| max |w_j|

BLAS sums in an order that depends on the shape of a block and on its threads. Here every sum is a whole number that
float64 holds, so no order changes it. The powers of two u (of each row) and v (of each column) change no digit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

MANTISSA = 53
LEAST_EXPONENT = -900
"""Rows and columns that are smaller lose digits, so that no power of two underflows."""


class Digits(NamedTuple):
    """A matrix as whole numbers: (high + low 2^-bits) unit, with a unit for each row or for each column."""

    high: np.ndarray
    low: np.ndarray
    unit: np.ndarray
    bits: int


def digits_of(matrix: np.ndarray, terms: int, axis: int) -> Digits:
    """The digits of a matrix whose products have so many terms; units run along the other axis than `axis`."""
    bits = (MANTISSA - math.ceil(math.log2(max(1, terms)))) // 2
    size = np.abs(matrix).max(axis=axis, keepdims=True, initial=0.0)
    unit = np.ldexp(1.0, np.maximum(np.frexp(size)[1], LEAST_EXPONENT) - bits)
    scaled = matrix / unit
    high = np.rint(scaled)
    return Digits(high, np.rint((scaled - high) * 2.0**bits), unit, bits)


def exact_product(X: np.ndarray, W: Digits) -> np.ndarray:
    """X W for rows X (n, m); a row's bits do not depend on the others."""
    left = digits_of(X, len(W.high), 1)
    low: np.ndarray = left.high @ W.low
    low += left.low @ W.high
    low *= 2.0**-W.bits
    low += left.high @ W.high
    low *= left.unit
    low *= W.unit
    return low
