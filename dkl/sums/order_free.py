"""Sums that do not depend on their order, bit for bit.

If it is known before the pass that |total| <= bound, every contribution is rounded once to a multiple of

    q = 2^(e - 51),   2^e the smallest power of two above the bound

Sums of multiples of q that stay below 2^53 q are exact in float64, so addition is associative: blocks may be
added in any order, on any number of workers, and the bits are the same. The error of a sum of T parts is at most
T q / 2, that is T 2^-51 of the bound: far below what float32 blocks round away, and below lam for any useful lam.
"""

from __future__ import annotations

from typing import Any

import numpy as np

AT_ONCE = 16384
"""Entries rounded together, so that the intermediate result stays in cache."""


def rounder(bound: Any) -> np.ndarray:
    """The constant C for which (x + C) - C is x rounded to the grid of sums bounded by `bound` (elementwise)."""
    bound = np.asarray(bound, np.float64)
    exponent = np.frexp(np.where(bound > 0, bound, 1.0))[1] - 51
    constant: np.ndarray = np.ldexp(1.5, exponent + 52)
    return constant


def add_exactly(total: np.ndarray, part: np.ndarray, C: Any) -> None:
    """total += part rounded to the grid of C; total is C-contiguous, C broadcasts against the first axis."""
    if np.ndim(C):
        rounded = part + C
        rounded -= C
        total += rounded
        return
    total, part = total.ravel(), part.ravel()
    buffer = np.empty(min(AT_ONCE, total.size))
    for i in range(0, total.size, AT_ONCE):
        here = total[i : i + AT_ONCE]
        rounded = buffer[: here.size]
        np.add(part[i : i + AT_ONCE], C, out=rounded, dtype=np.float64)
        rounded -= C
        here += rounded
