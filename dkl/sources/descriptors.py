"""Image descriptors: pixels, oriented gradients, texture, colours.

`pixels`  the bytes, row by row, channel by channel within a pixel: uint8.
`hog`     histograms of oriented gradients of the grey image: 9 directions, cells of 8 x 8 pixels in blocks of 2 x 2;
          hog:4 has cells of 4 x 4 pixels.
`lbp`     uniform local binary patterns of the grey image on rings of 8, 16 and 24 points at radius 1, 2 and 3:
          10 + 18 + 26 = 54 frequencies; those of each ring sum to 1.
`color`   a histogram of 4 x 4 x 4 bins of red, green and blue: 64 frequencies that sum to 1.

All but pixels are float32. lbp and color are non-negative, and their length does not depend on the image's size.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dkl.checks import check_choice
from dkl.sources.batch import SourceError

RINGS = ((8, 1), (16, 2), (24, 3))
INSTALL = "pip install 'dkl[images]'"
CONVERTED_MODES = {"1": "L", "P": "RGB", "CMYK": "RGB", "YCbCr": "RGB"}
CELL = 8
"""Side of a cell of hog, in pixels."""


def pixels(image: Any) -> np.ndarray:
    """The bytes of the image."""
    return np.asarray(image, np.uint8).reshape(-1)


def hog(image: Any, cell: int = CELL) -> np.ndarray:
    """Histograms of oriented gradients."""
    from skimage import feature

    if min(image.size) < 2 * cell:
        height, width = image.size[1], image.size[0]
        name = "hog" if cell == CELL else f"hog:{cell}"
        raise SourceError(f"an image of {height}x{width} is too small for {name}; use --resize {4 * cell}x{4 * cell}")
    found = feature.hog(np.asarray(image), orientations=9, pixels_per_cell=(cell, cell), cells_per_block=(2, 2))
    return found.astype("f4")


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


class Descriptor(NamedTuple):
    """What is measured on an image."""

    measure: Callable[[Any], np.ndarray]
    column: str  # what its columns are called
    mode: str | None = None  # of Pillow; None: as the image is
    needs_equal_sizes: bool = False  # its length depends on the size of the image
    package: str | None = None  # beside Pillow


DESCRIPTORS = {
    "pixels": Descriptor(pixels, "pixel", needs_equal_sizes=True),
    "hog": Descriptor(hog, "hog", "L", needs_equal_sizes=True, package="skimage.feature"),
    "lbp": Descriptor(lbp, "lbp", "L", package="skimage.feature"),
    "color": Descriptor(color, "color", "RGB"),
}


def find_descriptor(text: str) -> Descriptor:
    """The descriptor of a name; hog may have the side of its cells behind a colon."""
    name, colon, cell = text.partition(":")
    try:
        check_choice("descriptor", name, DESCRIPTORS)
    except ValueError as error:
        raise SourceError(str(error)) from None
    found = DESCRIPTORS[name]
    if not colon:
        return found
    if found.measure is not hog or not cell.isdecimal() or int(cell) < 2:
        raise SourceError(f"descriptor={text!r}: only hog has a number behind its colon, the side of a cell: hog:4")
    return found._replace(measure=partial(hog, cell=int(cell)))


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, colours) of rows of that shape; None if they are no images."""
    if len(shape) == 2:
        return (*shape, 1)
    return shape if len(shape) == 3 and shape[2] in (1, 3, 4) else None


def check_installed(path: str, descriptor: Descriptor) -> None:
    """Refuse images if a package that reads them is missing."""
    for package in filter(None, ("PIL.Image", descriptor.package)):
        try:
            importlib.import_module(package)
        except ImportError:
            raise SourceError(f"{path!r} holds images, which needs {package.split('.')[0]}; {INSTALL}") from None


def prepared(image: Any, descriptor: Descriptor, resize: tuple[int, int] | None) -> Any:
    """The image in the descriptor's mode, resized to (height, width) if asked; shrinking averages pixels."""
    if image.mode.startswith(("I", "F")):
        raise ValueError(f"has mode {image.mode}, which is not 8 bits per channel")
    mode = descriptor.mode or CONVERTED_MODES.get(image.mode, image.mode)
    if mode != image.mode:
        image = image.convert(mode)
    if resize is not None and image.size != resize[::-1]:
        from PIL import Image

        image = image.resize(resize[::-1], Image.Resampling.BILINEAR)
    return image
