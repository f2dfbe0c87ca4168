"""Image descriptors: pixels, oriented gradients, texture, colours.

`pixels`  the bytes, row by row, channel by channel within a pixel: uint8.
`hog`     histograms of oriented gradients of the grey image: 9 directions, cells of 8 x 8 pixels in blocks of 2 x 2.
`lbp`     uniform local binary patterns of the grey image on rings of 8, 16 and 24 points at radius 1, 2 and 3:
          10 + 18 + 26 = 54 frequencies; those of each ring sum to 1.
`color`   a histogram of 4 x 4 x 4 bins of red, green and blue: 64 frequencies that sum to 1.

All but pixels are float32. lbp and color are non-negative, and their length does not depend on the image's size.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from dkl.sources.batch import SourceError

RINGS = ((8, 1), (16, 2), (24, 3))
INSTALL = "pip install 'dkl[images]'"
CONVERTED_MODES = {"1": "L", "P": "RGB", "CMYK": "RGB", "YCbCr": "RGB"}
HOG_LEAST = 16


def pixels(image: Any) -> np.ndarray:
    """The bytes of the image."""
    return np.asarray(image, np.uint8).reshape(-1)


def hog(image: Any) -> np.ndarray:
    """Histograms of oriented gradients."""
    from skimage import feature

    if min(image.size) < HOG_LEAST:
        height, width = image.size[1], image.size[0]
        raise SourceError(f"an image of {height}x{width} is too small for hog; use --resize 32x32")
    return feature.hog(np.asarray(image), orientations=9, pixels_per_cell=(8, 8), cells_per_block=(2, 2)).astype("f4")


def lbp(image: Any) -> np.ndarray:
    """Frequencies of uniform local binary patterns on three rings."""
    from skimage.feature import local_binary_pattern

    grey = np.asarray(image)
    found = []
    for points, radius in RINGS:
        codes = local_binary_pattern(grey, points, radius, method="uniform").astype(np.int64)
        found.append(np.bincount(codes.ravel(), minlength=points + 2) / codes.size)
    return np.concatenate(found).astype(np.float32)


def color(image: Any) -> np.ndarray:
    """Histogram of 64 colour bins."""
    red, green, blue = (np.asarray(image) >> 6).reshape(-1, 3).astype(np.int64).T
    return (np.bincount(16 * red + 4 * green + blue, minlength=64) / len(red)).astype(np.float32)


DESCRIPTORS: dict[str, Callable[[Any], np.ndarray]] = {"pixels": pixels, "hog": hog, "lbp": lbp, "color": color}
COLUMN_PREFIXES = {"pixels": "pixel"}
"""Prefix of column names, if it is not the descriptor's name."""
NEED_EQUAL_SIZES = ("pixels", "hog")
"""Descriptors whose length depends on the image's size."""


def check_installed(path: str, descriptor: str) -> None:
    """Refuse images if a package that reads them is missing."""
    for package in ("PIL.Image", *(("skimage.feature",) if descriptor in ("hog", "lbp") else ())):
        try:
            importlib.import_module(package)
        except ImportError:
            raise SourceError(
                f"{path!r} is a folder of images, which needs {package.split('.')[0]}; {INSTALL}"
            ) from None


def prepared(image: Any, descriptor: str, resize: tuple[int, int] | None) -> Any:
    """The image in the descriptor's mode, resized to (height, width) if asked; shrinking averages pixels."""
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"has mode {image.mode}, which is not 8 bits per channel")
    mode = {"hog": "L", "lbp": "L", "color": "RGB"}.get(descriptor) or CONVERTED_MODES.get(image.mode, image.mode)
    if mode != image.mode:
        image = image.convert(mode)
    if resize is not None and image.size != resize[::-1]:
        from PIL import Image

        image = image.resize(resize[::-1], Image.Resampling.BILINEAR)
    return image
