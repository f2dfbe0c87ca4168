"""Intervals of scores on rows, and of the difference of two scores on the same rows.

A share k / n that was counted has Wilson's interval, (k + z^2/2 +- z sqrt(k (n - k) / n + z^2/4)) / (n + z^2). A mean
or R^2 = 1 - sum e^2 / sum (y - mean)^2 has mean +- z sd(influence) / sqrt(n): what each row adds, to first order. The
difference of two shares on the same rows counts those where one alone is right, with half a row added to each kind
(Agresti and Min), so that it is never of width zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri


class Interval(NamedTuple):
    """A figure, and between which bounds it lies with the confidence asked for."""

    value: float
    low: float
    high: float


def quantile(confidence: float) -> float:
    """z of a two-sided interval."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1; use 0.95")
    return float(ndtri(0.5 + confidence / 2))


def share_interval(right: float, rows: float, confidence: float = 0.95) -> Interval:
    """Wilson's interval of right / rows."""
    z = quantile(confidence)
    half = z * np.sqrt(max(0.0, right * (rows - right) / rows) + z * z / 4)
    low, high = ((right + z * z / 2 + sign * half) / (rows + z * z) for sign in (-1, 1))
    return Interval(right / rows, max(0.0, float(low)), min(1.0, float(high)))


def mean_interval(value: float, influence: np.ndarray, confidence: float = 0.95) -> Interval:
    """value +- z sd(influence) / sqrt(n)."""
    half = quantile(confidence) * float(influence.std(ddof=1 if len(influence) > 1 else 0)) / len(influence) ** 0.5
    return Interval(float(value), float(value) - half, float(value) + half)


def share_difference(first: np.ndarray, second: np.ndarray, confidence: float = 0.95) -> Interval:
    """Share of rows where `first` is right less that of `second`, of the same rows."""
    only, other, n = int((first & ~second).sum()), int((second & ~first).sum()), len(first) + 2
    middle, z = (only - other) / n, quantile(confidence)
    half = z * np.sqrt(max(0.0, (only + other + 1) - (only - other) ** 2 / n)) / n
    return Interval((only - other) / len(first), max(-1.0, middle - float(half)), min(1.0, middle + float(half)))


def r2_influence(square: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """What each row adds to R^2, of its squared error and its squared distance from the mean: zero on average."""
    variance = distance.mean()
    return -(square - square.mean() / variance * distance) / variance
