"""Parameters of Gabor filters: a grid of 81, or drawn at random; and the shape of the patches they look at.

    grid     9 orientations, 20 degrees apart  x  frequencies 0.1, 0.2, 0.4  x  widths of 1, 2, 4 pixels
    random   orientation uniform, frequency log-uniform from one cycle of the longer side to 1/2,
             widths log-uniform from 1 pixel to half the shorter side (at least 2 pixels)

A wave of less than one cycle in the patch is a gradient, and one above 1/2 looks like a slower one.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, TypeVar

import numpy as np

from dkl.checks import check_count
from dkl.features.gabor import GaborMap
from dkl.sums.row_norms import RowNorms

ORIENTATIONS, FREQUENCIES, WIDTHS = 9, (0.1, 0.2, 0.4), (1.0, 2.0, 4.0)
GRID = ORIENTATIONS * len(FREQUENCIES) * len(WIDTHS)
"""Filters of the grid."""
HIGHEST = 0.5
"""Cycles for each pixel: the wave alternates from one pixel to the next."""

G = TypeVar("G", bound=GaborMap)
Parameters = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Orientation, frequency, and widths along and across the wave."""


def shape_of(image_shape: Any, inputs: int) -> tuple[int, int]:
    """Height and width of a patch of so many pixels; None stands for a square."""
    if image_shape is None:
        side = isqrt(inputs)
        if side * side != inputs:
            raise ValueError(f"image_shape=None and {inputs} inputs, which are no square; give (height, width)")
        shape = side, side
    else:
        height, width = image_shape
        shape = int(height), int(width)
    if shape[0] * shape[1] != inputs:
        raise ValueError(
            f"image_shape={image_shape!r} has {shape[0] * shape[1]} pixels, but X has {inputs} inputs; give the height "
            "and width of grey patches (of colour ones, make each colour a channel)"
        )
    if inputs < 2:
        raise ValueError(f"image_shape={image_shape!r} is one pixel, to which no filter responds; use larger patches")
    return shape


def filter_count(n_components: Any) -> int:
    """Filters of an estimator's parameter; None stands for the grid."""
    return GRID if n_components is None else check_count("n_components", n_components)


def grid_of_filters() -> Parameters:
    """The parameters of every filter of the grid."""
    turned = np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS
    width, frequency, orientation = (
        axis.ravel() for axis in np.meshgrid(WIDTHS, FREQUENCIES, turned, indexing="ij")
    )  # fmt: skip
    return orientation, frequency, width, width.copy()


def draw_filters(shape: tuple[int, int], count: int, rng: np.random.Generator) -> Parameters:
    """The parameters of so many filters at random."""
    most = np.log(widest(shape))
    return (
        rng.uniform(0, np.pi, count),
        np.exp(rng.uniform(np.log(lowest(shape)), np.log(HIGHEST), count)),
        np.exp(rng.uniform(0, most, count)),
        np.exp(rng.uniform(0, most, count)),
    )


def lowest(shape: tuple[int, int]) -> float:
    """One cycle of the longer side."""
    return min(1 / max(shape), HIGHEST)


def widest(shape: tuple[int, int]) -> float:
    """Half the shorter side."""
    return max(2.0, min(shape) / 2)


def gabor_map(shape: tuple[int, int], stride: int, filters: Parameters, norms: RowNorms, kind: type[G] = GaborMap) -> G:  # type: ignore[assignment]
    """The map of some filters in units of the rows; rows that are all constant have no unit, and no response."""
    typical, largest = norms.typical or 1.0, norms.largest or 1.0
    return kind(shape, stride, *filters, typical, largest)
